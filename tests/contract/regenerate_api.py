"""Rebuild ``trt_api_by_version.json.gz`` from the real bindings wheels on PyPI.

Usage:
    python tests/contract/regenerate_api.py [--only VERSION ...] [--check] [--output FILE]

No GPU and no TensorRT is needed: the wheels are imported on top of empty libraries compiled from
``stub_nvinfer.c``. It needs a C compiler and a Python for which every wheel exists (TensorRT 8.6.1
has none for Python 3.12 or later). With ``--check`` nothing is written; the exit code says whether
the wheels still say what the shipped file says.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
SHIPPED = FOLDER / "trt_api_by_version.json.gz"
DISTRIBUTIONS = {
    "8.6.1": "tensorrt-bindings",
    "10.0.1": "tensorrt-cu12-bindings",
    "10.3.0": "tensorrt-cu12-bindings",
    "10.7.0": "tensorrt-cu12-bindings",
    "10.8.0.43": "tensorrt-cu12-bindings",
    "10.13.3.9": "tensorrt-cu12-bindings",
    "10.14.1.48.post1": "tensorrt-cu12-bindings",
    "10.16.1.11": "tensorrt-cu12-bindings",
    "11.0.0.114": "tensorrt-cu12-bindings",
    "11.1.0.106": "tensorrt-cu12-bindings",
    "11.2.1.2": "tensorrt-cu12-bindings",
    "11.3.0.99": "tensorrt-cu12-bindings",
    "11.4.0.106": "tensorrt-cu12-bindings",
    "rtx-1.7.1.116": "tensorrt-rtx-cu13-bindings",
}
LIBRARIES = [
    *(
        f"lib{name}.so.{major}"
        for name in ("nvinfer", "nvinfer_plugin", "nvonnxparser", "nvparsers")
        for major in (8, 10, 11)
    ),
    "libtensorrt_rtx.so.1",
    "libtensorrt_onnxparser_rtx.so.1",
]
API = dict[str, Any]


def compile_stubs(folder: Path) -> None:
    """Compile the stub once and give it the name of every library that some wheel links."""
    folder.mkdir()
    stub = folder / "stub.so"
    subprocess.run(["cc", "-shared", "-o", stub, FOLDER / "stub_nvinfer.c"], check=True)
    for name in LIBRARIES:
        (folder / name).symlink_to(stub)


def download_wheel(version: str, folder: Path) -> Path:
    """Download and unpack the bindings wheel of one version; return the unpacked folder.

    Raises:
        subprocess.CalledProcessError: pip has no such wheel for this Python and this machine.
    """
    requirement = f"{DISTRIBUTIONS[version]}=={version.removeprefix('rtx-')}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run(
        [*pip, "--only-binary", ":all:", "--dest", folder, requirement],
        check=True,
        capture_output=True,
        text=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def dump_api(version: str, folder: Path, stubs: Path) -> API:
    """Return the API of one version, read in a fresh process from its unpacked wheel."""
    module = "tensorrt_rtx_bindings" if version.startswith("rtx-") else "tensorrt_bindings"
    # -S: the wheel in `folder` must win over a TensorRT that is installed in this environment.
    command = [sys.executable, "-S", str(FOLDER / "dump_trt_api.py"), module]
    environment = {
        **os.environ,
        "PYTHONPATH": str(download_wheel(version, folder)),
        "LD_LIBRARY_PATH": str(stubs),
    }
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    api: API = json.loads(done.stdout)
    return api


def save_api(api: API, path: Path) -> None:
    """Write the file so that equal content gives equal bytes (no time stamp, no name inside)."""
    text = json.dumps(api, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def load_shipped() -> API:
    """Return the content of the file in this folder; empty if there is none yet."""
    if not SHIPPED.exists():
        return {}
    api: API = json.loads(gzip.decompress(SHIPPED.read_bytes()))
    return api


def collect_api(versions: list[str]) -> API:
    """Dump every wanted version; one that fails is reported and left out."""
    found: API = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_stubs(folder / "stubs")
        for version in versions:
            api = try_dump_api(version, folder / version, folder / "stubs")
            if api is not None:
                found[version] = api
    return found


def try_dump_api(version: str, folder: Path, stubs: Path) -> API | None:
    """Dump one version; None, with a report, if it can't be downloaded or imported here."""
    try:
        return dump_api(version, folder, stubs)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines() or ["no output"]
        report(version, f"UNAVAILABLE: {lines[-1]}")
        return None


def report(version: str, text: str) -> None:
    """Write one line of the result."""
    sys.stdout.write(f"{version}: {text}\n")


def main() -> int:
    """Run the command line; return 1 if a version was unavailable or, with --check, differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=DISTRIBUTIONS, default=list(DISTRIBUTIONS))
    parser.add_argument("--check", action="store_true", help="compare with the file, don't write")
    parser.add_argument("--output", type=Path, default=SHIPPED)
    arguments = parser.parse_args()

    shipped, found = load_shipped(), collect_api(arguments.only)
    is_same = {version: shipped.get(version) == api for version, api in found.items()}
    for version, same in is_same.items():
        report(version, "same as shipped" if same else "DIFFERS from shipped")
    if not arguments.check:
        merged = {**shipped, **found}
        save_api({v: merged[v] for v in DISTRIBUTIONS if v in merged}, arguments.output)
    is_complete = len(found) == len(arguments.only)
    return int(not is_complete or (arguments.check and not all(is_same.values())))


if __name__ == "__main__":
    sys.exit(main())
