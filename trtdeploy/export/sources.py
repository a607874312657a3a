"""SOURCE as typed: which adapter gets it."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path
from typing import Final, Literal

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.names import suggest_name

Kind = Literal[
    "onnx", "callable", "program", "torchscript", "ultralytics", "torchvision", "timm",
    "transformers",
]  # fmt: skip

PREFIXES: Final[tuple[Kind, ...]] = ("torchvision", "timm", "transformers", "ultralytics")
FORMS: Final = (
    "module:callable", "torchvision:NAME", "timm:NAME", "transformers:PATH_OR_NAME",
    "yolov8n.yaml", "model.pt2", "model.onnx",
)  # fmt: skip

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_PICKLE = "/data.pkl"
_HEAD_BYTES = 1 << 20


def parse_source(text: str) -> tuple[Kind, str]:
    """Recognise a source by its prefix, its file's suffix and, for ``.pt``, its content.

    Returns:
        Which adapter gets it, and what that is told: a path, a name, ``module:callable``.

    Raises:
        UsageError: Of no known form.
        InputError: A file that holds weights without a model, or does not exist.
    """
    prefix, colon, rest = text.partition(":")
    for kind in PREFIXES:
        if colon and prefix == kind:
            if not rest:
                raise UsageError(
                    f"{text!r}: a name is missing", hint=f"For example: {_EXAMPLES[kind]}"
                )
            return kind, rest
    suffix = Path(text).suffix.lower()
    if suffix == ".onnx":
        return "onnx", text
    if suffix == ".pt2":
        return "program", _require_file(text)
    if suffix in (".yaml", ".yml"):
        return "ultralytics", text
    if suffix in (".pt", ".pth", ".ts", ".torchscript"):
        return _recognise_checkpoint(text), text
    if colon and _DOTTED.fullmatch(rest) and (_DOTTED.fullmatch(prefix) or prefix.endswith(".py")):
        return "callable", text
    raise UsageError(
        f"{text!r} is no source that can be exported; expected one of {', '.join(FORMS)}",
        hint=suggest_name(text, [*PREFIXES, *FORMS]),
    )


_EXAMPLES: Final = {
    "torchvision": "torchvision:resnet50",
    "timm": "timm:vit_tiny_patch16_224",
    "transformers": "transformers:./all-MiniLM-L6-v2",
    "ultralytics": "ultralytics:yolov8n.yaml",
}


def _require_file(text: str) -> str:
    if not Path(text).is_file():
        raise InputError(f"{text} does not exist or is no file", hint="Check the path.")
    return text


def _recognise_checkpoint(text: str) -> Kind:
    """Tell TorchScript from a pickled Ultralytics model, without loading either."""
    path = Path(text)
    if not path.is_file():
        if _is_ultralytics_name(path):
            return "ultralytics"  # its own name for weights that it can fetch
        _require_file(text)
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if any("/code/" in name for name in names):
                return "torchscript"
            pickle = next((name for name in names if name.endswith(_PICKLE)), "")
            head = archive.open(pickle).read(_HEAD_BYTES) if pickle else b""
    except (zipfile.BadZipFile, OSError):
        head = b""
    except (zlib.error, RuntimeError, EOFError, ValueError) as error:
        raise InputError(
            f"{text} is damaged or encrypted: {error}", hint="Copy or save it again."
        ) from error
    if b"ultralytics" in head:
        return "ultralytics"
    raise InputError(
        f"{text} holds weights without the model they belong to (or is no file of PyTorch)",
        hint=f"Name the model, and give these as its weights: torchvision:NAME --weights {text}, "
        f"timm:NAME --weights {text}, or module:callable --weights {text}.",
    )


def _is_ultralytics_name(path: Path) -> bool:
    return path.suffix == ".pt" and path.stem.lower().startswith(
        ("yolo", "rtdetr", "sam", "fastsam")
    )
