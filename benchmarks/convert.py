#!/usr/bin/env python3
"""FP16 typing by trtdeploy and by its peers: wall time, peak memory, and whether it is right.

Runs with any Python >= 3.10 and pip; everything else goes into environments of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself
    from benchmarks.conversion_benchmark import main

    sys.exit(main())
