"""The ``calibration:`` section and per-node precisions of a deploy profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.core.errors import TrtdeployError

PROFILE = """
extends: rtx4090-int8
precision:
  keep_fp32: [stem]
  nodes: {"op:Softmax": fp32, "/head/*": fp16}
calibration:
  method: percentile
  percentile: 99.9
  methods: {"/head/*": minmax}
  nonfinite: skip
"""


def test_a_profile_chooses_methods_and_precisions_by_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(PROFILE)
    profile = load_deploy_profile(path).profile
    assert profile.calibration.method == "percentile"
    assert profile.calibration.methods == {"/head/*": "minmax"}
    assert profile.precision.list_pins() == ("stem", "fp32:op:Softmax", "fp16:/head/*")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("calibration.method=entropie", "'entropy'"),
        ("calibration.percentile=0", "greater than 0"),
        ("calibration.percentile=101", "less than or equal to 100"),
        ("calibration.samples=4", "samples"),
        ("precision.nodes={a: int4}", "int8"),
    ],
)
def test_wrong_values_are_named(override: str, expected: str) -> None:
    with pytest.raises(TrtdeployError) as caught:
        load_deploy_profile("rtx4090-int8", [override])
    assert expected in f"{caught.value.message} {caught.value.hint}"
