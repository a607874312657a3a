"""One captured CUDA graph, replayed as long as nothing about the run changes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress

from trtdeploy.backends.cuda.device_memory import DeviceMemory
from trtdeploy.core.errors import ExecutionError, NotPossibleError


class GraphCapture:
    """Runs work plainly when it is new, and by its graph from the second time on.

    TensorRT wants one plain run before a capture, and a graph holds for exactly the sizes and
    addresses it was captured with; another combination replaces it.

    Args:
        memory: The GPU.
        stream: Where the work is queued.
        enqueue: Queues the work; raises ``ExecutionError`` when it cannot.
    """

    def __init__(self, memory: DeviceMemory, stream: int, enqueue: Callable[[], None]) -> None:
        self._memory = memory
        self._stream = stream
        self._enqueue = enqueue
        self._graph = 0
        self._key: Hashable = None

    def run(self, key: Hashable) -> None:
        """Queue the work that ``key`` describes completely.

        Raises:
            NotPossibleError: The engine's work cannot be captured.
        """
        if self._graph and key == self._key:
            self._memory.launch_graph(self._graph, self._stream)
            return
        self.release()
        self._enqueue()
        self._graph, self._key = self._capture(), key

    def release(self) -> None:
        """Let go of the graph."""
        if self._graph:
            graph, self._graph = self._graph, 0
            self._memory.destroy_graph(graph)

    def _capture(self) -> int:
        self._memory.begin_capture(self._stream)
        try:
            self._enqueue()
        except ExecutionError as error:
            with suppress(ExecutionError):  # the stream must leave capture mode all the same
                self._memory.destroy_graph(self._memory.end_capture(self._stream))
            raise _explain(error) from error
        try:
            return self._memory.end_capture(self._stream)
        except ExecutionError as error:
            raise _explain(error) from error


def _explain(error: ExecutionError) -> NotPossibleError:
    return NotPossibleError(
        f"this engine's work cannot be captured as a CUDA graph: {error}",
        hint="Load it without cuda_graph.",
    )
