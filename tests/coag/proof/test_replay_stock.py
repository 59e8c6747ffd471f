"""Runs of stock agents and of other plain agents are replayed, or it is said what is missing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import UserMessage
from kits.bookkeepers import RECIPE, Bookkeeper
from kits.clerks import clerk, clerks_run, in_stock, recorder_in
from kits.hands import Hand, hand_in, let_go, routine
from kits.runs import Bodies, broken_copy, check_same, edited, place, say, with_info
from typer.testing import CliRunner

from case_study.runner import CaseFolder, CaseRequest, run_case
from coag.cli import app
from coag.compat import RecordedAgent, Recorder, RecordingClient, RecordingWorkbench
from coag.errors import ConfigurationError, ResumeError, TraceError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest, scripted_answers
from coag.proof import replay
from coag.schema import ReceiptStatus
from coag.tracing import Recipe, RunFolder, list_runs

Script = Sequence[ScriptedReply | BaseException]


# ---- runs of the case study, of both agents ----


async def runs_of(logs: Path, **fields: Any) -> list[RunFolder]:
    request = CaseRequest.model_validate({"model": "scripted:sound", "max_actions": 6, **fields})
    folder = CaseFolder.create(logs, request)
    await run_case(folder)
    return list(list_runs(folder.path))


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        ({"agent": "coag"}, "put in force from outside"),
        ({"agent": "baseline"}, ""),
        (
            {"agent": "coag", "delivery": "procedure", "depth": "compact"},
            "proposal@2 was written from outside, by developer",
        ),
    ],
)
async def test_a_change_of_requirements_comes_again(
    fields: dict[str, Any], remark: str, tmp_path: Path
) -> None:
    (run,) = await runs_of(tmp_path, scenario="evolution", **fields)
    remarks = " ".join((await check_same(run)).remarks)
    assert remark in remarks
    assert bool(remark) is ("from outside" in remarks)


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["energy-dilemma", "sudden-wall", "phantom-object"])
async def test_the_other_scenarios_are_replayed(scenario: str, tmp_path: Path) -> None:
    for agent in ("coag", "baseline"):
        for run in await runs_of(tmp_path / agent, scenario=scenario, agent=agent):
            await check_same(run)


@pytest.mark.broken_trace("it changes what the baseline was answered, and run.json")
async def test_another_answer_is_found_in_the_next_prompt_and_without_a_recipe_none(
    tmp_path: Path,
) -> None:
    (run,) = await runs_of(tmp_path, scenario="energy-dilemma", agent="baseline", max_actions=2)
    places: list[int] = []

    def change(bodies: Bodies) -> None:
        places.append(place(bodies, record="receipt"))
        bodies[places[0]]["content"] = "The wall fell down."

    found = (await replay(edited(run, change))).divergence
    assert found is not None
    assert found.seq > places[0]
    with pytest.raises(ResumeError, match="no recipe"):
        await replay(with_info(run, recipe=None))


def test_the_command_reports_each_run_in_a_line(tmp_path: Path) -> None:
    for agent in ("coag", "baseline"):
        asyncio.run(runs_of(tmp_path, agent=agent, scenario="energy-dilemma", max_actions=2))
    runs = [str(run.path) for run in list_runs(tmp_path)]
    result = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert result.exit_code == 0
    assert result.output.count("no divergence") == len(runs) + 1
    lines = CliRunner().invoke(app, ["replay", "--json", *runs]).output.splitlines()
    assert all(json.loads(line)["same"] for line in lines)


# ---- stock agents ----


@pytest.mark.parametrize("form", ["recorded", "bare"])
async def test_a_stock_agent_is_sent_what_it_was_sent(form: str, tmp_path: Path) -> None:
    await check_same(await clerks_run(tmp_path, form))


async def test_what_a_recipe_must_make_and_record_is_said(tmp_path: Path) -> None:
    for form, words in (
        ("nothing", "must make a chat agent of AutoGen, or something with the methods say"),
        ("unwritten", r"must make it over RecordingClient\(client, recorder\)"),
    ):
        run = await clerks_run(tmp_path / form, form)
        with pytest.raises(ResumeError, match=words):
            await replay(run)
    hand = hand_in(tmp_path, "Yes.", recipe=Recipe(factory="kits.hands:nothing_again"))
    await hand.say("Are you there?")
    with pytest.raises(ResumeError, match=r"makes a str, not a function of a client, a workbench"):
        await replay(let_go(hand))
    recorder = recorder_in(tmp_path)
    client = RecordingClient(ScriptedModel(scripted_answers(["Yes."])), recorder)
    await RecordingWorkbench([in_stock], recorder).list_tools()
    await client.create([UserMessage(content="Is it?", source="user")])
    recorder.close()
    with pytest.raises(ResumeError, match="written down without turns"):
        await replay(recorder.folder)


async def test_a_stock_agent_without_tools_is_replayed_too(tmp_path: Path) -> None:
    recorder = recorder_in(tmp_path)
    agent: Any = clerk(ScriptedModel(scripted_answers(["Good day.", "And to you."])), [], recorder)
    assert isinstance(agent, RecordedAgent)
    await say(agent, "Hello.", "Hello again.")
    await agent.close()
    await check_same(recorder.folder)


# ---- turns that failed, were cancelled or broke off ----


def look_up(item: str) -> str:
    """Looks an item up."""
    if item == "lost":
        raise OSError("The book is gone.")
    return f"three of {item}"


class Waiting:
    """A tool that takes for ever, and a way to know that it has begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.task: asyncio.Task[object] | None = None

    async def ask_around(self, item: str) -> str:
        """Asks everybody."""
        self.begun.set()
        self.task = asyncio.current_task()
        await asyncio.Event().wait()
        return item


