"""One whole parity check: ``check_parity.py REFERENCE CANDIDATE DATA.npz RANGES.json``.

RANGES.json is the optimization profile as manifests store it. Fails when the models differ.
"""

import json
import sys
from pathlib import Path

from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.pipeline.parity import describe_verdict, run_parity
from trtdeploy.pipeline.parity_request import ParityRequest

reference, candidate, data, ranges = map(Path, sys.argv[1:])
report = run_parity(
    ParityRequest(
        reference=reference,
        candidate=candidate,
        recipe="fp16",
        optimization_profiles=(
            OptimizationProfile.from_dict(json.loads(ranges.read_text(encoding="utf-8"))),
        ),
        data=data,
    )
)
accepted = report.is_accepted()
print(describe_verdict(report) if accepted else f"error: {describe_verdict(report)}")
sys.exit(not accepted)
