"""ONNX Runtime as a probe: the values of a model, looked at where they lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trtdeploy.backends.onnxruntime.model import list_runtime_errors, open_session
from trtdeploy.core.arrays import Array, Feeds
from trtdeploy.core.errors import ExecutionError, NotPossibleError
from trtdeploy.core.interruption import stop_on_interrupt
from trtdeploy.core.optional import import_optional

_NUMPY_TYPES = {"tensor(float)": "<f4", "tensor(double)": "<f8", "tensor(float16)": "<f2"}


class ProbedValues:
    """The outputs of one run by name, which stay where they are."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def view(self, name: str) -> Array:
        """Return an output."""
        return _view(name, self._values[name])

    def take(self, name: str) -> Array:
        """Return an output for the last time: its memory lasts as long as the array does."""
        return _view(name, self._values.pop(name))


class OnnxRuntimeProbe:
    """A model whose floating-point outputs are read without being copied.

    Thread-safe: several threads may call ``run`` at the same time, and their calls run at the same
    time. One thread per run and several runs at once take less time than several threads per run.

    Args:
        path: An ONNX file.
        threads: Threads that share one operator.

    Raises:
        CompileError: ONNX Runtime refuses the model.
    """

    def __init__(self, path: Path, *, threads: int = 1) -> None:
        # Without the memory pattern a run takes the memory that it needs, not that of a plan.
        self._session = open_session(path, optimize=True, threads=threads, memory_pattern=False)
        self._runtime = import_optional(
            "onnxruntime", needed_for="calibration", install="pip install onnxruntime"
        )
        self._errors: tuple[type[Exception], ...] = (
            *list_runtime_errors(self._runtime), ValueError, RuntimeError
        )  # fmt: skip
        self._names = [output.name for output in self._session.get_outputs()]
        self._run_options = self._runtime.RunOptions()
        stop_on_interrupt(self)

    def run(self, feeds: Feeds) -> ProbedValues:
        """Run the model once.

        Raises:
            ExecutionError: ONNX Runtime cannot run it on these feeds.
        """
        try:
            given = {
                name: self._runtime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
                for name, array in feeds.items()
            }
            values = self._session.run_with_ort_values(self._names, given, self._run_options)
        except self._errors as error:
            raise ExecutionError(f"ONNX Runtime cannot run the model: {error}") from error
        return ProbedValues(dict(zip(self._names, values, strict=True)))

    def stop(self) -> None:
        """End every call that is running, at the next node, and refuse later ones."""
        self._run_options.terminate = True


class _Memory:
    """Memory of an output in the form that numpy takes over; keeps its owner alive."""

    def __init__(self, value: Any, typestr: str) -> None:
        self._owner = value
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(value.shape()),
            "typestr": typestr,
            "data": (value.data_ptr(), True),
        }


def _view(name: str, value: Any) -> Array:
    typestr = _NUMPY_TYPES.get(value.data_type())
    if typestr is None:
        raise NotPossibleError(
            f"the value {name!r} is {value.data_type()}, expected one of {', '.join(_NUMPY_TYPES)}"
        )
    if 0 in value.shape():
        return np.empty(value.shape(), typestr)
    array: Array = np.asarray(_Memory(value, typestr))
    return array
