from __future__ import annotations

import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coag.distributed.journal import (
    Line,
    PlaceOpened,
    StateUnknown,
    TurnBegun,
    TurnEnded,
    TurnJournal,
)
from coag.distributed.protocol import RemoteFailure, TurnItem
from coag.errors import TraceError

KEPT = 3
_names = st.sampled_from(["a", "b", "c", "d", "e"])
_texts = st.text(max_size=5)
_lines: st.SearchStrategy[list[Line]] = st.lists(
    st.one_of(
        st.builds(PlaceOpened, instance=_names, past_runs=st.lists(_names, max_size=2).map(tuple)),
        st.builds(TurnBegun, turn=_names, turns_before=st.none() | st.integers(0, 9)),
        st.builds(
            TurnEnded,
            turn=_names,
            response=st.builds(
                TurnItem, message=st.dictionaries(_names, _texts), response=st.just(True)
            ),
        ),
        st.builds(
            TurnEnded,
            turn=_names,
            failure=st.builds(RemoteFailure, kind=st.just("lost"), problem=_texts),
        ),
        st.builds(StateUnknown),
    ),
    max_size=30,
)


def contents(journal: TurnJournal) -> tuple[object, ...]:
    return journal.opened, journal.open_turn, journal.settled, list(journal.ended.values())


def written(path: Path, lines: list[Line]) -> TurnJournal:
    journal = TurnJournal(path, kept=KEPT)
    for line in lines:
        journal.write(line)
    journal.close()
    return journal


@settings(max_examples=40)
@given(_lines)
def test_a_journal_that_is_opened_again_has_the_same_contents(lines: list[Line]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "turns.jsonl"
        first = written(path, lines)
        for _ in range(2):
            assert contents(written(path, [])) == contents(first)
        assert len(path.read_bytes().splitlines()) <= KEPT + 3


@settings(max_examples=40)
@given(_lines, st.data())
def test_a_journal_cut_anywhere_has_its_whole_lines(lines: list[Line], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path, complete = Path(folder) / "turns.jsonl", Path(folder) / "whole.jsonl"
        written(path, lines[:10])
        text = path.read_bytes()
        cut = data.draw(st.integers(0, len(text)))
        path.write_bytes(text[:cut])
        complete.write_bytes(text[: text.rfind(b"\n", 0, cut) + 1])
        assert contents(written(path, [])) == contents(written(complete, []))


def test_a_journal_grows_with_what_is_kept_and_not_with_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    turns = [kind(turn=str(number)) for number in range(500) for kind in (TurnBegun, TurnEnded)]
    written(path, [PlaceOpened(instance="a"), *turns])
    assert len(path.read_bytes().splitlines()) <= 4 * KEPT + 11
    assert stat.S_IMODE(path.stat().st_mode) == 0o600  # for its owner only


@pytest.mark.parametrize("damage", ["{}\n", "no json\n", '{"line": "begun"}\n'])
def test_a_damaged_line_is_refused_with_its_number(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "turns.jsonl"
    written(path, [PlaceOpened(instance="a")])
    path.write_text(path.read_text() + damage)
    with pytest.raises(TraceError, match=r"line 2 is damaged\. Move the file away"):
        TurnJournal(path, kept=KEPT)


def test_a_journal_that_cannot_be_written_is_a_trace_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TraceError, match="cannot be"):
        TurnJournal(tmp_path / "file" / "turns.jsonl", kept=KEPT)
