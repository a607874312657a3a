"""models/fetch.py against wheels made here: pip is the real one, the network is not there."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("pip", reason="this environment was made without pip")

ROOT = Path(__file__).resolve().parents[1]
FETCH = ROOT / "models" / "fetch.py"
CONTENT = {"small": b"a small model" * 100, "large": b"a large model" * 1000}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / "fakemodels-1.0-py3-none-any.whl"
    info = "fakemodels-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: fakemodels\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def describe_model(name: str) -> dict[str, object]:
    content = CONTENT[name]
    return {
        "file": f"{name}.onnx",
        "task": "nothing",
        "licence": "MIT",
        "inputs": {"x": "float32 [N]"},
        "wheel": "fake",
        "member": f"fakemodels/{name}.onnx",
        "bytes": len(content),
        "sha256": sha256(content),
    }


@dataclass
class FakeZoo:
    """A package index of one wheel, a manifest for it, and an output folder."""

    index: Path
    output: Path
    manifest: Path
    content: dict[str, dict[str, dict[str, object]]] = field(default_factory=dict)

    def save(self) -> None:
        self.manifest.write_text(json.dumps({"schema_version": 1, **self.content}))

    def fetch(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        outside = {key: text for key, text in os.environ.items() if not key.startswith("PIP_")}
        places = ("--manifest", str(self.manifest), "--output-dir", str(self.output))
        return subprocess.run(
            [sys.executable, str(FETCH), *places, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={
                **outside,
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_NO_INDEX": "1",
                "PIP_FIND_LINKS": str(self.index),
            },
        )


@pytest.fixture
def zoo(tmp_path: Path) -> FakeZoo:
    index = tmp_path / "index"
    index.mkdir()
    wheel = write_wheel(index, {f"fakemodels/{name}.onnx": CONTENT[name] for name in CONTENT})
    fake = FakeZoo(index=index, output=tmp_path / "out", manifest=tmp_path / "zoo.json")
    fake.content = {
        "wheels": {
            "fake": {
                "requirement": "fakemodels==1.0",
                "platform": "any",
                "bytes": wheel.stat().st_size,
                "sha256": sha256(wheel.read_bytes()),
            }
        },
        "models": {name: describe_model(name) for name in CONTENT},
    }
    fake.save()
    return fake


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 1, done
    lines = done.stderr.splitlines()
    assert len(lines) == 1, "one line, no traceback"
    assert lines[0].startswith("fetch.py: ")
    for word in words:
        assert word in lines[0]


def assert_only(folder: Path, *names: str) -> None:
    found = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    assert found == sorted(names)


def test_takes_one_model_out_of_the_wheel(zoo: FakeZoo) -> None:
    done = zoo.fetch("small")
    assert done.returncode == 0, done.stderr
    assert (zoo.output / "small.onnx").read_bytes() == CONTENT["small"]
    assert_only(zoo.output, "small.onnx")


def test_downloads_a_wheel_once_for_all_its_models(zoo: FakeZoo) -> None:
    done = zoo.fetch("--all")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("downloading") == 1
    assert_only(zoo.output, "small.onnx", "large.onnx")


def test_second_fetch_needs_no_index(zoo: FakeZoo) -> None:
    assert zoo.fetch("small").returncode == 0
    for wheel in zoo.index.iterdir():
        wheel.unlink()
    done = zoo.fetch("small")
    assert done.returncode == 0, done.stderr
    assert "already here" in done.stdout


def test_unknown_name_lists_the_names(zoo: FakeZoo) -> None:
    assert_refused(zoo.fetch("smal"), "'smal'", "small", "large")
    assert_only(zoo.output)


def test_no_index_is_one_line(zoo: FakeZoo) -> None:
    for wheel in zoo.index.iterdir():
        wheel.unlink()
    assert_refused(zoo.fetch("small"), "fakemodels==1.0", "network")
    assert_only(zoo.output)


def test_refuses_another_wheel(zoo: FakeZoo) -> None:
    write_wheel(zoo.index, {"fakemodels/small.onnx": CONTENT["small"], "extra.py": b"evil"})
    assert_refused(zoo.fetch("small"), "not the known wheel", "sha256")
    assert_only(zoo.output)


@pytest.mark.parametrize(
    "content", [CONTENT["small"][:-1] + b"!", b""], ids=["same-size", "other-size"]
)
def test_refuses_another_model_in_a_known_wheel(zoo: FakeZoo, content: bytes) -> None:
    wheel = write_wheel(zoo.index, {"fakemodels/small.onnx": content})
    zoo.content["wheels"]["fake"]["sha256"] = sha256(wheel.read_bytes())
    zoo.save()
    assert_refused(zoo.fetch("small"), "fakemodels/small.onnx", "not the known model")
    assert_only(zoo.output)


def test_refuses_a_wheel_without_the_model(zoo: FakeZoo) -> None:
    zoo.content["models"]["small"]["member"] = "fakemodels/gone.onnx"
    zoo.save()
    assert_refused(zoo.fetch("small"), "fakemodels/gone.onnx")
    assert_only(zoo.output)


def test_never_replaces_a_different_file_unasked(zoo: FakeZoo) -> None:
    zoo.output.mkdir()
    target = zoo.output / "small.onnx"
    target.write_bytes(b"mine")
    assert_refused(zoo.fetch("small"), "small.onnx", "--force")
    assert target.read_bytes() == b"mine"
    assert zoo.fetch("small", "--force").returncode == 0
    assert target.read_bytes() == CONTENT["small"]


def test_list_shows_every_model_and_fetches_nothing(zoo: FakeZoo) -> None:
    done = zoo.fetch("--list")
    assert done.returncode == 0
    assert all(text in done.stdout for text in ("small", "large", "MIT", "fakemodels==1.0"))
    assert_only(zoo.output)


def test_no_name_is_a_usage_error(zoo: FakeZoo) -> None:
    assert zoo.fetch().returncode == 2


def test_broken_manifest_is_one_line(zoo: FakeZoo) -> None:
    zoo.manifest.write_text('{"wheels": {}, "models": {"a": {"file": 1}}}')
    assert_refused(zoo.fetch("a"), "manifest")


def test_shipped_manifest_is_whole() -> None:
    content = json.loads((ROOT / "models" / "zoo.json").read_text(encoding="utf-8"))
    names = {"pp-ocrv6-det", "pp-ocrv6-rec", "ppocr-cls", "magika", "silero-vad", "silero-vad-16k"}
    assert set(content["models"]) == names
    assert {model["wheel"] for model in content["models"].values()} == set(content["wheels"])
    for entry in (*content["models"].values(), *content["wheels"].values()):
        assert len(bytes.fromhex(entry["sha256"])) == 32
    assert all("==" in wheel["requirement"] for wheel in content["wheels"].values())
