"""Cases: served and local, sequences, forks, awareness, and what people are shown."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from case_study.contenders import CONTENDERS
from case_study.measures import CaseResult
from case_study.runner import (
    CONTROL_TOKEN,
    Between,
    CaseFolder,
    CaseRequest,
    Place,
    Progress,
    build_agent,
    checked,
    memory_of,
    model_spec,
    play_case,
    records_of,
    run_case,
)
from case_study.runner.request import sampled_by
from coag.awareness import load_state
from coag.errors import ConfigurationError, ResumeError, UnknownNameError
from coag.proof import Changes, CycleResult, ForkReport, counterfactuals, fork, replay, verify
from coag.schema import ModelCall, Note, Percept, Snapshot, TraceRecord, estimate_tokens
from coag.tracing import RunFolder, list_runs, read_run, seal_of
from vacuum_world.errors import UnknownScenarioError
from vacuum_world.server import WorldServer

Play = Callable[..., Awaitable[CaseResult]]
TOKEN = "a-token-for-tests"


def _request(**changes: Any) -> CaseRequest:
    given = {"scenario": "energy-dilemma", "agent": "coag", "model": "scripted:sound"}
    return CaseRequest.model_validate(given | changes)


@pytest.mark.parametrize("agent", ["coag", "baseline"])
async def test_a_case_leaves_a_sealed_run_that_says_what_was_measured_and_can_be_built_again(
    play: Play, agent: str
) -> None:
    result = await play("energy-dilemma", agent, "sound", seed=1)
    (run,) = list_runs(Path(result.run))
    info = read_run(run.path)
    assert (info.model, info.seed) == ("scripted:sound", 1)
    assert info.kind == ("coag" if agent == "coag" else "plain")
    assert info.recipe is not None
    factory = "build_agent" if agent == "coag" else "build_plain_agent"
    assert info.recipe.factory == f"case_study.runner:{factory}"
    assert '_token"' not in info.model_dump_json()
    assert json.loads((Path(result.run) / "result.json").read_text())["success"] is True
    assert (Path(result.run) / "memory").is_dir() == (agent == "coag")
    assert info.result is not None
    assert (info.result["success"], info.result["scenario"]) == (True, "energy-dilemma")
    assert info.result["summary"].endswith("actions")
    assert info.result["truth"]["stranded"] is False
    assert info.ended_at is not None
    assert info.seal is not None
    assert info.seal.model_copy(update={"closing": ""}) == seal_of(run.trace_path)
    assert verify(run) == []
    folder = CaseFolder(Path(result.run))
    assert await run_case(folder) == result  # a finished case is not played again
    assert len(list(list_runs(folder.path))) == 1


async def test_bound_of_actions_is_kept_by_both_agents(play: Play) -> None:
    for agent in ("coag", "baseline"):
        result = await play("phantom-object", agent, "gullible", max_actions=3, episodes=1)
        assert result.measures["actions"] == 3


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
        ({"world": "http://a", "place": "local"}, ConfigurationError, "give one of them"),
        *(
            ({"agent": agent, "between": "kept"}, ConfigurationError, "without one")
            for agent in ("rules", "plain", "coag-without-retrieval")
        ),
    ],
)
def test_what_does_not_exist_or_contradicts_itself_is_refused_with_what_does(
    changes: dict[str, Any], error: type[Exception], listed: str
) -> None:
    with pytest.raises(error, match=listed):
        checked(_request(**changes))


async def test_recipe_says_what_is_missing_without_a_world() -> None:
    with pytest.raises(ConfigurationError, match="--resume some/case"):
        await build_agent(case="some/case", episode=1, request=_request().model_dump())


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
    notes = [each for each in _records(result.run) if isinstance(each, Note)]
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
        heard = [each for each in _records(result.run) if isinstance(each, Percept)]
        said = [each for each in heard if each.content.startswith("Message from")]
        assert [each.trust.value for each in said] == ["untrusted"], agent


async def test_case_ends_when_its_tokens_are_used_up(play: Play) -> None:
    long = await play("evolution", "plain", "sound", seed=1, place="local")
    short = await play("evolution", "plain", "sound", seed=1, place="local", token_budget=900)
    spent = short.measures["prompt_tokens"] + short.measures["completion_tokens"]
    assert 0 < short.measures["actions"] < long.measures["actions"]
    assert spent < long.measures["prompt_tokens"]


async def test_interrupted_local_case_is_to_be_played_again(tmp_path: Path) -> None:
    request = CaseRequest(
        scenario="phantom-object", agent="coag-compact", model="scripted:sound", place="local"
    )
    folder = CaseFolder.create(tmp_path, request)
    await play_case(request, folder)
    (folder.path / "episode-2.json").unlink()
    with pytest.raises(ConfigurationError, match="play it again"):
        await play_case(request, folder)


class PulledPlugError(ConfigurationError):
    """The process is gone."""


def _sequence(between: Between, *, place: Place = "local", episodes: int = 2) -> CaseRequest:
    return checked(
        CaseRequest(
            scenario="sudden-wall",
            agent="coag-compact",
            model="scripted:sound",
            seed=1,
            place=place,
            between=between,
            episodes=episodes,
        )
    )


def _bumps(folder: CaseFolder) -> list[int]:
    return [each.truth.bumps for each in folder.episodes()]


def _until(episode: int, actions: int) -> Callable[[Progress], None]:
    def watch(progress: Progress) -> None:
        if (progress.episode, progress.actions) == (episode, actions):
            raise PulledPlugError("The plug was pulled.")

    return watch


async def test_a_memory_that_is_kept_spares_later_episodes_the_bump_and_an_emptied_one_does_not(
    tmp_path: Path,
) -> None:
    kept = CaseFolder.create(tmp_path / "kept", _sequence("kept"))
    emptied = CaseFolder.create(tmp_path / "emptied", _sequence("emptied"))
    assert (await run_case(kept)).success
    assert (await run_case(emptied)).success
    assert _bumps(kept) == [1, 0]
    assert _bumps(emptied) == [1, 1]
    assert kept.episodes()[0].figures.prompt_tokens == emptied.episodes()[0].figures.prompt_tokens


@pytest.mark.parametrize("place", ["local", pytest.param("served", marks=pytest.mark.long)])
async def test_an_interrupted_sequence_continues_at_its_episode_with_its_memory(
    tmp_path: Path, place: Place
) -> None:
    folder = CaseFolder.create(tmp_path, _sequence("kept", place=place))
    with pytest.raises(PulledPlugError):
        await run_case(folder, on_progress=_until(2, 2))
    assert folder.episode(1) is not None
    assert folder.episode(2) is None
    before = folder.path.joinpath("episode-1.json").read_bytes()
    assert (await run_case(folder)).success
    assert folder.path.joinpath("episode-1.json").read_bytes() == before
    assert _bumps(folder) == [1, 0]


async def test_an_episode_whose_memory_of_the_one_before_is_missing_is_notrun_case(
    tmp_path: Path,
) -> None:
    folder = CaseFolder.create(tmp_path, _sequence("kept"))
    with pytest.raises(PulledPlugError):
        await run_case(folder, on_progress=_until(2, 1))
    shutil.rmtree(memory_of(folder.path, 1))
    with pytest.raises(ResumeError, match="memory of episode 1 is missing"):
        await run_case(folder)
    memory_of(folder.path, 1).mkdir()
    with pytest.raises(ResumeError, match="memory of episode 1 is missing"):
        await run_case(folder)
    assert folder.episode(2) is None


def test_chance_differs_from_episode_to_episode_and_is_alike_in_both_arms() -> None:
    kept, emptied = _sequence("kept"), _sequence("emptied")
    draws = [kept.chance(number) for number in range(1, 6)]
    assert draws == [emptied.chance(number) for number in range(1, 6)]
    assert len(set(draws)) == 5
    assert kept.model_copy(update={"between": None}).chance(3) == 1


RULE = "keep_charge_to_reach_charger"


def only_run(result: CaseResult) -> RunFolder:
    (run,) = list_runs(Path(result.run))
    return run


def actions(report: ForkReport) -> list[str]:
    return [" ".join(map(str, story.chosen or ())) for story in report.fork_cycles]


def rejected_by(story: CycleResult) -> list[str]:
    return [death.constraint for death in story.deaths]


async def test_a_fork_without_its_rule_is_stranded_and_one_with_a_sound_model_needs_none(
    play: Play, tmp_path: Path
) -> None:
    result = await play("energy-dilemma", "coag", "impulsive", seed=0, depth="compact")
    assert result.success
    run = only_run(result)
    same = await fork(run, "1", logs=tmp_path / "forks")
    other = await fork(run, "1", Changes(without_constraints=(RULE,)), logs=tmp_path / "forks")
    assert same.fork_cycles == same.parent_cycles
    assert same.fork_end is not None
    assert "stranded" not in same.fork_end
    assert other.fork_end is not None
    assert "stranded" in other.fork_end
    assert RULE in rejected_by(other.parent_cycles[0])
    assert RULE not in rejected_by(other.fork_cycles[0])
    assert actions(other)[0] == "clean_current_cell {}"
    sound = await fork(run, "1", Changes(model="scripted:sound"), logs=tmp_path / "forks")
    assert RULE in rejected_by(sound.parent_cycles[0])
    assert RULE not in rejected_by(sound.fork_cycles[0])
    assert actions(sound)[0] == 'move_agent {"direction": "north"}'
    with pytest.raises(UnknownNameError, match="impulsive"):
        await fork(run, "1", Changes(model="scripted:none"), logs=tmp_path / "forks")


async def test_forks_beside_their_parent_are_no_runs_of_the_case(play: Play) -> None:
    result = await play("energy-dilemma", "coag", "impulsive", seed=1, depth="compact")
    run = only_run(result)
    await fork(run, "2.evaluation")
    folder = CaseFolder(Path(result.run))
    assert len(list(list_runs(folder.path))) == 2
    assert folder.run_of(1) == run


async def test_snapshots_hold_the_world_without_its_log(play: Play) -> None:
    result = await play("energy-dilemma", "coag", "sound", seed=1, depth="compact")
    worlds = [one.environment for one in _records(result.run) if isinstance(one, Snapshot)]
    recorded = [world for world in worlds if world is not None]
    assert len(recorded) > 3
    assert all("log" not in world for world in recorded)
    assert [world["counters"]["actions"] for world in recorded] == list(range(len(recorded)))


async def test_the_wall_that_was_remembered_is_what_the_way_around_it_hung_on(play: Play) -> None:
    result = await play("sudden-wall", "coag", "sound", seed=0, depth="compact")
    second = CaseFolder(Path(result.run)).run_of(2)
    assert second is not None
    control, without = await counterfactuals(second, 1)
    assert (control.changed, without.changed) == (0, 1)
    assert without.record is not None
    assert "is blocked" in without.record.record.text


@pytest.mark.long
async def test_a_rule_that_came_later_comes_in_a_fork_too(play: Play, tmp_path: Path) -> None:
    result = await play("evolution", "coag", "sound", seed=0, depth="compact")
    run = only_run(result)
    early = await fork(run, "1", logs=tmp_path / "forks")
    assert early.fork_cycles == early.parent_cycles
    last = early.parent_cycles[-1].cycle
    late = await fork(run, f"{last}.evaluation", logs=tmp_path / "forks")
    assert late.fork_cycles == late.parent_cycles


_SECTION = re.compile(r'^## Where you stand\n<data source="awareness".*?</data>', re.M | re.S)


def _records(case: str | Path) -> list[TraceRecord]:
    (run,) = list_runs(Path(case))
    return records_of(run)


def _awareness_sections(case: str | Path) -> list[str]:
    """What the awareness section of each request says; empty where there is none."""
    asked = [each for each in _records(case) if isinstance(each, ModelCall)]
    texts = ["\n".join(str(one["content"]) for one in each.messages) for each in asked]
    return ["".join(_SECTION.findall(text)) for text in texts]


@pytest.mark.parametrize("depth", ["compact", "full"])
async def test_only_the_aware_contender_gets_the_awareness_section(play: Play, depth: str) -> None:
    plain, aware = [
        await play("distraction", name, "sound", seed=1, place="local", max_actions=4)
        for name in (f"coag-{depth}", f"coag-{depth}-aware")
    ]
    assert not any(_awareness_sections(plain.run))
    sections = [text for text in _awareness_sections(aware.run) if text]
    assert sections
    assert all("RESOURCES: energy" in text for text in sections[1:])
    grown = int(aware.measures["prompt_tokens"]) - int(plain.measures["prompt_tokens"])
    assert grown >= 0.9 * sum(estimate_tokens(text) for text in sections)


@pytest.mark.parametrize("agent", ["coag-compact-aware", "coag-full-aware"])
async def test_runs_of_aware_contenders_hold_and_are_replayed(play: Play, agent: str) -> None:
    result = await play("contradiction", agent, "fallible", seed=1, place="local")
    (run,) = list_runs(Path(result.run))
    assert verify(run) == []
    report = await replay(run)
    assert report.divergence is None


async def test_every_snapshot_holds_where_the_robot_stands(play: Play) -> None:
    result = await play("open-world-easy", "coag-compact-aware", "sound", max_actions=6)
    snapshots = [each for each in _records(result.run) if isinstance(each, Snapshot)]
    states = [load_state(each.modules["awareness"]["state"]) for each in snapshots]
    assert {state.domain for state in states} == {"vacuum"}
    assert states[-1].world.get("the robot") is not None


async def test_interrupted_aware_contender_continues_where_it_stopped(tmp_path: Path) -> None:
    request = checked(
        CaseRequest(
            scenario="distraction", agent="coag-compact-aware", model="scripted:sound", seed=1
        )
    )
    whole = CaseFolder.create(tmp_path / "whole", request)
    result = await run_case(whole)
    broken = CaseFolder.create(tmp_path / "broken", request)

    with pytest.raises(PulledPlugError):
        await run_case(broken, _until(1, 4))
    again = await run_case(broken)
    assert again.measures["actions"] == result.measures["actions"]
    assert _awareness_sections(broken.path) == _awareness_sections(whole.path)


def test_a_client_of_openais_api_is_given_the_seed_and_is_otherwise_the_same() -> None:
    client = model_spec("http://127.0.0.1:9/v1#tiny").open()
    seeded = sampled_by(client, 7)
    before, after = client.dump_component(), seeded.dump_component()
    assert after.config["seed"] == 7
    same = {name: value for name, value in after.config.items() if name != "seed"}
    assert same == before.config
    assert after.provider == before.provider
    assert seeded.model_info == client.model_info
