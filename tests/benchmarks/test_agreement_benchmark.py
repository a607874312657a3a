from __future__ import annotations

from typing import Any

import pytest

from benchmarks.agreement_benchmark import Judgement, main, render_judgements


def judged(check: str, compiler: str, *, node: str = "", named: tuple[str, ...] = ()) -> Judgement:
    answer: dict[str, Any] = {"verdict": check, "codes": {"bad-scale": 2}, "nodes": list(named)}
    return Judgement(
        "m.onnx", "ort", "default", answer, {"verdict": compiler, "by": "parser", "node": node}
    )


@pytest.mark.parametrize(
    ("judgement", "agrees"),
    [
        (judged("accepted", "accepted"), True),
        (judged("refused", "refused"), True),
        (judged("refused", "refused", node="q", named=("q", "r")), True),
        (judged("refused", "refused", node="q", named=("r",)), False),
        (judged("accepted", "refused"), False),
        (judged("refused", "crashed"), False),
    ],
)
def test_agreement_is_verdict_and_node(judgement: Judgement, agrees: bool) -> None:
    assert judgement.agrees is agrees


def test_one_row_per_file() -> None:
    rows = render_judgements([judged("refused", "refused"), judged("accepted", "refused")])
    assert rows.splitlines()[2] == (
        "| m.onnx | ort | default | refused | refused (parser) | yes | bad-scale x2 |"
    )
    assert "**no**" in rows.splitlines()[3]


def test_one_model_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--shape", "x:1x3"])
    assert "give one --model" in capsys.readouterr().err
