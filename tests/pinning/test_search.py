"""The search for pins on laboratories whose answer is known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from trtdeploy.pinning.candidate import Candidate, Score
from trtdeploy.pinning.search import SEARCH_RUNS, PinSearch

LIMIT = 1.0


class AdditiveEvaluator:
    """Each node has a noise of its own; the target is a total noise power of ``LIMIT``."""

    def __init__(self, noise: Mapping[str, float], floor: float = 0.0) -> None:
        self.noise = dict(noise)
        self.floor = floor
        self.measured: list[frozenset[str]] = []

    def measure(self, pinned: Sequence[Candidate]) -> Score:
        nodes = frozenset(node for candidate in pinned for node in candidate.nodes)
        self.measured.append(nodes)
        return self.score(self.total(nodes))

    def measure_alone(self, candidate: Candidate) -> Score:
        return self.score(sum(self.noise[node] for node in candidate.nodes))

    def total(self, pinned: frozenset[str]) -> float:
        return self.floor + sum(power for node, power in self.noise.items() if node not in pinned)

    @staticmethod
    def score(power: float) -> Score:
        return Score({"y": power}, math.sqrt(power / LIMIT), power)


class CoupledEvaluator(AdditiveEvaluator):
    """What a node costs alone says nothing: the whole also holds a term for each pair."""

    def total(self, pinned: frozenset[str]) -> float:
        left = [node for node in self.noise if node not in pinned]
        return super().total(pinned) + sum(0.05 for _ in itertools.combinations(left, 2))


def singles(noise: Mapping[str, float], flops: Mapping[str, int] | None = None) -> list[Candidate]:
    return [Candidate(name, "Conv", (name,), (flops or {}).get(name)) for name in noise]


def find_least_size(evaluator: AdditiveEvaluator) -> int:
    """Return the size of the smallest set, by trying all of them."""
    names = list(evaluator.noise)
    return next(
        size
        for size in range(len(names) + 1)
        if any(
            evaluator.total(frozenset(chosen)) <= LIMIT
            for chosen in itertools.combinations(names, size)
        )
    )


@pytest.mark.parametrize("make", [AdditiveEvaluator, CoupledEvaluator])
@pytest.mark.parametrize("seed", range(6))
def test_the_smallest_set_is_found(
    make: Callable[[Mapping[str, float]], AdditiveEvaluator], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    noise = {f"n{i}": float(power) for i, power in enumerate(rng.lognormal(-1.5, 1.5, 10))}
    evaluator = make(noise)
    outcome = PinSearch(evaluator, most_runs=200).run(singles(noise))
    pinned = frozenset(candidate.name for candidate in outcome.pinned)
    assert outcome.reached
    assert outcome.hybrid.excess == pytest.approx(math.sqrt(evaluator.total(pinned)))
    assert len(pinned) == find_least_size(evaluator)
    assert not pinned or pinned in evaluator.measured  # verified, not only predicted


def test_nothing_is_pinned_and_nothing_ranked_when_the_target_is_reached() -> None:
    evaluator = AdditiveEvaluator({"a": 0.1, "b": 0.2})
    outcome = PinSearch(evaluator, 100).run(singles(evaluator.noise))
    assert (outcome.reached, outcome.pinned, outcome.alone, outcome.runs) == (True, (), {}, 1)


def test_a_floor_above_the_target_is_said_and_nodes_are_ranked_all_the_same() -> None:
    evaluator = AdditiveEvaluator({"a": 3.0, "b": 5.0}, floor=2.0)
    outcome = PinSearch(evaluator, 100).run(singles(evaluator.noise))
    assert not outcome.reached
    assert outcome.pinned == ()
    assert [candidate.name for candidate in outcome.candidates] == ["b", "a"]


def test_of_equal_noise_the_cheaper_node_is_pinned() -> None:
    noise = {"dear": 0.72, "cheap": 0.7, "quiet": 1e-3}
    evaluator = AdditiveEvaluator(noise)
    candidates = singles(noise, {"dear": 1000, "cheap": 10, "quiet": 1})
    outcome = PinSearch(evaluator, 100).run(candidates)
    assert [candidate.name for candidate in outcome.pinned] == ["cheap"]


def test_few_runs_are_needed_among_many_candidates() -> None:
    rng = np.random.default_rng(3)
    noise = {f"n{i}": float(power) for i, power in enumerate(rng.lognormal(-5, 2, 400))}
    evaluator = AdditiveEvaluator(noise)
    outcome = PinSearch(evaluator, 1000).run(singles(noise))
    assert outcome.reached
    assert len(evaluator.measured) <= SEARCH_RUNS


def test_the_budget_ends_the_search_with_a_verified_set() -> None:
    noise = {f"n{i}": 0.3 for i in range(40)}
    evaluator = CoupledEvaluator(noise)
    outcome = PinSearch(evaluator, most_runs=44).run(singles(noise))
    assert outcome.reached
    assert outcome.runs <= 45
    assert any("44 runs" in note for note in outcome.notes)


def test_the_observer_sees_every_run_and_a_total_that_holds() -> None:
    seen: list[tuple[int, int]] = []
    evaluator = AdditiveEvaluator({"a": 2.0, "b": 0.5, "c": 0.1})
    search = PinSearch(evaluator, 100, lambda done, most: seen.append((done, most)))
    outcome = search.run(singles(evaluator.noise))
    assert [done for done, _ in seen] == list(range(outcome.runs))
    assert all(done < most for done, most in seen)


@pytest.mark.parametrize(
    ("make", "words"),
    [(AdditiveEvaluator, "add up"), (CoupledEvaluator, "depend on each other")],
)
def test_whether_noise_adds_up_is_said(
    make: Callable[[Mapping[str, float]], AdditiveEvaluator], words: str
) -> None:
    noise = {f"n{i}": 0.2 for i in range(12)}
    outcome = PinSearch(make(noise), 100).run(singles(noise))
    assert any(words in note for note in outcome.notes)


def test_groups_are_divided_once_they_are_found() -> None:
    noise = {f"n{i}": 0.01 for i in range(30)} | {"bad": 4.0}
    names = list(noise)
    groups = [
        Candidate(part[0], "Conv", tuple(part))
        for part in (names[start : start + 8] for start in range(0, 31, 8))
    ]
    evaluator = AdditiveEvaluator(noise)
    search = PinSearch(evaluator, 200)
    coarse = search.run(groups)
    fine = search.refine(coarse, dict.fromkeys(names, "Relu"))
    assert len(coarse.pinned[0].nodes) > 1
    assert [(c.nodes, c.op_type) for c in fine.pinned] == [(("bad",), "Relu")]
    assert fine.plain == coarse.plain
    assert fine.reached


def test_groups_that_the_budget_cannot_divide_stay_and_it_is_said() -> None:
    noise = {f"n{i}": 0.01 for i in range(30)} | {"bad": 4.0}
    whole = [Candidate("n0", "Conv", tuple(noise))]
    search = PinSearch(AdditiveEvaluator(noise), most_runs=SEARCH_RUNS + 2)
    outcome = search.refine(search.run(whole), {})
    assert [len(candidate.nodes) for candidate in outcome.pinned] == [31]
    assert any("in groups" in note for note in outcome.notes)


def test_infinite_noise_is_pinned_first() -> None:
    noise = {"a": 0.9, "overflow": math.inf, "b": 0.05}
    outcome = PinSearch(AdditiveEvaluator(noise), 100).run(singles(noise))
    assert [candidate.name for candidate in outcome.pinned] == ["overflow"]
    assert outcome.reached
