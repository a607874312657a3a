"""``transformers:PATH_OR_NAME``: encoders (BERT, ViT and their relatives)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.arguments import parse_settings
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.framework_import import explain_broken_framework, import_framework
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import Array, TorchSource, ValueMaker
from trtdeploy.export.pytorch.weights import check_loaded
from trtdeploy.export.request import ExportRequest

_TEXT_AXES = {0: "batch", 1: "sequence"}
_EXAMPLE_BATCH, _EXAMPLE_TOKENS = 2, 24
_FAILURES = (OSError, ValueError, RuntimeError, KeyError, TypeError, AttributeError)


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load configuration and weights from a folder, or by name where ``--download`` allows that.

    ``--config KEY=VALUE`` replaces entries of ``config.json``; ``model_type`` is needed where
    the file is not the one of the model.

    Raises:
        InputError: The folder lacks something, or weights and configuration do not fit together.
        UsageError: ``--weights`` is given: the folder holds them.
    """
    refuse_options(request, "transformers", "weights")
    package: Any = import_framework(
        "transformers", needed_for="transformers models", install="pip install transformers"
    )
    settings = parse_settings(request.config)
    with quiet_frameworks():
        config = _load_config(package, name, settings, download=request.download)
        model, report = _load_model(package, name, config, download=request.download)
    check_loaded(name, report["missing_keys"], report["mismatched_keys"], _CONFIG_HINT)
    main = getattr(model, "main_input_name", "input_ids")
    return _make_text_source(model, config) if main == "input_ids" else _make_image(model, config)


_CONFIG_HINT = (
    "Sizes in config.json differ from those of the weights; correct them, e.g. "
    "--config num_hidden_layers=6,hidden_size=384,intermediate_size=1536."
)


def _load_config(package: Any, name: str, settings: dict[str, object], *, download: bool) -> Any:
    stored: dict[str, object] = {}
    path = Path(name) / "config.json"
    if Path(name).is_dir() and path.is_file():
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path} is no JSON: {error}") from error
        if "model_type" not in stored:
            return _build_config(package, path, settings)
    try:
        config = package.AutoConfig.from_pretrained(name, local_files_only=not download)
    except _FAILURES as error:
        raise InputError(
            f"transformers finds no model {name!r} {'' if download else 'on this machine '}"
            f"({str(error).splitlines()[0]})",
            hint="Give the path of a folder with config.json and model.safetensors"
            + ("." if download else ", or --download to fetch it by name."),
        ) from error
    for key, value in settings.items():
        setattr(config, key, value)
    return config


def _build_config(package: Any, path: Path, settings: dict[str, object]) -> Any:
    """Make the configuration from ``--config`` alone: the file describes something else."""
    kind = settings.pop("model_type", None)
    if kind is None:
        raise InputError(
            f"{path} names no model_type: it is not the configuration of a transformers model",
            hint="State it: --config model_type=bert,num_hidden_layers=6,hidden_size=384,"
            "num_attention_heads=12,intermediate_size=1536 (the rest are the type's defaults).",
        )
    try:
        return package.AutoConfig.for_model(str(kind), **settings)
    except _FAILURES as error:
        raise InputError(f"--config model_type={kind}: {error}") from error


def _load_model(package: Any, name: str, config: Any, *, download: bool) -> Any:
    config.use_cache = False
    kind = _find_class(package, (getattr(config, "architectures", None) or [""])[0])
    try:
        return kind.from_pretrained(
            name,
            config=config,
            local_files_only=not download,
            output_loading_info=True,
            dtype=torch.float32,
            ignore_mismatched_sizes=True,
        )
    except _FAILURES as error:
        raise InputError(
            f"transformers cannot load the weights of {name}: {error}", hint=_CONFIG_HINT
        ) from error


def _find_class(package: Any, architecture: str) -> Any:
    try:
        # the code of a model is imported when its class is asked for
        return getattr(package, architecture, package.AutoModel)
    except (ImportError, RuntimeError) as error:
        raise explain_broken_framework("transformers", error) from error


def _make_text_source(model: torch.nn.Module, config: Any) -> TorchSource:
    words = int(getattr(config, "vocab_size", 2))
    shape = (_EXAMPLE_BATCH, _EXAMPLE_TOKENS)
    rng = np.random.default_rng(0)

    def make_ids(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        return np.asarray(rng.integers(0, words, shape), np.int64)

    makers: dict[str, ValueMaker] = {"input_ids": make_ids, "attention_mask": _make_mask}
    example = {name: torch.from_numpy(make(rng, shape)) for name, make in makers.items()}
    positions = getattr(config, "max_position_embeddings", None)
    return TorchSource(
        model,
        kwargs=example,
        dynamic=dict.fromkeys(makers, _TEXT_AXES),
        limits={"sequence": int(positions)} if positions else {},
        makers=makers,
    )


def _make_mask(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mask a different tail of each row, as padding does; the first token always counts."""
    lengths = rng.integers(1, shape[1], (shape[0], 1), endpoint=True)
    return np.asarray(np.arange(shape[1])[None] < lengths, np.int64)


def _make_image(model: torch.nn.Module, config: Any) -> TorchSource:
    size, channels = getattr(config, "image_size", 224), getattr(config, "num_channels", 3)
    height, width = (size, size) if isinstance(size, int) else tuple(size)
    pixels = torch.rand((_EXAMPLE_BATCH, channels, height, width), generator=torch.Generator())
    return TorchSource(
        model, kwargs={"pixel_values": pixels}, dynamic={"pixel_values": {0: "batch"}}
    )
