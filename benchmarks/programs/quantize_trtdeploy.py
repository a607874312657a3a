"""INT8 by trtdeploy: ``quantize_trtdeploy.py SOURCE TARGET DATA.npy METHOD``.

Calibrates, writes the Q/DQ model, and ``calibration.json`` beside it, as a build does.
"""

import sys
from pathlib import Path

from trtdeploy.calibration.calibrating import CalibrationRequest, calibrate_model
from trtdeploy.calibration.document import save_statistics
from trtdeploy.calibration.methods import MethodChoice
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.graph.hashing import hash_model
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

source, target, data, method = sys.argv[1:]
recipe, choice = find_recipe("int8-fp32"), MethodChoice(method)
model = load_model(source)
prepared = prepare_for_quantization(model, recipe)
plan = plan_quantization(build_index(prepared), recipe)
shapes = {
    spec.name: tuple(1 if isinstance(dim, str) else dim for dim in spec.shape or ())
    for spec in prepared.input_specs()
}
sizes = {name: ShapeRange(shape, shape, shape) for name, shape in shapes.items()}
statistics = calibrate_model(
    CalibrationRequest(
        prepared,
        hash_model(model),
        plan.measured,
        OptimizationProfile("default", sizes),
        (Path(data),),
    )
)
typed = apply_recipe(model, TypingOptions(recipe, amax=statistics.compute_amax(choice)))
save_model(typed.model, Path(target))
save_statistics(statistics, Path(target).with_suffix(".json"), choice)
