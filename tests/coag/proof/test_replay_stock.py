"""Stock agents are replayed by a recipe that makes them again, or it says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.models import UserMessage
from kits.clerks import clerk, clerks_run, in_stock, recorder_in

from coag.compat import RecordedAgent, RecordingClient, RecordingWorkbench
from coag.errors import ResumeError
from coag.models import ScriptedModel, scripted_answers
from coag.proof import replay
from coag.tracing import read_trace


@pytest.mark.parametrize("form", ["recorded", "bare"])
async def test_a_stock_agent_is_told_what_it_was_told(form: str, tmp_path: Path) -> None:
    run = await clerks_run(tmp_path, form)
    report = await replay(run)
    assert report.divergence is None, str(report.divergence)
    assert report.records == sum(1 for _ in read_trace(run.trace_path))


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("nothing", "must make a chat agent of AutoGen, or something with the methods say"),
        ("unwritten", r"must make it over RecordingClient\(client, recorder\)"),
    ],
)
async def test_what_a_recipe_must_make_is_said(form: str, told: str, tmp_path: Path) -> None:
    run = await clerks_run(tmp_path, form)
    with pytest.raises(ResumeError, match=told):
        await replay(run)


async def test_a_run_without_turns_cannot_be_driven(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    client = RecordingClient(ScriptedModel(scripted_answers(["Yes."])), recorder)
    await RecordingWorkbench([in_stock], recorder).list_tools()
    await client.create([UserMessage(content="Is it?", source="user")])
    recorder.close()
    with pytest.raises(ResumeError, match="written down without turns"):
        await replay(recorder.folder)


async def test_a_stock_agent_without_tools_is_replayed_too(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    agent = clerk(ScriptedModel(scripted_answers(["Good day.", "And to you."])), [], recorder)
    assert isinstance(agent, RecordedAgent)
    for text in ("Hello.", "Hello again."):
        said = [TextMessage(content=text, source="user")]
        await agent.on_messages(said, CancellationToken())
    await agent.close()
    report = await replay(recorder.folder)
    assert report.divergence is None, str(report.divergence)
    assert report.records == sum(1 for _ in read_trace(recorder.folder.trace_path))
