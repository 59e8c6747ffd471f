"""Cases in this process: every contender, the same outcomes as behind HTTP, equal tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from case_study.contenders import CONTENDERS
from case_study.measures import CaseResult
from case_study.runner import CaseFolder, CaseRequest, checked, play_case
from coag.errors import ConfigurationError
from coag.proof import replay, verify
from coag.schema import Note, Percept
from coag.tracing import list_runs, read_run, read_trace

Play = Callable[..., Awaitable[CaseResult]]


@pytest.mark.parametrize("agent", CONTENDERS)
async def test_every_contender_plays_and_leaves_a_run_that_holds(play: Play, agent: str) -> None:
    result = await play("energy-dilemma", agent, "sound", seed=1, place="local", max_actions=4)
    (run,) = list_runs(Path(result.run))
    info = read_run(run.path)
    assert info.kind == ("coag" if agent.startswith("coag") else "plain")
    assert info.model == ("scripted:sound" if CONTENDERS[agent].asks_model else "none")
    assert 0 < result.measures["actions"] <= 4
    assert verify(run) == []


@pytest.mark.parametrize("agent", ["plain", "coag-compact"])
async def test_outcomes_are_the_same_behind_http(play: Play, agent: str) -> None:
    local, served = [
        await play("sudden-wall", agent, "sound", seed=2, place=place)
        for place in ("local", "served")
    ]
    assert local.success == served.success
    same = ("actions", "model_calls", "prompt_tokens", "second_episode_bumps")
    assert [local.measures[name] for name in same] == [served.measures[name] for name in same]


@pytest.mark.parametrize("agent", ["plain-guarded", "plain-memory", "plain-iterations"])
async def test_runs_of_plain_contenders_are_replayed_without_a_model(
    play: Play, agent: str
) -> None:
    result = await play("evolution", agent, "sound", seed=1, place="local")
    (run,) = list_runs(Path(result.run))
    report = await replay(run)
    assert report.divergence is None


async def test_what_the_guard_refuses_is_no_action(play: Play) -> None:
    result = await play("energy-dilemma", "plain-guarded", "impulsive", seed=1, place="local")
    (run,) = list_runs(Path(result.run))
    notes = [e.body for e in read_trace(run.trace_path) if isinstance(e.body, Note)]
    refused = [note.text for note in notes if note.about == "refused"]
    assert refused
    assert "keep_charge_to_reach_charger" in refused[0]
    assert result.measures["stranded"] == 0
    assert result.measures["actions"] == 0


async def test_several_iterations_keep_the_bound_of_actions(play: Play) -> None:
    result = await play(
        "phantom-object", "plain-iterations", "sound", seed=1, place="local", max_actions=3
    )
    assert result.measures["actions"] == 6
    assert len(list(list_runs(Path(result.run)))) == 2


async def test_what_another_agent_says_reaches_everybody_once(play: Play) -> None:
    for agent in ("rules", "plain", "coag-compact"):
        result = await play("distraction", agent, "sound", seed=1, place="local")
        (run,) = list_runs(Path(result.run))
        heard = [e.body for e in read_trace(run.trace_path) if isinstance(e.body, Percept)]
        said = [each for each in heard if each.content.startswith("Message from")]
        assert [each.trust.value for each in said] == ["untrusted"], agent


async def test_case_ends_when_its_tokens_are_used_up(play: Play) -> None:
    long = await play("evolution", "plain", "sound", seed=1, place="local")
    short = await play("evolution", "plain", "sound", seed=1, place="local", token_budget=900)
    spent = short.measures["prompt_tokens"] + short.measures["completion_tokens"]
    assert 0 < short.measures["actions"] < long.measures["actions"]
    assert spent < long.measures["prompt_tokens"]


async def test_local_world_and_a_served_one_cannot_both_be_asked_for() -> None:
    request = CaseRequest(
        scenario="evolution",
        agent="plain",
        model="scripted:sound",
        world="http://127.0.0.1:9",
        place="local",
    )
    with pytest.raises(ConfigurationError, match="give one of them"):
        checked(request)


async def test_local_case_that_was_broken_off_is_to_be_played_anew(tmp_path: Path) -> None:
    request = CaseRequest(
        scenario="phantom-object", agent="coag-compact", model="scripted:sound", place="local"
    )
    folder = CaseFolder.create(tmp_path, request)
    await play_case(request, folder)
    (folder.path / "episode-2.json").unlink()
    with pytest.raises(ConfigurationError, match="play it anew"):
        await play_case(request, folder)
