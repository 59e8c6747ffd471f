"""What was done and what it brought: kept in the state, learned from, bounded by trust."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from coag.errors import JudgmentError

from .graph import WEIGHT_BOUND, Capability, CapabilityGraph
from .off_policy import LoggedChoice
from .patterns import RoutePattern, RouteStep, harvest
from .routing import reinforce

SHARE: Mapping[str, float] = {"developer": 1.0, "user": 1.0, "untrusted": 0.2}
"""The share of a step of learning that a report of such a source makes."""
MOST_MOVED = 0.3
"""By how much all reports that are not trusted may move the weight of one edge in all."""
MOST_STEPS = 1_000
"""Reports that are kept; the oldest go first."""
HARVEST_EVERY = 5
"""Reports after which route patterns are looked for again."""
REFLECT_AFTER = 10
"""Reports without a reflection after which one is asked for."""
SURPRISE = 0.5
"""A net reward that far from what the edge gave before asks for a reflection."""
_LEAST = 3
"""Uses of an edge from which on it has a usual reward."""
_LEARNED = ("weight", "tries", "mean", "recent", "novelty")
"""What reports change of an edge."""
_TALLIES = ("followed", "overridden", "net_followed", "net_overridden")
"""How often the advice was followed or not, and the sums of what that brought."""


# ---- The graph as it is stored ----


def graph_of(state: Mapping[str, Any]) -> CapabilityGraph:
    """The graph of a state.

    Raises:
        ConfigurationError: What is stored is none; says why.
    """
    stored: dict[str, Any] = state["graph"] or {"capabilities": [], "joined": True, "edges": []}
    manifest: dict[str, Any] = {"capabilities": stored["capabilities"]}
    if not stored["joined"]:
        return CapabilityGraph.from_manifest({**manifest, "edges": stored["edges"]})
    graph = CapabilityGraph.from_manifest(manifest)
    for learned in stored["edges"]:
        edge = graph.edge(learned["source"], learned["target"])
        for name, value in learned.items():
            setattr(edge, name, value)
    return graph


def stored_graph(graph: CapabilityGraph, *, joined: bool) -> dict[str, Any]:
    """A graph as JSON; of one that joins everything only the edges that were used."""
    return {
        "capabilities": [asdict(one) for one in graph.capabilities.values()],
        "joined": joined,
        "edges": [asdict(one) for one in graph.edges() if one.tries or not joined],
    }


def is_joined(state: Mapping[str, Any]) -> bool:
    """Whether any capability may follow any."""
    return state["graph"] is None or state["graph"]["joined"]


def discovered(
    state: dict[str, Any], capabilities: Mapping[str, str | Capability]
) -> tuple[str, ...]:
    """Adds capabilities to a state's graph; gives the names that are new."""
    graph, joined = graph_of(state), is_joined(state)
    new = [name for name in capabilities if name not in graph.capabilities]
    for name in new:
        one = capabilities[name]
        graph.add(one if isinstance(one, Capability) else Capability(name=name, summary=one))
    state["graph"] = stored_graph(graph, joined=joined)
    return tuple(new)


# ---- A report ----


def take_in(state: dict[str, Any], step: dict[str, Any]) -> None:
    """Reinforces the edge of a step, within what its trust allows, and keeps the step.

    Raises:
        ConfigurationError: A number is out of its range, or a capability is not known.
    """
    graph, steps = graph_of(state), state["steps"]
    _learn(graph, step, _moved(state, step, steps))
    state["graph"] = stored_graph(graph, joined=is_joined(state))
    steps.append(step)
    for old in steps[:-MOST_STEPS]:
        _fold(state["dropped"], old)
    del steps[:-MOST_STEPS]


def _learn(graph: CapabilityGraph, step: dict[str, Any], so_far: float) -> None:
    """Reinforces the edge of a step, which notes how the edge was before.

    Args:
        graph: It is changed.
        step: It is changed.
        so_far: By how much reports that are not trusted have moved the edge.
    """
    edge = graph.find(step["from"], step["used"])
    step["before"] = None if edge is None else [getattr(edge, name) for name in _LEARNED]
    before = 0.0 if edge is None else edge.weight
    edge = reinforce(
        graph,
        step["from"],
        step["used"],
        step["reward"],
        cost=step["cost"],
        trust=SHARE[step["trust"]],
    )
    if step["trust"] == "untrusted":
        allowed = max(-MOST_MOVED, min(MOST_MOVED, so_far + edge.weight - before))
        edge.weight = max(-WEIGHT_BOUND, min(WEIGHT_BOUND, before + allowed - so_far))
    step["moved"] = edge.weight - before


