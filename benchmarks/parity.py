#!/usr/bin/env python3
"""The parity check: how slow the emulation is, and that memory does not grow with the samples.

Runs in an environment that has trtdeploy.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.parity_benchmark import main

    sys.exit(main())
