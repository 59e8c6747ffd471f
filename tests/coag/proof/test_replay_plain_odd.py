"""Runs of plain agents that do what agents seldom do, and recipes that make another agent."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from autogen_core import FunctionCall
from kits.hands import Hand, deed, hand_in, let_go

from coag.errors import ConfigurationError, ResumeError, TraceError
from coag.proof import ReplayReport, replay
from coag.schema import ReceiptStatus
from coag.tracing import Recipe, RunFolder, read_trace


async def check_same(run: RunFolder, taken: int = 0) -> ReplayReport:
    """The run is the same but for records that are taken from the trace, each with a remark."""
    report = await replay(run)
    assert report.divergence is None, str(report.divergence)
    assert report.records == sum(1 for _ in read_trace(run.trace_path)) - taken
    assert len(report.remarks) == taken
    return report


# ---- tools ----


@deed
async def leaves_a_tool_alone(hand: Hand, text: str) -> str:
    """Begins what ends only after its turn."""
    asked = await hand.ask(text)
    if isinstance(asked.content, str):
        return asked.content
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
    (told,) = (await check_same(let_go(hand), taken=1)).remarks
    assert told.startswith("A tool that had been left alone ended after its turn: ")


@deed
async def calls(hand: Hand, text: str) -> str:
    """Calls the tool that the model wants, and waits for it."""
    asked = await hand.ask(text)
    if isinstance(asked.content, str):
        return asked.content
    (call,) = asked.content
    result = await hand.tools.call_tool(call.name, json.loads(call.arguments))
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

    wish = [FunctionCall(id="1", name="dig", arguments="{}")]
    hand = hand_in(tmp_path, wish, "I stopped.", do=calls, tools=(dig,))
    turn = asyncio.ensure_future(hand.say("Dig."))
    await begun.wait()
    turn.cancel()
    await asyncio.wait([turn])
    assert turn.cancelled()
    await hand.say("Well?")
    await check_same(let_go(hand))


# ---- between turns ----


async def test_what_came_between_turns_and_is_not_repeated_is_taken_from_the_trace(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path, "Yes.", "No.")
    await hand.say("Are you there?")
    hand.recorder.note("weather", "It rains.")
    hand.recorder.message("user", "It rains, does it?")
    await hand.say("And now?")
    report = await check_same(let_go(hand), taken=2)
    assert report.remarks == ("Not of a turn: It rains.", "Not of a turn: It rains, does it?")


async def test_a_turn_in_which_no_model_was_asked_is_taken_from_the_trace(tmp_path: Path) -> None:
    hand = hand_in(tmp_path, "Yes.")
    hand.recorder.begin_turn()
    hand.recorder.end_turn("respond", "At once.")
    await hand.say("Are you there?")
    report = await check_same(let_go(hand), taken=2)
    assert report.remarks == (
        "A turn that broke off before its model was asked.",
        "Not of a turn: the end of turn 1: respond",
    )


@pytest.mark.broken_trace("a deed stands outside of all turns")
async def test_a_deed_outside_of_all_turns_is_where_a_replay_leaves_the_trace(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path, "Yes.")
    await hand.say("Are you there?")
    attempt = hand.recorder.begin("look", {})
    hand.recorder.end(attempt, ReceiptStatus.DONE, "nothing")
    run = let_go(hand)
    found = (await replay(run)).divergence
    assert found is not None
    assert (found.record, found.field) == ("intent", "record")
    assert found.replayed == "nothing: no turn goes on"


# ---- what a recipe makes ----


async def test_a_run_in_which_no_model_was_ever_asked_holds_nothing_to_replay(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path)
    hand.recorder.begin_turn()
    hand.recorder.end_turn("respond", "At once.")
    report = await replay(let_go(hand))
    assert report.divergence is None
    assert (report.records, report.remarks) == (
        0,
        ("No model was asked, so there is nothing to replay.",),
    )


async def test_a_recipe_that_makes_no_function_says_what_it_must_make(tmp_path: Path) -> None:
    hand = hand_in(tmp_path, "Yes.", recipe=Recipe(factory="kits.hands:nothing_again"))
    await hand.say("Are you there?")
    with pytest.raises(ResumeError, match=r"makes a str\. .*a function of a client, a workbench"):
        await replay(let_go(hand))


@deed
async def cannot_begin(hand: Hand, text: str) -> str:
    """Fails before it has done anything."""
    raise ConfigurationError(f"There is no spade for {text!r}.")


@deed
async def loses_its_file(hand: Hand, text: str) -> str:
    """Cannot write somewhere else."""
    raise TraceError(Path("mine.jsonl"), "is full")


@deed
async def says_it_in_its_own_words(hand: Hand, text: str) -> str:
    """Asks for something else; what comes of it is told as an error of its own."""
    try:
        await hand.ask(f"{text} Really?")
    except TraceError as error:
        raise TraceError(Path("mine.jsonl"), "is not written any more") from error
    return "No."


async def test_an_agent_that_cannot_begin_in_a_replay_is_no_difference_but_an_error(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path, "Yes.", before=cannot_begin)
    await hand.say("Dig.")
    with pytest.raises(ConfigurationError, match=r"no spade for 'Dig\.'"):
        await replay(let_go(hand))


async def test_an_agent_that_cannot_write_elsewhere_in_a_replay_is_an_error_too(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path, "Yes.", again=loses_its_file)
    await hand.say("Dig.")
    with pytest.raises(TraceError, match=r"mine\.jsonl: is full"):
        await replay(let_go(hand))


async def test_a_difference_is_told_even_where_the_agent_makes_another_error_of_it(
    tmp_path: Path,
) -> None:
    hand = hand_in(tmp_path, "Yes.", again=says_it_in_its_own_words)
    await hand.say("Dig.")
    found = (await replay(let_go(hand))).divergence
    assert found is not None
    assert found.record == "model_call"
    assert "Really?" in found.replayed


HANGING = asyncio.Event()


@deed
async def hangs(hand: Hand, text: str) -> str:
    """Waits for ever."""
    del hand, text
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
