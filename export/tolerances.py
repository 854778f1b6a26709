"""Limits on how much worse than float32 another precision may be, and the figures they apply to.

The limit on scores applies to scores that are above 0 in float32. If there are none, as without
targets, answers must agree with float32's, and log-probabilities must be close.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Tolerances:
    """Limits on what another precision may lose; a ValueError names one that can be none.

    The last two are for models without a telling score.
    """

    score: float = 0.005  # how much lower than float32's each score may be
    # the least share of answers equal to float32's; for vectors, the least mean cosine; for other
    # numbers, the least 1 - |difference| / |numbers|
    agreement: float = 0.99
    log_prob: float = 0.1  # the largest mean difference of log-probabilities

    def __post_init__(self) -> None:
        for option, value, most, demand in (
            ("--tolerance", self.score, math.inf, "a number from 0 on"),
            ("--agreement", self.agreement, 1, "a share from 0 to 1"),
            ("--log-prob-tolerance", self.log_prob, math.inf, "a number from 0 on"),
        ):
            if not 0 <= value <= most or math.isinf(value):
                raise ValueError(f"{option} must be {demand}; received {value:g}.")


UNLIMITED = Tolerances(score=1e9, agreement=0, log_prob=1e9)  # accepts any precision


def telling_scores(figures: Mapping[str, Any]) -> list[str]:
    """Return names of the scores above 0 in float32; figures: see `seqkeras.export.measuring`."""
    return [name for name, value in figures.get("float32_scores", {}).items() if value > 0]


def shortfalls(figures: Mapping[str, Any], tolerances: Tolerances) -> list[str]:
    """Return how a precision exceeds its tolerances: parts of a sentence, each with its option."""
    if names := telling_scores(figures):
        drops = {name: figures["float32_scores"][name] - figures["scores"][name] for name in names}
        return [
            f"its {name} on {figures['scored_examples']} examples is lower than float32's by "
            f"{drop:.2g} (at most: {tolerances.score:g}, by --tolerance)"
            for name, drop in drops.items()
            if not drop <= tolerances.score
        ]
    share, mean = agreement(figures), figures.get("mean_log_prob_difference", 0.0)
    reasons = []
    if not share >= tolerances.agreement:
        reasons.append(
            f"its agreement with float32 on {figures['examples']} examples is {share:.2%} "
            f"(at least: {100 * tolerances.agreement:g}%, by --agreement)"
        )
    if not mean <= tolerances.log_prob:
        reasons.append(
            f"its log-probabilities are off by {mean:.2g} on average "
            f"(at most: {tolerances.log_prob:g}, by --log-prob-tolerance)"
        )
    return reasons


def agreement(figures: Mapping[str, Any]) -> float:
    """Return the share that `Tolerances.agreement` bounds from below."""
    if "agreement" in figures:
        return figures["agreement"]
    if "mean_cosine" in figures:
        return figures["mean_cosine"]
    return 1 - figures["relative_difference"]
