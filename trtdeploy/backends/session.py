"""A model that is loaded and can be run: what every backend's session offers."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from trtdeploy.core.arrays import Array
from trtdeploy.core.tensors import TensorSpec

if TYPE_CHECKING:
    from typing_extensions import Self

SessionFeeds = Mapping[str, Any]
"""One array per input. Engines also take arrays that lie on the GPU."""


@runtime_checkable
class Session(Protocol):
    """A loaded model.

    A context manager: leaving the block closes it. A closed session runs nothing. Every session may
    be shared by threads; whether their calls run at the same time or one after another is stated by
    the backend's class.
    """

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` takes, in the model's order."""
        ...

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What ``run`` returns, in the model's order."""
        ...

    @property
    def device(self) -> str:
        """Where it runs and what runs it, for people and reports."""
        ...

    def run(self, feeds: SessionFeeds) -> dict[str, Array]:
        """Run the model once.

        Args:
            feeds: Every input by name, with exactly its element type; nothing is cast.

        Returns:
            Every output by name; the arrays are the caller's own.

        Raises:
            FeedError: A name, type, rank or size does not fit. Nothing was run.
            ExecutionError: The runtime failed.
            UsageError: The session is closed.
        """
        ...

    def close(self) -> None:
        """Release memory; closing twice does nothing."""
        ...

    def __enter__(self) -> Self:
        """Return the session itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
