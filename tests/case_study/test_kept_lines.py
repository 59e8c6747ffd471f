"""A file of values from which a long measurement continues."""

from __future__ import annotations

from pathlib import Path

import pytest

from case_study.awareness.kept_lines import KeptLines
from coag.errors import ConfigurationError
from coag.schema import Value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "readings.jsonl"


class Said(Value):
    said: str
    turn: int = 0


def kept(path: Path) -> KeptLines[Said]:
    return KeptLines(path, Said, named="note")


def test_what_writers_added_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notes.jsonl"
    assert kept(path).values == ()
    assert not path.parent.exists()
    one, other = kept(path), kept(path)
    values = [Said(said="two\u2028three", turn=turn) for turn in range(3)]
    for value in values:
        one.append(value)
        other.append(value)
    assert kept(path).values == tuple(value for value in values for _ in range(2))


@pytest.mark.parametrize("whole", [(), (Said(said="whole"),)])
@pytest.mark.parametrize("torn", [b"{", b'{"said":', b'{"said": "cu'])
def test_a_line_that_was_cut_off_goes_with_the_next_value_and_not_before(
    path: Path, whole: tuple[Said, ...], torn: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    for value in whole:
        kept(path).append(value)
    with path.open("ab") as file:
        file.write(torn)
    held = path.read_bytes()
    opened = kept(path)
    assert opened.values == whole
    assert "was cut off" in caplog.text
    assert path.read_bytes() == held
    opened.append(Said(said="next"))
    opened.append(Said(said="last"))
    assert kept(path).values == (*whole, Said(said="next"), Said(said="last"))


def test_a_foreign_line_is_named_with_its_number_and_left_as_it_is(path: Path) -> None:
    kept(path).append(Said(said="one"))
    held = path.read_bytes() + b'{"mine": 1}\nno newline'
    path.write_bytes(held)
    with pytest.raises(ConfigurationError, match=r"Line 2 of .* is no kept note: .*mine"):
        kept(path)
    assert path.read_bytes() == held
    with pytest.raises(ConfigurationError, match=r"Notes cannot be read from"):
        kept(path.parent)
