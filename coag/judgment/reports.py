"""What was done and what it brought: kept in the state, learned from, bounded by trust."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from coag.errors import JudgmentError

from .graph import Capability, CapabilityEdge, CapabilityGraph
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


def discovered(state: dict[str, Any], capabilities: Mapping[str, str]) -> tuple[str, ...]:
    """Adds capabilities to a state's graph; gives the names that are new."""
    graph, joined = graph_of(state), is_joined(state)
    new = [name for name in capabilities if name not in graph.capabilities]
    for name in new:
        graph.add(Capability(name=name, summary=capabilities[name]))
    state["graph"] = stored_graph(graph, joined=joined)
    return tuple(new)


# ---- A report ----


def take_in(state: dict[str, Any], step: dict[str, Any]) -> CapabilityEdge:
    """Reinforces the edge of a step, within what its trust allows, and keeps the step.

    Raises:
        ConfigurationError: A number is out of its range, or a capability is not known.
    """
    graph = graph_of(state)
    before = graph.edge(step["from"], step["used"]).weight
    edge = reinforce(
        graph,
        step["from"],
        step["used"],
        step["reward"],
        cost=step["cost"],
        trust=SHARE[step["trust"]],
    )
    if step["trust"] == "untrusted":
        so_far = sum(one["moved"] for one in _untrusted(state["steps"], edge))
        allowed = max(-MOST_MOVED, min(MOST_MOVED, so_far + edge.weight - before))
        edge.weight = before + allowed - so_far
    step["moved"] = edge.weight - before
    state["steps"].append(step)
    del state["steps"][:-MOST_STEPS]
    state["graph"] = stored_graph(graph, joined=is_joined(state))
    return edge


def _untrusted(
    steps: Iterable[Mapping[str, Any]], edge: CapabilityEdge
) -> Iterable[Mapping[str, Any]]:
    return (
        one
        for one in steps
        if one["trust"] == "untrusted" and (one["from"], one["used"]) == edge.key
    )


def undo_reports(state: dict[str, Any], source: str) -> None:
    """Takes back what the reports of a source did to edges, as far as they are kept."""
    graph, joined = graph_of(state), is_joined(state)
    for one in state["steps"]:
        if one["source"] == source:
            edge = graph.edge(one["from"], one["used"])
            edge.weight -= one["moved"]
            edge.tries -= 1
    state["steps"] = [one for one in state["steps"] if one["source"] != source]
    state["patterns"] = [asdict(one) for one in _harvested(state)]
    state["graph"] = stored_graph(graph, joined=joined)


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
        if one.get("drawn") and one["shares"].get(one["used"], 0.0) > 0
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


def _harvested(state: Mapping[str, Any]) -> Sequence[RoutePattern]:
    """The patterns in what trusted sources reported."""
    return harvest(
        [
            RouteStep(
                source=one["from"], target=one["used"], reward=one["reward"], cost=one["cost"]
            )
            for one in state["steps"]
            if one["trust"] != "untrusted"
        ]
    )


def counted(state: dict[str, Any], step: Mapping[str, Any]) -> tuple[str, ...]:
    """Counts a report; gives the names of the patterns that it brought."""
    health = state["health"]
    for name in ("reports", "since_reflection"):
        health[name] = health.get(name, 0) + 1
    if "override" in step:
        name = "overridden" if step["override"] else "followed"
        health[name] = health.get(name, 0) + 1
        net = step["reward"] - step["cost"]
        health[f"net_{name}"] = health.get(f"net_{name}", 0.0) + net
    if health["reports"] % HARVEST_EVERY:
        return ()
    before = {one.name for one in patterns_of(state)}
    found = _harvested(state)
    state["patterns"] = [asdict(one) for one in found]
    return tuple(one.name for one in found if one.name not in before)


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
        means[f"net_{name}"] = health[f"net_{name}"] / count if count else None
    rest = {name: health.get(name, 0) for name in ("reports", "since_reflection")}
    return {**rest, **means}
