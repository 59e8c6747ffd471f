"""A stock agent whose recipe makes it again, in each of the forms that a replay may be given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from coag.compat import RecordedAgent, Recorder, RecordingClient, RecordingWorkbench, Tool
from coag.models import ScriptedModel, scripted_answers
from coag.tracing import Recipe, RunFolder


def in_stock(item: str) -> str:
    """How many there are."""
    return f"3 {item}s"


def clerk(
    client: ChatCompletionClient,
    tools: Workbench | Sequence[Tool],
    recorder: Recorder,
    *,
    form: str = "recorded",
) -> object:
    """The agent: `recorded`, `bare` (stock, over recording parts), `unwritten`, or `nothing`."""
    if form == "nothing":
        return "clerk"
    if form == "unwritten":
        assert isinstance(tools, Workbench)
        return AssistantAgent("clerk", client, workbench=tools)
    agent = AssistantAgent(
        "clerk",
        RecordingClient(client, recorder),
        workbench=RecordingWorkbench(tools, recorder),
        reflect_on_tool_use=True,
    )
    return agent if form == "bare" else RecordedAgent(agent, recorder)


def clerk_again(*, form: str) -> Callable[..., object]:
    """What the recipe names."""
    return partial(clerk, form=form)


def recorder_in(logs: Path, form: str = "recorded") -> Recorder:
    recipe = Recipe(factory="kits.clerks:clerk_again", arguments={"form": form})
    return Recorder(logs, agent="clerk", recipe=recipe)


async def clerks_run(logs: Path, form: str) -> RunFolder:
    """A finished run of two turns, from two people, and a reset."""
    recorder = recorder_in(logs, form)
    call = FunctionCall(id="1", name="in_stock", arguments='{"item": "cup"}')
    model = ScriptedModel(scripted_answers([[call], "3 cups.", "Again: 3."]))
    agent = clerk(model, [in_stock], recorder)
    assert isinstance(agent, RecordedAgent)
    for said in (("How many cups?",), ("Are you sure?", "Say it!")):
        messages = [TextMessage(content=text, source="user") for text in said]
        messages += [TextMessage(content="I ask, too.", source="chief")]
        await agent.on_messages(messages, CancellationToken())
    await agent.on_reset(CancellationToken())
    await agent.close()
    return recorder.folder
