"""What the decision of a cycle was based on, as a small graph and in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from coag.errors import ConfigurationError
from coag.proof import Considered, Explanation, explain
from coag.schema import RecalledRecord, one_line
from coag.tracing import RunFolder, TraceIndex, read_run

from .memory import records_of
from .texts import fields_in_a_line


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
    """One thing that took part."""

    id: str
    sort: NodeSort
    label: str
    """A few words."""
    detail: str = ""
    """All of it, for whoever asks."""
    good: bool | None = None
    """False for what was rejected, True for what was chosen."""
    link: str = ""
    """A fragment of the cycle's page (`#proposal`), or empty."""
    note: str = ""
    """A word beside what it is, such as its score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What flowed into what."""

    source: str
    target: str
    label: str = ""
    """E.g. a score, or `forbids`."""
    good: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyGraph:
    """The decision of one cycle."""

    cycle: int
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0
    """Nodes beyond those there is room for."""
    trouble: str = ""
    """Why it is not known, if so."""
    sentences: tuple[str, ...] = ()
    """The same in words, for whoever cannot see it."""


NODES = 40
"""Nodes of a graph, at most."""
_SOME = 6
"""Percepts, records and procedures that are shown of each."""
_CANDIDATES = 10
_LABEL = 160
_DETAIL = 600
_SENTENCE = 300
_ID = 8
"""Characters of a record's id by which it is named."""
_READ = 2_000
"""Characters of a text that are looked at."""


def why_graph(run: RunFolder, cycle: int, index: TraceIndex) -> WhyGraph:
    """What a cycle's decision was based on; see `coag.proof.why`.

    Where the records of an existing cycle are not enough, the graph says why.

    Args:
        run: The run's folder.
        cycle: The cycle; of a plain run the turn.
        index: Its trace, scanned beyond the cycle, so that only what belongs to it is read.

    Raises:
        ConfigurationError: The run has no such cycle.
        TraceError: The run cannot be read.
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
    shown = _most_telling(explained.considered)
    nodes = [
        *_percepts(explained),
        *_records(explained),
        *_procedures(explained),
        *_reasoning(explained),
        *map(_candidate, shown),
        *_choice(explained),
        *_constraints(shown),
    ]
    shown_nodes = nodes[:NODES]
    known = {node.id for node in shown_nodes}
    edges = _edges(explained, shown_nodes)
    return WhyGraph(
        cycle=explained.cycle,
        nodes=tuple(shown_nodes),
        edges=tuple(edge for edge in edges if edge.source in known and edge.target in known),
        left_out=_left_out(explained, len(shown)) + len(nodes) - len(shown_nodes),
        sentences=tuple(one_line(text[:_READ], _SENTENCE) for text in _sentences(explained)),
    )


# ---- nodes ----


_LINKS = {
    NodeSort.PERCEPT: "#arrived",
    NodeSort.RECORD: "#retrieval",
    NodeSort.PROCEDURE: "#retrieval",
    NodeSort.REASONING: "#reasoning",
    NodeSort.CANDIDATE: "#proposal",
    NodeSort.CONSTRAINT: "#evaluation",
    NodeSort.CHOICE: "#selection",
}


def _node(
    sort: NodeSort, id: str, label: str, detail: str, *, good: bool | None = None, note: str = ""
) -> Node:
    return Node(
        id=id,
        sort=sort,
        label=_short(label, _LABEL),
        detail=_short(detail, _DETAIL),
        good=good,
        link=_LINKS[sort],
        note=note,
    )


def _short(text: str, limit: int) -> str:
    line = one_line(text[:_READ], _READ)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _percepts(explained: Explanation) -> Iterator[Node]:
    for number, percept in enumerate(explained.percepts[-_SOME:]):
        source, content = percept.source[:80], percept.content[:_READ]
        label = f"{source}: {fields_in_a_line(content, _LABEL)}"
        yield _node(NodeSort.PERCEPT, f"percept-{number}", label, f"{source}: {content}")


def _records(explained: Explanation) -> Iterator[Node]:
    for number, hit in enumerate(explained.recalled[:_SOME]):
        record = hit.record
        where = f"{record.kind}, cycle {record.provenance.cycle} of {record.provenance.run[:60]}"
        because = _because(hit)
        of = f"record {record.id[:80]}, {where}{f'; why: {because}' if because else ''}"
        detail = f"{record.text[:_READ]} ({of})"
        label = f"{record.id[:_ID]}: {record.text[:_READ]}"
        yield _node(NodeSort.RECORD, f"record-{number}", label, detail, note=f"{hit.score:.2f}")


def _procedures(explained: Explanation) -> Iterator[Node]:
    """Those that are no developer's seed: the others are in every cycle alike."""
    changed = [one for one in explained.procedures if one.version > 1]
    for number, used in enumerate(changed[:_SOME]):
        text = f"{used.name[:80]}, version {used.version}"
        detail = f"{text} by {used.author[:80] or 'somebody'}: {used.reason[:_READ]}"
        yield _node(NodeSort.PROCEDURE, f"procedure-{number}", text, detail)


def _reasoning(explained: Explanation) -> Iterator[Node]:
    if explained.situation or explained.percepts or explained.recalled:
        text = explained.situation or "no situation was worked out"
        risks = "".join(f" Risk: {risk[:300]}." for risk in explained.risks[:5])
        yield _node(NodeSort.REASONING, "reasoning", text, text[:_READ] + risks)