def call(name: str, item: str = "kettles", number: int = 1) -> FunctionCall:
    return FunctionCall(id=str(number), name=name, arguments=json.dumps({"item": item}))


def model_of(script: Script) -> ScriptedModel:
    left = iter(script)

    def think(request: ScriptedRequest) -> ScriptedReply:
        reply = next(left)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    return ScriptedModel(think)


async def books_run(where: Path, script: Script, *, cancel: bool = False) -> RunFolder:
    """A run of two turns; the first is cancelled while its tool runs, or goes to its end."""
    recorder, waiting = Recorder(where, agent="bookkeeper", recipe=RECIPE), Waiting()
    agent = Bookkeeper(model_of(script), [look_up, waiting.ask_around], recorder)
    for text in ("How many?", "And now?"):
        turn = asyncio.ensure_future(agent.say(text))
        if cancel and not waiting.begun.is_set():
            await waiting.begun.wait()
            turn.cancel()
        (came,) = await asyncio.gather(turn, return_exceptions=True)
        assert not isinstance(came, AssertionError)
        if waiting.task is not None:
            waiting.task.cancel()  # AssistantAgent leaves its tools running when it is cancelled
            await asyncio.wait([waiting.task])
    recorder.close()
    return recorder.folder


NO_LINE, STOPPED = ConnectionError("no line"), asyncio.CancelledError()
FAILED: dict[str, tuple[Script, bool]] = {
    "raises": ([NO_LINE, "Two."], False),
    "raises later": ([[call("look_up")], NO_LINE, "Two."], False),
    "cancelled": ([STOPPED, "Two."], False),
    "cancelled later": ([[call("look_up")], STOPPED, "Two."], False),
    "tool fails": ([[call("look_up", "lost")], "None.", "Two."], False),
    "one of two fails": ([[call("look_up"), call("look_up", "lost", 2)], "Some.", "Two."], False),
    "tool cancelled": ([[call("ask_around")], "Two.", "Three."], True),
    "one of two cancelled": (
        [[call("look_up"), call("ask_around", number=2)], "Two.", "Three."],
        True,
    ),
}


@pytest.mark.parametrize("name", FAILED)
async def test_a_turn_that_failed_is_replayed_and_so_is_the_next(name: str, tmp_path: Path) -> None:
    script, cancel = FAILED[name]
    run = await books_run(tmp_path, script, cancel=cancel)
    remarks = (await replay(run)).remarks
    late = sum("ended after its turn" in remark for remark in remarks)
    assert late == len(remarks)
    await check_same(run, taken=late)


@pytest.mark.broken_trace("it breaks runs off")
@pytest.mark.parametrize("torn", [False, True])
async def test_a_plain_run_is_replayed_wherever_it_broke_off(torn: bool, tmp_path: Path) -> None:
    run = await books_run(tmp_path / "whole", [[call("look_up")], "Three.", "Three still."])
    for records in range(4, len(run.trace_path.read_bytes().splitlines())):
        report = await replay(broken_copy(run, tmp_path / str(records), records, torn=torn))
        assert report.divergence is None, f"interrupted after {records}: {report.divergence}"
        bare = "A turn that broke off before its model was asked." in report.remarks
        assert report.records == records - bare


# ---- agents that do what agents seldom do ----


@routine
async def leaves_a_tool_alone(hand: Hand, text: str) -> str:
    """Begins what ends only after its turn."""
    answer = await hand.ask(text)
    if isinstance(answer.content, str):
        return answer.content
    attempt = hand.recorder.begin("wait", {})
    asyncio.get_running_loop().call_soon(
        hand.recorder.end, attempt, ReceiptStatus.DONE, "waited long"
    )
    return "It goes on."


