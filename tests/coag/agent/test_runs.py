"""What an agent with `logs=` leaves, and what it does where it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kits.brains import brain, respond
from kits.porters import ANSWER, TASK, porter
from kits.turns import say, traced

from coag import CoagAgent
from coag.agent import twin
from coag.errors import ConfigurationError, TraceError
from coag.models import ScriptedModel
from coag.schema import (
    Note,
    Snapshot,
    SnapshotReason,
    SteppingClock,
)
from coag.tracing import MemoryTrace, Recipe, read_run, read_trace

FULL = Path("/dev/full")


def run_in(logs: Path) -> Path:
    (folder,) = logs.iterdir()
    return folder


async def test_a_run_leaves_its_description_its_trace_and_its_pages(tmp_path: Path) -> None:
    recipe = Recipe(factory="kits.porters:porter", arguments={"log": "x"})
    agent = CoagAgent(
        "waver", brain(respond()), logs=tmp_path, recipe=recipe, seed=7, proposal="json"
    )
    await say(agent)
    assert agent.run_folder is not None
    await agent.close()
    folder = run_in(tmp_path)
    assert folder == agent.run_folder.path
    info = read_run(folder)
    assert (info.kind, info.agent, info.model, info.seed) == ("coag", "waver", "scripted", 7)
    assert info.recipe == recipe
    assert info.ended_at is not None
    assert info.configuration["settings"]["depth"] == "full"
    tags = {entry.body.record for entry in read_trace(folder / "trace.jsonl")}
    assert {"turn_start", "percept", "snapshot", "outcome", "model_call", "turn_end"} <= tags
    pages = sorted(page.name for page in (folder / "cycles" / "0001").iterdir())
    assert pages[0] == "1-retrieval.json"
    assert json.loads((folder / "cycles" / "0001" / pages[-1]).read_text())


@pytest.mark.parametrize(
    "full",
    [
        False,
        pytest.param(True, marks=pytest.mark.skipif(not FULL.exists(), reason="No /dev/full.")),
    ],
)
async def test_where_no_log_can_be_kept_it_stops_before_it_acts(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted: list[str] = []

    async def wave() -> str:
        """Waves."""
        acted.append("wave")
        return "waved"

    logs = tmp_path / "logs"
    if full:
        monkeypatch.setattr("coag.tracing.folder.RunFolder.trace_path", FULL)
    else:
        logs.write_text("I am a file.")
    model = brain(("wave", "{}"))
    agent = CoagAgent("waver", model, tools=[wave], logs=logs, proposal="json")
    with pytest.raises(TraceError, match="No space left" if full else "cannot be made"):
        await say(agent)
    assert (acted, model.calls) == ([], 0)
    await agent.close()


# ---- What a run's snapshots hold, and how an agent is built again from them ----


class Yard:
    """An environment that counts how often it was looked at, and changes every second time."""

    def __init__(self) -> None:
        self.looks = 0
        self.problem: Exception | None = None

    async def snapshot(self) -> Any:
        self.looks += 1
        if self.problem is not None:
            raise self.problem
        return {"stones": self.looks // 2}

    async def restore(self, state: Any) -> None:
        self.looks = state["stones"] * 2

    async def close(self) -> None:
        return None


async def test_a_run_begins_with_the_state_it_begins_with(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"))
    await say(agent, TASK)
    first = agent.trace[0]
    assert isinstance(first, Snapshot)
    assert first.reason is SnapshotReason.OPENED
    assert first.working_memory["cycle"] == 0
    assert "state" in first.procedures
    assert first.random is not None


async def test_the_trace_holds_the_environment_only_where_it_changed(tmp_path: Path) -> None:
    yard = Yard()
    agent = twin(porter(log=str(tmp_path / "calls.txt")), environment=yard)
    await say(agent, TASK)
    environments = [one.environment for one in traced(agent, Snapshot)]
    assert yard.looks == agent.context.working_memory.cycle == 4
    assert environments == [None, {"stones": 0}, {"stones": 1}, None, {"stones": 2}]


async def test_an_environment_that_fails_is_noted_and_the_turn_continues(
    tmp_path: Path,
) -> None:
    yard = Yard()
    yard.problem = OSError("the yard is shut")
    agent = twin(porter(log=str(tmp_path / "calls.txt")), environment=yard)
    assert await say(agent, TASK) == ANSWER
    notes = [r for r in traced(agent, Note) if r.about == "environment"]
    assert len(notes) == 4
    assert "OSError: the yard is shut" in notes[0].text


def test_what_can_do_nothing_is_no_environment(tmp_path: Path) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"))
    with pytest.raises(ConfigurationError, match=r"environment takes an object with snapshot"):
        twin(agent, environment=object())


async def test_a_twin_has_what_the_first_was_given_but_for_what_is_named(tmp_path: Path) -> None:
    clock = SteppingClock()
    first = porter(log=str(tmp_path / "calls.txt"))
    second = twin(first, clock=clock, seed=7)
    assert second.name == first.name
    assert second.arguments.seed == 7
    assert second.arguments.deliberation == first.arguments.deliberation
    assert second.mind.deps.clock is clock
    assert await say(second, TASK) == ANSWER


# ---- A further sink beside an agent's trace ----


def _agent(logs: Path | None = None) -> CoagAgent:
    answer = {"action": "respond", "arguments": {"text": "Hello."}, "score": 1.0}
    model = ScriptedModel(lambda _: {"situation": "A greeting.", "candidates": [answer]})
    return CoagAgent("greeter", model, depth="compact", proposal="json", logs=logs)


async def test_a_watcher_gets_every_record_until_it_leaves() -> None:
    agent, first, second = _agent(), MemoryTrace(), MemoryTrace()
    leave = agent.watch(first)
    agent.watch(second)
    leave()
    leave()
    await agent.run(task="Hello!")
    assert first.records == ()
    assert second.records == agent.trace
