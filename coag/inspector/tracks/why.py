"""What the decision of a cycle rested on, as a graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from coag.errors import ConfigurationError
from coag.inspector.reading import told_in_a_line
from coag.inspector.views import Edge, Node, NodeSort, WhyGraph
from coag.proof import Considered, Explanation, explain, why
from coag.schema import RecalledRecord, one_line
from coag.tracing import RunFolder, TraceIndex, read_run

from .procedures import records_of

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
_HEARD = 2_000
"""Characters of a text that are looked at."""


def why_graph(run: RunFolder, cycle: int, *, index: TraceIndex | None = None) -> WhyGraph:
    """What a cycle's decision rested on; see `coag.proof.why`.

    Where the records of a cycle that is there do not tell it, the graph says why.

    Args:
        run: The run's folder.
        cycle: The cycle; of a plain run the turn.
        index: Its trace, scanned beyond the cycle, so that only what belongs to it is read; None
            to read from the start.

    Raises:
        ConfigurationError: The run has no such cycle.
        TraceError: The run cannot be read.
    """
    if index is None:
        return graph_of(why(run, cycle))
    info = read_run(run.path)
    try:
        return graph_of(explain(info, records_of(index, cycle), cycle))
    except ConfigurationError as error:
        if not index.of_cycle(cycle):
            raise
        return WhyGraph(cycle=cycle, nodes=(), edges=(), trouble=one_line(str(error), _DETAIL))


def graph_of(told: Explanation) -> WhyGraph:
    """An explanation as a graph of at most 40 nodes, with the same in words."""
    shown = _most_telling(told.considered)
    nodes = [
        *_percepts(told),
        *_records(told),
        *_procedures(told),
        *_reasoning(told),
        *map(_candidate, shown),
        *_choice(told),
        *_constraints(shown),
    ]
    kept = nodes[:NODES]
    known = {node.id for node in kept}
    edges = _edges(told, kept)
    return WhyGraph(
        cycle=told.cycle,
        nodes=tuple(kept),
        edges=tuple(edge for edge in edges if edge.source in known and edge.target in known),
        left_out=_left_out(told, len(shown)) + len(nodes) - len(kept),
        sentences=tuple(one_line(text[:_HEARD], _SENTENCE) for text in _sentences(told)),
    )


# ---- nodes ----


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes nodes of one sort."""

    sort: NodeSort
    link: str

    def node(
        self, identity: str, text: str, detail: str, *, good: bool | None = None, note: str = ""
    ) -> Node:
        return Node(
            id=identity,
            sort=self.sort,
            label=_short(text, _LABEL),
            detail=_short(detail, _DETAIL),
            good=good,
            link=self.link,
            note=note,
        )


_PERCEPT = _Maker(NodeSort.PERCEPT, "#arrived")
_RECORD = _Maker(NodeSort.RECORD, "#retrieval")
_PROCEDURE = _Maker(NodeSort.PROCEDURE, "#retrieval")
_REASONING = _Maker(NodeSort.REASONING, "#reasoning")
_CANDIDATE = _Maker(NodeSort.CANDIDATE, "#proposal")
_CONSTRAINT = _Maker(NodeSort.CONSTRAINT, "#evaluation")
_CHOICE = _Maker(NodeSort.CHOICE, "#selection")


def _short(text: str, limit: int) -> str:
    line = one_line(text[:_HEARD], _HEARD)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _percepts(told: Explanation) -> Iterator[Node]:
    for number, percept in enumerate(told.percepts[-_SOME:]):
        source, content = percept.source[:80], percept.content[:_HEARD]
        label = f"{source}: {told_in_a_line(content, _LABEL)}"
        yield _PERCEPT.node(f"percept-{number}", label, f"{source}: {content}")


def _records(told: Explanation) -> Iterator[Node]:
    for number, hit in enumerate(told.recalled[:_SOME]):
        record = hit.record
        where = f"{record.kind}, cycle {record.provenance.cycle} of {record.provenance.run[:60]}"
        because = _because(hit)
        of = f"record {record.id[:80]}, {where}{f'; why: {because}' if because else ''}"
        detail = f"{record.text[:_HEARD]} ({of})"
        label = f"{record.id[:_ID]}: {record.text[:_HEARD]}"
        yield _RECORD.node(f"record-{number}", label, detail, note=f"{hit.score:.2f}")


