"""``timm:NAME``: image models of timm."""

from __future__ import annotations

from typing import Any

from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.export.arguments import parse_settings
from trtdeploy.export.framework_import import import_framework
from trtdeploy.export.pytorch.image_example import build_image_model, make_image_source
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Build the model; random weights unless ``--weights`` or ``--download`` gives trained ones.

    Raises:
        UsageError: timm has no such model.
        InputError: The settings or the weights do not fit it.
    """
    timm: Any = import_framework("timm", needed_for="timm models", install="pip install timm")
    if not timm.is_model(name.partition(".")[0]):
        raise UsageError(f"timm has no model {name!r}", hint=suggest_name(name, timm.list_models()))

    def build(trained: bool, settings: dict[str, object]) -> Any:
        return timm.create_model(name, pretrained=trained, **settings)

    model, notes = build_image_model(request, "timm", name, build)
    settings = parse_settings(request.config)
    channels, height, _ = model.default_cfg.get("input_size", (3, 224, 224))
    size, given = settings.get("img_size"), settings.get("in_chans")
    return make_image_source(
        model,
        size if isinstance(size, int) else height,
        notes,
        channels=given if isinstance(given, int) else channels,
    )
