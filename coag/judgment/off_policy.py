"""What another policy would have earned, from choices that were logged with their probabilities.

Three estimates: inverse propensity scoring (IPS), the same normalised by its weights (SNIPS), and
doubly robust (DR), which adds what the weights explain to what a model of rewards predicts. A
policy can be judged with them before it is used.

Source: M. Dudik, J. Langford, L. Li, Doubly Robust Policy Evaluation and Learning, ICML (2011);
A. Swaminathan, T. Joachims, The Self-Normalized Estimator, NeurIPS (2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from coag.errors import ConfigurationError

_NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChoice:
    """One choice of the policy that was in use."""

    chosen: str
    probability: float
    """With which it was chosen then: above 0, at most 1."""
    reward: float
    """What came of it."""
    source: str = ""
    """What was done before."""
    context: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 1:
            raise ConfigurationError(
                f"The probability of the choice {self.chosen!r} must be above 0 and at most 1, got "
                f"{self.probability!r}."
            )
        if not math.isfinite(self.reward):
            raise ConfigurationError(
                f"The reward of {self.chosen!r} must be a finite number, got {self.reward!r}."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueEstimate:
    """The mean reward that a policy is expected to earn a choice."""

    value: float
    low: float
    """Lower end of the 95 % interval (normal approximation)."""
    high: float
    effective: float
    """So many choices would tell as much if the policy itself had made them; with fewer than about
    30 the interval is not to be relied on."""


Policy = Callable[[LoggedChoice], Mapping[str, float]]
"""The probability with which a policy would take each option in the situation of a choice."""


def ips(choices: Sequence[LoggedChoice], policy: Policy) -> ValueEstimate:
    """Inverse propensity scoring: right on average, with a wide spread where policies differ.

    Raises:
        ConfigurationError: There is no choice.
    """
    weights = _weights(choices, policy)
    return _estimate(
        [weight * one.reward for weight, one in zip(weights, choices, strict=True)], weights
    )


def snips(choices: Sequence[LoggedChoice], policy: Policy) -> ValueEstimate:
    """Self-normalised: stays within the rewards that were seen, with a bias that shrinks.

    Raises:
        ConfigurationError: There is no choice, or the policy would have made none of them.
    """
    weights = _weights(choices, policy)
    share = mean(weights)
    if share == 0:
        raise ConfigurationError("The policy would have made none of the logged choices.")
    rewards = [one.reward for one in choices]
    value = mean([w * r for w, r in zip(weights, rewards, strict=True)]) / share
    terms = [value + w * (r - value) / share for w, r in zip(weights, rewards, strict=True)]
    return _estimate(terms, weights)


def doubly_robust(
    choices: Sequence[LoggedChoice],
    policy: Policy,
    expected: Callable[[LoggedChoice, str], float],
) -> ValueEstimate:
    """Right on average if either the probabilities or the expected rewards are.

    Args:
        choices: What was done.
        policy: What is judged.
        expected: The reward that an option would have brought in the situation of a choice. It
            must not have been fitted to these choices, or the interval is too narrow.

    Raises:
        ConfigurationError: There is no choice.
    """
    weights, terms = _weights(choices, policy), list[float]()
    for weight, one in zip(weights, choices, strict=True):
        predicted = math.fsum(p * expected(one, option) for option, p in policy(one).items())
        terms.append(predicted + weight * (one.reward - expected(one, one.chosen)))
    return _estimate(terms, weights)


def _weights(choices: Sequence[LoggedChoice], policy: Policy) -> list[float]:
    if not choices:
        raise ConfigurationError("An estimate needs logged choices, got none.")
    return [policy(one).get(one.chosen, 0.0) / one.probability for one in choices]


def _estimate(terms: Sequence[float], weights: Sequence[float]) -> ValueEstimate:
    value, count = mean(terms), len(terms)
    spread = math.sqrt(math.fsum((one - value) ** 2 for one in terms) / max(1, count - 1))
    wide = _NORMAL_95 * spread / math.sqrt(count)
    squares = math.fsum(weight**2 for weight in weights)
    effective = math.fsum(weights) ** 2 / squares if squares else 0.0
    return ValueEstimate(value=value, low=value - wide, high=value + wide, effective=effective)


def mean(values: Collection[float]) -> float:
    """The mean; without `statistics`, which takes 8 ms to import."""
    return math.fsum(values) / len(values)
