"""``transformers:PATH_OR_NAME``: encoders (BERT, ViT and their relatives)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trtdeploy.core.arrays import Array
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.export.arguments import parse_settings
from trtdeploy.export.exporting import refuse_options
from trtdeploy.export.framework_import import explain_broken_framework, import_framework
from trtdeploy.export.pytorch.failure import shorten
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.source import TorchSource, ValueMaker
from trtdeploy.export.pytorch.weights import check_loaded
from trtdeploy.export.request import ExportRequest

_TEXT_AXES = {0: "batch", 1: "sequence"}
_EXAMPLE_BATCH, _EXAMPLE_TOKENS = 2, 24
_NUMBER = re.compile(r"\d+")
_SHOWN = 3
_EAGER = ("t5", "mt5", "umt5")
"""Their biased attention, fused, leaves strides that PyTorch's exporter cannot view."""


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Load configuration and weights from a folder, or by name where ``--download`` allows that.

    Code that a folder brings along (``auto_map`` in its ``config.json``) is never run.

    ``--config KEY=VALUE`` replaces entries of ``config.json``; ``model_type`` is needed where
    the file is not the one of the model.

    Raises:
        InputError: The folder lacks something, needs code of its own, or its weights and
            configuration do not fit together.
        UsageError: ``--weights`` is given: the folder holds them; or a setting has no such name.
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
    notes = _check_unused(name, model, report["unexpected_keys"])
    source = _choose_maker(model, name)(model, config)
    source.notes += notes
    return source


def _choose_maker(model: Any, name: str) -> Callable[[torch.nn.Module, Any], TorchSource]:
    main = getattr(model, "main_input_name", "input_ids")
    makers = {"input_ids": _make_text_source, "pixel_values": _make_image}
    if main not in makers:
        raise InputError(
            f"{name} is a {type(model).__name__}, which takes {main!r}; examples are known for "
            f"{' and '.join(makers)}",
            hint="Write FILE.py with a make() that returns the model (or its encoder) and a "
            f"dictionary with an example of {main}, and export FILE.py:make.",
        )
    return makers[main]


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
        config = package.AutoConfig.from_pretrained(
            name, local_files_only=not download, trust_remote_code=False
        )
    except Exception as error:
        _refuse_own_code(name, error)
        raise InputError(
            f"transformers finds no model {name!r} {'' if download else 'on this machine '}"
            f"({shorten(error)})",
            hint="Give the path of a folder with config.json and model.safetensors"
            + ("." if download else ", or --download to fetch it by name."),
        ) from error
    _check_settings(config, settings)
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
        _check_settings(package.AutoConfig.for_model(str(kind)), settings)
        return package.AutoConfig.for_model(str(kind), **settings)
    except UsageError:
        raise
    except Exception as error:
        raise InputError(f"--config model_type={kind}: {shorten(error)}") from error


def _check_settings(config: Any, settings: Mapping[str, object]) -> None:
    """Refuse names that a configuration would take and no model would read."""
    known = {*config.to_dict(), *config.attribute_map}
    for key in settings:
        if key not in known:
            raise UsageError(
                f"--config {key}: a {config.model_type} model has no such setting",
                hint=suggest_name(key, known),
            )


def _refuse_own_code(name: str, error: Exception) -> None:
    if "trust_remote_code" in str(error):
        raise InputError(
            f"{name} is a model with code of its own, which is not run",
            hint="Read that code; if you trust it, write FILE.py with a make() that returns the "
            "model, and export FILE.py:make.",
        ) from error


def _load_model(package: Any, name: str, config: Any, *, download: bool) -> Any:
    config.use_cache = False
    kind = _find_class(package, str((getattr(config, "architectures", None) or [""])[0]))
    try:
        return kind.from_pretrained(
            name,
            config=config,
            local_files_only=not download,
            output_loading_info=True,
            dtype=torch.float32,
            **({"attn_implementation": "eager"} if config.model_type in _EAGER else {}),
            ignore_mismatched_sizes=True,
            trust_remote_code=False,
        )
    except Exception as error:
        _refuse_own_code(name, error)
        raise InputError(
            f"transformers cannot load the weights of {name}: {shorten(error)}", hint=_CONFIG_HINT
        ) from error


def _check_unused(name: str, model: Any, unused: Iterable[str]) -> list[str]:
    """Refuse weights of the very kind the model has, in a place it lacks; note all others.

    Whole heads are left out where the encoder alone is asked for; a layer never is.
    """
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    kinds = {_to_kind(key, prefix) for key in model.state_dict()}
    left = sorted(unused)
    cut = [key for key in left if _to_kind(key, prefix) in kinds]
    if cut:
        raise InputError(
            f"{name} holds {len(cut)} weights of layers that the model lacks: {_show(cut)}",
            hint=_CONFIG_HINT,
        )
    return [f"{len(left)} weights of {name} have no place in {type(model).__name__}: {_show(left)}"
            ] if left else []  # fmt: skip


def _to_kind(key: str, prefix: str) -> str:
    return _NUMBER.sub("#", key.removeprefix(prefix))


def _show(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" ..." if len(names) > _SHOWN else "")


def _find_class(package: Any, architecture: str) -> Any:
    try:
        # the code of a model is imported when its class is asked for
        found = getattr(package, architecture, None)
    except (ImportError, RuntimeError) as error:
        raise explain_broken_framework("transformers", error) from error
    is_model = isinstance(found, type) and issubclass(found, package.PreTrainedModel)
    return found if is_model else package.AutoModel


def _make_text_source(model: torch.nn.Module, config: Any) -> TorchSource:
    words, padding = int(getattr(config, "vocab_size", 2)), getattr(config, "pad_token_id", None)
    positions = getattr(config, "max_position_embeddings", None)
    shape = (_EXAMPLE_BATCH, min(_EXAMPLE_TOKENS, int(positions or _EXAMPLE_TOKENS)))
    rng = np.random.default_rng(0)

    def make_ids(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        ids = np.asarray(rng.integers(0, words, shape), np.int64)
        # padding is no word: models that count positions would count fewer
        return np.where(ids == padding, (ids + 1) % words, ids)

    makers: dict[str, ValueMaker] = {"input_ids": make_ids, "attention_mask": _make_mask}
    example = {name: torch.from_numpy(make(rng, shape)) for name, make in makers.items()}
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
