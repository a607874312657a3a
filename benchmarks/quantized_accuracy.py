#!/usr/bin/env python3
"""Quantized accuracy on real-looking data, by model, recipe and calibration method.

Runs in an environment that has trtdeploy and Pillow.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.accuracy_benchmark import main

    sys.exit(main())
