"""Finding, merging and validating deploy profiles and devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trtdeploy.config.combination import find_combination_problems
from trtdeploy.config.deploy_profile import DeployProfile
from trtdeploy.config.device import DeviceSpec
from trtdeploy.config.documents import (
    SET_LABEL,
    Document,
    MergedDocument,
    parse_override,
)
from trtdeploy.config.shape_request import ShapeRequest, build_shape_requests
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.config.shipped import Kind, describe_file, find_config_file, list_shipped
from trtdeploy.config.validation_text import validate_document
from trtdeploy.config.yaml_text import load_yaml_mapping
from trtdeploy.core.errors import DeployProfileError, UsageError

LONGEST_EXTENDS_CHAIN: Final = 8


@dataclass(frozen=True)
class ResolvedProfile:
    """A deploy profile with everything it refers to.

    Attributes:
        profile: The validated profile, parents and overrides applied.
        device: Its device.
        source: File it was read from.
        parents: Files it extends, nearest first.
        overrides: ``--set`` texts, in order.
    """

    profile: DeployProfile
    device: DeviceSpec
    source: Path
    parents: tuple[Path, ...] = ()
    overrides: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the profile."""
        return self.profile.name

    def build_shape_requests(self, given: ShapeTable | None = None) -> tuple[ShapeRequest, ...]:
        """Return one request per optimization profile, with ``given`` (the CLI's) on top."""
        return build_shape_requests(self.profile, given)

    def require_sound(self, label: str) -> None:
        """Refuse a profile that was read from a manifest, where its parts do not go together.

        Args:
            label: How the message calls the place, e.g. the manifest's path.

        Raises:
            DeployProfileError: All combinations that cannot work, one per line.
        """
        problems = find_combination_problems(self.profile, self.device)
        if problems:
            raise DeployProfileError("\n".join(f"{label}: {problem}" for problem in problems))


def list_deploy_profiles() -> tuple[str, ...]:
    """Return the names of the shipped deploy profiles, sorted."""
    return list_shipped("deploy profile")


def list_devices() -> tuple[str, ...]:
    """Return the names of the shipped devices, sorted."""
    return list_shipped("device")


def load_device(name_or_path: str | os.PathLike[str], *, folder: Path | None = None) -> DeviceSpec:
    """Load a shipped device by name, or a device file by path.

    Args:
        name_or_path: E.g. ``rtx4090`` or ``./my-board.yaml``.
        folder: What a relative path refers to; the working directory by default.

    Raises:
        DeployProfileError: No such device, or everything that is wrong with its file.
    """
    path = find_config_file(os.fspath(name_or_path), "device", folder or Path())
    merged, _ = _load_chain(path, "device")
    device, problems = validate_document(
        DeviceSpec, merged, describe_file(path), {"name": path.stem}
    )
    if device is None:
        raise DeployProfileError("\n".join(problems))
    return device


def load_deploy_profile(
    name_or_path: str | os.PathLike[str], overrides: Sequence[str] = ()
) -> ResolvedProfile:
    """Load a deploy profile, apply ``extends`` and overrides, and check it against its device.

    Args:
        name_or_path: A shipped name such as ``orin-fp16``, or the path of a YAML file.
        overrides: ``--set`` texts such as ``build.workspace=2GiB``.

    Raises:
        DeployProfileError: All problems of the files, or all combinations that cannot work,
            one per line.
        UsageError: All problems lie in ``overrides``, or come from them.
    """
    path = find_config_file(os.fspath(name_or_path), "deploy profile", Path())
    label = describe_file(path)
    merged, chain = _load_chain(path, "deploy profile")
    for text in overrides:
        merged.add(_read_override(text))
    profile, device = _validate(merged, path, label)
    problems = find_combination_problems(profile, device)
    if problems:
        blamed = {problem: _blame(problem, path, overrides) for problem in problems}
        lines = [f"{blamed[problem] or label}: {problem}" for problem in problems]
        raise (UsageError if all(blamed.values()) else DeployProfileError)("\n".join(lines))
    return ResolvedProfile(profile, device, path, chain, tuple(overrides))


