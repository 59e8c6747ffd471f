from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from case_study.measures import CaseResult
from case_study.runner import (
    CONTROL_TOKEN,
    CaseFolder,
    CaseRequest,
    build_agent,
    checked,
    run_case,
)
from coag.errors import ConfigurationError, ResumeError, UnknownNameError
from coag.proof import verify
from coag.tracing import list_runs, read_run, seal_of
from vacuum_world.errors import UnknownScenarioError
from vacuum_world.server import WorldServer

Play = Callable[..., Awaitable[CaseResult]]
TOKEN = "a-token-for-tests"


def _request(**changes: Any) -> CaseRequest:
    given = {"scenario": "energy-dilemma", "agent": "coag", "model": "scripted:sound"}
    return CaseRequest.model_validate(given | changes)


async def test_case_leaves_a_run_that_can_be_shown_and_built_again(
    play: Play, tmp_path: Path
) -> None:
    result = await play("energy-dilemma", "coag", "sound", seed=1)
    (run,) = list_runs(Path(result.run))
    info = read_run(run.path)
    assert (info.kind, info.model, info.seed) == ("coag", "scripted:sound", 1)
    assert info.ended_at is not None
    assert info.recipe is not None
    assert info.recipe.factory == "case_study.runner:build_agent"
    assert '_token"' not in info.model_dump_json()
    assert json.loads((Path(result.run) / "result.json").read_text())["success"] is True
    assert (Path(result.run) / "memory").is_dir()


@pytest.mark.parametrize("agent", ["coag", "baseline"])
async def test_run_says_what_was_measured_and_is_sealed_as_before(play: Play, agent: str) -> None:
    result = await play("energy-dilemma", agent, "sound", seed=1)
    (run,) = list_runs(Path(result.run))
    info = read_run(run.path)
    assert info.result is not None
    assert (info.result["success"], info.result["scenario"]) == (True, "energy-dilemma")
    assert info.result["summary"].endswith("actions")
    assert info.result["truth"]["stranded"] is False
    assert info.ended_at is not None
    assert info.seal is not None
    assert info.seal.model_copy(update={"closing": ""}) == seal_of(run.trace_path)
    assert verify(run) == []


async def test_finished_case_is_not_played_again(play: Play) -> None:
    result = await play("energy-dilemma", "baseline", "sound", seed=1)
    folder = CaseFolder(Path(result.run))
    again = await run_case(folder)
    assert again == result
    assert len(list(list_runs(folder.path))) == 1


async def test_bound_of_actions_is_kept_by_both_agents(play: Play) -> None:
    for agent in ("coag", "baseline"):
        result = await play("phantom-object", agent, "gullible", max_actions=3, episodes=1)
        assert result.measures["actions"] == 3


async def test_agent_that_only_answers_is_not_asked_for_ever(play: Play) -> None:
    result = await play("phantom-object", "baseline", "sound", seed=1, episodes=1, max_actions=50)
    assert result.success
    assert result.measures["actions"] < 15


async def test_world_in_another_place_is_set_up_and_played_in(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTROL_TOKEN, TOKEN)
    with WorldServer(control_token=TOKEN) as server:
        result = await play("energy-dilemma", "baseline", "sound", seed=3, world=server.url)
        assert result.success
        assert server.world.counters.actions == result.measures["actions"]
    assert not (Path(result.run) / "world-1.json").exists()


async def test_world_in_another_place_needs_its_token(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONTROL_TOKEN, raising=False)
    with pytest.raises(ConfigurationError, match=CONTROL_TOKEN):
        await play("energy-dilemma", "coag", "sound", world="http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("changes", "error", "listed"),
    [
        ({"scenario": "nope"}, UnknownScenarioError, "sudden-wall"),
        ({"agent": "nope"}, UnknownNameError, "baseline, coag"),
        ({"model": "nope"}, UnknownNameError, "scripted:NAME"),
        ({"model": "scripted:nope"}, UnknownNameError, "stubborn"),
        ({"without_constraints": ("nope",)}, UnknownNameError, "keep_charge_to_reach_charger"),
    ],
)
def test_what_does_not_exist_is_answered_with_what_does(
    changes: dict[str, Any], error: type[Exception], listed: str
) -> None:
    with pytest.raises(error, match=listed):
        checked(_request(**changes))


def test_unknown_case_lists_those_there_are(tmp_path: Path) -> None:
    folder = CaseFolder.create(tmp_path, _request())
    with pytest.raises(ResumeError, match=folder.path.name):
        CaseFolder.existing("nope", tmp_path)
    assert CaseFolder.existing(folder.path.name, tmp_path).path == folder.path


async def test_recipe_says_what_is_missing_without_a_world() -> None:
    with pytest.raises(ConfigurationError, match="--resume some/case"):
        await build_agent(case="some/case", episode=1, request=_request().model_dump())
