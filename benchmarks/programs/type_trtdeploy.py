"""FP16 typing by trtdeploy: ``type_trtdeploy.py SOURCE TARGET``."""

import sys
from pathlib import Path

from trtdeploy.config.recipe import find_recipe
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

typed = apply_recipe(load_model(sys.argv[1]), TypingOptions(find_recipe("fp16")))
save_model(typed.model, Path(sys.argv[2]))
