"""Replays of runs that broke off, were resumed, failed within, or were changed by hand."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken
from kits.brains import brain, respond
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
from coag.proof import fork, replay, verify, why
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
    log, logs = str(where / "calls.txt"), str(where / "logs")
    return await run_of(porter(log=log, logs=logs, depth=depth), *SAID)


def interrupted(run: RunFolder, records: int, torn: bool, where: Path) -> RunFolder:
    """A copy that was interrupted, and whose tools write to a file of its own."""
    broken = broken_copy(run, where, records, torn=torn)
    with_info(broken, ended_at=None, seal=None)
    text = broken.info_path.read_text()
    own = str(where / "calls.txt")
    broken.info_path.write_text(text.replace(str(run.path.parents[1] / "calls.txt"), own))
    return broken


async def resumed(run: RunFolder, turns: int = len(SAID)) -> RunFolder:
    """The run, continued by another process for so many turns at most."""
    agent = await CoagAgent.resume(run.path)
    if turns and agent.in_turn:
        await agent.on_messages([], CancellationToken())
    if turns:
        await say(agent, *SAID[agent.turn : agent.turn + turns])
    return await closed(agent)


async def check_breaks(run: RunFolder, places: Sequence[int], torn: bool, where: Path) -> None:
    for records in places:
        broken = interrupted(run, records, torn, where / str(records))
        await check_same(broken)
        report = await replay(await resumed(broken))
        assert report.divergence is None, f"resumed after {records}: {report.divergence}"
        noted = f"Another process continued the run at record {records}."
        assert noted in report.remarks or torn or records < 4
        assert report.records >= length(broken) - 2  # notes of the repair and of the resumption


@BROKEN
@pytest.mark.timeout(300)
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize(
    ("depth", "step"),
    [("compact", 9), *(pytest.param(d, 1, marks=pytest.mark.long) for d in ("full", "compact"))],
)
async def test_a_run_is_replayed_wherever_it_broke_off_and_was_resumed(
    depth: str, step: int, torn: bool, tmp_path: Path
) -> None:
    run = await whole_run(tmp_path / "whole", depth)
    await check_breaks(run, range(2 * (step > 1), length(run), step), torn, tmp_path / "broken")


@BROKEN
async def test_a_run_is_replayed_that_was_resumed_again_and_again(tmp_path: Path) -> None:
    complete = await whole_run(tmp_path / "whole", "compact")
    for records, torn in ((0, True), (1, False), (9, True), (17, False), (length(complete), False)):
        run = interrupted(
            complete, records, torn and records < length(complete), tmp_path / str(records)
        )
        for turns in (0, 0, 1):  # right after a resume, too
            with_info(await resumed(run, turns), ended_at=None, seal=None)
        cut(run, length(run) - 2, torn=True)
        await resumed(run, 1)
        report = await replay(run)
        assert report.divergence is None, f"interrupted after {records}: {report.divergence}"


@BROKEN
@pytest.mark.parametrize("forked", [False, True])
async def test_a_difference_after_a_break_or_in_a_fork_is_found(
    forked: bool, berries: RunFolder, tmp_path: Path
) -> None:
    if forked:
        run = RunFolder((await fork(berries, "2.evaluation", logs=tmp_path)).run)
    else:
        complete = await whole_run(tmp_path / "whole", "compact")
        run = await resumed(interrupted(complete, 20, False, tmp_path / "broken"))
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
    own_stones: RunFolder, tmp_path: Path
) -> None:
    edited(own_stones, lambda bodies: note(bodies, len(bodies), "resume", "Resumed.", cycle=4))
    with pytest.raises(ConfigurationError, match="Several processes took part"):
        await replay(own_stones, agent=porter(log=str(tmp_path / "other.txt")))


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


@BROKEN
@pytest.mark.parametrize(
    ("edit", "record", "replayed"),
    [
        (acts_between_turns, "intent", "nothing: no turn is open"),
        ("receipt", "execution", "the receipt of look ("),
        ("model_call", "reasoning", "a request to a model"),
    ],
)
async def test_a_record_that_is_missing_or_added_is_where_a_replay_leaves_the_trace(
    edit: Any, record: str, replayed: str, tmp_path: Path
) -> None:
    def lose(bodies: Bodies) -> None:
        del bodies[place(bodies, record=edit)]

    run = edited(await run_of(builder(tmp_path)), lose if isinstance(edit, str) else edit)
    found = (await replay(run, agent=lambda: builder(None))).divergence
    assert found is not None
    assert found.record == record
    assert found.replayed.startswith(replayed)


@BROKEN
async def test_where_the_trace_ends_the_replay_ends_too(tmp_path: Path) -> None:
    complete = await run_of(builder(tmp_path / "whole"), "Go on.")
    for records in range(length(complete)):
        run = broken_copy(complete, tmp_path / str(records), records)
        report = await replay(run, agent=lambda: builder(None))
        assert report.divergence is None, f"interrupted after {records}: {report.divergence}"


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


# ---- states that nobody can take up ----


BIG = [3, [1 << 80] * 625, None]
VERSIONED = {"state": {"procedures": {"reasoning": [{"version": 7}]}}}
HOSTILE: list[tuple[str, Any]] = [
    ("random", "x"),
    ("random", 5),
    ("random", [3, [1], None]),
    ("random", BIG),
    ("random", {}),
    ("procedures", {"state": 5}),
    ("procedures", {"state": {"x": 1}}),
    ("procedures", VERSIONED),
    ("detector", {"x": 5}),
    ("detector", {"x": {"key": 1}}),
    ("working_memory", {"goal": 5}),
    ("working_memory", {}),
]


def changed(
    run: RunFolder, sort: str, change: Callable[[dict[str, Any]], None], number: int = 0
) -> RunFolder:
    """The run with one record of a sort changed, by default the first."""
    return edited(run, lambda bodies: change(bodies[place(bodies, number, record=sort)]))


@BROKEN
async def test_a_hostile_snapshot_is_named_with_its_field(own_stones: RunFolder) -> None:
    complete = own_stones.trace_path.read_bytes()
    for field, value in HOSTILE:
        own_stones.trace_path.write_bytes(complete)
        run = changed(own_stones, "snapshot", lambda body, new={field: value}: body.update(new))
        error = rf"'{field}' of the snapshot of cycle 0 cannot be read"
        with pytest.raises(TraceError, match=error):
            await replay(run)
        if field in ("random", "procedures") and value not in ({}, VERSIONED):
            with pytest.raises(TraceError, match=rf"'{field}' of a snapshot cannot be read"):
                await fork(run, "2.reasoning")


@BROKEN
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"content": {}}, "'content' of the record that .* was written"),
        ({"what": "procedure", "id": "proposal@x"}, "'id' of the record that 'proposal@x'"),
        ({"what": "procedure", "id": "proposal@2"}, "'content' of the record that 'proposal@2'"),
    ],
)
async def test_a_fork_refuses_what_cannot_have_been_written(
    changes: dict[str, Any], error: str, own_stones: RunFolder
) -> None:
    run = changed(own_stones, "written", lambda body: body.update(changes))
    with pytest.raises(TraceError, match=error):
        await fork(run, "4")


@BROKEN
async def test_versions_that_are_no_numbers_are_named_and_a_goal_that_is_no_text_is_left_out(
    own_stones: RunFolder,
) -> None:
    def hostile(body: dict[str, Any]) -> None:
        body["procedures"] = {"versions": {"reasoning": None}}
        body["working_memory"]["goal"] = 5

    run = changed(own_stones, "snapshot", hostile, number=2)
    with pytest.raises(TraceError, match="'procedures' of the snapshot of cycle 1"):
        await replay(run)
    assert why(run, 2).goal == ""
    with pytest.raises(ConfigurationError, match="goal"):
        await fork(run, "2")


# ---- modules and hooks that fail ----


HALF = "half \ud800 of a character"


def raises(where: str, here: str) -> None:
    if where == here:
        raise ValueError(HALF)


class Faulty:
    """A module that raises in one of its functions, or keeps a broken text."""

    name = "faulty"

    def __init__(self, where: str) -> None:
        self.where = where

    async def observe(self, event: Percept | Outcome) -> None:
        raises(self.where, "observe")

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        raises(self.where, "contribute")
        return None

    def save_state(self) -> Mapping[str, Any]:
        raises(self.where, "save_state")
        return {"kept": HALF}

    def load_state(self, state: Mapping[str, Any]) -> None:
        raises(self.where, "load_state")


class Wrong(CoagContext[AssistantState]):
    """A context one of whose hooks raises."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def _update_state_from_function_result(
        self, state: AssistantState, percept: Percept
    ) -> AssistantState:
        raises(self.where, "state")
        return state

    def _get_state_description(self, state: AssistantState) -> str:
        raises(self.where, "description")
        return ""

    def _project(self, candidate: Candidate, state: AssistantState) -> AssistantState | None:
        raises(self.where, "projection")
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
