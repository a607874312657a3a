"""Sessions of ONNX Runtime on the CPU: the FP32 baseline, and typed models as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from trtdeploy.backends.feed_check import FeedCheck
from trtdeploy.backends.numpy_types import to_numpy_type
from trtdeploy.backends.onnxruntime.model import list_runtime_errors, open_session
from trtdeploy.backends.onnxruntime.values import RAW_TYPES, run_with_values
from trtdeploy.backends.session import Session
from trtdeploy.core.arrays import Array, Feeds
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import ExecutionError, FeedError, NotPossibleError, UsageError
from trtdeploy.core.interruption import stop_on_interrupt
from trtdeploy.core.optional import import_optional
from trtdeploy.core.tensors import Shape, TensorSpec

_TYPES = {
    "float": DType.FLOAT32, "double": DType.FLOAT64, "float16": DType.FLOAT16,
    "bfloat16": DType.BFLOAT16, "int8": DType.INT8, "int16": DType.INT16, "int32": DType.INT32,
    "int64": DType.INT64, "uint8": DType.UINT8, "uint16": DType.UINT16, "uint32": DType.UINT32,
    "uint64": DType.UINT64, "bool": DType.BOOL, "string": DType.STRING,
    "float8e4m3fn": DType.FLOAT8E4M3FN, "float8e4m3fnuz": DType.FLOAT8E4M3FNUZ,
    "float8e5m2": DType.FLOAT8E5M2, "float8e5m2fnuz": DType.FLOAT8E5M2FNUZ,
    "complex64": DType.COMPLEX64, "complex128": DType.COMPLEX128,
}  # fmt: skip
"""Element types as ONNX Runtime spells them inside ``tensor(...)``."""


class OnnxRuntimeSession(Session):
    """A model in ONNX Runtime, on the CPU, deterministic, never TF32.

    Thread-safe without a lock: threads may call ``run`` at the same time, and their calls run at
    the same time. Only ``close`` must wait until no call is running.

    Note:
        On the CPU, ONNX Runtime computes most FP16 nodes in FP32 and so hides overflow. Such a
        session runs a typed model as this machine does, not as a GPU would.

    Args:
        path: An ONNX file.
        optimize: Leave ONNX Runtime's graph optimisations on.
        threads: Threads that share one operator; 0 takes every core.
        quiet: A run that fails raises, and writes nothing to stderr.

    Raises:
        CompileError: ONNX Runtime refuses the model.
        NotPossibleError: An input or output is not a tensor, or of a type without numpy form.
    """

    def __init__(
        self, path: Path, *, optimize: bool = True, threads: int = 0, quiet: bool = False
    ) -> None:
        session = open_session(path, optimize=optimize, threads=threads, quiet=quiet)
        self._runtime = import_optional(
            "onnxruntime", needed_for="running a model", install="pip install onnxruntime"
        )
        self._errors = list_runtime_errors(self._runtime)
        arguments = (*session.get_inputs(), *session.get_outputs())
        declared = _read_declared(path) if any(not a.shape for a in arguments) else {}
        specs = tuple(_describe(argument, path, declared) for argument in arguments)
        count = len(session.get_inputs())
        self._inputs, self._outputs = specs[:count], specs[count:]
        self._names = [spec.name for spec in self._outputs]
        self._check = FeedCheck(self._inputs).check
        raw = any(spec.dtype in RAW_TYPES for spec in (*self._inputs, *self._outputs))
        self._run: Any = self._make_raw_run(session) if raw else session.run
        self._run_options = self._runtime.RunOptions()
        stop_on_interrupt(self)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` takes."""
        return self._inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` returns."""
        return self._outputs

    @property
    def device(self) -> str:
        """E.g. ``CPU, ONNX Runtime 1.32.0``."""
        return f"CPU, ONNX Runtime {self._runtime.__version__}"

    def run(self, feeds: Feeds) -> dict[str, Array]:
        """Run the model once; see ``Session.run``."""
        self._check(feeds)
        try:
            known = feeds if type(feeds) is dict else dict(feeds)
            values = self._run(self._names, known, self._run_options)
        except self._errors as error:
            raise self._explain(error) from error
        return dict(zip(self._names, values, strict=True))

    def stop(self) -> None:
        """End every call that is running, at the next node, and refuse later ones."""
        self._run_options.terminate = True

    def close(self) -> None:
        """Let go of the model."""
        self._run = _refuse

    def _make_raw_run(self, session: Any) -> Any:
        def run(_names: list[str], feeds: Feeds, options: Any) -> list[Array]:
            return run_with_values(
                self._runtime, session, self._inputs, self._outputs, feeds, options
            )

        return run

    def _explain(self, error: Exception) -> FeedError | ExecutionError:
        state = self._runtime.capi.onnxruntime_pybind11_state
        if isinstance(error, state.InvalidArgument):
            return FeedError(f"ONNX Runtime refuses the inputs: {error}")
        return ExecutionError(
            f"ONNX Runtime failed while it ran the model: {error}",
            hint="It names the node. Sizes that fit each input alone may still not fit together.",
        )


def _refuse(_names: list[str], _feeds: Feeds, _options: Any) -> NoReturn:
    raise UsageError("the session is closed", hint="Run it inside its with block.")


def _read_declared(path: Path) -> dict[str, Shape | None]:
    """Return shapes from the file itself: ONNX Runtime shows a scalar and no shape alike, as []."""
    from trtdeploy.graph.loading import load_model  # imports onnx, which few models need here

    model = load_model(path)
    return {spec.name: spec.shape for spec in (*model.input_specs(), *model.output_specs())}


def _describe(argument: Any, path: Path, declared: dict[str, Shape | None]) -> TensorSpec:
    kind = str(argument.type)
    dtype = _TYPES.get(kind.removeprefix("tensor(").removesuffix(")"), DType.UNDEFINED)
    if to_numpy_type(dtype) is None and dtype is not DType.STRING:
        raise NotPossibleError(
            f"{path.name}: {argument.name!r} is {kind}; sessions exchange tensors with numpy",
            hint="Change the model so that its inputs and outputs are tensors of whole bytes.",
        )
    dims = argument.shape
    shape = tuple(f"?{axis}" if dim is None else dim for axis, dim in enumerate(dims))
    return TensorSpec(argument.name, dtype, shape or declared.get(argument.name))
