"""The stand-in is as strict as the module whose place it takes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from .api_data import VERSIONS, load_api
from .argument_type import PLAIN, split_generic
from .regenerate_api import load_shipped, save_api
from .signature import parse_signature
from .standin import (
    LayerContent,
    NetworkContent,
    StandinModule,
    TensorContent,
    make_trt_module,
)
from .standin_class import read_overloads

WITHOUT_WEAK_TYPING = [v for v in VERSIONS if v.startswith(("11.", "rtx-"))]
WITH_WEAK_TYPING = [v for v in VERSIONS if v not in WITHOUT_WEAK_TYPING]
# Written in C++ and so accepting anything: the weights argument of 8.6's CaffeParser plugins.
UNCHECKED_TYPES = {"Weights> >"}


@pytest.fixture(params=VERSIONS)
def trt(request: pytest.FixtureRequest) -> StandinModule:
    """Return the stand-in of each version."""
    return make_trt_module(request.param)


def build_objects(trt: Any) -> dict[str, Any]:
    """Create the objects that a build needs."""
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    return {
        "trt": trt,
        "builder": builder,
        "network": network,
        "config": builder.create_builder_config(),
        "parser": trt.OnnxParser(network, logger),
        "ranges": builder.create_optimization_profile(),
    }


def iterate_types(version: str) -> Iterator[str]:
    """Yield the type of every parameter and of every settable property of a version."""
    for described in load_api(version)["classes"].values():
        for name in described["signatures"]:
            for signature in read_overloads(described, name):
                yield from (parameter.type for parameter in signature.parameters)
        for types in described.get("properties", {}).values():
            yield types["set"] or "object"


def test_every_version_is_recorded() -> None:
    assert tuple(load_shipped()) == VERSIONS, "run python tests/contract/regenerate_api.py"


def test_saved_file_depends_on_content_only(tmp_path: Any) -> None:
    for name in ("a", "b"):
        save_api({"1.0": {"enums": {}}}, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_type_is_checked(version: str) -> None:
    known = {*make_trt_module(version).context.types, *PLAIN, "sequence"}
    names: set[str] = set()
    for text in iterate_types(version):
        name, arguments = split_generic(text)
        names |= {name, *(split_generic(argument)[0] for argument in arguments)}
    assert names - known <= UNCHECKED_TYPES


def test_has_exactly_the_recorded_names(trt: StandinModule) -> None:
    api = trt.context.api
    assert trt.__version__ == api["version"]
    for name, members in api["enums"].items():
        enum = getattr(trt, name)
        assert {member: int(getattr(enum, member)) for member in members} == members
        assert enum.__members__.keys() == members.keys()
    for name, described in api["classes"].items():
        cls = getattr(trt, name)
        assert {n for n in dir(cls) if not n.startswith("_")} == set(described["attributes"])
        assert [base.__name__ for base in cls.__mro__[1:]][: len(described["bases"])] == (
            described["bases"]
        )
    aliases = {name: str(getattr(trt, name)) for name in api["aliases"]}
    assert aliases == api["aliases"]


def test_a_missing_name_raises_and_names_the_version(trt: StandinModule) -> None:
    objects = build_objects(trt)
    label = trt.context.label
    for owner in (trt, trt.BuilderFlag, trt.IBuilderConfig, objects["config"]):
        with pytest.raises(AttributeError, match=label):
            owner.no_such_name  # noqa: B018  the read is what is tested
        assert not hasattr(owner, "no_such_name")


@pytest.mark.parametrize("version", WITHOUT_WEAK_TYPING)
def test_weak_typing_is_absent(version: str) -> None:
    trt = make_trt_module(version)
    for name in ("FP16", "BF16", "INT8", "FP8", "OBEY_PRECISION_CONSTRAINTS"):
        assert not hasattr(trt.BuilderFlag, name)
    layer_owner = build_objects(trt)
    layer_owner["parser"].parse(b"model")
    layer = layer_owner["network"][0]
    with pytest.raises(AttributeError, match=version.removeprefix("rtx-")):
        layer.precision = trt.DataType.HALF
    with pytest.raises(AttributeError):
        layer.set_output_type(0, trt.DataType.HALF)
    assert trt.calls.select("BuilderFlag", "FP16", "get") == []
    assert len(trt.calls.select("BuilderFlag", "FP16", "probe")) == 1


@pytest.mark.parametrize("version", WITH_WEAK_TYPING)
def test_weak_typing_keeps_its_state(version: str) -> None:
    trt = make_trt_module(version)
    objects = build_objects(trt)
    objects["parser"].parse(b"model")
    layer, config = objects["network"].get_layer(0), objects["config"]
    assert (layer.precision_is_set, layer.output_type_is_set(0)) == (False, False)
    layer.precision = trt.float16
    layer.set_output_type(0, trt.float16)
    assert (layer.precision_is_set, layer.get_output_type(0)) == (True, trt.float16)
    assert not config.get_flag(trt.BuilderFlag.FP16)
    config.set_flag(trt.BuilderFlag.FP16)
    assert config.get_flag(trt.BuilderFlag.FP16)
    assert trt.calls.members_used("BuilderFlag") == {"FP16"}


REFUSED = {
    "too many arguments": "builder.create_network(0, 1)",
    "missing argument": "config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE)",
    "unknown keyword": "builder.create_network(flag=0)",
    "argument given twice": "builder.create_network(0, flags=0)",
    "float for an int": "builder.create_network(1.0)",
    "int for an enum": "config.set_flag(6)",
    "member of another enum": "config.set_flag(trt.DataType.FLOAT)",
    "str for a buffer": "parser.parse('model.onnx')",
    "bytes for a file name": "parser.parse_from_file(3)",
    "None for an object": "builder.build_serialized_network(None, None)",
    "objects in the wrong order": "builder.build_serialized_network(config, network)",
    "symbolic dimension": "ranges.set_shape('x', (1, 'n'), (1, 2), (1, 3))",
    "number for a shape": "ranges.set_shape_input('x', 1, 2, 3)",
    "class without constructor": "trt.IBuilderConfig()",
    "wrong constructor argument": "trt.Builder('logger')",
    "missing constructor argument": "trt.OnnxParser(network)",
    "shift by a member": "1 << trt.BuilderFlag.TF32",
    "iteration over an enum": "list(trt.BuilderFlag)",
    "wrong type of a property": "setattr(config, 'avg_timing_iterations', 'two')",
    "length of a plan": "len(builder.build_serialized_network(network, config))",
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_a_wrong_call_is_refused(trt: StandinModule, call: str) -> None:
    with pytest.raises(TypeError):
        eval(call, build_objects(trt))


def test_the_refusal_quotes_version_and_signature(trt: StandinModule) -> None:
    objects = build_objects(trt)
    with pytest.raises(TypeError, match=r"unexpected keyword 'flag'.*create_network\(self") as info:
        objects["builder"].create_network(flag=0)
    assert trt.context.label in str(info.value)


def test_only_settable_properties_are_set(trt: StandinModule) -> None:
    config = build_objects(trt)["config"]
    config.builder_optimization_level = 5
    assert config.builder_optimization_level == 5
    for name in ("num_optimization_profiles", "set_flag", "no_such_name"):
        with pytest.raises(AttributeError):
            setattr(config, name, 1)


def test_enum_members_behave_as_pybind11s(trt: StandinModule) -> None:
    tf32 = trt.BuilderFlag.TF32
    number = trt.context.api["enums"]["BuilderFlag"]["TF32"]
    assert [int(tf32), tf32.value] == [number, number]
    assert [tf32.name, str(tf32)] == ["TF32", "BuilderFlag.TF32"]
    mask = 1 << int(tf32)
    assert mask == 2**number
    assert tf32 == trt.BuilderFlag(number)
    assert tf32 != number
    assert trt.BuilderFlag.__members__["DEBUG"] != trt.DataType.HALF


def test_a_subclass_must_initialize_its_base(trt: StandinModule) -> None:
    class GoodLogger(trt.ILogger):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.lines: list[str] = []

        def log(self, severity: Any, msg: str) -> None:
            self.lines.append(f"{severity}: {msg}")

    class BadLogger(trt.ILogger):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self.lines: list[str] = []

    logger = GoodLogger()
    trt.Builder(logger).logger.log(trt.ILogger.Severity.ERROR, "no")
    assert logger.lines == ["Severity.ERROR: no"]
    with pytest.raises(TypeError, match="must be called when overriding"):
        BadLogger()


def test_everything_is_recorded_in_order(trt: StandinModule) -> None:
    builder = trt.Builder(trt.Logger())
    trt.calls.clear()
    network = builder.create_network(flags=0)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.TF32)
    config.builder_optimization_level = 2
    hasattr(trt, "nothing")
    assert network.num_layers == 0
    assert [(r.kind, r.target, r.member) for r in trt.calls] == [
        ("call", "Builder", "create_network"),
        ("call", "Builder", "create_builder_config"),
        ("get", "BuilderFlag", "TF32"),
        ("call", "IBuilderConfig", "set_flag"),
        ("set", "IBuilderConfig", "builder_optimization_level"),
        ("probe", "trt", "nothing"),
        ("get", "INetworkDefinition", "num_layers"),
    ]
    assert trt.calls[0].kwargs == trt.calls[0].arguments == {"flags": 0}
    assert trt.calls[0].instance is builder


def test_scripts_answer_and_must_name_what_exists(trt: StandinModule) -> None:
    objects = build_objects(trt)
    trt.script["OnnxParser.parse"] = False
    trt.script["OnnxParser.num_errors"] = 2
    trt.script["OnnxParser.supports_operator"] = lambda _parser, op_name: op_name == "Conv"
    trt.script["Builder.build_serialized_network"] = lambda _builder, _network, _config: b"plan"
    parser = objects["parser"]
    assert not parser.parse(b"model")
    assert [parser.num_errors, objects["network"].num_inputs] == [2, 0]
    assert [parser.supports_operator(name) for name in ("Conv", "Det")] == [True, False]
    plan = objects["builder"].build_serialized_network(objects["network"], objects["config"])
    assert (isinstance(plan, trt.IHostMemory), bytes(memoryview(plan))) == (True, b"plan")
    assert plan.nbytes == len(b"plan")
    with pytest.raises(AttributeError, match="to script"):
        trt.script["OnnxParser.no_such_name"] = True


def test_the_parser_finds_the_given_network(trt: StandinModule) -> None:
    image = TensorContent("image", shape=(-1, 3, -1, -1))
    size = TensorContent("size", dtype="INT32", shape=(2,), is_shape_tensor=True)
    boxes = TensorContent("boxes", shape=(-1, 4))
    layer = LayerContent("resize", "RESIZE", inputs=("image", "size"), outputs=(boxes,))
    trt.set_network(NetworkContent((image, size), (layer,), ("boxes",)))
    objects = build_objects(trt)
    assert objects["parser"].parse(np.zeros(3, np.uint8))
    network = objects["network"]
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    assert [(t.name, tuple(t.shape), t.is_shape_tensor) for t in inputs] == [
        ("image", (-1, 3, -1, -1), False),
        ("size", (2,), True),
    ]
    assert [found.name for found in network] == ["resize"]
    assert network[0].type == trt.LayerType.RESIZE
    assert network.get_output(0).shape == (-1, 4)
    plan = objects["builder"].build_serialized_network(network, objects["config"])
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    assert names == ["image", "size", "boxes"]
    assert engine.get_tensor_mode("boxes") == trt.TensorIOMode.OUTPUT


def test_optimization_profiles_keep_their_ranges(trt: StandinModule) -> None:
    objects = build_objects(trt)
    ranges, config = objects["ranges"], objects["config"]
    ranges.set_shape("x", min=(1, 2), opt=[2, 2], max=(np.int64(3), 2))
    assert ranges.get_shape("x") == [(1, 2), (2, 2), (3, 2)]
    assert (config.add_optimization_profile(ranges), config.num_optimization_profiles) == (0, 1)


def test_a_flag_made_a_mask_counts_as_used(trt: StandinModule) -> None:
    config = build_objects(trt)["config"]
    assert hasattr(trt.BuilderFlag, "TF32")
    assert trt.calls.members_used("BuilderFlag") == set()
    config.flags = 1 << int(trt.BuilderFlag.TF32)
    assert config.flags == 1 << trt.context.api["enums"]["BuilderFlag"]["TF32"]
    assert trt.calls.members_used("BuilderFlag") == {"TF32"}


def test_with_statements_are_deprecated(trt: StandinModule) -> None:
    builder = build_objects(trt)["builder"]
    with pytest.warns(DeprecationWarning, match="Context managers"), builder as entered:
        assert entered is builder


def test_an_unrecorded_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'9\.0'.*11\.4\.0\.106"):
        make_trt_module("9.0")


def test_overloads_are_checked_one_by_one() -> None:
    trt = make_trt_module("11.4.0.106")
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(serialized_engine=b"plan")
    strategy = trt.ExecutionContextAllocationStrategy.USER_MANAGED
    assert isinstance(engine.create_execution_context(strategy), trt.IExecutionContext)
    with pytest.raises(TypeError, match="runtime_config: IRuntimeConfig = None"):
        engine.create_execution_context("static")


def test_parse_signature_reads_nested_types_and_defaults() -> None:
    text = "f(self: A, x: List[Tuple[int, bool]] = None, *args) -> Tuple[bool, List[int]]"
    signature = parse_signature(text)
    assert [(p.name, p.type, p.default) for p in signature.parameters] == [
        ("x", "List[Tuple[int, bool]]", "None"),
        ("*args", "object", None),
    ]
    assert signature.returns == "Tuple[bool, List[int]]"
    with pytest.raises(ValueError, match="not a parameter"):
        parse_signature("int([x]) -> integer")
