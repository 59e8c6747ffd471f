"""Replays of runs that broke off, were resumed, failed within, or were changed by hand."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from kits.brains import brain, respond
from kits.foragers import foraged
from kits.porters import TASK, porter
from kits.runs import (
    Bodies,
    broken_copy,
    check_same,
    closed,
    cut,
    edited,
    length,
    note,
    place,
    run_of,
    say,
    with_info,
)

from coag import CoagAgent, CoagContext
from coag.context import AssistantState
from coag.errors import ConfigurationError, ResumeError, StateError, TraceError
from coag.proof import fork, replay, verify
from coag.schema import Candidate, Outcome, Percept, Phase, Section, Situation, Snapshot
from coag.tracing import RunFolder, read_trace

BROKEN = pytest.mark.broken_trace("it is changed on purpose")
V1 = Path(__file__).parents[1] / "tracing" / "data" / "v1"
SAID = (TASK, "Well done.")


def look() -> str:
    """Looks around."""
    return "nothing"


def builder(logs: Path | None) -> CoagAgent:
    return CoagAgent(
        "a", brain(("look", "{}"), respond()), tools=[look], logs=logs, proposal="json"
    )


# ---- runs that broke off, and runs that several processes took part in ----


async def whole_run(where: Path, depth: Any) -> RunFolder:
    return await run_of(
        porter(log=str(where / "calls.txt"), logs=str(where / "logs"), depth=depth), *SAID
    )


def broken_off(run: RunFolder, kept: int, torn: bool, where: Path) -> RunFolder:
    """A copy that broke off, and whose tools write to a file of its own."""
    broken = broken_copy(run, where, kept, torn=torn)
    with_info(broken, ended_at=None, seal=None)
    text = broken.info_path.read_text()
    own = str(where / "calls.txt")
    broken.info_path.write_text(text.replace(str(run.path.parents[1] / "calls.txt"), own))
    return broken


async def resumed(run: RunFolder, turns: int = len(SAID)) -> RunFolder:
    """The run, continued by another process for so many turns at most."""
    agent = await CoagAgent.resume(run.path)
    if turns and agent.in_turn:
        await agent.on_messages([], _token())
    if turns:
        await say(agent, *SAID[agent.turn : agent.turn + turns])
    return await closed(agent)


def _token() -> Any:
    from autogen_core import CancellationToken

    return CancellationToken()


async def check_breaks(run: RunFolder, places: Sequence[int], torn: bool, where: Path) -> None:
    for kept in places:
        broken = broken_off(run, kept, torn, where / str(kept))
        await check_same(broken)
        report = await replay(await resumed(broken))
        assert report.divergence is None, f"resumed after {kept}: {report.divergence}"
        assert report.records >= length(broken) - 2  # notes of the repair and of the resumption


@BROKEN
@pytest.mark.parametrize("torn", [False, True])
async def test_a_run_is_replayed_wherever_it_broke_off_and_was_resumed(
    torn: bool, tmp_path: Path
) -> None:
    run = await whole_run(tmp_path / "whole", "compact")
    await check_breaks(run, range(2, length(run), 9), torn, tmp_path / "broken")


@pytest.mark.long
@BROKEN
@pytest.mark.timeout(300)
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_a_run_is_replayed_from_every_break(depth: str, torn: bool, tmp_path: Path) -> None:
    run = await whole_run(tmp_path / "whole", depth)
    await check_breaks(run, range(length(run)), torn, tmp_path / "broken")


@BROKEN
async def test_the_report_says_where_another_process_continued(tmp_path: Path) -> None:
    run = await whole_run(tmp_path / "whole", "full")
    lines = run.trace_path.read_bytes().splitlines()
    kept = next(n for n, line in enumerate(lines) if b'"record":"intent"' in line) + 1
    report = await replay(await resumed(broken_off(run, kept, False, tmp_path / "broken")))
    assert report.same
    assert f"Another process went on with the run at record {kept}." in report.remarks


@BROKEN
async def test_a_run_is_replayed_that_was_resumed_again_and_again(tmp_path: Path) -> None:
    whole = await whole_run(tmp_path / "whole", "compact")
    for kept, torn in ((0, True), (1, False), (9, True), (17, False), (length(whole), False)):
        run = broken_off(whole, kept, torn and kept < length(whole), tmp_path / str(kept))
        for turns in (0, 0, 1):  # right after a resume, too
            with_info(await resumed(run, turns), ended_at=None, seal=None)
        cut(run, length(run) - 2, torn=True)
        await resumed(run, 1)
        report = await replay(run)
        assert report.divergence is None, f"broken off after {kept}: {report.divergence}"


@BROKEN
@pytest.mark.parametrize("forked", [False, True])
async def test_a_difference_after_a_break_or_in_a_fork_is_found(
    forked: bool, tmp_path: Path
) -> None:
    if forked:
        run = RunFolder((await fork(await foraged(tmp_path), "2.evaluation")).run)
    else:
        whole = await whole_run(tmp_path / "whole", "compact")
        run = await resumed(broken_off(whole, 20, False, tmp_path / "broken"))
    places: list[int] = []

    def change(bodies: Bodies) -> None:
        at = place(bodies, -1 if not forked else 0, record="outcome", phase="selection")
        places.append(at)
        bodies[at]["reason"] = "Because."

    found = (await replay(edited(run, change))).divergence
    assert found is not None
    assert (found.seq, found.field) == (places[0], "reason")


@BROKEN
async def test_an_agent_itself_is_not_enough_where_several_processes_took_part(
    tmp_path: Path,
) -> None:
    run = await run_of(porter(log=str(tmp_path / "calls"), logs=str(tmp_path / "logs")), TASK)
    edited(run, lambda bodies: note(bodies, len(bodies), "resume", "Resumed.", cycle=4))
    with pytest.raises(ConfigurationError, match="Several processes took part"):
        await replay(run, agent=porter(log=str(tmp_path / "other.txt")))


# ---- runs that are changed ----


async def test_a_run_of_version_1_is_said_to_hold_too_little(tmp_path: Path) -> None:
    (run,) = [run for run in V1.iterdir() if "desk" in run.name]
    shutil.copytree(run, tmp_path / run.name)
    with pytest.raises(TraceError, match="version 1 of the format, which holds too little"):
        await replay(tmp_path / run.name)


def without_beginning(bodies: Bodies) -> None:
    assert bodies[0]["record"] == "snapshot"
    del bodies[0]


def noted(bodies: Bodies) -> None:
    note(bodies, place(bodies, 1, record="turn_start"), "weather", "Rain.")


@BROKEN
@pytest.mark.parametrize(
    ("edit", "remark"),
    [
        (without_beginning, "The trace does not begin with a snapshot"),
        (noted, "Not of a turn: weather: Rain."),
    ],
)
async def test_what_no_code_of_the_agent_wrote_is_remarked(
    edit: Callable[[Bodies], None], remark: str, tmp_path: Path
) -> None:
    run = edited(await run_of(builder(tmp_path)), edit)
    report = await replay(run, agent=lambda: builder(None))
    assert report.divergence is None or edit is without_beginning
    assert any(one.startswith(remark) for one in report.remarks)


def acts_between_turns(bodies: Bodies) -> None:
    intent = bodies[place(bodies, record="intent")]
    bodies.insert(place(bodies, 1, record="turn_start"), {**intent, "id": "i-9"})


def receipt_lost(bodies: Bodies) -> None:
    del bodies[place(bodies, record="receipt")]


def request_lost(bodies: Bodies) -> None:
    del bodies[place(bodies, record="model_call")]


@BROKEN
@pytest.mark.parametrize(
    ("edit", "record", "replayed"),
    [
        (acts_between_turns, "intent", "nothing: no turn goes on"),
        (receipt_lost, "execution", "the receipt of look ("),
        (request_lost, "reasoning", "a request to a model"),
    ],
)
async def test_a_record_that_is_missing_or_added_is_where_a_replay_leaves_the_trace(
    edit: Callable[[Bodies], None], record: str, replayed: str, tmp_path: Path
) -> None:
    run = edited(await run_of(builder(tmp_path)), edit)
    found = (await replay(run, agent=lambda: builder(None))).divergence
    assert found is not None
    assert found.record == record
    assert found.replayed.startswith(replayed)


@BROKEN
async def test_where_the_trace_ends_the_replay_ends_too(tmp_path: Path) -> None:
    whole = await run_of(builder(tmp_path / "whole"), "Go on.")
    for kept in range(length(whole)):
        run = broken_copy(whole, tmp_path / str(kept), kept)
        report = await replay(run, agent=lambda: builder(None))
        assert report.divergence is None, f"broken off after {kept}: {report.divergence}"


async def test_a_replay_whose_agent_cannot_be_built_is_an_error_and_can_be_cancelled(
    tmp_path: Path,
) -> None:
    run = await run_of(builder(tmp_path), "Go on.")
    begun = asyncio.Event()

    def broken() -> CoagAgent:
        raise ResumeError("The workshop is shut.")

    async def slow() -> CoagAgent:
        begun.set()
        await asyncio.Event().wait()
        return builder(None)

    with pytest.raises(ResumeError, match="The workshop is shut"):
        await replay(run, agent=broken)
    task = asyncio.ensure_future(replay(run, agent=slow))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# ---- modules and hooks that fail ----


HALF = "half \ud800 of a character"


class Fails:
    """Raises in one of its functions."""

    def __init__(self, where: str) -> None:
        self.where = where

    def check(self, where: str) -> None:
        if where == self.where:
            raise ValueError(HALF)


class Faulty(Fails):
    """A module that raises in one of its functions, or keeps a broken text."""

    name = "faulty"

    async def observe(self, event: Percept | Outcome) -> None:
        self.check("observe")

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        self.check("contribute")
        return None

    def save_state(self) -> Mapping[str, Any]:
        self.check("save_state")
        return {"kept": HALF}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.check("load_state")


class Wrong(CoagContext[AssistantState]):
    """A context one of whose hooks raises."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._fails = Fails(where)

    def _update_state_from_function_result(
        self, state: AssistantState, percept: Percept
    ) -> AssistantState:
        self._fails.check("state")
        return state

    def _get_state_description(self, state: AssistantState) -> str:
        self._fails.check("description")
        return ""

    def _project(self, candidate: Candidate, state: AssistantState) -> AssistantState | None:
        self._fails.check("projection")
        return None


