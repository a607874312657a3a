"""Where the batch of a model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trtdeploy.config.axis_roles import find_dynamic_axes, find_role_by_name
from trtdeploy.core.errors import UsageError
from trtdeploy.core.tensors import TensorSpec

_IMAGE_RANK = 3
_IMAGE_CHANNELS = 3


@dataclass(frozen=True)
class BatchLayout:
    """Where samples are stacked; inputs and outputs that are not listed do not have the batch.

    Attributes:
        inputs: Axis by input; an input that is not listed is the same for a whole batch.
        outputs: Axis by output, for those that declare the symbol of an input's batch.
        symbols: What the inputs call a free batch, in their order.
        fixed: The only batch size that the model accepts; None when it is free.
        exported: The batch that a model with a free one was exported with.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    fixed: int | None = None
    exported: int = 1

    def find_batch_size(self, shapes: Mapping[str, tuple[int, ...]]) -> int:
        """Return how many samples ``shapes`` ask for; 1 when nothing is stacked.

        Raises:
            UsageError: The inputs are given different batch sizes.
        """
        sizes = {name: shapes[name][axis] for name, axis in self.inputs.items()}
        if len(set(sizes.values())) > 1:
            listed = ", ".join(f"{name!r} {size}" for name, size in sizes.items())
            raise UsageError(
                f"samples cannot be stacked to batches of different sizes: {listed}",
                hint="Give every input the same batch size.",
            )
        return next(iter(sizes.values()), 1)


def find_batch(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec] = ()) -> BatchLayout:
    """Return where the batch is, free or fixed; a layout without inputs when there is none.

    It is the dynamic axes whose name says so, wherever they are; without such a name, the
    dynamic first axes. A model without either has a fixed batch when all of its inputs begin with
    the same number (scalars aside); otherwise one sample is one run. Outputs are tied to inputs by
    symbol, not by position.
    """
    dynamic = [axis for axis in find_dynamic_axes(inputs) if axis.role == "batch"]
    named = [axis for axis in dynamic if find_role_by_name(axis.symbol) == "batch"]
    axes: dict[str, int] = {}
    for dynamic_axis in named or dynamic:
        for place in dynamic_axis.places:
            axes.setdefault(place.input_name, place.axis)
    if not axes:
        return _find_fixed_batch([spec for spec in inputs if spec.shape])
    shapes = {spec.name: spec.shape or () for spec in inputs}
    symbols = tuple(dict.fromkeys(str(shapes[name][axis]) for name, axis in axes.items()))
    declared = {
        spec.name: axis
        for spec in outputs
        for axis, size in enumerate(spec.shape or ())
        if size in symbols
    }
    return BatchLayout(axes, declared, symbols)


def find_free_batch(
    inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec] = ()
) -> BatchLayout | None:
    """Return where the batch is; None when its size cannot change."""
    found = find_batch(inputs, outputs)
    return found if found.symbols else None


def _find_fixed_batch(ranked: Sequence[TensorSpec]) -> BatchLayout:
    first = {(spec.shape or ("",))[0] for spec in ranked}
    size = first.pop() if len(first) == 1 else None
    if not isinstance(size, int) or any(_is_single_image(spec) for spec in ranked):
        return BatchLayout({})
    return BatchLayout({spec.name: 0 for spec in ranked}, fixed=size)


def _is_single_image(spec: TensorSpec) -> bool:
    """Tell a 3xHxW image from a batch of three."""
    return spec.rank == _IMAGE_RANK and (spec.shape or ())[0] == _IMAGE_CHANNELS
