"""Pages for reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coag.schema import Note, Snapshot, SteppingClock, TraceRecord
from coag.tracing import RunFolder, open_trace, read_trace

pytestmark = pytest.mark.broken_trace("its records are made up")

CycleMaker = Callable[[int], list[TraceRecord]]
RunMaker = Callable[..., RunFolder]
NOW = SteppingClock().now()


def traced(folder: RunFolder, records: list[TraceRecord]) -> Path:
    with open_trace(folder) as writer:
        for record in records:
            writer.write(record)
    return folder.cycles_path


def page(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_cycle_leaves_a_page_for_each_phase_in_order(
    make_run: RunMaker, cycle_records: CycleMaker
) -> None:
    cycles = traced(make_run(), [*cycle_records(1), *cycle_records(2)])
    names = [
        "1-retrieval.json",
        "2-reasoning.json",
        "3-proposal.json",
        "4-evaluation.json",
        "5-selection.json",
        "6-execution.json",
    ]
    for folder in ("0001", "0002"):
        assert sorted(path.name for path in (cycles / folder).iterdir()) == names


def test_a_page_shows_the_outcome_with_prompt_and_raw_answer_as_lines(
    make_run: RunMaker, cycle_records: CycleMaker
) -> None:
    cycles = traced(make_run(), cycle_records(1))
    fields = page(cycles / "0001" / "2-reasoning.json")
    assert (fields["cycle"], fields["phase"]) == (1, "reasoning")
    assert fields["outcome"]["situation"] == "This cell is dirty."
    (call,) = fields["model_calls"]
    assert call["messages"][0]["content"] == ["You clean.", "You never bump."]
    assert call["messages"][1]["content"] == "What now?"
    assert call["raw"] == ["{", '"situation": "dirty"}']


def test_each_record_is_on_the_page_of_the_phase_it_led_to(
    make_run: RunMaker, cycle_records: CycleMaker
) -> None:
    cycles = traced(make_run(), cycle_records(1))
    groups = {
        path.name[0]: set(page(path)) - {"cycle", "phase", "outcome"}
        for path in (cycles / "0001").iterdir()
    }
    assert groups == {
        "1": {"percepts"},
        "2": {"model_calls"},
        "3": {"model_calls"},
        "4": set(),
        "5": set(),
        "6": {"intents", "receipts"},
    }


def test_a_page_is_bounded_and_leaves_snapshots_to_the_trace(
    make_run: RunMaker, cycle_records: CycleMaker
) -> None:
    notes = [Note(at=NOW, cycle=1, about="x", text=str(number)) for number in range(1_000)]
    snapshot = Snapshot(at=NOW, cycle=1, working_memory={})
    cycles = traced(make_run(), [*notes, snapshot, *cycle_records(1)])
    fields = page(cycles / "0001" / "1-retrieval.json")
    assert len(fields["notes"]) < 1_000
    assert fields["notes"][-1]["text"] == "999"
    assert "snapshots" not in fields


def test_a_plain_run_leaves_a_page_for_each_model_call_and_action(
    make_run: RunMaker, plain_cycle_records: CycleMaker
) -> None:
    folder = make_run(kind="plain")
    traced(folder, plain_cycle_records(1))
    cycles = traced(folder, plain_cycle_records(1))
    names = sorted(path.name for path in (cycles / "0001").iterdir())
    assert names == ["1-model.json", "2-action.json", "3-model.json", "4-action.json"]
    assert page(cycles / "0001" / "1-model.json")["model_call"]["raw"][0] == "{"
    action = page(cycles / "0001" / "2-action.json")
    assert (action["intent"]["action"], action["receipt"]["content"]) == ("clean", "cleaned")


def test_a_receipt_without_its_intent_still_gets_a_page(
    make_run: RunMaker, plain_cycle_records: CycleMaker
) -> None:
    cycles = traced(make_run(kind="plain"), plain_cycle_records(1)[-1:])
    assert set(page(cycles / "0001" / "1-action.json")) == {"cycle", "receipt"}


def test_a_page_that_cannot_be_written_is_noted_once_and_the_run_continues(
    make_run: RunMaker, cycle_records: CycleMaker, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_run()
    folder.cycles_path.write_text("a file where the folder should be")
    records = [*cycle_records(1), *cycle_records(2)]
    traced(folder, records)
    written = [entry.body for entry in read_trace(folder.trace_path)]
    (note,) = (body for body in written if isinstance(body, Note))
    assert note.about == "pages"
    assert "1-retrieval.json: cannot be written" in note.text
    assert [body for body in written if body is not note] == records
    assert [record.message for record in caplog.records] == [note.text]
