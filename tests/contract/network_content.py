"""A fake network: what the stand-in's parser "finds" in a model, whatever the model is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .standin_context import Behaviour, StandinContext

PARSING_METHODS = ("parse", "parse_from_file", "parse_model_proto", "parse_with_weight_descriptors")


@dataclass(frozen=True)
class TensorContent:
    """One tensor; `dtype` is the name of a member of trt.DataType, -1 a dynamic dimension."""

    name: str
    dtype: str = "FLOAT"
    shape: tuple[int, ...] = (1, 3, 8, 8)
    is_shape_tensor: bool = False


@dataclass(frozen=True)
class LayerContent:
    """One layer; `type` is the name of a member of trt.LayerType, `inputs` are tensor names."""

    name: str
    type: str = "IDENTITY"
    inputs: tuple[str, ...] = ()
    outputs: tuple[TensorContent, ...] = ()
    metadata: str = ""


@dataclass(frozen=True)
class NetworkContent:
    """A network; `outputs` are names of tensors that layers give."""

    inputs: tuple[TensorContent, ...] = (TensorContent("input"),)
    layers: tuple[LayerContent, ...] = (
        LayerContent("identity", inputs=("input",), outputs=(TensorContent("output"),)),
    )
    outputs: tuple[str, ...] = ("output",)


def populate_network(context: StandinContext, network: Any, content: NetworkContent) -> None:
    """Fill a network with the objects that TensorRT would have made from a model."""
    tensors = {t.name: make_tensor(context, t, is_input=True) for t in content.inputs}
    layers = []
    for layer in content.layers:
        outputs = [make_tensor(context, t) for t in layer.outputs]
        tensors.update((t.name, tensor) for t, tensor in zip(layer.outputs, outputs, strict=True))
        inputs = [tensors[name] for name in layer.inputs]
        layers.append(make_layer(context, layer, inputs, outputs))
    marked = [tensors[name] for name in content.outputs]
    for tensor in marked:
        tensor._state["is_network_output"] = True
    network._state.update(
        inputs=[tensors[t.name] for t in content.inputs], layers=layers, outputs=marked
    )


def make_tensor(context: StandinContext, content: TensorContent, *, is_input: bool = False) -> Any:
    """Create an ITensor."""
    return context.make(
        "ITensor",
        name=content.name,
        dtype=context.member("DataType", content.dtype),
        shape=content.shape,
        is_shape_tensor=content.is_shape_tensor,
        is_execution_tensor=not content.is_shape_tensor,
        is_network_input=is_input,
    )


def make_layer(
    context: StandinContext, content: LayerContent, inputs: Sequence[Any], outputs: Sequence[Any]
) -> Any:
    """Create an ILayer, which is all that TensorRT's Python gives when a network is asked."""
    return context.make(
        "ILayer",
        name=content.name,
        type=context.member("LayerType", content.type),
        inputs=inputs,
        outputs=outputs,
        metadata=content.metadata,
    )


def build_network_behaviours(context: StandinContext) -> dict[str, Behaviour]:
    """Return the answers of the parser, the network, its layers and the built engine."""
    return {
        **{f"OnnxParser.{name}": _parse_with(context) for name in PARSING_METHODS},
        **_list_behaviours("INetworkDefinition", ("input", "output", "layer")),
        "INetworkDefinition.builder": lambda network: network._state.get("creator"),
        "INetworkDefinition.flags": lambda network: network._state.get("creation_flags", 0),
        "INetworkDefinition.get_flag": _get_creation_flag,
        "INetworkDefinition.add_input": _add_input_with(context),
        "INetworkDefinition.mark_output": _mark_output,
        **_list_behaviours("ILayer", ("input", "output")),
        "ILayer.get_output_type": _get_output_type,
        "ILayer.set_output_type": lambda layer, i, dtype: layer._state.update({f"type{i}": dtype}),
        "ILayer.output_type_is_set": lambda layer, index: f"type{index}" in layer._state,
        "ILayer.reset_output_type": lambda layer, index: layer._state.pop(f"type{index}", None),
        "ILayer.precision_is_set": lambda layer: "precision" in layer._state,
        "ILayer.reset_precision": lambda layer: layer._state.pop("precision", None),
    }


def build_engine_behaviours(context: StandinContext) -> dict[str, Behaviour]:
    """Return the answers of an engine: the inputs and outputs of the fake network."""

    def tensors() -> dict[str, TensorContent]:
        content = context.settings["network"]
        made = {t.name: t for layer in content.layers for t in layer.outputs}
        return {t.name: t for t in content.inputs} | {name: made[name] for name in content.outputs}

    def mode(_engine: Any, name: str) -> object:
        is_input = name in {t.name for t in context.settings["network"].inputs}
        is_known = is_input or name in tensors()
        kind = ("INPUT" if is_input else "OUTPUT") if is_known else "NONE"
        return context.member("TensorIOMode", kind)

    return {
        "ICudaEngine.num_io_tensors": lambda _engine: len(tensors()),
        "ICudaEngine.num_optimization_profiles": lambda _engine: 1,
        "ICudaEngine.get_tensor_name": lambda _engine, index: list(tensors())[index],
        "ICudaEngine.get_tensor_mode": mode,
        "ICudaEngine.get_tensor_shape": lambda _engine, name: tensors()[name].shape,
        "ICudaEngine.get_tensor_dtype": lambda _engine, name: context.member(
            "DataType", tensors()[name].dtype
        ),
        "ICudaEngine.is_shape_inference_io": lambda _e, name: tensors()[name].is_shape_tensor,
    }


def _list_behaviours(class_name: str, items: Sequence[str]) -> dict[str, Behaviour]:
    """Return ``num_items`` and ``get_item`` of lists that the object's state holds."""
    found: dict[str, Behaviour] = {}
    for item in items:

        def count(owner: Any, key: str = f"{item}s") -> int:
            return len(owner._state.get(key, ()))

        def get(owner: Any, index: int, key: str = f"{item}s") -> object:
            held = owner._state.get(key, ())
            return held[index] if 0 <= index < len(held) else None

        found[f"{class_name}.num_{item}s"] = count
        found[f"{class_name}.get_{item}"] = get
    return found


def _parse_with(context: StandinContext) -> Behaviour:
    def parse(parser: Any, *_model: object) -> bool:
        populate_network(context, parser._state["network"], context.settings["network"])
        return True

    return parse


def _add_input_with(context: StandinContext) -> Behaviour:
    def add_input(network: Any, name: str, dtype: Any, shape: Sequence[int]) -> object:
        tensor = make_tensor(context, TensorContent(name, dtype.name, tuple(shape)), is_input=True)
        network._state.setdefault("inputs", []).append(tensor)
        return tensor

    return add_input


def _mark_output(network: Any, tensor: Any) -> None:
    tensor._state["is_network_output"] = True
    network._state.setdefault("outputs", []).append(tensor)


def _get_creation_flag(network: Any, flag: Any) -> bool:
    return bool(network._state.get("creation_flags", 0) >> flag.number & 1)


def _get_output_type(layer: Any, index: int) -> object:
    return layer._state.get(f"type{index}") or layer._state["outputs"][index]._state["dtype"]
