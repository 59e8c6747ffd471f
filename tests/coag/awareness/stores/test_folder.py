"""States as files: what is in the folder, and what a damaged one gives."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coag.awareness import AwarenessState, FolderStateStore, StateStoreError
from coag.errors import StateVersionError

STATE = AwarenessState(domain="conversation", at=datetime(2026, 11, 24, tzinfo=UTC))


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.json"))


async def test_each_version_is_a_file_that_is_the_state(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path, keep=2)
    for step in range(3):
        await store.save("alice & bob", STATE.model_copy(update={"step": step}))
    assert [path.name for path in files(tmp_path)] == ["000000000002.json", "000000000003.json"]
    newest = files(tmp_path)[-1]
    assert newest.parent.name.startswith("alice-bob.")
    assert AwarenessState.model_validate_json(newest.read_text("utf-8")).step == 2


async def test_what_a_killed_writer_left_unfinished_is_not_seen_and_goes_with_the_key(
    tmp_path: Path,
) -> None:
    store = FolderStateStore(tmp_path)
    await store.save("alice", STATE)
    unfinished = files(tmp_path)[0].with_name(".000000000002.json.x.new")
    unfinished.write_text('{"domain": "half')
    loaded = await store.load("alice")
    assert loaded is not None
    assert loaded.state == STATE
    assert await store.delete("alice") is True
    assert not unfinished.exists()


async def test_nothing_is_made_by_looking(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path / "states")
    await store.load("alice")
    await store.history("alice")
    await store.delete("alice")
    assert not store.path.exists()


async def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    version = await store.save("alice", STATE)
    files(tmp_path)[0].write_text('{"domain": "conversation", "step": -1}')
    with pytest.raises(StateStoreError, match=r"version 1 of 'alice'.* at step: .*Save a"):
        await store.load("alice")
    await store.save("alice", STATE, version)
    loaded = await store.load("alice")
    assert loaded is not None


async def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    await store.save("alice", STATE)
    files(tmp_path)[0].write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StateStoreError, match="States cannot be read or written in"):
        await store.load("alice")


async def test_a_state_of_another_version_is_refused(tmp_path: Path) -> None:
    store = FolderStateStore(tmp_path)
    await store.save("alice", STATE)
    file = files(tmp_path)[0]
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 99}))
    with pytest.raises(StateVersionError, match="version 99"):
        await store.load("alice")


async def test_a_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    store = FolderStateStore(tmp_path / "taken")
    with pytest.raises(StateStoreError, match=r"States cannot be read or written in .*taken"):
        await store.save("alice", STATE)
