"""One whole parity check: ``check_parity.py REFERENCE CANDIDATE DATA.npz RANGES.json``.

RANGES.json is the optimization profile as manifests store it. Fails when the models differ.
"""

import json
import sys
from pathlib import Path

from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.loading import load_model
from trtdeploy.parity.request import ParityRequest
from trtdeploy.parity.running import describe_verdict, run_parity
from trtdeploy.precision.typing_options import TypingOptions

reference, candidate, data, ranges = map(Path, sys.argv[1:])
report = run_parity(
    ParityRequest(
        reference=load_model(reference),
        candidate=load_model(candidate),
        options=TypingOptions(find_recipe("fp16")),
        optimization_profiles=(
            OptimizationProfile.from_dict(json.loads(ranges.read_text(encoding="utf-8"))),
        ),
        data=data,
    )
)
accepted = report.is_accepted(strict=True)
print(describe_verdict(report) if accepted else f"error: {describe_verdict(report)}")
sys.exit(not accepted)
