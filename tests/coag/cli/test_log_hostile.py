"""`coag log` on runs that somebody changed, or made to do harm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coag.schema import Phase, SnapshotReason
from coag.tracing import Parent, RunFolder, read_run, read_trace

pytestmark = pytest.mark.broken_trace("its records are made up")
# What `say` gives: the exit code and both streams.
Say = Callable[..., Any]


HARMS = {
    "escapes": "a\x1b[2Jb\x1b]0;title\x07c\x9b31md\x1bPq\x1b\\e\x1b_x\x1b\\f\x00g\x85h\u2066i",
    "unfinished escapes": "\x1b[" + "0;" * 20_000 + "\x1b]0;" * 20_000 + "\x9b" * 20_000,
    "long": "x " * 200_000,
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_hostile_text_in_any_place_does_no_harm(
    leave_run: Callable[..., RunFolder], coag_run: RunFolder, say: Say, harm: str
) -> None:
    text = HARMS[harm]
    records: list[Any] = []
    for entry in read_trace(coag_run.trace_path):
        texts = {name: text for name, value in entry.body if type(value) is str and value}
        kept = {"record", "phase", "what", "proposed_by", "id", "intent_id", "candidate_id"}
        changed = {name: value for name, value in texts.items() if name not in kept}
        records.append(entry.body.model_copy(update=changed))
    leave_run(records, "run-9")
    for options in ((), ("--json",)):
        result = say("log", "run-9", *options)
        assert result.code == 0
        assert not set(result.out) & set("\x00\x07\x1b\x9b\x85\u2066")
        assert options or max(map(len, result.out.splitlines())) < 2_000


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"[" * 100_000, "is not JSON"),
        (b'{"v":2,"seq":0,"body":"\\ud800"}', "is not JSON"),
        (b"\0" * 1_000, "is not JSON"),
        (b'{"v":2,"seq":' + b"9" * 5_000 + b"}", "is not JSON"),
        (b'{"v":' + b"9" * 4_000 + b',"seq":0,"body":{}}', "Update coag"),
        (b'{"v":3,"seq":0,"body":{}}', "version 3 of the format"),
        (b'{"v":2,"seq":0,"body":{"record":"\x1b[31m"}}', "is not JSON"),
        (b'{"v":2,"seq":0,"body":{"record":"\\u001b[31m"}}', "is no valid record"),
    ],
)
def test_a_hostile_line_is_one_sentence(
    coag_run: RunFolder, say: Say, line: bytes, sentence: str
) -> None:
    coag_run.trace_path.write_bytes(line + b"\n")
    result = say("log", "run-1")
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert sentence in result.err
    assert "\x1b" not in result.err
    assert "Traceback" not in result.err


def test_numbers_beyond_measure_are_shown(
    leave_run: Callable[..., RunFolder], coag_run: RunFolder, say: Say
) -> None:
    intent = next(e.body for e in read_trace(coag_run.trace_path) if e.body.record == "intent")
    huge = intent.model_copy(update={"arguments": {"amount": 10**4_000}})
    leave_run([huge], "run-9")
    assert "more]" in say("log", "run-9").out
    assert say("log", "run-9", "--json").out.count("0") > 4_000


def test_a_changed_line_is_shown_with_a_warning(coag_run: RunFolder, say: Say) -> None:
    text = coag_run.trace_path.read_text()
    coag_run.trace_path.write_text(text.replace("Clean [bold]", "Burn [bold]"))
    result = say("log", "run-1")
    assert result.code == 0
    assert "Burn [bold]the" in result.out
    assert result.err.startswith("line 2 has a hash that does not fit")
    assert result.err.count("\n") == 1


def test_a_trace_changed_all_over_is_not_shown_line_by_line(coag_run: RunFolder, say: Say) -> None:
    text = coag_run.trace_path.read_text()
    coag_run.trace_path.write_text(text.replace('"body":', '"body": '))
    result = say("log", "run-1")
    assert result.code == 0
    assert result.err.count("\n") == 6
    assert result.err.splitlines()[-1].startswith("… and ")


def test_a_forked_run_says_where_it_comes_from(coag_run: RunFolder, say: Say) -> None:
    info = read_run(coag_run.path)
    parent = Parent(
        run="run-0",
        path="run-0",
        cycle=3,
        phase=Phase.EVALUATION,
        seq=40,
        changes=("--without-constraint keep_charge",),
    )
    changed = info.model_copy(update={"parent": parent})
    coag_run.info_path.write_text(changed.model_dump_json())
    lines = say("log", "run-1").out.splitlines()
    assert lines[2] == "forked from run-0 at 3.evaluation, --without-constraint keep_charge"


def test_a_loaded_state_is_shown(
    leave_run: Callable[..., RunFolder], coag_run: RunFolder, say: Say
) -> None:
    snapshot = next(e.body for e in read_trace(coag_run.trace_path) if e.body.record == "snapshot")
    leave_run([snapshot.model_copy(update={"reason": SnapshotReason.LOADED}), snapshot], "run-9")
    out = say("log", "run-9").out
    assert out.count("state      a saved state took the place of the one before") == 1


def test_a_text_of_ten_megabytes_is_shown_by_its_beginning(
    leave_run: Callable[..., RunFolder], coag_run: RunFolder, say: Say
) -> None:
    percept = next(e.body for e in read_trace(coag_run.trace_path) if e.body.record == "percept")
    leave_run([percept.model_copy(update={"content": "x" * 10_000_000})], "run-9")
    out = say("log", "run-9").out
    assert "more]" in out
    assert len(out) < 2_000