def _validate(merged: MergedDocument, path: Path, label: str) -> tuple[DeployProfile, DeviceSpec]:
    profile, problems = validate_document(DeployProfile, merged, label, {"name": path.stem})
    device, device_problems = _load_device_of(merged)
    problems = (*problems, *device_problems)
    if profile is None or device is None:
        only_overrides = all(problem.startswith(SET_LABEL) for problem in problems)
        raise (UsageError if only_overrides else DeployProfileError)("\n".join(problems))
    return profile, device


def _blame(problem: str, path: Path, overrides: Sequence[str]) -> str:
    """Return the ``--set`` texts that a combination problem comes from; empty: it is the file's.

    It comes from the texts without which it would not be there; where no single one is to blame,
    from all of them together.
    """
    if problem in (_find_problems(path, ()) or ()):
        return ""
    alone = []
    for position, text in enumerate(overrides):
        others = _find_problems(path, (*overrides[:position], *overrides[position + 1 :]))
        if others is not None and problem not in others:
            alone.append(text)
    texts = " ".join(f"{SET_LABEL} {text}" for text in alone or overrides)
    return f"{texts} on {describe_file(path)}"


def _find_problems(path: Path, overrides: Sequence[str]) -> tuple[str, ...] | None:
    """Return what does not go together; None when some part is wrong by itself."""
    try:
        merged, _ = _load_chain(path, "deploy profile")
        for text in overrides:
            merged.add(_read_override(text))
        return find_combination_problems(*_validate(merged, path, describe_file(path)))
    except (DeployProfileError, UsageError):
        return None


def _read_override(text: str) -> Document:
    document = parse_override(text)
    if "extends" in document.data:
        raise UsageError(
            "--set extends: only a file can extend another",
            hint="Choose the other one with --profile",
        )
    return document


def _load_device_of(merged: MergedDocument) -> tuple[DeviceSpec | None, tuple[str, ...]]:
    name = merged.data.get("device")
    origin = merged.find_origin(("device",))
    if not isinstance(name, str) or not name or origin is None:
        return None, ()  # validation of the profile says so already
    try:
        return load_device(name, folder=origin.folder), ()
    except DeployProfileError as error:
        place = origin.locate(("device",))
        return None, tuple(f"{place}: {line}" for line in error.message.splitlines())


def _load_chain(path: Path, kind: Kind) -> tuple[MergedDocument, tuple[Path, ...]]:
    """Read a file and everything it extends; the file itself ends up on top."""
    documents: list[Document] = []
    chain: list[Path] = []
    current: Path | None = path
    while current is not None:
        document, parent = _load_document(current, kind)
        _check_chain(current, chain)
        chain.append(current)
        documents.append(document)
        current = parent
    merged = MergedDocument()
    for document in reversed(documents):
        merged.add(document)
    return merged, tuple(chain[1:])


def _check_chain(path: Path, chain: Sequence[Path]) -> None:
    shown = " -> ".join(describe_file(link) for link in [*chain, path])
    if any(path.resolve() == link.resolve() for link in chain):
        raise DeployProfileError(f"{describe_file(chain[0])}: extends itself: {shown}")
    if len(chain) > LONGEST_EXTENDS_CHAIN:
        raise DeployProfileError(
            f"{describe_file(chain[0])}: extends more than {LONGEST_EXTENDS_CHAIN} files: {shown}"
        )


def _load_document(path: Path, kind: Kind) -> tuple[Document, Path | None]:
    label = describe_file(path)
    data = load_yaml_mapping(path, label)
    document = Document(label, path.parent, data)
    if "extends" not in data:
        return document, None
    parent = data.pop("extends")
    if not isinstance(parent, str) or not parent:
        raise DeployProfileError(f"{label}: extends: expected a name or a path, given {parent!r}")
    try:
        return document, find_config_file(parent, kind, path.parent)
    except DeployProfileError as error:
        raise DeployProfileError(f"{label}: extends: {error.message}", hint=error.hint) from error
