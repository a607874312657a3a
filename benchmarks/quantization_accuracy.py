#!/usr/bin/env python3
"""INT8 accuracy of trtdeploy, Model-Optimizer and ONNX Runtime at equal data and method.

Runs in an environment that has trtdeploy and Pillow; the peers get environments of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.peer_accuracy_benchmark import main

    sys.exit(main())
