"""``report.json`` as typed values; ``report.schema.json`` is generated from these classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    AfterValidator,
    AwareDatetime,
    ConfigDict,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
)

from trtdeploy.backends.compiler.compile_request import CompileResult
from trtdeploy.backends.installed import Environment
from trtdeploy.calibration.quantization_report import QuantizationReport
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.steps import StepRecord
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.parity.result import ParityReport, SkippedParity
from trtdeploy.precision.plan import PrecisionRecord
from trtdeploy.preflight.report import CheckReport
from trtdeploy.report.json_document import SCHEMA_VERSION

_EARLIEST_YEAR, _LATEST_YEAR = 1970, 9998


def _check_year(value: datetime) -> datetime:
    # Python cannot shift the first and the last day of its calendar to another time zone.
    if not _EARLIEST_YEAR <= value.year <= _LATEST_YEAR:
        raise ValueError(f"the year {value.year} is none in which a report was written")
    return value


def _choose_parity(value: Any) -> str:
    # A callable discriminator: a damaged section is judged as what it wants to be, once.
    skipped = isinstance(value, SkippedParity) or (isinstance(value, dict) and "skipped" in value)
    return "skipped" if skipped else "checked"


def _check_file_name(name: str) -> str:
    """Folders travel: a file name in one must not lead out of it."""
    if PurePath(name).name != name or name in ("", ".", "..") or "\0" in name or "\\" in name:
        raise ValueError(f"names a file {name!r} that is not in its folder")
    return name


Parity = Annotated[
    Annotated[ParityReport, Tag("checked")] | Annotated[SkippedParity, Tag("skipped")],
    Discriminator(_choose_parity),
]
Moment = Annotated[
    AwareDatetime,
    AfterValidator(_check_year),
    PlainSerializer(datetime.isoformat, when_used="json"),
]
Count = Annotated[int, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, AfterValidator(_check_file_name)]


NO_PARITY: Final = SkippedParity("the report has no parity section")


@dataclass(frozen=True)
class SourceModel:
    """The ONNX file that was given.

    Attributes:
        file: Its name.
        sha256: Over the file and every data file it refers to.
        opset: Version of its default operator set.
        ir_version: Version of its file format.
        nodes: How many its main graph has.
        inputs: As declared, shape tensors marked.
        outputs: As declared.
    """

    file: str
    sha256: Sha256
    opset: int
    ir_version: int
    nodes: Count
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class FolderFile:
    """A file of the folder.

    Attributes:
        file: Its name.
        bytes: Size of all its files.
        sha256: Of the file alone.
        files: SHA-256 of the file and of the data files that belong to it, by name.
    """

    file: FileName
    bytes: Count
    sha256: Sha256
    files: Mapping[FileName, Sha256]

    def __post_init__(self) -> None:
        """Require the file itself among its files."""
        if self.files.get(self.file) != self.sha256:
            raise ValueError(f"lists no SHA-256 of {self.file!r}, or another one under 'files'")


@dataclass(frozen=True)
class TypedModelFile(FolderFile):
    """The model after its recipe; ``changes`` says what normalisation did to it."""

    opset: int
    ir_version: int
    changes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """Report of a build by trtdeploy.

    Attributes:
        status: ``engine``, or ``prepared`` when the device must still compile.
        created: When the folder was written.
        source: The model that was given.
        typed_model: The model after its recipe.
        engine: What the device runs; null in a prepared folder.
        profile: The deploy profile.
        optimization_profiles: Sizes the engine accepts.
        shape_notes: Sizes that were assumed.
        precision: Type and reason of every node.
        check: Findings of the pre-flight.
        compile: What the compiler did; null when nothing was compiled.
        steps: In the order they ran.
        environment: Versions.
        parity: Outputs against the FP32 baseline, or why that was not checked.
        quantization: Layers in 8 bits; null for a recipe and a model without any.
        reproduce: The command that makes the folder again; empty when only reproduce.sh has it.
    """

    # For everything in it but the configuration, which has rules of its own.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True)

    schema_version: Literal[2] = SCHEMA_VERSION
    status: Literal["engine", "prepared"]
    created: Moment
    source: SourceModel
    typed_model: TypedModelFile
    engine: FolderFile | None
    profile: ResolvedProfile
    optimization_profiles: tuple[OptimizationProfile, ...]
    shape_notes: tuple[str, ...]
    precision: PrecisionRecord
    check: CheckReport
    compile: CompileResult | None
    steps: tuple[StepRecord, ...]
    environment: Environment
    parity: Parity = NO_PARITY
    quantization: QuantizationReport | None = None
    reproduce: str = ""
