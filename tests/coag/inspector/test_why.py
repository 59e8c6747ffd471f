"""What a decision rested on, as a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kits.hostile import AT, FORBIDDEN, HARM, hostile_percept, hostile_run
from kits.tracked import cycles_of, index_of, plain_turn, remembered, written_run

from coag.errors import ConfigurationError
from coag.inspector.why import NodeSort, WhyGraph, graph_of, why_graph
from coag.proof import Considered, Explanation
from coag.proof.boundary import Choice
from coag.proof.why import ProcedureUsed
from coag.schema import Percept, PerceptKind, RecalledRecord, ScoreParts, Trust, Verdict

pytestmark = pytest.mark.broken_trace("their records are made up")


def labels(graph: WhyGraph, sort: NodeSort) -> list[str]:
    return [node.label for node in graph.nodes if node.sort is sort]


def hit(number: int) -> RecalledRecord:
    return RecalledRecord(record=remembered(f"fact {number}", name=f"r{number}"), score=0.25)


def explained(**fields: Any) -> Explanation:
    return Explanation(run="r", kind="coag", cycle=1, **fields)


def candidate(number: int, *, chosen: bool = False, dead: bool = False) -> Considered:
    verdict = Verdict(allowed=False, constraint="stay", reason="not yet") if dead else None
    choice = Choice(action="go", arguments=f'{{"to": {number}}}')
    score = None if dead else 0.5
    return Considered(
        id=f"c{number}", choice=choice, rejected_by=verdict, chosen=chosen, score=score
    )


def test_a_decision_flows_from_what_was_known_to_the_choice() -> None:
    graph = graph_of(
        explained(
            situation="It is dirty.",
            recalled=(hit(1),),
            considered=(candidate(1, chosen=True), candidate(2, dead=True), candidate(3)),
            decided_by="model",
            reason="It is near.",
            status="done",
        )
    )
    assert labels(graph, NodeSort.RECORD) == ["r1: fact 1"]
    assert labels(graph, NodeSort.CANDIDATE) == ["go(to=1)", "go(to=2)", "go(to=3)"]
    assert labels(graph, NodeSort.CONSTRAINT) == ["stay: not yet"]
    assert labels(graph, NodeSort.CHOICE) == ["go(to=1)"]
    edges = {(edge.source, edge.target): (edge.label, edge.good) for edge in graph.edges}
    assert edges["candidate-c1", "choice"] == ("chosen", True)
    assert edges["candidate-c2", "constraint-stay"] == ("forbids", False)
    assert ("candidate-c3", "choice") not in edges
    assert edges["record-0", "reasoning"] == ("", None)
    notes = {node.id: node.note for node in graph.nodes if node.note}
    assert notes == {"record-0": "0.25", "candidate-c1": "0.50", "candidate-c3": "0.50"}


def test_a_recalled_record_shows_the_parts_of_its_score() -> None:
    because = ScoreParts(lexical=0.2, dense=0.05)
    graph = graph_of(explained(recalled=(hit(1).model_copy(update={"why": because}), hit(2))))
    assert graph.sentences == (
        "It recalled record r1, with score 0.25 (lexical +0.20, dense +0.05): fact 1",
        "It recalled record r2, with similarity 0.25: fact 2",
    )
    details = [node.detail for node in graph.nodes if node.sort is NodeSort.RECORD]
    assert details[0].endswith("; why: lexical +0.20, dense +0.05)")
    assert "why" not in details[1]


def test_the_same_is_given_in_words(tmp_path: Path) -> None:
    folder = written_run(tmp_path, cycles_of("clean"))
    graph = why_graph(folder, 1, index_of(folder))
    assert graph.sentences == (
        "It perceived from user: Clean up!",
        "It understood: It is dirty.",
        "clean(hard=true) was chosen with score 0.90.",
        "leave() was rejected by stay: the work is not done",
        "Decided by only_survivor:",
        "It brought: cleaned",
    )


def test_a_big_decision_keeps_to_forty_nodes_and_says_how_many_are_missing() -> None:
    percept = Percept(
        id="p", at=AT, kind=PerceptKind.MESSAGE, source="s", trust=Trust.USER, content="c"
    )
    considered = (*(candidate(n, dead=True) for n in range(90)), candidate(99, chosen=True))
    graph = graph_of(
        explained(
            percepts=(percept,) * 50,
            recalled=tuple(map(hit, range(50))),
            considered=considered,
            decided_by="rank",
        )
    )
    assert len(graph.nodes) <= 40
    assert "go(to=99)" in labels(graph, NodeSort.CANDIDATE)
    assert graph.left_out == 44 + 44 + 81
    known = {node.id for node in graph.nodes}
    assert all(edge.source in known and edge.target in known for edge in graph.edges)


def test_an_impasse_ends_in_no_choice() -> None:
    graph = graph_of(explained(considered=(candidate(1, dead=True),), status="none"))
    (choice,) = [node for node in graph.nodes if node.sort is NodeSort.CHOICE]
    assert (choice.good, choice.label) == (False, "nothing survived")
    assert "Nothing survived: an impasse." in graph.sentences


def test_a_plain_turn_shows_what_was_begun(tmp_path: Path) -> None:
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    graph = why_graph(folder, 1, index_of(folder))
    assert labels(graph, NodeSort.CHOICE) == ["look()"]


def test_hostile_texts_are_shown_on_short_lines() -> None:
    evil = HARM + "A" * 1_000_000
    verdict = Verdict(allowed=False, constraint=evil, reason=evil)
    choice = Choice(action=evil, arguments=evil)
    percept = hostile_percept("p", content=evil, source=evil)
    explained = Explanation(
        run=evil,
        kind="coag",
        cycle=1,
        situation=evil,
        risks=(evil,) * 9,
        percepts=(percept,),
        considered=(
            Considered(id=evil, choice=choice, rejected_by=verdict, because=evil),
            Considered(id="c2", choice=choice, chosen=True),
        ),
        procedures=(ProcedureUsed(name=evil, version=2, author=evil, reason=evil),),
        decided_by=evil,
        reason=evil,
        result=evil,
    )
    graph = graph_of(explained)
    texts = [text for node in graph.nodes for text in (node.label, node.detail, node.note)]
    texts += graph.sentences
    assert max(map(len, texts)) < 700
    assert not any(set(text) & {*FORBIDDEN, "\n"} for text in texts)
    assert len(graph.edges) == 6


def test_a_cycle_that_cannot_be_explained_says_so_in_its_graph(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path)
    graph = why_graph(folder, 1, index_of(folder))
    assert "cannot be read" in graph.trouble
    assert not graph.nodes
    with pytest.raises(ConfigurationError, match=r"cycle 9|snapshot"):
        why_graph(folder, 9, index_of(folder))
