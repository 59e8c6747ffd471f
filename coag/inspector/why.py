"""What the decision of a cycle was based on, as a small graph and in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from coag._util.text import ellipsis
from coag.errors import ConfigurationError
from coag.proof import Considered, Explanation, explain
from coag.schema import RecalledRecord, one_line
from coag.tracing import RunFolder, TraceIndex, read_run

from .memory import records_of
from .texts import fields_in_a_line, named_values, object_of


class NodeSort(StrEnum):
    """What a node is; also its column, from left to right."""

    PERCEPT = "percept"
    RECORD = "record"
    PROCEDURE = "procedure"
    REASONING = "reasoning"
    CANDIDATE = "candidate"
    CONSTRAINT = "constraint"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One thing that took part, in a few words and with all of it."""

    id: str
    sort: NodeSort
    label: str
    detail: str = ""
    good: bool | None = None
    """False for what was rejected, True for what was chosen."""
    link: str = ""
    """A fragment of the cycle's page (`#proposal`), or empty."""
    note: str = ""
    """A word beside what it is, such as its score."""
    says: str = ""
    """The same as a sentence, for readers who cannot see it; empty for what others say already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What flowed into what; the label is e.g. `forbids`."""

    source: str
    target: str
    label: str = ""
    good: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyGraph:
    """The decision of one cycle."""

    cycle: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0
    trouble: str = ""
    sentences: tuple[str, ...] = ()
    """The same in words: what the nodes say, and what came of it."""


_NODES = 40
"""Nodes of a graph, at most."""
_SOME, _CANDIDATES = 6, 10
"""Percepts, records and procedures that are shown of each; candidates that are."""
_LABEL, _DETAIL, _SENTENCE = 160, 600, 300
_ID = 8
"""Characters of a record's id by which it is named."""
_READ = 2_000
"""Characters of a text that are looked at."""
_LINKS = {
    NodeSort.PERCEPT: "#arrived",
    NodeSort.RECORD: "#retrieval",
    NodeSort.PROCEDURE: "#retrieval",
    NodeSort.REASONING: "#reasoning",
    NodeSort.CANDIDATE: "#proposal",
    NodeSort.CONSTRAINT: "#evaluation",
    NodeSort.CHOICE: "#selection",
}


def why_graph(run: RunFolder, cycle: int, index: TraceIndex) -> WhyGraph:
    """What a cycle's decision was based on; see `coag.proof.why`.

    Where the records of an existing cycle are not enough, the graph says why.
    """
    info = read_run(run.path)
    try:
        return graph_of(explain(info, records_of(index, cycle), cycle))
    except ConfigurationError as error:
        if not index.of_cycle(cycle):
            raise
        return WhyGraph(cycle=cycle, nodes=(), edges=(), trouble=one_line(str(error), _DETAIL))


def graph_of(explained: Explanation) -> WhyGraph:
    """An explanation as a graph of at most 40 nodes, with the same in words."""
    candidates = _most_telling(explained.considered)
    nodes = [*_grounds(explained), *map(_candidate, candidates), *_came_to(explained, candidates)]
    brought = fields_in_a_line(explained.result, _SENTENCE)
    sentences = [*(node.says for node in nodes), f"It brought: {brought}" if brought else ""]
    known = {node.id for node in nodes[:_NODES]}
    edges = [edge for edge in _edges(explained, nodes) if {edge.source, edge.target} <= known]
    changed = sum(one.version > 1 for one in explained.procedures)
    grounds = (len(explained.percepts), len(explained.recalled), changed)
    left_out = sum(max(0, count - _SOME) for count in grounds)
    return WhyGraph(
        cycle=explained.cycle,
        nodes=tuple(nodes[:_NODES]),
        edges=tuple(edges),
        left_out=left_out + len(explained.considered) - len(candidates) + len(nodes[_NODES:]),
        sentences=tuple(one_line(text[:_READ], _SENTENCE) for text in sentences if text),
    )


def _node(sort: NodeSort, id: str, label: str, detail: str, **more: Any) -> Node:
    label, detail = _short(label, _LABEL), _short(detail, _DETAIL)
    return Node(id=id, sort=sort, label=label, detail=detail, link=_LINKS[sort], **more)


def _short(text: str, limit: int) -> str:
    return ellipsis(one_line(text[:_READ], _READ), limit)


