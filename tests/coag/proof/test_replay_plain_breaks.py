"""Runs of stock agents whose model or tools failed, were cancelled or broke off are replayed."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from autogen_core import FunctionCall
from kits.bookkeepers import RECIPE, Bookkeeper

from coag.compat import Recorder
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import replay
from coag.tracing import RunFolder, read_trace

Script = Sequence[ScriptedReply | BaseException]


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
        del request
        reply = next(left)
        if isinstance(reply, BaseException):
            raise reply
        return reply

    return ScriptedModel(think)


async def run_of(where: Path, script: Script, *, cancel: bool = False) -> RunFolder:
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


def length(run: RunFolder) -> int:
    return sum(1 for _ in read_trace(run.trace_path, lambda problem: None))


async def check_same(run: RunFolder) -> None:
    report = await replay(run)
    assert report.divergence is None, str(report.divergence)
    late = sum("ended after its turn" in remark for remark in report.remarks)
    assert (report.records, len(report.remarks)) == (length(run) - late, late)


@pytest.mark.parametrize(
    "script",
    [
        [ConnectionError("no line"), "Two."],
        [[call("look_up")], ConnectionError("no line"), "Two."],
        [asyncio.CancelledError(), "Two."],
        [[call("look_up")], asyncio.CancelledError(), "Two."],
        [[call("look_up", "lost")], "None.", "Two."],
        [[call("look_up"), call("look_up", "lost", 2)], "Some.", "Two."],
    ],
    ids=[
        "raises",
        "raises later",
        "cancelled",
        "cancelled later",
        "tool fails",
        "one of two fails",
    ],
)
async def test_a_turn_that_failed_is_replayed_and_so_is_the_next(
    script: Script, tmp_path: Path
) -> None:
    await check_same(await run_of(tmp_path, script))


@pytest.mark.parametrize(
    "calls", [[call("ask_around")], [call("look_up"), call("ask_around", number=2)]]
)
async def test_a_turn_that_was_cancelled_while_a_tool_ran_is_replayed(
    calls: list[FunctionCall], tmp_path: Path
) -> None:
    await check_same(await run_of(tmp_path, [calls, "Two.", "Three."], cancel=True))


@pytest.mark.broken_trace("it breaks runs off")
@pytest.mark.parametrize("torn", [False, True])
async def test_a_plain_run_is_replayed_wherever_it_broke_off(torn: bool, tmp_path: Path) -> None:
    run = await run_of(tmp_path / "whole", [[call("look_up")], "Three.", "Three still."])
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    for kept in range(4, len(lines)):
        broken = RunFolder(tmp_path / str(kept) / run.path.name)
        shutil.copytree(run.path, broken.path)
        half = lines[kept][: len(lines[kept]) // 2] if torn else b""
        broken.trace_path.write_bytes(b"".join(lines[:kept]) + half)
        report = await replay(broken)
        assert report.divergence is None, f"broken off after {kept}: {report.divergence}"
        bare = "A turn that broke off before its model was asked." in report.remarks
        assert report.records == kept - bare
