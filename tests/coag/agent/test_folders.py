"""What an agent with `logs=` leaves, and what it does where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond

from coag import CoagAgent
from coag.errors import TraceError
from coag.tracing import Recipe, read_run, read_trace

FULL = Path("/dev/full")


def run_in(logs: Path) -> Path:
    (folder,) = logs.iterdir()
    return folder


async def say(agent: CoagAgent) -> str:
    said = await agent.on_messages(
        [TextMessage(content="Wave.", source="user")], CancellationToken()
    )
    return said.chat_message.to_text()


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


async def test_where_no_log_can_be_kept_it_stops_before_it_acts(tmp_path: Path) -> None:
    acted: list[str] = []

    async def wave() -> str:
        """Waves."""
        acted.append("wave")
        return "waved"

    blocked = tmp_path / "logs"
    blocked.write_text("I am a file.")
    model = brain(("wave", "{}"))
    agent = CoagAgent("waver", model, tools=[wave], logs=blocked, proposal="json")
    with pytest.raises(TraceError, match="cannot be made"):
        await say(agent)
    assert acted == []
    assert model.calls == 0
    assert agent.turn == 0


@pytest.mark.skipif(not FULL.exists(), reason="There is no full device here.")
async def test_on_a_disk_that_is_full_it_stops_before_it_acts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acted: list[str] = []

    async def wave() -> str:
        """Waves."""
        acted.append("wave")
        return "waved"

    model = brain(("wave", "{}"))
    agent = CoagAgent("waver", model, tools=[wave], logs=tmp_path, proposal="json")
    monkeypatch.setattr("coag.tracing.folder.RunFolder.trace_path", FULL)
    with pytest.raises(TraceError, match="No space left"):
        await say(agent)
    assert acted == []
    assert model.calls == 0
    await agent.close()
