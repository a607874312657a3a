"""What the noise of single nodes lets expect of any set of pins.

Errors of different layers are nearly independent, so their powers add up: the variance of a sum of
uncorrelated errors is the sum of their variances (B. Widrow and I. Kollar, Quantization Noise,
2008, chapter 4). Layers that share an operand, or saturate, break the rule: what is expected here
is measured before it is believed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from trtdeploy.pinning.candidate import Candidate, Score


@dataclass(frozen=True)
class NoiseModel:
    """Predicts how far off the outputs are.

    Attributes:
        alone: Score of each candidate alone, by name.
        plain: Nothing pinned.
        floor: Everything pinned.
    """

    alone: Mapping[str, Score]
    plain: Score
    floor: Score

    def weigh(self, candidate: Candidate) -> float:
        """Return the largest share of an output's noise that a candidate makes."""
        noise = self.alone[candidate.name].noise
        shares = [_divide(noise.get(name, 0.0), total) for name, total in self.plain.noise.items()]
        return max(shares, default=0.0)

    def predict_noise(self, pinned: Collection[str]) -> dict[str, float]:
        """Return the noise of each output with these candidates pinned."""
        left = [score for name, score in self.alone.items() if name not in pinned]
        return {
            name: floor + sum(score.noise.get(name, 0.0) for score in left)
            for name, floor in self.floor.noise.items()
        }

    def predict_excess(
        self, pinned: Collection[str], known_pins: Collection[str], known: Score
    ) -> float:
        """Return the expected excess of a set, scaled to be right for one that was measured.

        Args:
            pinned: Names of candidates: the set in question.
            known_pins: The set that was measured.
            known: Score that was measured with them.
        """
        before, after = self.predict_noise(known_pins), self.predict_noise(pinned)
        ratio = max((_divide(after[name], before[name]) for name in before), default=0.0)
        return known.excess * math.sqrt(ratio) if known.excess else 0.0

    def compare_with_plain(self) -> float | None:
        """Return measured over predicted noise with nothing pinned, in dB; 0 is a perfect sum."""
        predicted = max(self.predict_noise(()).values(), default=0.0)
        measured = self.plain.worst_noise
        usable = 0 < predicted < math.inf and 0 < measured < math.inf
        return 10.0 * math.log10(measured / predicted) if usable else None


def rank_candidates(candidates: Sequence[Candidate], model: NoiseModel) -> list[Candidate]:
    """Return candidates, those that do the most harm first.

    Where the harm of two rounds to the same number of decibels, the cheaper one goes first.
    """

    def find_place(candidate: Candidate) -> tuple[float, float, float]:
        share = model.weigh(candidate)
        return -_round_decibels(share), candidate.flops or 0, -share

    return sorted(candidates, key=find_place)


def _round_decibels(share: float) -> float:
    if share in (0.0, math.inf):
        return share or -math.inf
    return round(10.0 * math.log10(share))


def _divide(part: float, whole: float) -> float:
    """Return a ratio of powers; infinite noise stays infinite, and none is none."""
    if part == 0.0:
        return 0.0
    return math.inf if math.isinf(part) or whole == 0.0 else part / whole
