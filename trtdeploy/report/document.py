"""``report.json`` as typed values; ``report.schema.json`` is generated from these classes."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, Discriminator, Field, Tag

from trtdeploy.parity.result import ParityReport, SkippedParity
from trtdeploy.precision.quantization.report import QuantizationReport
from trtdeploy.preflight.finding import Affects, Severity
from trtdeploy.report.fields import (
    Count,
    Integer,
    ReportModel,
    Seconds,
    Sha256,
    Shape,
    Sizes,
    Text,
)

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


Parity = Annotated[
    Annotated[ParityReport, Tag("checked")] | Annotated[SkippedParity, Tag("skipped")],
    Discriminator(_choose_parity),
]
Moment = Annotated[AwareDatetime, AfterValidator(_check_year)]


class TensorEntry(ReportModel):
    """An input or output of the source model; the shape is null when not even the rank is known."""

    name: Text
    dtype: Text
    shape: Shape | None
    is_shape_tensor: bool = False


class SourceSection(ReportModel):
    """The ONNX file that was given."""

    file: Text
    sha256: Sha256
    opset: Integer
    ir_version: Integer
    nodes: Count
    inputs: tuple[TensorEntry, ...]
    outputs: tuple[TensorEntry, ...]


class FileSection(ReportModel):
    """A file of the folder; ``files`` lists it with the data files that belong to it."""

    file: Text
    bytes: Count
    sha256: Sha256
    files: dict[Text, Sha256]


class TypedModelSection(FileSection):
    """The model after its recipe; ``changes`` says what normalisation did to it."""

    opset: Integer
    ir_version: Integer
    changes: tuple[Text, ...]


class DeployProfileEntry(ReportModel):
    """What a report shows of the deploy profile; the other fields are those of its YAML file."""

    name: Text
    title: Text = ""
    device: Text
    backend: Text
    recipe: Text


class DeviceEntry(ReportModel):
    """What a report shows of the device."""

    name: Text
    title: Text
    compute_capability: Text | None = None


class ProfileSection(ReportModel):
    """The deploy profile as resolved, and where it came from."""

    profile: DeployProfileEntry
    device: DeviceEntry
    source: Text
    parents: tuple[Text, ...] = ()
    overrides: tuple[Text, ...] = ()


class PointTable(ReportModel):
    """Sizes of an input, or values of a shape tensor, at the three points."""

    min: Sizes
    opt: Sizes
    max: Sizes


class OptimizationProfileEntry(ReportModel):
    """One optimization profile: every input's shape, and every shape tensor's values."""

    name: Text
    shapes: dict[Text, PointTable]
    values: dict[Text, PointTable] = Field(default_factory=dict)


class NodeEntry(ReportModel):
    """The type a node computes in, the rule that decided, and its reason."""

    dtype: Text
    rule: Text
    reason: Text


class ConstantEntry(ReportModel):
    """A constant outside the narrow type's range; ``limit`` is what it was clamped to."""

    name: Text
    value: Text
    action: Text
    limit: float | None
    reason: Text


class PrecisionSection(ReportModel):
    """What the recipe decided; nodes in graph order."""

    recipe: Text
    counts: dict[Text, Count]
    nodes: dict[Text, NodeEntry]
    constants: tuple[ConstantEntry, ...]
    notes: tuple[Text, ...]
    ranges_measured: bool = False


class FindingEntry(ReportModel):
    """A blocker, hazard or note of the pre-flight."""

    code: Text
    severity: Severity
    affects: Affects
    node: Text
    op_type: Text
    domain: Text
    message: Text
    remedy: Text


class CheckSection(ReportModel):
    """The pre-flight: who was asked, and what was found."""

    model: Text
    opset: Integer
    ir_version: Integer
    node_count: Count
    backend: Text
    engine: Text
    recipe: Text
    device: Text
    asked: Text
    counts: dict[Text, Count]
    findings: tuple[FindingEntry, ...]

    def select(self, severity: Severity) -> tuple[FindingEntry, ...]:
        """Return the findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity is severity)


class ProofEntry(ReportModel):
    """How the engine's precision was proven: layers (or tensors) per element type."""

    proven_by: Text = ""
    layers: dict[Text, Count] = Field(default_factory=dict)
    per_layer: dict[Text, Text] = Field(default_factory=dict)


class CompileSection(ReportModel):
    """What the compiler did and said; other fields are for whoever loads the engine."""

    backend: Text
    version: Text
    typing: Text
    flags: tuple[Text, ...]
    precision: ProofEntry
    warnings: tuple[Text, ...]
    parse_s: Seconds
    build_s: Seconds


class StepEntry(ReportModel):
    """One step of the build."""

    name: Text
    status: Literal["ok", "failed", "skipped"]
    seconds: Seconds
    detail: Text
    log: tuple[Text, ...] = ()


class EnvironmentSection(ReportModel):
    """What the folder was made with."""

    trtdeploy: Text
    python: Text
    platform: Text
    packages: dict[Text, Text]


class BuildReport(ReportModel):
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
        compile: The compiler's part; null when nothing was compiled.
        steps: In the order they ran.
        environment: Versions.
        parity: Outputs against the FP32 baseline, or why that was not checked.
        quantization: Layers in 8 bits; null for a recipe and a model without any.
        reproduce: The command that makes the folder again; empty when only reproduce.sh has it.
    """

    schema_version: Literal[2]
    status: Literal["engine", "prepared"]
    created: Moment
    source: SourceSection
    typed_model: TypedModelSection
    engine: FileSection | None
    profile: ProfileSection
    optimization_profiles: tuple[OptimizationProfileEntry, ...]
    shape_notes: tuple[Text, ...]
    precision: PrecisionSection
    check: CheckSection
    compile: CompileSection | None
    steps: tuple[StepEntry, ...]
    environment: EnvironmentSection
    parity: Parity = SkippedParity(skipped="the report has no parity section")
    quantization: QuantizationReport | None = None
    reproduce: Text = ""
