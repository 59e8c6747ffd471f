"""A file is written whole or not at all, and read by its owner only."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from coag._util.files import AtomicFile, private, remove_drafts, replace_file
from coag._util.locks import LockHeldError, lock_file, try_lock


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_takes_the_place_of_an_older_one(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "notes.txt"
    assert replace_file(path, "one", durable=durable) == 3
    assert replace_file(path, "zwei €\ud800", durable=durable) == len("zwei €?".encode())
    assert path.read_text(encoding="utf-8") == "zwei €?"
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_new_file_is_its_owners_alone_and_an_older_one_keeps_its_permissions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "notes.txt"
    replace_file(path, "one")
    assert mode_of(path) == 0o600
    path.chmod(0o644)
    replace_file(path, "two")
    assert mode_of(path) == 0o644
    with open(tmp_path / "log", "ab", opener=private):
        pass
    assert mode_of(tmp_path / "log") == 0o600


def test_a_file_that_cannot_be_replaced_leaves_the_older_one_and_no_draft(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "absent" / "notes.txt", "text")
    (tmp_path / "notes.txt" / "inside").mkdir(parents=True)
    with pytest.raises(OSError, match=r"notes\.txt"):
        replace_file(tmp_path / "notes.txt", "text")
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_an_error_while_writing_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    replace_file(path, "old")

    def write_half() -> None:
        with AtomicFile(path) as file:
            file.draft.write(b"half of the n")
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_half()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_what_a_killed_writer_left_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    replace_file(path, "old")
    script = (
        "import os, sys; from pathlib import Path; from coag._util.files import AtomicFile\n"
        "AtomicFile(Path(sys.argv[1])).draft.write(b'half'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=30)
    assert path.read_text() == "old"
    assert len(os.listdir(tmp_path)) == 2
    remove_drafts(tmp_path)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_a_lock_is_held_by_one_until_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    with lock_file(path, 0):
        with path.open("a+b") as other:
            assert not try_lock(other)
        with pytest.raises(LockHeldError, match=r"0\.02 s"):
            lock_file(path, 0.02)
    lock_file(path, 0).close()
