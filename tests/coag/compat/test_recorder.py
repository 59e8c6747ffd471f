"""Runs of stock agents, written down."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import BaseChatMessage, ModelClientStreamingChunkEvent, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from kits.stock import only, push, pushes

from coag.compat import (
    RecordedAgent,
    Recorder,
    RecordingClient,
    RecordingWorkbench,
    record,
)
from coag.errors import ConfigurationError, TraceError
from coag.models import ScriptedModel, ScriptedReply, scripted_answers
from coag.schema import (
    Intent,
    ModelCall,
    Note,
    OutputMode,
    Percept,
    Receipt,
    ReceiptStatus,
    Trust,
    TurnEnd,
)
from coag.tracing import read_run


def model(*answers: ScriptedReply | Exception) -> ScriptedModel:
    return ScriptedModel(scripted_answers(answers), name="tiny")


def recorded(
    client: ChatCompletionClient, logs: Path | None = None, **options: Any
) -> RecordedAgent:
    return record(AssistantAgent, "clerk", client, logs=logs, tools=[push], **options)


class Parrot(BaseChatAgent):
    """An agent without a model."""

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(
        self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken
    ) -> Response:
        answer = messages[-1].to_model_text()
        return Response(chat_message=TextMessage(content=answer, source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        pass


# ---- what is written ----


async def test_turn_is_a_percept_model_calls_and_intents_with_their_receipts(
    tmp_path: Path,
) -> None:
    agent = recorded(model([pushes()], "Pushed."), tmp_path, reflect_on_tool_use=True)
    result = await agent.run(task="Push the green one.")
    assert result.messages[-1].to_text() == "Pushed."
    records = agent.recorder.records
    assert [each.record for each in records] == [
        "turn_start",
        "percept",
        "model_call",
        "intent",
        "receipt",
        "model_call",
        "turn_end",
    ]
    (percept,) = only(records, Percept)
    assert (percept.content, percept.trust) == ("Push the green one.", Trust.USER)
    first, second = only(records, ModelCall)
    assert (first.rung, first.tools, first.tool_calls[0]["name"]) == (
        OutputMode.NATIVE,
        ("push",),
        "push",
    )
    assert (second.rung, second.raw, second.cycle) == (OutputMode.TEXT, "Pushed.", 1)
    (intent,), (receipt,) = only(records, Intent), only(records, Receipt)
    assert (intent.action, intent.arguments) == ("push", {"button": "green"})
    assert (receipt.intent_id, receipt.status) == (intent.id, ReceiptStatus.DONE)
    await agent.close()
    await agent.close()
    run = read_run(agent.recorder.folder.path)
    assert (run.kind, run.agent, run.model) == ("plain", "clerk", "tiny")
    assert run.ended_at is not None
    assert agent.recorder.records == records


async def test_run_in_ram_leaves_nothing_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = recorded(model([pushes("red")]))
    await agent.run(task="go")
    await agent.close()
    (receipt,) = only(agent.recorder, Receipt)
    assert receipt.status is ReceiptStatus.FAILED
    assert os.listdir(tmp_path) == []
    with pytest.raises(ConfigurationError, match="logs=DIR"):
        _ = agent.recorder.folder


async def test_each_call_gets_a_receipt_also_of_no_tool_and_with_the_same_id() -> None:
    unread = FunctionCall(id="2", name="fly", arguments="{soon")
    agent = recorded(model([pushes(), unread, pushes("red")]))
    await agent.run(task="go")
    statuses = [each.status for each in only(agent.recorder, Receipt)]
    assert statuses == [ReceiptStatus.DONE, ReceiptStatus.FAILED, ReceiptStatus.FAILED]
    intent = next(each for each in only(agent.recorder, Intent) if each.action == "fly")
    assert (intent.action, intent.arguments) == ("fly", {"unparsed": "{soon"})


async def test_streamed_turn_is_written_down_without_its_pieces() -> None:
    agent = recorded(model("It is done."), model_client_stream=True)
    items = [item async for item in agent.run_stream(task="go")]
    assert len([each for each in items if isinstance(each, ModelClientStreamingChunkEvent)]) == 3
    (call,) = only(agent.recorder, ModelCall)
    assert call.raw == "It is done."
    assert only(agent.recorder, Note) == []


async def test_words_of_other_agents_are_no_words_of_the_user() -> None:
    first, second = (
        RecordedAgent(Parrot(name, "Repeats."), Recorder(agent=name)) for name in ("ann", "bob")
    )
    team = RoundRobinGroupChat([first, second], termination_condition=MaxMessageTermination(3))
    await team.run(task="Hello.")
    messages = [(each.source, each.trust) for each in only(second.recorder, Percept)]
    assert messages == [("user", Trust.USER), ("ann", Trust.UNTRUSTED)]


async def test_state_and_component_are_those_of_the_agent_within() -> None:
    agent = recorded(model("Hello.", "Again."))
    await agent.run(task="go")
    state = await agent.save_state()
    other = recorded(model("Hello."))
    await other.load_state(state)
    assert await other.save_state() == state
    assert other.produced_message_types == other.agent.produced_message_types


async def test_client_within_is_what_is_asked_counted_dumped_and_closed() -> None:
    inner = OpenAIChatCompletionClient(
        model="tiny",
        base_url="http://127.0.0.1:9/v1",
        api_key="none",
        model_info=model().model_info,
    )
    agent = record(AssistantAgent, "clerk", inner)
    client = RecordingClient(inner, agent.recorder)
    assert client.wrapped is inner
    assert client.total_usage() == client.actual_usage() == inner.total_usage()
    assert agent.dump_component() == agent.agent.dump_component()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - an AssistantAgent
    dumped = agent.dump_component().model_dump_json()
    assert "RecordingClient" not in dumped
    assert '"model":"tiny"' in dumped
    await client.close()


async def test_thoughts_and_memories_are_notes() -> None:
    thinking = CreateResult(
        finish_reason="stop",
        content="Pushed.",
        usage=RequestUsage(prompt_tokens=1, completion_tokens=1),
        cached=False,
        thought="Green it is.",
    )
    agent = recorded(model(thinking))
    await agent.on_pause(CancellationToken())
    await agent.run(task="go")
    await agent.on_resume(CancellationToken())
    (note,) = only(agent.recorder, Note)
    assert (note.about, note.text) == ("ThoughtEvent", "clerk: Green it is.")


# ---- what goes wrong ----


class Endless(ScriptedModel):
    """Its streams break off."""

    async def create_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[str, None]:
        yield "It is"
        if self.name == "broken":
            raise ConnectionError("no route")


@pytest.mark.parametrize(
    ("name", "error"), [("broken", "no route"), ("endless", "without a result")]
)
async def test_stream_that_is_cut_off_is_recorded(name: str, error: str) -> None:
    client = Endless(scripted_answers([]), name=name)
    agent = recorded(client, model_client_stream=True)
    with pytest.raises((ConnectionError, RuntimeError)):
        await agent.run(task="go")
    (call,) = only(agent.recorder, ModelCall)
    assert error in call.error


async def test_cancelled_turn_leaves_no_intent_without_a_receipt() -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    call = FunctionCall(id="1", name="wait", arguments="{}")
    agent = record(AssistantAgent, "clerk", model([call]), tools=[wait])
    running = asyncio.create_task(agent.run(task="go"))
    async with asyncio.timeout(5):
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    (receipt,), (end,) = (
        only(agent.recorder, Receipt),
        only(agent.recorder, TurnEnd),
    )
    assert receipt.status is ReceiptStatus.CANCELLED
    assert "may or may not" in receipt.content
    assert end.reason == "cancelled"


async def test_stream_that_is_left_ends_its_turn() -> None:
    agent = recorded(model([pushes()]))
    message = TextMessage(content="go", source="user")
    stream = agent.on_messages_stream([message], CancellationToken())
    await anext(stream)
    await stream.aclose()
    (receipt,) = only(agent.recorder, Receipt)
    assert receipt.status is ReceiptStatus.CANCELLED
    assert agent.recorder.records[-1].record == "turn_end"


async def test_nothing_runs_whose_intent_cannot_be_written(tmp_path: Path) -> None:
    pressed: list[str] = []

    def press(button: str) -> str:
        """Presses a button."""
        pressed.append(button)
        return "pressed"

    def answer(_request: Any) -> list[FunctionCall]:
        agent.recorder.folder.trace_path.unlink()
        return [FunctionCall(id="1", name="press", arguments='{"button": "a"}')]

    agent = record(AssistantAgent, "clerk", ScriptedModel(answer), logs=tmp_path, tools=[press])
    with pytest.raises(TraceError):
        await agent.run(task="go")
    with pytest.raises(TraceError):
        await agent.run(task="again")
    assert pressed == []
    await agent.close()


def test_unwritable_folder_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the folder should be")
    made: list[str] = []

    def make(name: str, model_client: ChatCompletionClient) -> AssistantAgent:
        made.append(name)
        return AssistantAgent(name, model_client)

    with pytest.raises(TraceError):
        record(make, "clerk", model(), logs=tmp_path / "logs")
    assert made == []


def test_run_of_an_agent_that_cannot_be_made_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="identifier"):
        record(AssistantAgent, "no name", model(), logs=tmp_path)
    (folder,) = tmp_path.iterdir()
    assert read_run(folder).ended_at is not None


def test_what_does_not_go_together_or_is_no_list_of_tools_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="either logs= or recorder="):
        record(AssistantAgent, "c", model(), logs="x", recorder=Recorder(agent="clerk"))

    def tool() -> str:
        """A tool."""
        return ""

    with pytest.raises(ConfigurationError, match=r"write RecordingWorkbench\(\[tool\], recorder\)"):
        RecordingWorkbench(cast("Any", tool), Recorder(agent="clerk"))
