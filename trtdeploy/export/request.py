"""What an export is asked for; standard library only, so that every adapter can be told."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError

Exporter = Literal["auto", "dynamo", "torchscript"]
EXPORTERS: Final[tuple[Exporter, ...]] = ("auto", "dynamo", "torchscript")


@dataclass(frozen=True)
class InputSpec:
    """One input as ``--input NAME:DTYPE:SHAPE[:VALUES]`` states it.

    Attributes:
        name: Parameter of ``forward``; ``batch.image`` is an entry of a dictionary, ``pair.0`` of
            a tuple. The ONNX input is called the same.
        shape: Sizes of the example; empty for a scalar.
        low: Smallest value of the example; None takes 0 for integers, noise for floats.
        high: Largest value of the example, itself included; None takes 1 for integers.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class ProofOptions:
    """How the written file is compared with the model it came from.

    Attributes:
        enabled: False writes a file that says it was not proven.
        rtol: Largest accepted error, as ``difference`` defines it.
        seed: Of the random inputs.
        sizes: Sizes to try by symbol, e.g. ``{"height": (96, 160)}``; chosen where left out.

    Raises:
        UsageError: ``rtol`` is not a number above 0.
    """

    enabled: bool = True
    rtol: float = 1e-4
    seed: int = 0
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a tolerance that nothing, or everything, passes."""
        if not (math.isfinite(self.rtol) and self.rtol > 0):
            raise UsageError(
                f"--proof-tolerance {self.rtol:g}: expected a number above 0",
                hint="1e-4 is the default; --no-proof compares nothing.",
            )


@dataclass(frozen=True)
class ExportRequest:
    """Everything that decides an export.

    Attributes:
        source: What to export, as typed: ``torchvision:resnet50``, ``model.onnx``, ...
        output: The ONNX file to write; weights over 2 GiB go to ``<output name>.data``.
        inputs: Example inputs; empty where the source knows its own.
        dynamic: Symbol by axis by input: ``{"images": {0: "batch", 2: "height"}}``. None asks for
            the defaults of the source; an empty mapping makes every size fixed.
        multiples: Step by symbol: ``{"height": 32}`` when the model takes multiples of 32 only.
        opset: Opset of the file; None follows ``profile``.
        profile: Name or path of the deploy profile the file is for; empty for any.
        weights: File of trained weights for sources that carry none.
        config: Settings of the source, ``KEY=VALUE`` texts.
        exporter: ``auto`` is dynamo, with TorchScript as a fallback that is reported.
        download: Whether a source may fetch weights from the network.
        proof: How the result is proven.
    """

    source: str
    output: Path
    inputs: tuple[InputSpec, ...] = ()
    dynamic: Mapping[str, Mapping[int, str]] | None = None
    multiples: Mapping[str, int] = field(default_factory=dict)
    opset: int | None = None
    profile: str = ""
    weights: Path | None = None
    config: tuple[str, ...] = ()
    exporter: Exporter = "auto"
    download: bool = False
    proof: ProofOptions = ProofOptions()
