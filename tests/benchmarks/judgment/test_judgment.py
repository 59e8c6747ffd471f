"""The paper's findings come out again, and worlds are the same for the same seed."""

from __future__ import annotations

import json

import pytest

from benchmarks.judgment import paper, speed, world
from benchmarks.judgment.__main__ import main
from benchmarks.judgment.manifest import FIVE, TASKS, field_of, manifest
from coag.judgment import START, CapabilityGraph


def engine(kind: paper.Kind) -> paper.Engine:
    one = paper.engine(kind, 0)
    one.walk(200, 0)
    return one


def test_the_manifest_has_45_capabilities_and_249_edges_by_its_seed() -> None:
    graph = CapabilityGraph.from_manifest(manifest(1))
    assert len(graph.capabilities) == 45
    assert sum(edge.source != START for edge in graph.edges()) == 249
    assert manifest(1) == manifest(1) != manifest(2)
    assert set(FIVE) < set(TASKS)


def test_without_delta_contexts_change_nothing_and_with_a_field_of_their_own_they_do() -> None:
    one = engine("torus")
    assert paper.variance(paper.scores_by_context(one, "none")) == 0
    for steps in range(26):
        scores = paper.scores_by_context(one, "own", steps)
        assert len(set(paper.first_picks(scores).values())) >= 3
        assert paper.variance(scores) > 0.005


def test_reading_the_main_field_leaves_advice_blind_and_loses_edges() -> None:
    rows = {row[0]: row[3] for row in paper.experiments(2, 600)}
    spread, picks = rows["E7"].split("; ")
    assert float(spread) < 1e-4
    assert picks == "1"
    torus, coupled = rows["E8"].split(". ")[0].split("; ")
    assert int(coupled) < int(torus) / 2
    assert len(rows) == 11


def test_a_world_is_the_same_for_a_seed_and_changes_where_it_should() -> None:
    first, again = world.World("changing", 3), world.World("changing", 3)
    assert first.quality == again.quality
    first.change()
    assert first.quality != again.quality
    assert all(
        0 <= one.pays(*pair, "data") <= 1 for one in (first, again) for pair in first.quality
    )
    router = world.ROUTERS[0]
    assert world.play("edges", 0, router, 5) == world.play("edges", 0, router, 5)


@pytest.mark.parametrize("kind", ["words", "index field", "meaning", "meaning field"])
def test_a_task_speaks_for_capabilities_of_its_field(kind: str) -> None:
    graph = CapabilityGraph.from_manifest(manifest(0))
    read = world.reader(kind, graph, 0)("Monitor load and latency of our services")
    assert field_of(max(read, key=read.__getitem__)) == "monitor"


def test_routers_are_compared_in_pairs() -> None:
    rows = {row["router"]: row for row in world.compare("tasks", range(3), 20)}
    assert rows["edges"]["against edges"] is None
    mean, low, high = rows["edges + words"]["against edges"]["regret"]
    assert low <= mean <= high < 0


def test_estimates_of_a_policy_come_near_its_known_value() -> None:
    found = world.judged(range(2), 150)
    assert set(found) == {"ips", "snips", "doubly robust"}
    assert all(row["mean absolute error"] < 0.3 for row in found.values())


def test_the_commands_print_and_give_json(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["paper", "--seeds", "1", "--steps", "20"])
    assert "E11" in capsys.readouterr().out
    main(["paper", "--seeds", "1", "--steps", "20", "--json"])
    assert len(json.loads(capsys.readouterr().out)["0"]) == 11
    main(["world", "--seeds", "2", "--tasks", "2"])
    assert "edges + words" in capsys.readouterr().out
    monkeypatch.setattr(speed, "SPARSE", 200)
    monkeypatch.setattr(speed, "DENSE", 20)
    main(["speed", "--repeats", "2"])
    assert "249 edges" in capsys.readouterr().out


def test_counts_below_one_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["paper", "--seeds", "0"])
    assert "--seeds must be at least 1, got 0" in capsys.readouterr().err