def _procedures(told: Explanation) -> Iterator[Node]:
    """Those that are no developer's seed: the others are in every cycle alike."""
    changed = [one for one in told.procedures if one.version > 1]
    for number, used in enumerate(changed[:_SOME]):
        text = f"{used.name[:80]}, version {used.version}"
        detail = f"{text} by {used.author[:80] or 'somebody'}: {used.reason[:_HEARD]}"
        yield _PROCEDURE.node(f"procedure-{number}", text, detail)


def _reasoning(told: Explanation) -> Iterator[Node]:
    if told.situation or told.percepts or told.recalled:
        text = told.situation or "no situation was worked out"
        risks = "".join(f" Risk: {risk[:300]}." for risk in told.risks[:5])
        yield _REASONING.node("reasoning", text, text[:_HEARD] + risks)


def _candidate(one: Considered) -> Node:
    died = one.died_of
    fate = f" Rejected by {died.constraint[:80]}: {died.reason[:300]}" if died else ""
    good = True if one.chosen else False if died else None
    return _CANDIDATE.node(
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
        died = one.died_of
        if died is not None and died.constraint not in met:
            met.add(died.constraint)
            text = f"{_short(died.constraint or 'a check', 60)}: {_short(died.reason, 90)}"
            identity = _constraint_id(died.constraint)
            yield _CONSTRAINT.node(identity, text, died.reason, good=False)


def _choice(told: Explanation) -> Iterator[Node]:
    chosen = [one for one in told.considered if one.chosen]
    if not chosen and told.decided_by is None and told.status is None:
        return
    text = ", then ".join(_action(one) for one in chosen[:4]) or "nothing survived"
    by = f"Decided by {told.decided_by}." if told.decided_by else ""
    detail = f"{text}. {by} {told.reason[:_HEARD]} {told.result[:300]}"
    yield _CHOICE.node("choice", text, detail, good=bool(chosen))


# ---- edges ----


def _edges(told: Explanation, nodes: Sequence[Node]) -> Iterator[Edge]:
    known = {node.id for node in nodes}
    for node in nodes:
        if node.sort in (NodeSort.PERCEPT, NodeSort.RECORD, NodeSort.PROCEDURE):
            yield Edge(source=node.id, target="reasoning")
        elif node.sort is NodeSort.CANDIDATE:
            yield Edge(source="reasoning", target=node.id)
    for one in told.considered:
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
        parsed: object = json.loads(written[:_HEARD])
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
    kept = {one.id for one in ranked[:_CANDIDATES]}
    return [one for one in considered if one.id in kept]


def _left_out(told: Explanation, shown: int) -> int:
    changed = sum(one.version > 1 for one in told.procedures)
    grounds = (len(told.percepts), len(told.recalled), changed)
    return sum(max(0, count - _SOME) for count in grounds) + len(told.considered) - shown


# ---- in words ----


def _sentences(told: Explanation) -> Iterator[str]:
    for percept in told.percepts[-_SOME:]:
        brought = told_in_a_line(percept.content, _SENTENCE)
        yield f"It perceived from {percept.source[:80]}: {brought}"
    for hit in told.recalled[:_SOME]:
        yield _recalled(hit)
    for used in told.procedures:
        if used.version > 1:
            yield f"It was asked by version {used.version} of procedure {used.name[:80]}."
    if told.situation:
        yield f"It understood: {told.situation[:_HEARD]}"
    for one in _most_telling(told.considered):
        yield _fate(one)
    if told.decided_by:
        yield f"Decided by {told.decided_by}: {told.reason[:_HEARD]}"
    elif told.status is not None:
        yield "Nothing survived: an impasse."
    if told.result:
        yield f"It brought: {told_in_a_line(told.result, _SENTENCE)}"


def _recalled(hit: RecalledRecord) -> str:
    named = f"record {hit.record.id[:_ID]}"
    because = _because(hit)
    how = f"score {hit.score:.2f} ({because})" if because else f"similarity {hit.score:.2f}"
    return f"It recalled {named}, with {how}: {hit.record.text[:_HEARD]}"


def _because(hit: RecalledRecord) -> str:
    """Which parts of its score brought a record; empty where that is not told."""
    return "" if hit.why is None else _short(hit.why.told(), _LABEL)


def _fate(one: Considered) -> str:
    if one.died_of is not None:
        reason = one.died_of.reason[:300]
        return f"{_action(one)} was rejected by {one.died_of.constraint[:80]}: {reason}"
    score = "" if one.score is None else f" with score {one.score:.2f}"
    return f"{_action(one)} was {'chosen' if one.chosen else 'not chosen'}{score}."
