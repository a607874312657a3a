"""The search for the smallest set of pins: rank, predict, verify, take back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from trtdeploy.pinning.candidate import Candidate, Evaluator, PinningOutcome, Score
from trtdeploy.pinning.noise_model import NoiseModel, rank_candidates

SEARCH_RUNS = 24
"""Runs beside those of single candidates: about twice what a search among 500 takes."""
_ADDS_UP_DB = 2.0
_HOPE = 1.5
"""A pin is tried to be taken back while the error is expected within so many times the target."""
_MOST_FAILURES = 12
"""After so many pins in a row that have to stay, the more harmful ones are not tried."""

RunObserver = Callable[[int, int], None]
"""Told how many runs are done, and how many there will be at most."""


def _ignore(_done: int, _most: int) -> None:
    pass


class PinSearch:
    """One search; every run of the model goes through here and is counted.

    Args:
        evaluator: Measures the model.
        most_runs: After so many runs, what was verified until then is returned.
        observe: Told before each run.
    """

    def __init__(
        self, evaluator: Evaluator, most_runs: int, observe: RunObserver = _ignore
    ) -> None:
        self._evaluator = evaluator
        self._most_runs = most_runs
        self._observe = observe
        self._expected = most_runs
        self._known: dict[frozenset[str], Score] = {}
        self.runs = 0

    def run(self, candidates: Sequence[Candidate]) -> PinningOutcome:
        """Return the smallest set of candidates found to reach the target.

        Args:
            candidates: Everything that could be pinned, in graph order. They are measured one by
                one, so there should be fewer than ``most_runs`` by ``SEARCH_RUNS``.
        """
        self._expected = min(self._most_runs, self.runs + len(candidates) + SEARCH_RUNS)
        plain = self._measure(())
        if plain.reached or not candidates:
            return PinningOutcome(tuple(candidates), {}, plain, (), plain, None, self.runs)
        floor = self._measure(candidates)
        alone = {c.name: self._measure_alone(c) for c in candidates}
        model = NoiseModel(alone, plain, floor)
        ranked = rank_candidates(candidates, model)
        chosen: list[Candidate] = []
        if floor.reached:
            chosen = self._take_back(self._find_prefix(ranked, model), model)
        hybrid = self._measure(chosen)
        pinned = tuple(candidate for candidate in ranked if candidate in chosen)
        return PinningOutcome(
            tuple(ranked), alone, plain, pinned, hybrid, floor, self.runs,
            (*_note_sum(model), *self._note_budget()),
        )  # fmt: skip

    def refine(self, outcome: PinningOutcome, op_types: Mapping[str, str]) -> PinningOutcome:
        """Search again among the single nodes of what was pinned in groups.

        Args:
            outcome: Of ``run``; returned as it is when nothing in it can be divided.
            op_types: Operator by node name.
        """
        members = [member for group in outcome.pinned for member in group.split(op_types)]
        if len(members) == len(outcome.pinned):
            return outcome
        if self.runs + len(members) >= self._most_runs:
            needed = self.runs + len(members) + SEARCH_RUNS
            note = f"nodes were pinned in groups; about {needed} runs would tell them apart"
            return replace(outcome, notes=(*outcome.notes, note))
        finer = self.run(members)
        others = [c for c in outcome.candidates if c not in outcome.pinned]
        return replace(
            finer,
            candidates=(*finer.candidates, *others),
            alone={**outcome.alone, **finer.alone},
            plain=outcome.plain,
            all_pinned=outcome.all_pinned,
        )

    def _find_prefix(self, ranked: Sequence[Candidate], model: NoiseModel) -> list[Candidate]:
        """Return the shortest verified run of the worst candidates that reaches the target."""
        low, high, margin = 0, len(ranked), 0
        while high - low > 1 and self._has_budget():
            size = self._predict_size(ranked, model, low, high)
            size = max(low + 1, low + margin, min(size, high - max(margin, 1)))
            if self._measure(ranked[:size]).reached:
                high = size
            else:
                low = size
            # after the first guess, whatever is predicted, a quarter of what is open goes at least
            margin = (high - low) // 4
        return list(ranked[:high])

    def _predict_size(
        self, ranked: Sequence[Candidate], model: NoiseModel, low: int, high: int
    ) -> int:
        names = [candidate.name for candidate in ranked]
        known = self._measure(ranked[:low])
        for size in range(low + 1, high):
            if model.predict_excess(names[:size], names[:low], known) <= 1.0:
                return size
        return high

    def _take_back(self, chosen: Sequence[Candidate], model: NoiseModel) -> list[Candidate]:
        """Leave out every pin that the target is reached without, the least harmful first."""
        kept, failures = list(chosen), 0
        self._expected = min(self._most_runs, self.runs + len(kept) + 1)
        for candidate in sorted(chosen, key=model.weigh):
            if not self._has_budget() or failures == _MOST_FAILURES:
                break
            fewer = [other for other in kept if other is not candidate]
            known, names = self._measure(kept), [other.name for other in kept]
            expected = model.predict_excess([other.name for other in fewer], names, known)
            if expected <= _HOPE and self._measure(fewer).reached:
                kept, failures = fewer, 0
            else:
                failures += 1
        return kept

    def _measure(self, pinned: Sequence[Candidate]) -> Score:
        key = frozenset(node for candidate in pinned for node in candidate.nodes)
        if key not in self._known:
            self._count()
            self._known[key] = self._evaluator.measure(pinned)
        return self._known[key]

    def _measure_alone(self, candidate: Candidate) -> Score:
        self._count()
        return self._evaluator.measure_alone(candidate)

    def _count(self) -> None:
        self._observe(self.runs, max(self._expected, self.runs + 1))
        self.runs += 1

    def _has_budget(self) -> bool:
        return self.runs < self._most_runs

    def _note_budget(self) -> tuple[str, ...]:
        if self._has_budget():
            return ()
        return (f"the search ended after {self.runs} runs; with more, a smaller set may be found",)


def _note_sum(model: NoiseModel) -> tuple[str, ...]:
    gap = model.compare_with_plain()
    if gap is None:
        return ()
    if abs(gap) <= _ADDS_UP_DB:
        return (f"the errors of single nodes add up to the whole within {_ADDS_UP_DB:g} dB",)
    more = "more" if gap > 0 else "less"
    return (
        f"the whole error is {abs(gap):.1f} dB {more} than the errors of single nodes together: "
        "they depend on each other, so a smaller set may exist that this search cannot see",
    )
