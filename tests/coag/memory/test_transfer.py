"""A memory goes into a file and comes back from it with every field."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.remembered import START, remembered

from coag.errors import RecordStoreError
from coag.memory.transfer import (
    ImportResult,
    OnConflict,
    TransferError,
    export_lines,
    export_records,
    import_records,
)
from coag.schema import (
    Dynamics,
    Event,
    Fact,
    Lineage,
    MemoryKind,
    Mood,
    Provenance,
    Record,
    Trust,
    ValidityInterval,
    record_id,
)
from coag.store import FIXED_FIELDS, ChromaStore, HashEmbedder, InMemoryStore, RecordStore

EPISODIC, SEMANTIC = MemoryKind.EPISODIC, MemoryKind.SEMANTIC
SIGNS = st.characters(exclude_categories=("Cs",), exclude_characters="\0\x1b")
TEXT = st.builds("a{}".format, st.text(SIGNS, max_size=20))
NAME = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
UNIT = st.floats(0, 1)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=ZONES)
MAYBE_TIME = st.none() | TIMES
IDS = st.text("0123456789abcdef", min_size=8, max_size=32)
SCALARS = NAME | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15)
METADATA = st.dictionaries(NAME.filter(lambda key: key not in FIXED_FIELDS), SCALARS, max_size=3)


def some(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, max_size=2).map(tuple)


PROVENANCE = st.builds(
    Provenance,
    **dict.fromkeys(("run", "activity", "source", "source_kind"), NAME),
    cycle=st.integers(0, 1000),
    trust=st.sampled_from(Trust),
)
EVENTS = st.builds(
    Event, at=MAYBE_TIME, episode=NAME, order=st.none() | st.integers(0, 99), place=NAME
)
FACTS = st.builds(
    Fact,
    subject=TEXT,
    **dict.fromkeys(("attribute", "value"), NAME),
    **dict.fromkeys(("valid_from", "valid_until"), MAYBE_TIME),
    confidence=UNIT,
)
DYNAMICS = st.builds(
    Dynamics,
    strength=st.floats(0, 9),
    importance=UNIT,
    accesses=st.integers(0, 9),
    accessed_at=MAYBE_TIME,
    mood=st.none() | st.builds(Mood, valence=st.floats(-1, 1), arousal=UNIT),
)
LINEAGES = st.builds(
    Lineage,
    **dict.fromkeys(("derived_from", "contradicts"), some(IDS)),
    also_from=some(PROVENANCE),
    earlier=some(st.builds(ValidityInterval, since=TIMES, until=MAYBE_TIME)),
)


@st.composite
def records(draw: st.DrawFn) -> Record:
    kind, scope, text = draw(st.sampled_from(MemoryKind)), draw(NAME), draw(TEXT)
    return Record(
        id=record_id(kind, scope, text),
        kind=kind,
        text=text,
        scope=scope,
        created_at=draw(TIMES),
        provenance=draw(PROVENANCE),
        type=draw(NAME),
        metadata=draw(METADATA),
        supersedes=draw(st.none() | IDS),
        superseded_by=draw(st.none() | IDS),
        event=draw(st.none() | EVENTS),
        fact=draw(st.none() | FACTS),
        dynamics=draw(DYNAMICS),
        lineage=draw(LINEAGES),
    )


MANY = st.lists(records(), max_size=6, unique_by=lambda one: one.id)


def in_memory() -> InMemoryStore:
    return InMemoryStore(HashEmbedder(8))


async def everything(store: RecordStore) -> list[Record]:
    return [record async for batch in store.scan() for record in batch]


async def moved(source: RecordStore, target: RecordStore, file: Path) -> ImportResult:
    await export_records(source, file)
    return await import_records(target, file)


@given(held=MANY)
def test_what_is_exported_and_imported_is_equal_and_in_order(
    held: list[Record], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def there_and_back() -> None:
        source, target = in_memory(), in_memory()
        await source.add(held)
        file = tmp_path_factory.getbasetemp() / "memory.jsonl"
        result = await moved(source, target, file)
        assert result == ImportResult(new=len(held))
        assert await everything(target) == await everything(source)
        assert await import_records(target, file) == ImportResult(known=len(held))

    asyncio.run(there_and_back())


@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(held=MANY)
def test_what_chroma_held_comes_back_in_another_chroma(
    held: list[Record], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def there_and_back() -> None:
        folder = tmp_path_factory.mktemp("chroma")
        source = ChromaStore(folder / "one", HashEmbedder(8))
        target = ChromaStore(folder / "two", HashEmbedder(8))
        await source.add(held)
        await moved(source, target, folder / "memory.jsonl")
        assert await everything(target) == await everything(source)
        for store in (source, target):
            await store.close()

    asyncio.run(there_and_back())


OLD = remembered(
    "The door is open.",
    kind=SEMANTIC,
    superseded_by=record_id(SEMANTIC, "alice", "The door is shut."),
)
NEW = remembered("The door is shut.", kind=SEMANTIC, minutes=1, supersedes=OLD.id)
KNOWN = remembered(
    "Somebody shut the door.",
    trust=Trust.DEVELOPER,
    minutes=2,
    lineage=Lineage(derived_from=(NEW.id,), contradicts=(OLD.id,)),
)
ALL = [KNOWN, OLD, NEW]


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    """An export of three records that hang together."""
    store, path = in_memory(), tmp_path / "memory.jsonl"
    await store.add(ALL)
    await export_records(store, path)
    return path


def content(file: Path) -> bytes:
    return file.read_bytes()


def put(file: Path, new: bytes) -> None:
    file.write_bytes(new)


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def damaged(file: Path, change: Callable[[list[str]], object]) -> Path:
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    change(lines)
    file.write_text("".join(lines), encoding="utf-8", errors="surrogateescape")
    return file


async def test_a_scope_or_a_kind_alone_is_exported(tmp_path: Path) -> None:
    store, file = in_memory(), tmp_path / "memory.jsonl"
    await store.add([*ALL, remembered("Hello.", scope="bob")])
    counts: list[int] = []
    assert (await export_records(store, file, scopes=["bob"], progress=counts.append)).records == 1
    assert counts == [1]
    lines = [line async for some in export_lines(store, kinds=[SEMANTIC]) for line in some]
    assert [Record.model_validate_json(line) for line in lines] == [OLD, NEW]
    with pytest.raises(ValueError, match="kinds is empty"):
        await export_records(store, file, kinds=[])
    assert (await export_records(store, file)).records == 4


async def test_an_export_that_fails_leaves_the_file_that_was_there(
    file: Path, tmp_path: Path
) -> None:
    before, closed = content(file), in_memory()
    await closed.close()
    with pytest.raises(RecordStoreError, match="closed"):
        await export_records(closed, file)
    assert content(file) == before
    assert names(tmp_path) == [file.name]
    with pytest.raises(RecordStoreError, match="cannot be written"):
        await export_records(in_memory(), tmp_path / "nowhere" / "memory.jsonl")


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (None, "{nonsense}\n", "holds no record: Invalid JSON"),
        ("is open", "is blue", "somebody has changed"),
        ('"semantic"', '"musical\\u001b[2J"', r"\(kind\), not 'musical"),
        (None, "x" * 20_000_000 + "\n", "more than 8,000,000 bytes"),
        (None, "\udcff\n", r"no text in UTF-8 \(invalid start byte at byte 0\)"),
        ('"metadata":{}', f'"metadata":{{"n":{2**60}}}', "cannot be kept: Metadata 'n'"),
    ],
)
async def test_a_bad_line_is_named_and_the_lines_before_it_are_kept(
    file: Path, old: str | None, new: str, error: str
) -> None:
    damaged(file, lambda lines: lines.__setitem__(2, lines[2].replace(old or lines[2], new)))
    store = in_memory()
    with pytest.raises(TransferError, match=error) as caught:
        await import_records(store, file)
    assert caught.value.line == 3
    assert "line 3" in str(caught.value)
    assert "1 new" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert await everything(store) == [KNOWN]
    result = await import_records(store, file, skip_bad=True)
    assert (result.new, result.known, result.refused, result.missing) == (1, 1, 1, 0)
    assert [one.line for one in result.reasons] == [3]
    assert await everything(store) == [KNOWN, NEW]


async def test_a_file_that_was_cut_off_is_reported(file: Path) -> None:
    whole = content(file)
    put(file, whole[:-20])
    with pytest.raises(TransferError, match=r"ends in the middle of this line.* Export it again,"):
        await import_records(in_memory(), file)
    put(file, b"".join(whole.splitlines(keepends=True)[:-1]))
    assert (await import_records(in_memory(), file)).missing == 1


@pytest.mark.parametrize(
    "found",
    [b"", b"\n", b'{"id": 1}\n', b"\xff\xfe\n", b'{"format": "coag-memory", "version": 2}'],
)
async def test_a_file_that_is_no_export_is_refused(tmp_path: Path, found: bytes) -> None:
    file = tmp_path / "other.jsonl"
    put(file, found)
    with pytest.raises(TransferError, match="no header of an exported memory"):
        await import_records(in_memory(), file)
    for scope in (None, "bob"):
        with pytest.raises(TransferError, match="cannot be read: No such file"):
            await import_records(in_memory(), tmp_path / "none.jsonl", scope=scope)


def unkept(text: str = "A note.", **fields: object) -> Record:
    """A record that only a file can hold: memory would have refused it."""
    record = remembered("A note.", kind=SEMANTIC)
    name = record_id(SEMANTIC, record.scope, text)
    return record.model_copy(update={"id": name, "text": text, **fields})


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (unkept(" \n"), "the text is empty"),
        (unkept("\u200b\u2060\u3164"), "the text shows nothing"),
        (unkept("\x07\u202e"), "the text is empty"),
        (unkept("a\0b"), r"the character U\+0000"),
        (unkept("a" * 20_001), "has 20001 characters"),
        (unkept(metadata={"type": "note"}), "'type' is the name of a field"),
    ],
)
@pytest.mark.parametrize("scope", [None, "bob"])
async def test_a_record_that_memory_refuses_is_not_imported_and_its_line_and_id_are_named(
    file: Path, bad: Record, error: str, scope: str | None
) -> None:
    damaged(file, lambda lines: lines.__setitem__(2, bad.model_dump_json() + "\n"))
    store = in_memory()
    with pytest.raises(TransferError, match=error) as caught:
        await import_records(store, file, scope=scope)
    assert caught.value.line == 3
    assert bad.id in str(caught.value)
    assert not set(str(caught.value)) & {"\0", "\x1b", "\u200b"}
    assert "1 new" in str(caught.value)
    assert [one.text for one in await everything(store)] == [KNOWN.text]
    result = await import_records(store, file, scope=scope, skip_bad=True)
    assert (result.new, result.known, result.refused) == (1, 1, 1)
    assert bad.id in result.reasons[0].why
    assert [one.text for one in await everything(store)] == [KNOWN.text, NEW.text]


async def test_another_scope_changes_ids_and_links_together(file: Path) -> None:
    store = in_memory()
    assert (await import_records(store, file, scope="bob")).new == 3
    event, old, new = await everything(store)
    assert {one.scope for one in (event, old, new)} == {"bob"}
    assert new.id == record_id(SEMANTIC, "bob", NEW.text)
    assert (old.superseded_by, new.supersedes) == (new.id, old.id)
    assert event.lineage == Lineage(derived_from=(new.id,), contradicts=(old.id,))
    assert (await import_records(store, file, scope="bob")).known == 3


async def test_several_scopes_do_not_become_one(tmp_path: Path) -> None:
    store, target, file = in_memory(), in_memory(), tmp_path / "memory.jsonl"
    await store.add([OLD, remembered("Hello.", scope="bob")])
    await export_records(store, file)
    with pytest.raises(TransferError, match="cannot all become 'carol'"):
        await import_records(target, file, scope="carol")
    assert await everything(target) == []


async def test_a_file_from_elsewhere_is_trusted_as_little_as_asked_for(file: Path) -> None:
    store = in_memory()
    await import_records(store, file, trust=Trust.USER)
    assert [one.provenance.trust for one in await everything(store)] == [Trust.USER] * 3
    lower = in_memory()
    await import_records(lower, file, trust=Trust.UNTRUSTED)
    assert {one.provenance.trust for one in await everything(lower)} == {Trust.UNTRUSTED}


async def test_a_record_that_differs_stays_unless_the_file_is_to_be_taken(file: Path) -> None:
    store = in_memory()
    mine = KNOWN.model_copy(update={"type": "mine", "created_at": START})
    await store.add([mine])
    assert await import_records(store, file) == ImportResult(new=2, differing=1)
    assert (await store.get([KNOWN.id])) == [mine]
    taken = await import_records(store, file, on_conflict=OnConflict.TAKE)
    assert taken == ImportResult(known=2, differing=1)
    assert await everything(store) == ALL
