"""Routing in the vacuum world's scenarios, and judgment across a cut of the context."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from benchmarks.judgment import compaction, scenarios
from benchmarks.judgment.__main__ import main
from coag.errors import ConfigurationError
from vacuum_world.scenarios import build_scenario


def test_capabilities_are_found_in_the_tools_as_they_are_offered() -> None:
    routing = scenarios.Routing(scenarios.ROUTERS[1])
    for name in ("sudden-wall", "false-manual"):
        setup = build_scenario(name, 1, episode=1)
        asyncio.run(scenarios.play_episode(setup, routing, "follows", random.Random(0)))
    found = set(routing.graph.capabilities)
    assert found >= {f"move_agent {way}" for way in ("north", "east", "south", "west")}
    assert found >= {"clean_current_cell", "sense"}
    assert len(found) == 7  # and the gadget of false-manual
    assert sum(edge.tries for edge in routing.graph.edges()) > 10


@pytest.mark.parametrize("router", scenarios.ROUTERS, ids=lambda one: one.name)
def test_every_router_plays_all_scenarios_alike_for_the_same_seed(
    router: scenarios.Router,
) -> None:
    played = scenarios.play(3, router, "asks when undecided", 1)
    assert {one.scenario for one in played} == set(scenarios.PLAYED)
    assert all(0 <= one.regret <= 1 for one in played)
    assert played == scenarios.play(3, router, "asks when undecided", 1)


def test_what_is_learned_lowers_the_regret_of_an_agent_that_follows_advice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = scenarios.compare(range(2), 2, scenarios.ROUTERS[:2])
    none, edges = found["follows"]
    assert edges["regret"] < none["regret"]
    assert edges["regret against none"][0] == pytest.approx(edges["regret"] - none["regret"])
    main(["scenarios", "--seeds", "1", "--rounds", "1"])
    assert "edges + toroidal field" in capsys.readouterr().out


def test_a_fresh_run_with_judgment_opens_no_door_that_is_known_to_be_dead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["compaction", "--seeds", "6", "-o", str(tmp_path)]
    main(arguments)
    shown = capsys.readouterr().out
    assert "both less summary" in shown
    runs = {
        arm: [json.loads((tmp_path / f"seed-{n}" / f"{arm}.json").read_text()) for n in range(6)]
        for arm in ("first", *compaction.ARMS)
    }
    assert all(one["success"] for each in runs.values() for one in each)
    assert all(one["dead"] and one["summary"] for one in runs["first"])
    assert sum(one["wasted"] for one in runs["summary"]) > 0
    assert [one["wasted"] for arm in ("judgment", "both") for one in runs[arm]] == [0] * 12
    main(arguments)
    assert capsys.readouterr().out == shown  # nothing was played again, the seconds included


def test_runs_of_another_model_or_depth_are_not_mixed(tmp_path: Path) -> None:
    compaction.Compaction(tmp_path, None, "compact")
    with pytest.raises(ConfigurationError, match="another folder"):
        compaction.Compaction(tmp_path, "http://127.0.0.1:9/v1#big", "compact")
    with pytest.raises(SystemExit):
        main(["compaction", "--arms", "memory"])


def test_a_scripted_model_learns_what_belongs_into_which_tray(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["procedures", "-o", str(tmp_path)])
    assert "scripted: Better" in capsys.readouterr().out
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found["kept"]
    assert "money: blue" in found["texts"]["deliberation"]
