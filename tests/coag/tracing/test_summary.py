"""One summary of a cycle, from its records."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from coag.errors import TraceError
from coag.schema import (
    DecidedBy,
    Entry,
    Intent,
    Note,
    Percept,
    PerceptKind,
    Phase,
    Receipt,
    ReceiptStatus,
    TraceRecord,
    Trust,
    TurnEnd,
    TurnStart,
)
from coag.tracing import TraceIndex, read_trace, summarize_cycle, summarize_cycles
from coag.tracing.summary import split_cycles

RUNS = Path(__file__).parents[1] / "proof" / "old_runs" / "runs.tar.xz"


@pytest.fixture(scope="module")
def old_runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("old_runs")
    with tarfile.open(RUNS) as archive:
        archive.extractall(folder, filter="data")
    return sorted(folder.iterdir())


def test_a_cycle_is_summed_up_with_its_decision_and_what_came_of_it(
    cycle_records: Callable[[int], list[TraceRecord]],
) -> None:
    summary = summarize_cycle(cycle_records(3), goal="a clean room")
    assert (summary.cycle, summary.goal) == (3, "a clean room")
    assert list(summary.outcomes) == list(Phase)
    assert [one.content for one in summary.percepts] == ["Clean the room."]
    assert summary.situation == "This cell is dirty."
    assert [(one.candidate.action, one.survived, one.chosen) for one in summary.candidates] == [
        ("clean", True, True),
        ("fly", False, False),
    ]
    assert [one.candidate.action for one in summary.chosen] == ["clean"]
    assert [one.rejected_by and one.rejected_by.reason for one in summary.rejected] == ["no such"]
    assert (summary.decided_by, summary.impasse) == (DecidedBy.ONLY_SURVIVOR, False)
    assert [(one.action, one.status) for one in summary.actions] == [("clean", "done")]
    assert summary.status == "done"


def test_a_cycle_that_was_interrupted_shows_what_was_begun(
    cycle_records: Callable[[int], list[TraceRecord]],
) -> None:
    records = cycle_records(1)
    broken = records[: next(i for i, one in enumerate(records) if isinstance(one, Receipt))]
    summary = summarize_cycle(broken)
    assert summary.execution is None
    assert summary.status is None
    assert [(one.action, one.status) for one in summary.actions] == [("clean", None)]


def test_of_a_plain_agents_turn_there_are_its_calls_actions_and_answer(
    cycle_records: Callable[[int], list[TraceRecord]],
) -> None:
    at = cycle_records(1)[0].at
    failed = Receipt(intent_id="i", at=at, cycle=1, status=ReceiptStatus.FAILED, content="no")
    summary = summarize_cycle(
        [
            TurnStart(at=at, turn=1, cycle=0),
            Note(at=at, cycle=1, about="bound", text="cut"),
            Intent(id="i", at=at, cycle=1, candidate_id=None, action="tool", arguments={"a": 1}),
            failed,
            TurnEnd(at=at, turn=1, cycle=1, reason="respond", response="Sorry."),
        ]
    )
    assert [(one.action, one.status, one.result) for one in summary.actions] == [
        ("tool", "failed", "no")
    ]
    assert summary.effects[0][1] == failed
    assert (summary.status, summary.problems, summary.outcomes) == ("failed", ("bound: cut",), {})
    assert summary.turn_end is not None
    assert summary.turn_end.response == "Sorry."


def test_goal_and_state_are_those_of_the_cycles_beginning(
    cycle_records: Callable[[int], list[TraceRecord]],
) -> None:
    records = cycle_records(1)
    message = Percept(
        id="p",
        at=records[0].at,
        kind=PerceptKind.MESSAGE,
        source="user",
        trust=Trust.USER,
        content="Tidy up.",
        sets_goal=True,
        state_patch={"rooms": 2},
    )
    later = message.model_copy(update={"content": "Stop.", "state_patch": {"rooms": None}})
    again = TurnStart(at=records[0].at, turn=2, cycle=1)
    records = [message, *records, later, again, *cycle_records(2)]
    entries = [Entry(seq=seq, body=record) for seq, record in enumerate(records)]
    first, second = summarize_cycles(entries)
    assert (first.goal, first.state) == ("Tidy up.", {"rooms": 2})
    assert first.returned[-1] == later
    assert (second.goal, second.state) == ("Stop.", {})


def test_a_trace_is_divided_as_its_index_divides_it_and_nothing_is_lost(
    old_runs: list[Path],
) -> None:
    compared = 0
    for run in old_runs:
        path = run / "trace.jsonl"
        try:
            entries = list(read_trace(path, lambda problem: None))
        except TraceError:
            continue
        index = TraceIndex(path)
        while index.extend():
            pass
        groups = list(split_cycles(entries))
        if groups:
            assert [one.seq for _, group in groups for one in group] == [e.seq for e in entries]
        of_index = [index.stretch(number).cycle for number in range(index.stretches)]
        cycles = [one for one in of_index if one]
        merged = [one for at, one in enumerate(cycles) if not at or cycles[at - 1] != one]
        assert [cycle for cycle, _ in groups] == merged, run.name
        assert [one.cycle for one in summarize_cycles(entries)] == merged
        compared += 1
    assert compared > 10
