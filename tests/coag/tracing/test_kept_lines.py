"""Lines that a long measurement goes on from."""

from __future__ import annotations

from pathlib import Path

import pytest

from coag.errors import ConfigurationError
from coag.schema import Value
from coag.tracing import KeptLines


class Note(Value):
    said: str
    turn: int = 0


def notes(path: Path) -> KeptLines[Note]:
    return KeptLines(path, Note, named="note")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "notes.jsonl"


def test_what_was_written_is_there_when_it_is_opened_again(path: Path) -> None:
    assert notes(path).values == ()
    assert not path.parent.exists()
    file, said = notes(path), (Note(said="one"), Note(said="two\u2028three", turn=2))
    for note in said:
        file.append(note)
    assert notes(path).values == said


def test_what_another_writer_added_meanwhile_stays(path: Path) -> None:
    notes(path).append(Note(said="first"))
    one, other = notes(path), notes(path)
    for number in range(3):
        one.append(Note(said="one", turn=number))
        other.append(Note(said="other", turn=number))
    assert len(notes(path).values) == 7


def test_a_line_that_was_cut_off_goes_with_the_next_value_and_not_before(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes(path).append(Note(said="whole"))
    with path.open("ab") as file:
        file.write(b'{"said": "cu')
    held = path.read_bytes()
    file = notes(path)
    assert file.values == (Note(said="whole"),)
    assert "was cut off" in caplog.text
    assert path.read_bytes() == held
    file.append(Note(said="next"))
    file.append(Note(said="last"))
    assert [note.said for note in notes(path).values] == ["whole", "next", "last"]


def test_a_first_line_that_was_cut_off_is_known_as_one(path: Path) -> None:
    path.parent.mkdir()
    for torn in (b"{", b'{"said":', b'{"said": "x'):
        path.write_bytes(torn)
        file = notes(path)
        assert file.values == ()
        file.append(Note(said="anew"))
        assert notes(path).values == (Note(said="anew"),)


def test_something_else_is_told_with_its_line_and_left_as_it_is(path: Path) -> None:
    notes(path).append(Note(said="one"))
    held = path.read_bytes() + b'{"mine": 1}\nno newline'
    path.write_bytes(held)
    with pytest.raises(ConfigurationError, match=r"Line 2 of .* is no kept note: .*mine"):
        notes(path)
    assert path.read_bytes() == held
    with pytest.raises(ConfigurationError, match=r"Notes cannot be read from"):
        notes(path.parent)
