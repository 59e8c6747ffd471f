"""Following runs, and how each stands."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, HARM, hostile_cycle, hostile_records, hostile_run

from coag import CoagAgent
from coag.schema import (
    Intent,
    ModelCall,
    Note,
    OutputMode,
    Percept,
    PerceptKind,
    SteppingClock,
    TokenUsage,
    Trust,
    TurnEnd,
    TurnStart,
)
from coag.tracing import Redactor, RunFolder, RunInfo, list_runs, open_trace
from coag.ui import Board, RunState, RunStatus, RunView, held_files, snapshot
from coag.ui.board import detail

pytestmark = pytest.mark.broken_trace("their records are made up")
AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
Make = Callable[..., CoagAgent]


class Watcher:
    """A board over a folder of logs, with a clock that only the test moves."""

    def __init__(self, logs: Path) -> None:
        self.time = AT
        self.elapsed = 0.0
        self.held: frozenset[int] | None = frozenset()
        self.board = Board(
            lambda: list(list_runs(logs)) if logs.is_dir() else [],
            clock=self,
            held=lambda: self.held,
        )

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        self.elapsed += 1.0
        return self.elapsed

    def views(self) -> list[RunView]:
        while self.board.advance(0.0):
            pass
        return self.board.views()

    def only(self) -> RunView:
        (view,) = self.views()
        return view


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def watcher(logs: Path) -> Watcher:
    return Watcher(logs)


def start_run(logs: Path, name: str = "run-1", kind: Any = "coag") -> RunFolder:
    info = RunInfo(id=name, kind=kind, agent="robot", model="scripted:sound", started_at=AT)
    return RunFolder.create(logs, info, redactor=Redactor())


def inode(folder: RunFolder) -> frozenset[int]:
    return frozenset({folder.trace_path.stat().st_ino})


# ---- how a run stands ----


async def test_a_status_holds_what_a_run_decided_and_used(
    scout: Make, logs: Path, watcher: Watcher
) -> None:
    agent = scout(logs=str(logs))
    await agent.run(task="Look around.")
    await agent.close()
    view = watcher.only()
    status = view.status
    assert (view.state, view.agent, status.ended_by) == (RunState.ENDED, "scout", "respond")
    assert (status.cycle, status.impasses, status.response) == (4, 1, "All is seen.")
    assert status.vetoes == {"keeps_away": 2}
    assert (status.decision, status.decided_by) == ("respond", "only_survivor")
    assert status.calls == status.usage.calls > 4
    assert status.goal == "Look around."
    assert [one.chosen for one in status.considered.candidates] == [True]


def test_the_current_phase_follows_the_last_outcome() -> None:
    status = RunStatus().with_record(TurnStart(at=AT, turn=1, cycle=0))
    phases = [status.phase]
    for record in hostile_cycle(1):
        status = status.with_record(record)
        if record.record == "outcome":
            phases.append(status.phase)
    assert phases == [
        "retrieval",
        "reasoning",
        "proposal",
        "evaluation",
        "selection",
        "execution",
        "retrieval",
    ]


def test_a_plain_agents_status_holds_its_calls_and_actions() -> None:
    call = ModelCall(
        id="call-1",
        at=AT,
        cycle=1,
        model="m",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=(),
        raw="I shall move.",
        tool_calls=({"id": "t1", "name": "move", "arguments": "{}"},),
        usage=TokenUsage(prompt_tokens=5, calls=1),
    )
    status = RunStatus().with_record(call)
    assert (status.cycle, status.phase, status.situation) == (1, "action", "I shall move.")
    assert status.decision == "move"
    intent = Intent(id="i", at=AT, cycle=1, candidate_id=None, action="move", arguments={"to": 1})
    assert status.with_record(intent).acting == 'move {"to": 1}'


def test_only_the_last_notes_are_kept_and_unknown_outcomes_are_among_them() -> None:
    status = RunStatus()
    for number in range(9):
        status = status.with_record(Note(at=AT, cycle=1, about="n", text=str(number)))
    lost = Percept(
        id="p",
        at=AT,
        kind=PerceptKind.UNKNOWN_OUTCOME,
        source="move",
        trust=Trust.UNTRUSTED,
        content="the line broke",
    )
    assert status.with_record(lost).notes == (
        "n: 5",
        "n: 6",
        "n: 7",
        "n: 8",
        "unknown outcome: the line broke",
    )


# ---- following ----


def test_a_run_is_followed_while_it_is_written(logs: Path, watcher: Watcher) -> None:
    assert watcher.views() == []
    folder = start_run(logs)
    with open_trace(folder, redactor=Redactor(), clock=SteppingClock()) as trace:
        watcher.held = inode(folder)
        assert watcher.only().state is RunState.RUNNING
        trace.write(TurnStart(at=AT, turn=1, cycle=0))
        seen: list[tuple[int, str]] = []
        for record in hostile_cycle(1):
            trace.write(record)
            trace.flush()
            status = watcher.only().status
            if not seen or seen[-1] != (status.cycle, status.phase):
                seen.append((status.cycle, status.phase))
        trace.write(TurnEnd(at=AT, turn=1, cycle=1, reason="respond", response="Done."))
        assert watcher.only().state is RunState.IDLE
    folder.finish(at=AT, redactor=Redactor())
    assert watcher.only().state is RunState.ENDED
    assert [phase for _, phase in seen][1:4] == ["proposal", "evaluation", "selection"]


def test_a_status_says_what_a_run_waits_for(logs: Path, watcher: Watcher) -> None:
    folder = start_run(logs)
    with open_trace(folder, redactor=Redactor()) as trace:
        watcher.held = inode(folder)
        trace.write(TurnStart(at=AT, turn=1, cycle=0))
        for record in hostile_cycle(1)[:1]:
            trace.write(record)
        assert (watcher.only().state, watcher.only().seconds) == (RunState.RUNNING, 0.0)
        watcher.time += timedelta(seconds=4)
        assert (watcher.only().state, watcher.only().seconds) == (RunState.WAITING, 4.0)
        intent = next(one for one in hostile_cycle(1) if one.record == "intent")
        trace.write(intent)
        assert watcher.only().state is RunState.ACTING


def test_a_run_whose_process_is_gone_broke_off(logs: Path, watcher: Watcher) -> None:
    folder = start_run(logs)
    with open_trace(folder, redactor=Redactor()) as trace:
        trace.write(TurnStart(at=AT, turn=1, cycle=0))
    with folder.trace_path.open("ab") as file:
        file.write(b'{"v":2,"se')
    watcher.time += timedelta(seconds=1)
    assert watcher.only().state is RunState.RUNNING
    watcher.time += timedelta(seconds=10)
    view = watcher.only()
    assert view.state is RunState.BROKE_OFF
    assert view.problem == "The last line of the trace is truncated."
    watcher.held = None
    assert watcher.only().state is RunState.RUNNING
    watcher.time += timedelta(hours=1)
    assert watcher.only().state is RunState.BROKE_OFF


def test_locks_of_this_machine_tell_who_still_writes(logs: Path) -> None:
    folder = start_run(logs)
    with open_trace(folder, redactor=Redactor()):
        held = held_files()
        if held is None:
            pytest.skip("this system does not list its locks")
        assert inode(folder) <= held
    after = held_files()
    assert after is not None
    assert not inode(folder) & after


def test_a_long_trace_is_read_in_slices(logs: Path, watcher: Watcher) -> None:
    folder = start_run(logs)
    with open_trace(folder, redactor=Redactor()) as trace:
        for number in range(1_000):
            trace.write(Note(at=AT, cycle=1, about="n", text=str(number)))
    assert watcher.board.advance(0.0)
    (view,) = watcher.board.views()
    assert view.state is RunState.READING
    assert 0 < view.status.records < 1_000
    assert watcher.only().status.records == 1_000


def test_only_the_newest_runs_are_watched(logs: Path, watcher: Watcher) -> None:
    for number in range(53):
        start_run(logs, f"run-{number:02}")
    assert len(watcher.views()) == 50
    assert watcher.board.older == 3


# ---- what is wrong with a log ----


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"v":3,"seq":0,"body":{}}\n', "version 3 of the format"),
        (b"PK\x03\x04\x1b[2J\n", "is not JSON"),
        (b'{"v":2,"seq":0,"body":{"record":"\\u001b[31m"}}\n', "is no valid record"),
    ],
)
def test_a_trace_that_cannot_be_read_is_reported_in_place(
    logs: Path, watcher: Watcher, line: bytes, sentence: str
) -> None:
    folder = start_run(logs)
    folder.trace_path.write_bytes(line)
    view = watcher.only()
    assert view.state is RunState.UNREADABLE
    assert sentence in view.problem
    assert not FORBIDDEN & set(view.problem)
    assert view.over


def test_a_foreign_run_json_is_reported_and_hinders_no_other(logs: Path, watcher: Watcher) -> None:
    start_run(logs)
    (logs / "other").mkdir()
    (logs / "other" / "run.json").write_text('{"name": "not ours"}')
    states = {view.name: view.state for view in watcher.views()}
    assert states == {"run-1": RunState.RUNNING, "other": RunState.UNREADABLE}


def test_a_changed_trace_is_read_on_with_a_warning(logs: Path, watcher: Watcher) -> None:
    folder = hostile_run(logs)
    text = folder.trace_path.read_bytes()
    folder.trace_path.write_bytes(text.replace(b"812", b"813", 1))
    view = watcher.only()
    assert view.state is RunState.ENDED
    assert view.problem.startswith("The trace was changed: line ")


def test_a_trace_that_shrinks_is_reported(logs: Path, watcher: Watcher) -> None:
    folder = hostile_run(logs, ended=False)
    watcher.views()
    folder.trace_path.write_bytes(b"")
    assert "was cut while it was read" in watcher.only().problem


# ---- as text ----


def printed(watcher: Watcher, logs: Path, width: int = 80) -> list[str]:
    return list(snapshot(watcher.board, logs, width=width))


def test_a_folder_without_runs_says_how_one_is_made(logs: Path, watcher: Watcher) -> None:
    lines = printed(watcher, logs)
    assert lines[0].endswith(": 0 runs, 0 going on")
    assert any("coag chat --model SPEC --logs" in line for line in lines)


async def test_a_single_run_is_printed_in_detail(scout: Make, logs: Path, watcher: Watcher) -> None:
    agent = scout(logs=str(logs))
    await agent.run(task="Look around.")
    lines = printed(watcher, logs)
    await agent.close()
    assert lines[1].split() == [
        "state",
        "agent",
        "phase",
        "for",
        "cyc",
        "tokens",
        "vet",
        "imp",
        "decision",
    ]
    assert "vetoes      2 keeps_away" in lines
    assert 'candidates  chosen  respond {"text": "All is seen."}' in " ".join(lines)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_its_terminal(logs: Path, watcher: Watcher, width: int) -> None:
    hostile_run(logs, name="one")
    hostile_run(logs, name="two", ended=False)
    lines = printed(watcher, logs, width)
    assert max(map(len, lines[1:])) <= width
    assert len(lines) == 4


@settings(max_examples=15)
@given(st.integers(1, 6), st.integers(0, 100_000))
def test_the_details_of_a_hostile_run_are_short_and_harmless(cycles: int, size: int) -> None:
    status = RunStatus()
    for record in hostile_records(cycles=cycles, size=size):
        status = status.with_record(record)
    view = RunView(folder=RunFolder(Path("run")), state=RunState.ENDED, status=status, at=AT)
    text = "\n".join(text.plain for _, text in detail(view))
    assert len(text) < 20_000
    assert not FORBIDDEN & set(text.replace("\n", ""))
    assert "rejected by [/x]<b onclick=x>" in text


def test_a_snapshot_of_a_hostile_run_is_harmless(logs: Path, watcher: Watcher) -> None:
    hostile_run(logs, size=2_000_000)
    text = "\n".join(printed(watcher, logs))
    assert not FORBIDDEN & set(text)
    assert "[/x]<b onclick=x>" in text
    assert len(text) < 20_000
    assert HARM not in text
