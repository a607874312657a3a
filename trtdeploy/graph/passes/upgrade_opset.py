"""UpgradeOpsetPass: raise the operator set and the IR version to what a recipe needs."""

from __future__ import annotations

from onnx import ModelProto, defs, helper, version_converter
from onnx import __version__ as version

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import ONNX_DOMAINS, ONNX_ERRORS, OnnxModel, walk_nodes
from trtdeploy.graph.onnx_defects import SHIELDED_DOMAIN, is_dangerous, shield_crashing_nodes
from trtdeploy.graph.passes.name_nodes import NameNodesPass
from trtdeploy.graph.passes.promote_constants import PromoteConstantsPass


class UpgradeOpsetPass:
    """Convert the default operator set to at least ``opset``.

    Before: opset 11, IR 6. After ``UpgradeOpsetPass(19)``: opset 19, IR 9; same results.
    Ensures: ``model.opset >= opset``, an IR version that has that opset's types, and a model as
    normalised as before (the converter adds Constant nodes without names).
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            ModelFileError: The ONNX version converter has no path for an operator of the model.
        """
        before, before_ir = model.opset, model.proto.ir_version
        if before < self.opset:
            self._convert(model)
            PromoteConstantsPass()(model)
            NameNodesPass()(model)
            model.changes.append(f"opset raised from {before} to {self.opset}")
        needed = helper.find_min_ir_version_for([helper.make_opsetid("", model.opset)], True)
        if before_ir < needed:
            model.proto.ir_version = needed
            model.changes.append(f"IR version raised from {before_ir} to {needed}")

    def _convert(self, model: OnnxModel) -> None:
        before = model.opset
        if self.opset > defs.onnx_opset_version():
            raise ModelFileError(
                f"{model.path}: opset {before} cannot be raised to {self.opset}: onnx {version} "
                f"knows opsets up to {defs.onnx_opset_version()}",
                hint="Ask for a lower one, or upgrade the onnx package.",
            )
        try:
            converted = _convert_safely(model.proto, self.opset)
        except ONNX_ERRORS as error:
            raise ModelFileError(
                f"{model.path}: opset {before} cannot be raised to {self.opset}: {error}",
                hint=f"Export the model again with opset {self.opset}.",
            ) from error
        # the converter drops the other domains, and fields of the model that it does not know
        model.graph.CopyFrom(converted.graph)
        others = [o for o in model.proto.opset_import if o.domain not in ONNX_DOMAINS]
        del model.proto.opset_import[:]
        model.proto.opset_import.extend([helper.make_opsetid("", self.opset), *others])


def _convert_safely(proto: ModelProto, opset: int) -> ModelProto:
    """Convert around the nodes that would take onnx down; they are the same in every opset."""
    domains = {node.output[0]: node.domain for node in walk_nodes(proto.graph) if node.output}
    if any(is_dangerous(node) for node in walk_nodes(proto.graph)):
        guarded = ModelProto()
        guarded.CopyFrom(proto)
        shield_crashing_nodes(guarded.graph)
        guarded.opset_import.add(domain=SHIELDED_DOMAIN, version=1)
        proto = guarded
    converted = version_converter.convert_version(proto, opset)
    for node in walk_nodes(converted.graph):
        if node.domain == SHIELDED_DOMAIN:
            node.domain = domains[node.output[0]]
    return converted
