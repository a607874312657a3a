"""The form every later layer expects a model to be in."""

from __future__ import annotations

from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.check_nodes import CheckNodesPass
from trtdeploy.graph.passes.check_values import CheckValuesPass
from trtdeploy.graph.passes.clear_anonymous_dims import ClearAnonymousDimsPass
from trtdeploy.graph.passes.drop_initializer_inputs import DropInitializerInputsPass
from trtdeploy.graph.passes.inline_functions import InlineFunctionsPass
from trtdeploy.graph.passes.name_nodes import NameNodesPass
from trtdeploy.graph.passes.promote_constants import PromoteConstantsPass
from trtdeploy.graph.passes.remove_identities import RemoveIdentitiesPass
from trtdeploy.graph.passes.sort_nodes import SortNodesPass


def normalize_model(model: OnnxModel) -> OnnxModel:
    """Return a copy: nodes named and sorted, constants as initializers, nothing superfluous.

    Raises:
        ModelFileError: The graph is not one that any runtime could execute.
    """
    copied = model.copy()
    for apply in (
        CheckNodesPass(),
        CheckValuesPass(),
        InlineFunctionsPass(),
        DropInitializerInputsPass(),
        PromoteConstantsPass(),
        SortNodesPass(),
        RemoveIdentitiesPass(),
        NameNodesPass(),
        ClearAnonymousDimsPass(),
    ):
        apply(copied)
    return copied
