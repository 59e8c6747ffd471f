"""Which capability to use next: scores, chances, and what is learned from what was done.

Source: W. K. Million (2026), equations 1 and 2. Ours: the learned weight counts as far as there is
evidence, every chance is logged, and an edge that stopped working is unlearned.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from heapq import nlargest

from coag.errors import ConfigurationError

from .graph import WEIGHT_BOUND, CapabilityEdge, CapabilityGraph

Biases = Mapping[tuple[str, str], float]
"""By source and target what route patterns add to a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingSettings:
    """How scores are made, and how fast they are learned. The names of the paper in brackets."""

    utility: float = 1.0
    """Weight of what is expected [alpha]."""
    cost: float = 0.5
    """Weight of cost and risk [beta]."""
    novelty: float = 0.1
    """Weight of what was used seldom [gamma]."""
    context: float = 1.0
    """Weight of the task's context [delta]; with 0 every task gets the same advice."""
    rate: float = 0.2
    """How much one reward changes a weight [eta]."""
    temperature: float = 0.1
    """The higher, the more even the chances; above 0. With 0.5, 45 capabilities are nearly alike
    (docs/judgment-evidence.md)."""
    novelty_decay: float = 0.9
    """What is left of an edge's novelty after each use."""
    evidence: float = 1.0
    """Tries after which half of a learned weight counts; 0 counts all of it at once, as the paper
    does."""
    unlearning: float = 0.4
    """Drop of recent rewards below their mean by which an edge stopped working: half of what it
    gained is taken back. 1 never does."""

    def __post_init__(self) -> None:
        least = {"temperature": 1e-6, "rate": 0.0, "evidence": 0.0}
        for one in fields(self):
            value = getattr(self, one.name)
            if not math.isfinite(value) or value < least.get(one.name, -math.inf):
                low = least.get(one.name)
                bound = "a finite number" if low is None else f"at least {low}"
                raise ConfigurationError(f"{one.name} must be {bound}, got {value!r}.")


DEFAULTS = RoutingSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A capability that may come next."""

    capability: str
    score: float
    probability: float
    """How often the router would choose it: the logged propensity."""
    why: str
    """What its score is made of, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advising:
    """What a consultation looks at besides the graph."""

    context: Mapping[str, float] = field(default_factory=dict[str, float])
    """How much the task speaks for each capability, from 0 to 1."""
    biases: Biases = field(default_factory=dict[tuple[str, str], float])
    settings: RoutingSettings = DEFAULTS


def confidence(edge: CapabilityEdge, settings: RoutingSettings = DEFAULTS) -> float:
    """How far an edge's weight counts, from 0, never tried, towards 1."""
    return edge.tries / (edge.tries + settings.evidence) if edge.tries else 0.0


def score(edge: CapabilityEdge, now: Advising) -> float:
    """Equation 1: utility, cost, novelty, learned weight, bias of patterns, context."""
    return _scores((edge,), now)[0]


def _scores(edges: Iterable[CapabilityEdge], now: Advising) -> list[float]:
    """Equation 1 for many edges; a loop of its own, since there may be 20,000 candidates."""
    how, biases, context = now.settings, now.biases, now.context
    utility, cost, novelty, evidence = how.utility, how.cost, how.novelty, how.evidence
    return [
        utility * edge.utility
        - cost * edge.cost
        + novelty * edge.novelty
        + (edge.tries / (edge.tries + evidence) * edge.weight if edge.tries else 0.0)
        + (biases.get(edge.key, 0.0) if biases else 0.0)
        + how.context * context.get(edge.target, 0.0)
        for edge in edges
    ]


def chances(scores: Sequence[float], temperature: float) -> list[float]:
    """Softmax: positive, and one in all."""
    powers = _powers(scores, temperature)
    total = math.fsum(powers)
    return [each / total for each in powers]


def _powers(scores: Sequence[float], temperature: float) -> list[float]:
    top, power = max(scores, default=0.0), math.exp
    return [power((each - top) / temperature) for each in scores]