def _grounds(explained: Explanation) -> Iterator[Node]:
    """What it rested on, and how that was understood."""
    for number, percept in enumerate(explained.percepts[-_SOME:]):
        source, content = percept.source[:80], percept.content[:_READ]
        label = f"{source}: {fields_in_a_line(content, _LABEL)}"
        says = f"It perceived from {source}: {fields_in_a_line(percept.content, _SENTENCE)}"
        name = f"percept-{number}"
        yield _node(NodeSort.PERCEPT, name, label, f"{source}: {content}", says=says)
    for number, hit in enumerate(explained.recalled[:_SOME]):
        record = hit.record
        text, because = record.text[:_READ], _because(hit)
        where = f"{record.kind}, cycle {record.provenance.cycle} of {record.provenance.run[:60]}"
        of = f"record {record.id[:80]}, {where}{f'; why: {because}' if because else ''}"
        label, note = f"{record.id[:_ID]}: {text}", f"{hit.score:.2f}"
        how = f"score {note} ({because})" if because else f"similarity {note}"
        says = f"It recalled record {record.id[:_ID]}, with {how}: {text}"
        name = f"record-{number}"
        yield _node(NodeSort.RECORD, name, label, f"{text} ({of})", note=note, says=says)
    changed = [one for one in explained.procedures if one.version > 1]
    for number, used in enumerate(changed[:_SOME]):  # seeds are in every cycle alike
        text = f"{used.name[:80]}, version {used.version}"
        detail = f"{text} by {used.author[:80] or 'somebody'}: {used.reason[:_READ]}"
        says = f"It was asked by version {used.version} of procedure {used.name[:80]}."
        yield _node(NodeSort.PROCEDURE, f"procedure-{number}", text, detail, says=says)
    if explained.situation or explained.percepts or explained.recalled:
        text = explained.situation or "no situation was worked out"
        risks = "".join(f" Risk: {risk[:300]}." for risk in explained.risks[:5])
        says = f"It understood: {explained.situation[:_READ]}" if explained.situation else ""
        yield _node(NodeSort.REASONING, "reasoning", text, text[:_READ] + risks, says=says)


def _candidate(one: Considered) -> Node:
    verdict, action = one.rejected_by, _action(one)
    note = "" if one.score is None else f"{one.score:.2f}"
    fate = f"{'chosen' if one.chosen else 'not chosen'}{f' with score {note}' if note else ''}."
    if verdict is not None:
        fate = f"rejected by {verdict.constraint[:80]}: {verdict.reason[:300]}"
    return _node(
        NodeSort.CANDIDATE,
        f"candidate-{one.id[:100]}",
        action,
        f"{action}. {one.because[:600]} It was {fate}",
        good=True if one.chosen else False if verdict else None,
        note=note,
        says=f"{action} was {fate}",
    )


def _came_to(explained: Explanation, shown: Sequence[Considered]) -> Iterator[Node]:
    """The choice, and the constraints that forbade something."""
    chosen = [one for one in explained.considered if one.chosen]
    if chosen or explained.decided_by is not None or explained.status is not None:
        text = ", then ".join(_action(one) for one in chosen[:4]) or "nothing survived"
        by = f"Decided by {explained.decided_by}." if explained.decided_by else ""
        detail = f"{text}. {by} {explained.reason[:_READ]} {explained.result[:300]}"
        says = f"Decided by {explained.decided_by}: {explained.reason[:_READ]}"
        if not explained.decided_by:
            says = "" if explained.status is None else "Nothing survived: an impasse."
        yield _node(NodeSort.CHOICE, "choice", text, detail, good=bool(chosen), says=says)
    fatal = {one.rejected_by.constraint: one.rejected_by for one in shown[::-1] if one.rejected_by}
    for name, verdict in reversed(fatal.items()):
        text = f"{_short(name or 'a check', 60)}: {_short(verdict.reason, 90)}"
        id = f"constraint-{name[:100]}"
        yield _node(NodeSort.CONSTRAINT, id, text, verdict.reason, good=False)


def _edges(explained: Explanation, nodes: Sequence[Node]) -> Iterator[Edge]:
    for node in nodes:
        if node.sort in (NodeSort.PERCEPT, NodeSort.RECORD, NodeSort.PROCEDURE):
            yield Edge(source=node.id, target="reasoning")
        elif node.sort is NodeSort.CANDIDATE:
            yield Edge(source="reasoning", target=node.id)
    for one in explained.considered:
        source = f"candidate-{one.id[:100]}"
        if one.chosen:
            yield Edge(source=source, target="choice", label="chosen", good=True)
        elif one.rejected_by is not None:
            target = f"constraint-{one.rejected_by.constraint[:100]}"
            yield Edge(source=source, target=target, label="forbids", good=False)


def _action(one: Considered) -> str:
    """An action with its arguments as a person writes them, where they are a JSON object."""
    written = one.choice.arguments
    try:
        parsed: object = json.loads(written[:_READ])
    except (ValueError, RecursionError):
        parsed = None
    fields = object_of(parsed)
    arguments = named_values(fields) if fields or parsed == {} else written[:200]
    return f"{one.choice.action[:120]}({arguments})"


def _most_telling(considered: Sequence[Considered]) -> list[Considered]:
    """The candidates that are shown: those chosen before all others, in the order proposed."""
    ranked = sorted(considered, key=lambda one: (not one.chosen, one.rejected_by is None))
    best = {one.id for one in ranked[:_CANDIDATES]}
    return [one for one in considered if one.id in best]


def _because(hit: RecalledRecord) -> str:
    """Which parts of its score brought a record; empty where that is not explained."""
    return "" if hit.why is None else _short(hit.why.describe(), _LABEL)
