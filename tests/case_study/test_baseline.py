"""The plain agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage
from autogen_core.tools import BaseTool, FunctionTool
from hypothesis import given
from hypothesis import strategies as st

from case_study.baseline import PlainAgent
from case_study.baseline.agent import spelled_call
from coag.compat import Recorder, ReplayingClient, ReplayingWorkbench
from coag.errors import ModelCallError, TraceError
from coag.models import ScriptedModel, ScriptedRequest, scripted_answers
from coag.schema import Intent, ModelCall, Note, Receipt, ReceiptStatus, TraceRecord, TurnEnd
from coag.tracing import read_run, read_trace


def push(button: str) -> str:
    """Pushes a button."""
    if button == "red":
        raise ValueError("not that one")
    return json.dumps({"ok": button == "green", "failure": None})


TOOLS: list[BaseTool[Any, Any]] = [FunctionTool(push, description="Pushes a button.")]


def _call(name: str, number: int = 1, **arguments: str) -> FunctionCall:
    return FunctionCall(id=f"call-{number}", name=name, arguments=json.dumps(arguments))


def _agent(tmp_path: Path, model: ScriptedModel) -> PlainAgent:
    recorder = Recorder(
        tmp_path, agent="robot", model="scripted:test", seed=0, configuration={"episode": 1}
    )
    return PlainAgent("robot", model, tools=TOOLS, system_message="Push!", recorder=recorder)


def _records(agent: PlainAgent) -> list[TraceRecord]:
    agent.recorder.close()
    return [entry.body for entry in read_trace(agent.recorder.folder.trace_path)]


def _only(records: Sequence[TraceRecord], kind: type[Any]) -> list[Any]:
    return [record for record in records if isinstance(record, kind)]


async def test_action_is_recorded_between_its_intent_and_its_receipt(tmp_path: Path) -> None:
    agent = _agent(tmp_path, ScriptedModel(scripted_answers([[_call("push", button="green")]])))
    results = await agent.say("Go.")
    records = _records(agent)
    assert json.loads(results[0])["ok"]
    kinds = [record.record for record in records]
    assert kinds == ["turn_start", "actions", "model_call", "intent", "receipt", "turn_end"]
    (receipt,) = _only(records, Receipt)
    assert (receipt.intent_id, receipt.status) == ("intent-000001", ReceiptStatus.DONE)
    assert read_run(agent.recorder.folder.path).kind == "plain"


@pytest.mark.parametrize(
    ("call", "action", "arguments"),
    [
        (_call("fly"), "fly", {}),
        (_call("push", button="red"), "push", {"button": "red"}),
        (_call("push", button="blue"), "push", {"button": "blue"}),
        (
            FunctionCall(id="call-1", name="push", arguments="{button"),
            "push",
            {"unparsed": "{button"},
        ),
    ],
)
async def test_a_call_of_no_tool_or_that_fails_is_a_failed_attempt_in_the_trace(
    tmp_path: Path, call: FunctionCall, action: str, arguments: dict[str, str]
) -> None:
    agent = _agent(tmp_path, ScriptedModel(scripted_answers([[call]])))
    results = await agent.say("Go.")
    records = _records(agent)
    (intent,), (receipt,) = _only(records, Intent), _only(records, Receipt)
    assert (intent.action, intent.arguments) == (action, arguments)
    assert receipt.status is ReceiptStatus.FAILED
    assert receipt.content == results[0]


async def test_of_several_calls_in_one_answer_the_first_is_run(tmp_path: Path) -> None:
    calls = [_call("push", 1, button="green"), _call("push", 2, button="red")]
    agent = _agent(tmp_path, ScriptedModel(scripted_answers([calls])))
    assert len(await agent.say("Go.")) == 1
    records = _records(agent)
    (model_call,), (note,) = _only(records, ModelCall), _only(records, Note)
    assert len(model_call.tool_calls) == 2
    assert "Of 2 tool calls" in note.text


async def test_thought_beside_a_tool_call_is_the_recorded_text(tmp_path: Path) -> None:
    answer = CreateResult(
        finish_reason="function_calls",
        content=[_call("push", button="green")],
        usage=RequestUsage(prompt_tokens=7, completion_tokens=3),
        cached=False,
        thought="EU(push) = 5.",
    )
    agent = _agent(tmp_path, ScriptedModel(scripted_answers([answer])))
    await agent.say("Go.")
    (call,) = _only(_records(agent), ModelCall)
    assert call.raw == "EU(push) = 5."
    assert (call.usage.prompt_tokens, call.usage.completion_tokens) == (7, 3)


async def test_run_is_replayed_without_model_and_tools(tmp_path: Path) -> None:
    async def play(agent: PlainAgent) -> list[list[str]]:
        results = [await agent.say("Go."), await agent.say("Again.")]
        await agent.close()
        agent.recorder.close()
        return results

    calls = [[_call("push", button="green")], [_call("fly")]]
    first = _agent(tmp_path / "first", ScriptedModel(scripted_answers(calls)))
    wanted = await play(first)
    run = first.recorder.folder
    replayed = PlainAgent(
        "robot",
        client := ReplayingClient(run),
        tools=(workbench := ReplayingWorkbench(run)),
        system_message="Push!",
        recorder=Recorder(tmp_path / "second", agent="robot", model="scripted:test"),
    )
    assert await play(replayed) == wanted
    workbench.check()
    assert (client.unused, workbench.unused) == ((), ())


async def test_changed_prompt_keeps_the_dialogue(tmp_path: Path) -> None:
    model = ScriptedModel(scripted_answers(["Hello.", "Well."]))
    agent = _agent(tmp_path, model)
    await agent.say("First.")
    await agent.change_prompt("Never push red.")
    await agent.say("Second.")
    assert model.requests[1].system_text == "Push!\nNever push red."
    assert "First." in model.requests[1].text
    assert "Hello." in model.requests[1].text
    ends = [end.reason for end in _only(_records(agent), TurnEnd)]
    assert ends == ["respond", "respond"]


async def test_model_that_cannot_be_asked_is_recorded_and_raised(tmp_path: Path) -> None:
    def refuse(request: ScriptedRequest) -> str:
        raise ConnectionError("no route")

    agent = _agent(tmp_path, ScriptedModel(refuse))
    with pytest.raises(ModelCallError, match="no route"):
        await agent.say("Go.")
    (call,) = _only(_records(agent), ModelCall)
    assert call.error == "ConnectionError: no route"


@pytest.mark.broken_trace("its trace ends in the middle of a turn")
async def test_nothing_runs_where_its_intent_cannot_be_written(tmp_path: Path) -> None:
    pushed: list[str] = []

    def press(button: str) -> str:
        pushed.append(button)
        return "pressed"

    def answer(request: ScriptedRequest) -> list[FunctionCall]:
        break_trace()
        return [_call("press", button="green")]

    recorder = Recorder(tmp_path, agent="robot", model="m", seed=0, configuration={})
    break_trace: Callable[[], None] = recorder.close
    agent = PlainAgent(
        "robot",
        ScriptedModel(answer),
        tools=[FunctionTool(press, description="Presses a button.")],
        system_message="",
        recorder=recorder,
    )
    with pytest.raises((TraceError, ModelCallError)):
        await agent.say("Go.")
    assert pushed == []


async def test_a_call_in_words_is_run_and_the_trace_says_so_in_a_replay_too(
    tmp_path: Path,
) -> None:
    said = 'Green is best.\nAction: push(button="green")'
    first = _agent(tmp_path / "first", ScriptedModel(scripted_answers([said, "Done."])))
    results = await first.say("Go.")
    assert json.loads(results[0])["ok"]
    wanted, run = _records(first), first.recorder.folder
    (intent,) = _only(wanted, Intent)
    assert (intent.action, intent.arguments) == ("push", {"button": "green"})
    replayed = PlainAgent(
        "robot",
        ReplayingClient(run),
        tools=ReplayingWorkbench(run),
        system_message="Push!",
        recorder=Recorder(tmp_path / "second", agent="robot", model="scripted:test"),
    )
    await replayed.say("Go.")
    records = _records(replayed)
    assert [record.record for record in records] == [record.record for record in wanted]
    for (note,) in (_only(wanted, Note), _only(records, Note)):
        assert note.about == "spelled"
        assert "push" in note.text


NAMES = ("push", "wait")


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ('I push.\n```json\n{"name": "push", "arguments": {"button": "red"}}\n```', "push", "red"),
        ('{"function": {"name": "push", "parameters": {"button": "blue"}}}', "push", "blue"),
        ('Utilities: 5 and 3.\nAction: push(button="green")\nAction: wait()', "push", "green"),
        ("**Action:** push(button='green')", "push", "green"),
    ],
)
def test_the_first_call_is_read(text: str, name: str, arguments: str) -> None:
    spelled = spelled_call(text, NAMES)
    assert spelled is not None
    assert (spelled[0], json.loads(spelled[1])) == (name, {"button": arguments})
    assert arguments not in spelled[2]


def test_a_call_without_arguments_is_read() -> None:
    assert spelled_call("Action: wait()", NAMES) == ("wait", "{}", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I have pushed the button.",
        "I could push(button='red') or wait().",
        "Action: fly(to='the moon')",
        "Action: push('red')",
        "Action: push(button=open('file'))",
        '{"name": "fly", "arguments": {}}',
        '{"name": "push", "arguments": ["red"]}',
        '{"button": "red"}',
    ],
)
def test_what_is_no_call_of_a_tool_is_left_a_text(text: str) -> None:
    assert spelled_call(text, NAMES) is None


@given(st.text())
def test_any_text_is_read_to_its_end(text: str) -> None:
    spelled = spelled_call(text, NAMES)
    assert spelled is None or spelled[0] in NAMES