def _best(scores: Sequence[float], edges: Sequence[CapabilityEdge], k: int | None) -> list[int]:
    """Where the best are, the best first; of equal ones by name."""
    places: Iterable[int] = range(len(scores))
    if k is not None and 0 < k < len(scores):
        least = nlargest(k, scores)[-1]
        places = [at for at, each in enumerate(scores) if each >= least]
    return sorted(places, key=lambda at: (-scores[at], edges[at].target))[:k]


def advise(
    graph: CapabilityGraph,
    source: str,
    now: Advising | None = None,
    *,
    among: Iterable[str] | None = None,
    k: int | None = None,
) -> list[Advice]:
    """What may come after a capability, the best first.

    Args:
        graph: What there is, and what was learned.
        source: What was done last; `START` where nothing was.
        now: Context, biases and settings.
        among: Only these, whose probabilities are one in all; None for all that may follow. An edge
            to one that was not expected is made.
        k: At most so many; None for all.

    Raises:
        UnknownNameError: There is no such capability.
    """
    now = now or Advising()
    edges = graph.leaving(source)
    if among is not None:
        edges = [graph.edge(source, name) for name in dict.fromkeys(among)]
    scores = _scores(edges, now)
    powers = _powers(scores, now.settings.temperature)
    total = math.fsum(powers)
    return [
        Advice(
            capability=edges[at].target,
            score=scores[at],
            probability=powers[at] / total,
            why=_why(edges[at], now),
        )
        for at in _best(scores, edges, k)
    ]


def choose(advice: Sequence[Advice], draw: random.Random) -> Advice:
    """One of them, by their probabilities.

    Raises:
        ConfigurationError: There is none.
    """
    if not advice:
        raise ConfigurationError("There is nothing to choose from.")
    return draw.choices(advice, weights=[one.probability for one in advice])[0]


def reinforce(
    graph: CapabilityGraph,
    source: str,
    target: str,
    reward: float,
    *,
    cost: float = 0.0,
    trust: float = 1.0,
    settings: RoutingSettings = DEFAULTS,
) -> CapabilityEdge:
    """Equation 2: learns from what was done, whether it was advised or not.

    Args:
        graph: It is changed.
        source: What was done before; `START` where nothing was.
        target: What was done.
        reward: What came of it, from 0 to 1.
        cost: What it cost, from 0 to 1.
        trust: How much the source of the reward is trusted, from 0 to 1; it bounds the change.
        settings: Rate and unlearning.

    Raises:
        ConfigurationError: A number is out of range.
        UnknownNameError: There is no such capability.
    """
    for name, value in (("reward", reward), ("cost", cost), ("trust", trust)):
        if not math.isfinite(value) or not 0 <= value <= 1:
            raise ConfigurationError(f"{name} must be from 0 to 1, got {value!r}.")
    edge = graph.edge(source, target)
    change = settings.rate * (reward - cost - 0.5) * trust
    edge.weight = min(max(edge.weight + change, -WEIGHT_BOUND), WEIGHT_BOUND)
    if trust > 0:
        edge.tries += 1
        edge.mean += trust * (reward - edge.mean) / edge.tries
        first = edge.tries == 1
        edge.recent = reward if first else edge.recent + 0.4 * trust * (reward - edge.recent)
        edge.novelty *= settings.novelty_decay
    if edge.tries >= 5 and edge.mean - edge.recent > settings.unlearning and edge.weight > 0:
        edge.weight /= 2  # it stopped working; the mean follows, so that this ends
        edge.mean = edge.recent
    return edge


def _why(edge: CapabilityEdge, now: Advising) -> str:
    parts = [f"expected {edge.utility:.2f}", f"cost {edge.cost:.2f}"]
    if edge.tries:
        sure = confidence(edge, now.settings)
        parts.append(f"learned {edge.weight:+.2f} of {edge.tries} tries, counted {sure:.0%}")
    else:
        parts.append("never tried")
    if fits := now.context.get(edge.target, 0.0):
        parts.append(f"fits the task {fits:.2f}")
    if bias := now.biases.get(edge.key, 0.0):
        parts.append(f"route pattern {bias:+.2f}")
    return ", ".join(parts)
