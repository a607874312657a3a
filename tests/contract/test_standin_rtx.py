"""The stand-in of TensorRT-RTX agrees with the TensorRT-RTX that is really installed."""

import json
from typing import Any

import pytest

from .api_data import load_api
from .dump_trt_api import describe_module
from .standin import make_trt_module
from .test_standin import REFUSED, build_objects

VERSION = "rtx-1.7.1.116"
tensorrt_rtx = pytest.importorskip("tensorrt_rtx")
if tensorrt_rtx.__version__ != VERSION.removeprefix("rtx-"):
    pytest.skip(f"tensorrt_rtx is {tensorrt_rtx.__version__}", allow_module_level=True)

ACCEPTED = [
    "builder.create_network()",
    "builder.create_network(flags=True)",
    "builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))",
    "config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)",
    "config.set_memory_pool_limit(pool=trt.MemoryPoolType.WORKSPACE, pool_size=1 << 30)",
    "config.set_flag(trt.BuilderFlag.TF32)",
    "config.get_flag(trt.BuilderFlag.TF32)",
    "setattr(config, 'progress_monitor', None)",
    "(setattr(config, 'num_compute_capabilities', 1),"
    " config.set_compute_capability(trt.ComputeCapability.SM89, 0))[1]",
    "setattr(config, 'profiling_verbosity', trt.ProfilingVerbosity.DETAILED)",
    "config.profiling_verbosity",
    "config.builder_optimization_level",
    "config.num_optimization_profiles",
    "ranges.set_shape('x', (1, 2), [1, 2], trt.Dims((3, 2)))",
    "ranges.set_shape(input='x', min=(1, 2), opt=(2, 2), max=(3, 2))",
    "ranges.set_shape_input('x', [1], (1,), [3])",
    "ranges.get_shape('x')",
    "network.add_input('x', trt.float32, (1, -1)).shape[1]",
    "len(network)",
    "network.num_inputs",
    "network.get_flag(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)",
    "parser.num_errors",
    "builder.num_DLA_cores",
    "trt.Dims([1, 2]) == (1, 2)",
    "trt.Dims3(1, 2, 3)[2]",
    "trt.volume((2, 3))",
    "trt.nptype(trt.float16)",
    "trt.init_libnvinfer_plugins(trt.Logger(), '')",
    "trt.BuilderFlag.TF32 == 6",
    "repr(trt.BuilderFlag.TF32)",
    "trt.DataType(1).name",
    "trt.DataType.FP4.itemsize",
    "trt.DataType.E8M0.itemsize",
    "hasattr(trt.BuilderFlag, 'FP16')",
    "hasattr(network, 'has_implicit_batch_dimension')",
    "hasattr(builder, 'gpu_allocator')",
]
ABSENT = [
    "trt.nothing",
    "trt.BuilderFlag.FP16",
    "config.int8_calibrator",
    "setattr(config, 'int8_calibrator', None)",
    "setattr(config, 'num_optimization_profiles', 1)",
    "setattr(config, 'set_flag', None)",
    "builder.gpu_allocator",
    "builder.platform_has_fast_fp16",
]
PLAIN_TYPES = (int, float, str, bool, type(None))


def evaluate(expression: str, objects: dict[str, Any]) -> object:
    """Return what an expression gives: the exception's type, a plain value, or a type's name."""
    try:
        value = eval(expression, objects)
    except (TypeError, AttributeError) as error:
        return type(error)
    return value if isinstance(value, PLAIN_TYPES) else type(value).__name__


@pytest.fixture
def real() -> dict[str, Any]:
    """Return the objects of a real build."""
    return build_objects(tensorrt_rtx)


@pytest.fixture
def standin() -> dict[str, Any]:
    """Return the same objects of the stand-in."""
    return build_objects(make_trt_module(VERSION))


def test_the_recorded_api_is_the_installed_one() -> None:
    assert json.loads(json.dumps(describe_module(tensorrt_rtx))) == load_api(VERSION)


def test_enums_have_the_same_members_and_numbers() -> None:
    trt: Any = make_trt_module(VERSION)
    for name in load_api(VERSION)["enums"]:
        numbers = [
            {member: int(value) for member, value in getattr(module, name).__members__.items()}
            for module in (trt, tensorrt_rtx)
        ]
        assert numbers[0] == numbers[1], name


def test_classes_have_the_same_names() -> None:
    trt: Any = make_trt_module(VERSION)
    for name in load_api(VERSION)["classes"]:
        ours, theirs = (
            {n for n in dir(getattr(module, name)) if not n.startswith("_")}
            for module in (trt, tensorrt_rtx)
        )
        assert ours == theirs, name


@pytest.mark.parametrize("expression", [*ACCEPTED, *ABSENT, *REFUSED.values()])
def test_both_answer_alike(expression: str, real: dict[str, Any], standin: dict[str, Any]) -> None:
    assert evaluate(expression, dict(standin)) == evaluate(expression, dict(real))


@pytest.mark.parametrize("expression", ACCEPTED)
def test_what_tensorrt_accepts_is_accepted(expression: str, standin: dict[str, Any]) -> None:
    assert not isinstance(evaluate(expression, standin), type)
