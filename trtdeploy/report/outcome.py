"""The answer of a report in one word and one sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from trtdeploy.parity.result import ParityReport, Verdict, accept_verdict
from trtdeploy.report.document import BuildReport
from trtdeploy.report.number_text import count_noun

NOT_RUN_LABEL = "parity not run"
SYNTHETIC_WARNING = "Calibrated with made-up inputs: do not ship."


class Outcome(str, Enum):
    """Outcome of the gate for a whole report; the values are the words that are shown."""

    PASS = "pass"
    SUSPECT = "suspect"
    NOT_PROVEN = "not proven"
    FAIL = "fail"


@dataclass(frozen=True)
class Judgement:
    """What a reader must know first.

    Attributes:
        label: ``emulated on CPU``, ``measured on <device>``, or that nothing was run.
    """

    outcome: Outcome
    headline: str
    label: str

    @property
    def gate_failed(self) -> bool:
        """True when a release must stop; a suspicion alone does not stop it."""
        return self.outcome is Outcome.FAIL


def is_accepted(report: BuildReport, *, strict: bool = False) -> bool:
    """Tell whether a report lets a release go on; ``strict`` refuses a suspicion too."""
    parity = report.parity
    if judge_report(report).gate_failed or not isinstance(parity, ParityReport):
        return not judge_report(report).gate_failed
    return accept_verdict(parity.verdict, strict=strict)


def judge_report(report: BuildReport) -> Judgement:
    """Return the outcome of a report: the worst of check, steps, parity and calibration."""
    judgement = _judge_build(report)
    if report.quantization is None or not report.quantization.is_synthetic:
        return judgement
    # Outputs can agree on inputs that were made up as well, and be wrong on real ones.
    passed = judgement.outcome is Outcome.PASS
    outcome = Outcome.SUSPECT if passed else judgement.outcome
    headline = f"{judgement.headline.rstrip('.')}. {SYNTHETIC_WARNING}"
    return replace(judgement, outcome=outcome, headline=headline)


def _judge_build(report: BuildReport) -> Judgement:
    parity = report.parity
    label = parity.label if isinstance(parity, ParityReport) else NOT_RUN_LABEL
    obstacle = _find_obstacle(report)
    if obstacle:
        return Judgement(Outcome.FAIL, obstacle, label)
    if not isinstance(parity, ParityReport):
        headline = f"Outputs were not compared with the FP32 model: {parity.skipped}"
        return Judgement(Outcome.NOT_PROVEN, headline, label)
    return _judge_parity(parity)


def _find_obstacle(report: BuildReport) -> str:
    """Return why there is nothing to compare; empty when there is."""
    blockers = report.check.blockers
    if blockers:
        return f"{count_noun(len(blockers), 'blocker')} found before the build."
    failed = [step.name for step in report.steps if step.status == "failed"]
    return f"The step {failed[0]} failed." if failed else ""


def _judge_parity(parity: ParityReport) -> Judgement:
    verdict = parity.verdict
    comparisons = [output.verdict for point in parity.points for output in point.outputs]
    total = count_noun(len(comparisons), "comparison")
    failed, suspect = (comparisons.count(v) for v in (Verdict.FAIL, Verdict.SUSPECT))
    if verdict is Verdict.FAIL:
        headline = f"{failed} of {total} failed." if failed else _explain(parity)
        return Judgement(Outcome.FAIL, headline, parity.label)
    if verdict is Verdict.SUSPECT:
        headline = (
            f"{suspect} of {total} suspect: within tolerance, but worse than rounding explains."
        )
        return Judgement(Outcome.SUSPECT, headline, parity.label)
    points = count_noun(len(parity.points), "profile point")
    headline = f"All outputs agree with the FP32 model at {points} ({total})."
    return Judgement(Outcome.PASS, headline, parity.label)


def _explain(parity: ParityReport) -> str:
    """Say why a check failed in which no comparison did."""
    problems = sum(bool(point.problem) for point in parity.points)
    if problems:
        return f"{count_noun(problems, 'profile point')} could not be compared."
    metric = parity.task_metric
    if metric is not None and metric.verdict is Verdict.FAIL:
        return f"The task metric {metric.name} fell too far."
    return "Nothing was compared, which proves nothing."
