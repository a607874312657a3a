#!/usr/bin/env python3
"""INT8 calibration by trtdeploy and by its peers: wall time, peak memory, and flat or not.

Runs with any Python >= 3.10 and pip; everything else goes into environments of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.calibration_benchmark import main

    sys.exit(main())
