#!/usr/bin/env python3
"""``trtdeploy build`` against a bare TensorRT-RTX script, and ``trtdeploy --help`` against Typer.

Runs with any Python >= 3.10 and pip; everything else goes into an environment of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.build_benchmark import main

    sys.exit(main())