def _moved(
    state: Mapping[str, Any], step: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]
) -> float:
    """By how much reports that are not trusted have moved the edge of a step so far."""
    dropped: Mapping[str, Any] = state["dropped"].get("moved", {})
    moved = dropped.get(step["from"], {}).get(step["used"], 0.0)
    for one in steps:
        if one["trust"] == "untrusted" and _edge(one) == _edge(step):
            moved += one["moved"]
    return moved


def _edge(step: Mapping[str, Any]) -> tuple[str, str]:
    return step["from"], step["used"]


def _fold(dropped: dict[str, Any], step: Mapping[str, Any]) -> None:
    """Keeps of a step that is not kept what later reports, and taking reports back, need."""
    _tally(dropped, step)
    sources = dropped.setdefault("sources", {})
    sources[step["source"]] = sources.pop(step["source"], 0) + 1
    while len(sources) > MOST_STEPS:
        del sources[next(iter(sources))]
    if step["trust"] == "untrusted":
        moved = dropped.setdefault("moved", {}).setdefault(step["from"], {})
        moved[step["used"]] = moved.get(step["used"], 0.0) + step["moved"]


def folded(state: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a state's reports where the reports themselves are not."""
    dropped = json.loads(json.dumps(state["dropped"]))
    for one in state["steps"]:
        _fold(dropped, one)
    return {**dropped, "patterns": state["patterns"]} if dropped else {}


# ---- Reports taken back ----


def undo_reports(state: dict[str, Any], source: str) -> tuple[int, int]:
    """Takes back what the reports of a source did: the state is as if it had never reported.

    That is exact for edges, patterns and the health of the advice while no report has been dropped
    from the log. What dropped ones did stays.

    Returns:
        How many reports were taken back, and how many of the source cannot be.
    """
    steps: list[dict[str, Any]] = state["steps"]
    going = [one["source"] == source and "before" in one for one in steps]
    if any(going):
        graph, joined = graph_of(state), is_joined(state)
        for edge in dict.fromkeys(
            _edge(one) for one, goes in zip(steps, going, strict=True) if goes
        ):
            of_edge = [pair for pair in zip(steps, going, strict=True) if _edge(pair[0]) == edge]
            _relearn(state, graph, of_edge)
        kept = [one for one, goes in zip(steps, going, strict=True) if not goes]
        state["graph"] = stored_graph(graph, joined=joined)
        state["health"] = health = _health_without(state, going, kept)
        state["steps"] = kept
        since = health["reports"] % HARVEST_EVERY
        found = _harvested(state, kept[: max(0, len(kept) - since)])
        state["patterns"] = [asdict(one) for one in found]
    left = sum(one["source"] == source for one in state["steps"])
    return sum(going), left + state["dropped"].get("sources", {}).get(source, 0)


def _relearn(
    state: Mapping[str, Any], graph: CapabilityGraph, steps: Sequence[tuple[dict[str, Any], bool]]
) -> None:
    """Puts an edge back to before the first of its steps that goes, and learns the rest again."""
    first = next(at for at, (_, goes) in enumerate(steps) if goes)
    kept, step = [one for one, _ in steps[:first]], steps[first][0]
    if step["before"] is None:
        graph.remove(*_edge(step))
    else:
        edge = graph.edge(*_edge(step))
        for name, value in zip(_LEARNED, step["before"], strict=True):
            setattr(edge, name, value)
    for one, goes in steps[first:]:
        if not goes:
            _learn(graph, one, _moved(state, one, kept))
            kept.append(one)


def _health_without(
    state: Mapping[str, Any], going: Sequence[bool], kept: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    health, since = state["health"], state["health"].get("since_reflection", 0)
    late = going[max(0, len(going) - since) :]
    made = {
        "reports": max(0, health.get("reports", 0) - sum(going)),
        "since_reflection": since - sum(late),
    }
    made |= {name: state["dropped"].get(name, 0) for name in _TALLIES}
    for one in kept:
        _tally(made, one)
    return made


def advised_before(state: Mapping[str, Any], name: str) -> tuple[str, Mapping[str, float]]:
    """What was used before a stored consultation, and each candidate's probability.

    Raises:
        JudgmentError: There is no such consultation any more.
    """
    for one in state["consultations"]:
        if one["id"] == name:
            return one["current"], one["shares"]
    raise JudgmentError(
        f"There is no consultation {name!r}; only the last ones are kept. Report without it."
    )


def usual_net(steps: Iterable[Mapping[str, Any]], current: str, used: str) -> float | None:
    """What an edge gave on average, less cost; None for too few uses."""
    nets = [
        one["reward"] - one["cost"]
        for one in steps
        if one["from"] == current and one["used"] == used
    ]
    return sum(nets) / len(nets) if len(nets) >= _LEAST else None


def logged_choices(steps: Iterable[Mapping[str, Any]]) -> list[LoggedChoice]:
    """The reports whose choice was drawn by the probabilities of a consultation."""
    return [
        LoggedChoice(
            chosen=one["used"],
            probability=one["shares"][one["used"]],
            reward=one["reward"] - one["cost"],
            source=one["from"],
        )
        for one in steps
        if one.get("drawn") and one.get("shares", {}).get(one["used"], 0.0) > 0
    ]


# ---- Patterns, and how well the advice does ----


def patterns_of(state: Mapping[str, Any]) -> list[RoutePattern]:
    """The route patterns of a state."""
    stored: list[dict[str, Any]] = state["patterns"]
    return [
        RoutePattern(
            kind=one["kind"],
            route=tuple(one["route"]),
            strength=one["strength"],
            uses=one["uses"],
        )
        for one in stored
    ]


def _harvested(
    state: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]
) -> Sequence[RoutePattern]:
    """The patterns in what trusted sources reported; and those from before, if it is not known."""
    found = harvest(
        [
            RouteStep(
                source=one["from"], target=one["used"], reward=one["reward"], cost=one["cost"]
            )
            for one in steps
            if one["trust"] != "untrusted"
        ]
    )
    names = {one.name for one in found}
    before = patterns_of({"patterns": state["dropped"].get("patterns", [])})
    return (*found, *(one for one in before if one.name not in names))


def counted(state: dict[str, Any], step: Mapping[str, Any]) -> tuple[str, ...]:
    """Counts a report; gives the names of the patterns that it brought."""
    health = state["health"]
    for name in ("reports", "since_reflection"):
        health[name] = health.get(name, 0) + 1
    _tally(health, step)
    if health["reports"] % HARVEST_EVERY:
        return ()
    before = {one.name for one in patterns_of(state)}
    found = _harvested(state, state["steps"])
    state["patterns"] = [asdict(one) for one in found]
    return tuple(one.name for one in found if one.name not in before)


def _tally(counts: dict[str, Any], step: Mapping[str, Any]) -> None:
    """Counts whether a step followed the advice that there was."""
    if "override" in step:
        name = "overridden" if step["override"] else "followed"
        counts[name] = counts.get(name, 0) + 1
        net = step["reward"] - step["cost"]
        counts[f"net_{name}"] = counts.get(f"net_{name}", 0.0) + net


def reflection_due(
    health: Mapping[str, Any], net: float, usual: float | None, new: Sequence[str]
) -> str:
    """Why a reflection is due; empty if none is."""
    if new:
        return f"a pattern has appeared: {', '.join(new)}. Why does it work, and when does it fail?"
    if usual is not None and abs(net - usual) >= SURPRISE:
        return f"a surprise: {net:+.2f}, where {usual:+.2f} was usual. What was different?"
    if health["since_reflection"] >= REFLECT_AFTER:
        return f"{health['since_reflection']} reports without a reflection. What was learned?"
    return ""


def advice_health(health: Mapping[str, Any]) -> dict[str, Any]:
    """How often the advice was followed or overridden, and what each brought on average."""
    means: dict[str, Any] = {}
    for name in ("followed", "overridden"):
        count = means[name] = health.get(name, 0)
        means[f"net_{name}"] = health.get(f"net_{name}", 0.0) / count if count else None
    rest = {name: health.get(name, 0) for name in ("reports", "since_reflection")}
    return {**rest, **means}
