"""The programs that type a model as FP16: trtdeploy and its peers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.environments import TRTDEPLOY, Environment
from benchmarks.processes import Command

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True)
class Tool:
    """One way to type a model.

    Attributes:
        name: As shown in tables and chosen on the command line.
        program: Script that takes a source and a target file.
        environment: Where the script runs.
    """

    name: str
    program: Path
    environment: Environment

    def command(self, python: Path, source: Path, target: Path) -> Command:
        """Return the command that types ``source`` into ``target``."""
        return [python, "-I", self.program, source, target]


OURS = Tool("trtdeploy", PROGRAMS / "type_trtdeploy.py", TRTDEPLOY)
PEERS = {
    tool.name: tool
    for tool in (
        Tool(
            "ort",
            PROGRAMS / "type_onnxruntime.py",
            # sympy and packaging are what its transformers tools import beyond its dependencies
            Environment(
                "ort",
                ("onnxruntime", "onnx", "packaging", "sympy"),
                ("onnxruntime", "onnx", "numpy"),
            ),
        ),
        Tool(
            "onnxconverter-common",
            PROGRAMS / "type_onnxconverter_common.py",
            Environment(
                "onnxconverter-common",
                ("onnxconverter-common",),
                ("onnxconverter-common", "onnx", "numpy"),
            ),
        ),
        Tool(
            "modelopt",
            PROGRAMS / "type_modelopt.py",
            Environment(
                "modelopt",
                ("nvidia-modelopt[onnx]",),
                ("nvidia-modelopt", "onnx", "onnxruntime-gpu", "torch"),
            ),
        ),
    )
}
DEFAULT_PEERS = ("ort", "onnxconverter-common")
