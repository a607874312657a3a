#!/usr/bin/env python3
"""Q/DQ files of ONNX Runtime and Model-Optimizer: trtdeploy's check against TensorRT-RTX."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.agreement_benchmark import main

    sys.exit(main())
