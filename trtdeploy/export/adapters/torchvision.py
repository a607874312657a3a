"""``torchvision:NAME``: image models by their registered name; video models need ``--input``."""

from __future__ import annotations

from typing import Any

from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.export.framework_import import import_framework
from trtdeploy.export.pytorch.image_example import build_image_model, make_image_source
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.request import ExportRequest

_USUAL_SIZE = 224


def load_source(request: ExportRequest, name: str) -> TorchSource:
    """Build the model; random weights unless ``--weights`` or ``--download`` gives trained ones.

    Raises:
        UsageError: torchvision has no such model.
        InputError: The settings or the weights do not fit it.
    """
    models: Any = import_framework(
        "torchvision.models", needed_for="torchvision models", install="pip install torchvision"
    )
    if name not in models.list_models():
        raise UsageError(
            f"torchvision has no model {name!r}", hint=suggest_name(name, models.list_models())
        )

    def build(trained: bool, settings: dict[str, object]) -> Any:
        weights = "DEFAULT" if trained else None
        return models.get_model(name, weights=weights, **_no_backbone(name), **settings)

    model, notes = build_image_model(request, "torchvision", name, build)
    return make_image_source(model, _USUAL_SIZE, notes)


def _no_backbone(name: str) -> dict[str, None]:
    """Detectors and segmenters would fetch trained backbones unless told not to."""
    nested = ("rcnn", "retinanet", "fcos", "ssd", "deeplab", "fcn", "lraspp")
    return {"weights_backbone": None} if any(word in name for word in nested) else {}
