"""Route patterns: regularities in what was done.

Wormholes are edges that pay well again and again, attractors are capabilities that are used far
more than others, resonances are circles of capabilities that pay as a whole. They add to the scores
of their edges, within a bound.

Source: W. K. Million (2026), section 4.1, artifact detection.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .off_policy import mean


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteStep:
    """One capability that was used after another."""

    source: str
    target: str
    reward: float
    cost: float = 0.0

    @property
    def net(self) -> float:
        """Reward without cost."""
        return self.reward - self.cost


@dataclass(frozen=True, slots=True, kw_only=True)
class HarvestSettings:
    """What counts as a pattern."""

    wormhole_uses: int = 4
    """Uses of an edge before it may be a wormhole."""
    wormhole_net: float = 0.6
    """Least of its mean net reward, less one standard error."""
    attractor_deviations: float = 2.0
    """How many standard deviations above the mean a capability's uses must be."""
    resonance_uses: int = 3
    """Times that a circle must have been gone through."""
    resonance_net: float = 0.55
    """Least of the mean net reward of its steps."""
    longest: int = 4
    """Most capabilities of a circle."""
    bias: float = 0.3
    """Most that patterns add to a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutePattern:
    """A regularity in what was done."""

    kind: str
    """`wormhole`, `attractor` or `resonance`."""
    route: tuple[str, ...]
    """The capabilities, in order; a resonance returns to its first."""
    strength: float
    """How strong it is, from 0 to 1."""
    uses: int

    @property
    def name(self) -> str:
        """What annotations are kept under."""
        return f"{self.kind}: {' > '.join(self.route)}"


def harvest(
    steps: Sequence[RouteStep], settings: HarvestSettings | None = None
) -> tuple[RoutePattern, ...]:
    """The patterns of a trace, the strongest of each kind first."""
    settings = settings or HarvestSettings()
    found = [
        *_wormholes(steps, settings),
        *_attractors(steps, settings),
        *_resonances(steps, settings),
    ]
    return tuple(sorted(found, key=lambda one: (one.kind, -one.strength, one.route)))


def biases_of(
    patterns: Sequence[RoutePattern], settings: HarvestSettings | None = None
) -> dict[tuple[str, str], float]:
    """What patterns add to the scores of edges. Attractors add nothing.

    An attractor that added to its own score would draw ever more use to itself.
    """
    most = (settings or HarvestSettings()).bias
    added: dict[tuple[str, str], float] = defaultdict(float)
    for one in patterns:
        if one.kind != "attractor":
            route = (*one.route, one.route[0]) if one.kind == "resonance" else one.route
            for edge in pairwise(route):
                added[edge] = min(most, added[edge] + most * one.strength)
    return dict(added)


def _wormholes(steps: Sequence[RouteStep], settings: HarvestSettings) -> list[RoutePattern]:
    by_edge: dict[tuple[str, str], list[float]] = defaultdict(list)
    for step in steps:
        by_edge[step.source, step.target].append(step.net)
    found: list[RoutePattern] = []
    for edge, nets in by_edge.items():
        if len(nets) < settings.wormhole_uses:
            continue
        sure = mean(nets) - _spread(nets) / math.sqrt(len(nets))
        if sure >= settings.wormhole_net:
            strength = min(1.0, sure)
            found.append(
                RoutePattern(kind="wormhole", route=edge, strength=strength, uses=len(nets))
            )
    return found


def _attractors(steps: Sequence[RouteStep], settings: HarvestSettings) -> list[RoutePattern]:
    uses = Counter(step.target for step in steps)
    if len(uses) < 3:
        return []
    usual, spread = mean(uses.values()), _spread(uses.values())
    bar = usual + settings.attractor_deviations * spread
    return [
        RoutePattern(kind="attractor", route=(name,), strength=count / len(steps), uses=count)
        for name, count in uses.items()
        if spread > 0 and count > bar
    ]


def _resonances(steps: Sequence[RouteStep], settings: HarvestSettings) -> list[RoutePattern]:
    """Circles: capabilities that followed each other and led back to the first."""
    circles: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for at in range(len(steps)):
        for length in range(2, settings.longest + 1):
            part = steps[at : at + length]
            if len(part) < length or any(a.target != b.source for a, b in pairwise(part)):
                break
            route = tuple(step.source for step in part)
            if part[-1].target == part[0].source and len(set(route)) == length:
                first = min(range(length), key=lambda n: route[n:] + route[:n])
                turned = route[first:] + route[:first]
                circles[turned].append(mean([step.net for step in part]))
    return [
        RoutePattern(kind="resonance", route=route, strength=min(1.0, mean(nets)), uses=len(nets))
        for route, nets in circles.items()
        if len(nets) >= settings.resonance_uses and mean(nets) >= settings.resonance_net
    ]


def _spread(values: Collection[float]) -> float:
    from statistics import pstdev  # imported late as in `mean`

    return pstdev(values)