async def broken_text() -> str:
    """Looks."""
    return HALF


def faulty(where: str, logs: Path | None = None) -> CoagAgent:
    return CoagAgent(
        "clerk",
        brain(("broken_text", "{}"), respond("Done.")),
        tools=[broken_text],
        modules=[Faulty(where)],
        model_context=Wrong(where),
        logs=logs,
        depth="compact",
        proposal="json",
    )


@pytest.mark.parametrize(
    "where",
    ["observe", "contribute", "save_state", "none", "projection", "description", "state"],
)
async def test_what_failed_fails_again_and_nothing_differs(tmp_path: Path, where: str) -> None:
    agent = faulty(where, tmp_path)
    if where in ("description", "state"):
        with pytest.raises((ValueError, StateError), match="of a character"):
            await say(agent, "Look.")
    else:
        await say(agent, "Look.")
    run = await closed(agent)
    report = await replay(run, agent=lambda: faulty(where))
    assert report.divergence is None, ascii(report.divergence)
    assert verify(run) == []
    first, second = list(read_trace(run.trace_path))[:2]
    assert isinstance(first.body, Snapshot)
    assert (second.body.record == "note") is (where == "save_state")


async def test_a_module_that_does_not_take_its_state_up_is_named(tmp_path: Path) -> None:
    run = await run_of(faulty("load_state", tmp_path), "Look.")
    with pytest.raises(TraceError, match=r"'modules' of the snapshot.*'faulty' does not take"):
        await replay(run, agent=lambda: faulty("load_state"))
    agent = faulty("load_state")
    with pytest.raises(StateError, match="Module 'faulty' does not take its state up"):
        await agent.load_state(await faulty("none").save_state())