async def test_a_tool_that_ends_after_its_turn_may_end_so_in_a_replay_too(tmp_path: Path) -> None:
    wait = [FunctionCall(id="1", name="wait", arguments="{}")]
    hand = hand_in(tmp_path, wait, "Good.", do=leaves_a_tool_alone)
    for text in ("Wait.", "Well?"):
        await hand.say(text)
        await asyncio.sleep(0)
    (remark,) = (await check_same(let_go(hand), taken=1)).remarks
    assert remark.startswith("A tool that had been left alone ended after its turn: ")


@routine
async def calls(hand: Hand, text: str) -> str:
    """Calls the tool that the model wants, and waits for it."""
    answer = await hand.ask(text)
    if isinstance(answer.content, str):
        return answer.content
    (wanted,) = answer.content
    result = await hand.tools.call_tool(wanted.name, json.loads(wanted.arguments))
    return result.to_text()


async def test_a_turn_that_was_cancelled_with_the_tool_it_waited_for_is_cancelled_there_again(
    tmp_path: Path,
) -> None:
    begun = asyncio.Event()

    async def dig() -> str:
        """Digs for ever."""
        begun.set()
        await asyncio.Event().wait()
        return "deep"

    wanted = [FunctionCall(id="1", name="dig", arguments="{}")]
    hand = hand_in(tmp_path, wanted, "I stopped.", do=calls, tools=(dig,))
    turn = asyncio.ensure_future(hand.say("Dig."))
    await begun.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()
    await hand.say("Well?")
    await check_same(let_go(hand))


async def test_what_came_between_turns_or_asked_no_model_is_taken_from_the_trace(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path, "Yes.", "No.")
    hand.recorder.begin_turn()
    hand.recorder.end_turn("respond", "At once.")
    await hand.say("Are you there?")
    hand.recorder.note("weather", "It rains.")
    hand.recorder.message("user", "It rains, does it?")
    await hand.say("And now?")
    report = await check_same(let_go(hand), taken=4)
    assert report.remarks == (
        "A turn that broke off before its model was asked.",
        "Not of a turn: the end of turn 1: respond",
        "Not of a turn: It rains.",
        "Not of a turn: It rains, does it?",
    )


@pytest.mark.broken_trace("an action is outside of all turns")
async def test_where_no_model_was_asked_nothing_is_replayed_and_outside_of_turns_it_stops(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path / "idle")
    hand.recorder.begin_turn()
    hand.recorder.end_turn("respond", "At once.")
    report = await replay(let_go(hand))
    nothing = "No model was asked, so there is nothing to replay."
    assert (report.same, report.records, report.remarks) == (True, 0, (nothing,))
    hand = hand_in(tmp_path, "Yes.")
    await hand.say("Are you there?")
    hand.recorder.end(hand.recorder.begin("look", {}), ReceiptStatus.DONE, "nothing")
    found = (await replay(let_go(hand))).divergence
    assert found is not None
    assert (found.record, found.field) == ("intent", "record")
    assert found.replayed == "nothing: no turn is open"


@routine
async def cannot_begin(hand: Hand, text: str) -> str:
    raise ConfigurationError(f"There is no spade for {text!r}.")


@routine
async def loses_its_file(hand: Hand, text: str) -> str:
    raise TraceError(Path("mine.jsonl"), "is full")


@routine
async def says_it_in_its_own_words(hand: Hand, text: str) -> str:
    """Asks for something else, and raises an error of its own for what comes of it."""
    try:
        await hand.ask(f"{text} Really?")
    except TraceError as error:
        raise TraceError(Path("mine.jsonl"), "is not written any more") from error
    return "No."


async def test_an_agent_that_fails_in_a_replay_is_an_error_unless_it_differed_before(
    tmp_path: Path,
) -> None:
    fails: tuple[tuple[dict[str, Any], type[Exception], str], ...] = (
        ({"before": cannot_begin}, ConfigurationError, r"no spade for 'Dig\.'"),
        ({"again": loses_its_file}, TraceError, r"mine\.jsonl: is full"),
    )
    for routines, error, words in fails:
        hand = hand_in(tmp_path / words[:4], "Yes.", **routines)
        await hand.say("Dig.")
        with pytest.raises(error, match=words):
            await replay(let_go(hand))
    hand = hand_in(tmp_path, "Yes.", again=says_it_in_its_own_words)
    await hand.say("Dig.")
    found = (await replay(let_go(hand))).divergence
    assert found is not None
    assert found.record == "model_call"
    assert "Really?" in found.replayed


HANGING = asyncio.Event()


@routine
async def hangs(hand: Hand, text: str) -> str:
    """Waits for ever."""
    HANGING.set()
    await asyncio.Event().wait()
    return "Never."


async def test_a_replay_can_be_cancelled_itself(tmp_path: Path) -> None:
    hand = hand_in(tmp_path, "Yes.", again=hangs)
    await hand.say("Dig.")
    HANGING.clear()
    task = asyncio.ensure_future(replay(let_go(hand)))
    await HANGING.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
