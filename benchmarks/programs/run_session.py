"""One run per line of stdin: ``run_session.py MODEL FEEDS.npz OPTIMIZE``, OPTIMIZE being 0 or 1.

Prints a line once the model is open and has run, then the wall time in seconds of each run.
"""

import sys
import time
from pathlib import Path

import numpy as np

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession

model, feeds_path, optimize = sys.argv[1:]
with np.load(feeds_path) as arrays:
    feeds = dict(arrays)
with OnnxRuntimeSession(Path(model), optimize=optimize == "1") as session:
    session.run(feeds)
    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        session.run(feeds)
        print(time.perf_counter() - started, flush=True)
