"""Replays of runs that are old, torn, made by several processes, or changed by hand."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond
from kits.foragers import foraged
from kits.porters import TASK, porter

from coag.agent import CoagAgent
from coag.errors import ConfigurationError, ResumeError, TraceError
from coag.proof import fork, replay
from coag.tracing import RunFolder, read_trace

BROKEN = pytest.mark.broken_trace("it is changed on purpose")
V1 = Path(__file__).parents[1] / "tracing" / "data" / "v1"
Bodies = list[dict[str, Any]]


def look() -> str:
    """Looks around."""
    return "nothing"


def builder(logs: Path | None) -> CoagAgent:
    return CoagAgent(
        "a", brain(("look", "{}"), respond()), tools=[look], logs=logs, proposal="json"
    )


async def said(agent: CoagAgent, *texts: str) -> RunFolder:
    for text in texts:
        message = TextMessage(content=text, source="user")
        await agent.on_messages([message], CancellationToken())
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder


def edited(run: RunFolder, edit: Callable[[Bodies], None]) -> RunFolder:
    """The run with its records changed, without hashes."""
    lines = [json.loads(line) for line in run.trace_path.read_text("utf-8").splitlines()]
    bodies: Bodies = [line["body"] for line in lines]
    edit(bodies)
    numbered = [{"v": 2, "seq": seq, "body": body} for seq, body in enumerate(bodies)]
    run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in numbered), "utf-8")
    return run


def place(bodies: Bodies, sort: str, n: int = 0) -> int:
    return [number for number, body in enumerate(bodies) if body["record"] == sort][n]


async def parted(run: RunFolder) -> tuple[str, str, str]:
    """Where a replay leaves the trace: the record, and what was and is there."""
    found = (await replay(run, agent=lambda: builder(None))).divergence
    assert found is not None
    return found.record, found.recorded, found.replayed


async def test_a_run_of_version_1_is_said_to_hold_too_little(tmp_path: Path) -> None:
    (run,) = [run for run in V1.iterdir() if "desk" in run.name]
    shutil.copytree(run, tmp_path / run.name)
    with pytest.raises(TraceError, match="version 1 of the format, which holds too little"):
        await replay(tmp_path / run.name)


@BROKEN
async def test_an_agent_itself_is_not_enough_where_several_processes_took_part(
    tmp_path: Path,
) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    run = await said(agent, TASK)
    note: dict[str, Any] = {
        "record": "note",
        "cycle": 4,
        "about": "resume",
        "text": "Resumed.",
        "details": {},
    }

    def resumed(bodies: Bodies) -> None:
        bodies.append({**note, "at": bodies[-1]["at"]})

    edited(run, resumed)
    with pytest.raises(ConfigurationError, match="Several processes took part"):
        await replay(run, agent=porter(log=str(tmp_path / "other.txt")))


@BROKEN
async def test_a_run_without_a_beginning_is_taken_to_begin_with_the_agent_as_it_is_built(
    tmp_path: Path,
) -> None:
    run = await said(builder(tmp_path), "Go on.")

    def headless(bodies: Bodies) -> None:
        assert bodies[0]["record"] == "snapshot"
        del bodies[0]

    edited(run, headless)
    report = await replay(run, agent=lambda: builder(None))
    assert "The trace does not begin with a snapshot" in " ".join(report.remarks)


@BROKEN
async def test_an_empty_trace_holds_nothing_that_could_differ(tmp_path: Path) -> None:
    run = edited(await said(builder(tmp_path), "Go on."), lambda bodies: bodies.clear())
    report = await replay(run, agent=lambda: builder(None))
    assert (report.divergence, report.records) == (None, 0)


@BROKEN
async def test_a_note_between_turns_is_taken_from_the_trace(tmp_path: Path) -> None:
    run = await said(builder(tmp_path), "Go on.", "And now?")

    def noted(bodies: Bodies) -> None:
        at = place(bodies, "turn_start", 1)
        note: dict[str, Any] = {
            "record": "note",
            "cycle": 2,
            "about": "weather",
            "text": "Rain.",
            "details": {},
        }
        bodies.insert(at, {**note, "at": bodies[at]["at"]})

    edited(run, noted)
    report = await replay(run, agent=lambda: builder(None))
    assert report.divergence is None, str(report.divergence)
    assert report.remarks[-1] == "Not of a turn: weather: Rain."


@BROKEN
async def test_an_action_between_turns_is_where_a_replay_leaves_the_trace(tmp_path: Path) -> None:
    run = await said(builder(tmp_path), "Go on.", "And now?")

    def acted(bodies: Bodies) -> None:
        intent = bodies[place(bodies, "intent")]
        bodies.insert(place(bodies, "turn_start", 1), {**intent, "id": "i-9"})

    edited(run, acted)
    assert await parted(run) == ("intent", "intent", "nothing: no turn goes on")


@BROKEN
async def test_where_the_trace_ends_within_a_request_the_replay_ends_too(tmp_path: Path) -> None:
    whole = await said(builder(tmp_path / "whole"), "Go on.")
    length = sum(1 for _ in read_trace(whole.trace_path))
    for kept in range(1, length):
        run = RunFolder(Path(shutil.copytree(whole.path, tmp_path / str(kept) / whole.path.name)))
        lines = run.trace_path.read_bytes().splitlines(keepends=True)
        run.trace_path.write_bytes(b"".join(lines[:kept]))
        report = await replay(run, agent=lambda: builder(None))
        assert report.divergence is None, f"broken off after {kept}: {report.divergence}"


@BROKEN
async def test_an_action_that_brought_nothing_back_is_where_a_replay_leaves_the_trace(
    tmp_path: Path,
) -> None:
    run = await said(builder(tmp_path), "Go on.")

    def lost(bodies: Bodies) -> None:
        del bodies[place(bodies, "receipt")]

    edited(run, lost)
    record, _, replayed = await parted(run)
    assert record == "execution"
    assert replayed.startswith("the receipt of look (")


@BROKEN
async def test_a_request_that_is_gone_is_where_a_replay_leaves_the_trace(tmp_path: Path) -> None:
    run = await said(builder(tmp_path), "Go on.")

    def unasked(bodies: Bodies) -> None:
        del bodies[place(bodies, "model_call")]

    edited(run, unasked)
    assert (await parted(run))[2] == "a request to a model"


# ---- forks ----


@BROKEN
async def test_a_fork_that_names_no_parent_cannot_be_replayed(tmp_path: Path) -> None:
    forked = RunFolder((await fork(await foraged(tmp_path), "2")).run)
    info = json.loads(forked.info_path.read_text())
    forked.info_path.write_text(json.dumps({**info, "parent": None}))
    with pytest.raises(TraceError, match="names no parent, though the trace begins as a fork"):
        await replay(forked)


@pytest.mark.broken_trace("it edits run.json")
async def test_a_fork_whose_memory_was_not_kept_recalls_what_its_trace_tells(
    tmp_path: Path,
) -> None:
    forked = await fork(await foraged(tmp_path), "2.retrieval")
    (forked.run / "remembered.jsonl").unlink()
    report = await replay(forked.run)
    assert report.divergence is None, str(report.divergence)


async def test_a_fork_of_an_orphan_in_a_later_turn_is_replayed(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    later = await fork(run, "4")
    ended = await fork(run, "4", turns=0)
    shutil.rmtree(run.path)
    for forked in (later, ended):
        report = await replay(forked.run)
        assert report.divergence is None, str(report.divergence)


# ---- from outside ----


async def test_a_replay_whose_agent_cannot_be_built_is_an_error(tmp_path: Path) -> None:
    run = await said(builder(tmp_path), "Go on.")

    def broken() -> CoagAgent:
        raise ResumeError("The workshop is shut.")

    with pytest.raises(ResumeError, match="The workshop is shut"):
        await replay(run, agent=broken)


async def test_a_replay_can_be_cancelled_while_its_agent_is_built(tmp_path: Path) -> None:
    run = await said(builder(tmp_path), "Go on.")
    begun = asyncio.Event()

    async def slow() -> CoagAgent:
        begun.set()
        await asyncio.Event().wait()
        return builder(None)

    task = asyncio.ensure_future(replay(run, agent=slow))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