def _candidate(one: Considered) -> Node:
    verdict = one.died_of
    fate = f" Rejected by {verdict.constraint[:80]}: {verdict.reason[:300]}" if verdict else ""
    good = True if one.chosen else False if verdict else None
    return _node(
        NodeSort.CANDIDATE,
        _candidate_id(one),
        _action(one),
        f"{_action(one)}. {one.because[:600]}{fate}",
        good=good,
        note="" if one.score is None else f"{one.score:.2f}",
    )


def _constraints(shown: Sequence[Considered]) -> Iterator[Node]:
    """Those that forbade something."""
    met: set[str] = set()
    for one in shown:
        verdict = one.died_of
        if verdict is not None and verdict.constraint not in met:
            met.add(verdict.constraint)
            text = f"{_short(verdict.constraint or 'a check', 60)}: {_short(verdict.reason, 90)}"
            identity = _constraint_id(verdict.constraint)
            yield _node(NodeSort.CONSTRAINT, identity, text, verdict.reason, good=False)


def _choice(explained: Explanation) -> Iterator[Node]:
    chosen = [one for one in explained.considered if one.chosen]
    if not chosen and explained.decided_by is None and explained.status is None:
        return
    text = ", then ".join(_action(one) for one in chosen[:4]) or "nothing survived"
    by = f"Decided by {explained.decided_by}." if explained.decided_by else ""
    detail = f"{text}. {by} {explained.reason[:_READ]} {explained.result[:300]}"
    yield _node(NodeSort.CHOICE, "choice", text, detail, good=bool(chosen))


# ---- edges ----


def _edges(explained: Explanation, nodes: Sequence[Node]) -> Iterator[Edge]:
    known = {node.id for node in nodes}
    for node in nodes:
        if node.sort in (NodeSort.PERCEPT, NodeSort.RECORD, NodeSort.PROCEDURE):
            yield Edge(source=node.id, target="reasoning")
        elif node.sort is NodeSort.CANDIDATE:
            yield Edge(source="reasoning", target=node.id)
    for one in explained.considered:
        if _candidate_id(one) not in known:
            continue
        if one.chosen:
            yield Edge(source=_candidate_id(one), target="choice", label="chosen", good=True)
        elif one.died_of is not None:
            target = _constraint_id(one.died_of.constraint)
            yield Edge(source=_candidate_id(one), target=target, label="forbids", good=False)


def _candidate_id(one: Considered) -> str:
    return f"candidate-{one.id[:100]}"


def _constraint_id(name: str) -> str:
    return f"constraint-{name[:100]}"


def _action(one: Considered) -> str:
    return f"{one.choice.action[:120]}({_arguments(one.choice.arguments)})"


def _arguments(written: str) -> str:
    """Arguments as a person writes them, where they are a JSON object."""
    try:
        parsed: object = json.loads(written[:_READ])
    except (ValueError, RecursionError):
        return written[:200]
    if not isinstance(parsed, dict):
        return written[:200]
    named = cast("dict[str, object]", parsed).items()
    return ", ".join(f"{name}={_plain(value)}" for name, value in named)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _most_telling(considered: Sequence[Considered]) -> list[Considered]:
    """The candidates that are shown: those chosen before all others, in the order proposed."""
    ranked = sorted(considered, key=lambda one: (not one.chosen, one.died_of is None))
    best = {one.id for one in ranked[:_CANDIDATES]}
    return [one for one in considered if one.id in best]


def _left_out(explained: Explanation, shown: int) -> int:
    changed = sum(one.version > 1 for one in explained.procedures)
    grounds = (len(explained.percepts), len(explained.recalled), changed)
    return sum(max(0, count - _SOME) for count in grounds) + len(explained.considered) - shown


# ---- in words ----


def _sentences(explained: Explanation) -> Iterator[str]:
    for percept in explained.percepts[-_SOME:]:
        brought = fields_in_a_line(percept.content, _SENTENCE)
        yield f"It perceived from {percept.source[:80]}: {brought}"
    for hit in explained.recalled[:_SOME]:
        yield _recalled(hit)
    for used in explained.procedures:
        if used.version > 1:
            yield f"It was asked by version {used.version} of procedure {used.name[:80]}."
    if explained.situation:
        yield f"It understood: {explained.situation[:_READ]}"
    for one in _most_telling(explained.considered):
        yield _fate(one)
    if explained.decided_by:
        yield f"Decided by {explained.decided_by}: {explained.reason[:_READ]}"
    elif explained.status is not None:
        yield "Nothing survived: an impasse."
    if explained.result:
        yield f"It brought: {fields_in_a_line(explained.result, _SENTENCE)}"


def _recalled(hit: RecalledRecord) -> str:
    named = f"record {hit.record.id[:_ID]}"
    because = _because(hit)
    how = f"score {hit.score:.2f} ({because})" if because else f"similarity {hit.score:.2f}"
    return f"It recalled {named}, with {how}: {hit.record.text[:_READ]}"


def _because(hit: RecalledRecord) -> str:
    """Which parts of its score brought a record; empty where that is not explained."""
    return "" if hit.why is None else _short(hit.why.told(), _LABEL)


def _fate(one: Considered) -> str:
    if one.died_of is not None:
        reason = one.died_of.reason[:300]
        return f"{_action(one)} was rejected by {one.died_of.constraint[:80]}: {reason}"
    score = "" if one.score is None else f" with score {one.score:.2f}"
    return f"{_action(one)} was {'chosen' if one.chosen else 'not chosen'}{score}."
