"""What dynamics know goes with the records into an export, and comes back as it was."""

from __future__ import annotations

import json
import random
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.sleepers import LONG, Calendar, dynamics_of, everything, in_store, note, sleeper

from coag.memory import LongTermMemory, Scopes, restore, said_by_person
from coag.memory.consolidation import sleep
from coag.memory.dynamics import (
    DynamicsFile,
    Links,
    MemoryDynamicsSettings,
    RecordState,
    dynamics_lines,
)
from coag.memory.dynamics.aging import TraitChange
from coag.memory.transfer import (
    OnConflict,
    TransferError,
    export_records,
    import_records,
)
from coag.schema import MemoryKind, Trust

CHANGE = TraitChange(trait="openness", before=0.5, after=0.55, confidence=0.9, reason="New places.")
LINKED = MemoryDynamicsSettings.preset("assistant").model_copy(update={"links": Links()})
SAID = ("A gull sat on pier {}.", "Pump {} is\nbroken — “again”.", LONG + "{}")
TOLD = ("The pump is in room {}.", "The pump holds {} litres.")


async def lived(seed: int, path: Path | None = None) -> LongTermMemory:
    """A life of random notes, questions, days and sleeps."""
    chance, clock = random.Random(seed), Calendar()
    memory = sleeper(clock=clock, path=path, settings=LINKED)
    dynamics = dynamics_of(memory)
    for number in range(chance.randint(1, 12)):
        text, told = chance.choice(SAID), chance.choice(TOLD)
        await note(memory, text.format(number))
        if chance.random() < 0.5:
            await tell(memory, told.format(number))
        if chance.random() < 0.4:
            await memory.recall(f"pump {number}")
        clock.passes(chance.choice([0, 1, 70, 190]))
        if chance.random() < 0.5:
            await sleep(memory)
    for apply in (True, False)[: chance.randint(0, 2)]:
        dynamics.persona.propose([CHANGE], at=chance.random(), apply=apply)
    return memory


async def tell(memory: LongTermMemory, text: str, scope: str | None = None) -> str:
    """Remembers what Ann said is so; its id."""
    said = said_by_person("ann")
    done = await memory.remember(MemoryKind.SEMANTIC, text, provenance=said, scope=scope)
    return done.record.id


def read(file: Path) -> bytes:
    return file.read_bytes()


async def exported(memory: LongTermMemory, file: Path, **more: Any) -> list[Any]:
    """The lines of an export of a memory with its dynamics."""
    clock, dynamics = Calendar(), dynamics_of(memory).file
    await export_records(memory.store, file, dynamics=dynamics, clock=clock, **more)
    return [json.loads(line) for line in read(file).splitlines()]


def states_of(memory: LongTermMemory) -> list[RecordState]:
    """All states but for their clusters, which an export has not."""
    return [one._replace(schema="") for some in dynamics_of(memory).states.scan() for one in some]


def known(memory: LongTermMemory) -> list[Any]:
    """What ties records, and what yields to what."""
    dynamics = dynamics_of(memory)
    assert dynamics.links is not None
    assert dynamics.matters is not None
    return [*dynamics.links.scan(), *dynamics.matters.scan()]


def archived(memory: LongTermMemory) -> list[Any]:
    archive = dynamics_of(memory).archive
    return [[*some, *archive.entries_of(one.id for one in some)] for some in archive.scan()]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000))
async def test_a_life_comes_back_as_it_was_and_its_export_changes_nothing(seed: int) -> None:
    memory = await lived(seed)
    before = await everything(memory)
    with TemporaryDirectory() as folder:
        file, again = Path(folder, "a.jsonl"), Path(folder, "b.jsonl")
        lines = await exported(memory, file)
        assert await everything(memory) == before
        other = sleeper(clock=Calendar(), settings=LINKED)
        for again_same in (False, True):
            done = await import_records(other.store, file, dynamics=dynamics_of(other).file)
            assert (done.new == 0) == again_same
            assert (done.lines, done.missing, done.ignored) == (len(lines) - 1, 0, 0)
            assert done.differing == done.dynamics_differing == 0
        await exported(other, again)
        assert read(again) == read(file)
    assert await in_store(other) == await in_store(memory)
    assert states_of(other) == states_of(memory)
    assert archived(other) == archived(memory)
    assert known(other) == known(memory)
    assert dynamics_of(other).persona.versions() == dynamics_of(memory).persona.versions()


async def faded(path: Path | None = None) -> LongTermMemory:
    """A memory with a record in the archive, one in the store and a version of its persona."""
    clock = Calendar()
    memory = sleeper(clock=clock, path=path)
    await note(memory, "The lamp is off.")
    clock.passes(400)
    await note(memory, "The door is red.")
    await sleep(memory)
    dynamics_of(memory).persona.propose([CHANGE], at=1.0, apply=True)
    return memory


async def test_an_export_of_a_file_that_is_only_looked_at_leaves_each_byte(tmp_path: Path) -> None:
    path = tmp_path / "dynamics.sqlite3"
    memory = await faded(path)
    dynamics_of(memory).close()
    before = read(path)
    with closing(DynamicsFile(path, read_only=True)) as file:
        done = await export_records(memory.store, tmp_path / "a.jsonl", dynamics=file)
    assert (done.records, done.dynamics) == (1, 5)
    assert read(path) == before


async def test_wrong_states_links_and_matters_are_refused(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    lines = await exported(memory, file)
    state = {**lines[-1], "state": {**lines[-1]["state"], "strength": 7}}
    still = {**lines[-1], "state": {**lines[-1]["state"], "stability": 0}}
    endless = {**lines[-1], "state": {**lines[-1]["state"], "used_at": "inf"}}
    link = {"line": "link", "owner": "alice", "record": "a", "other": "b", "weight": 2}
    alone = {**link, "other": "a", "weight": 0.5}
    matter = {"line": "matter", "owner": "alice", "record": "a", "matter": "b", "said_at": "inf"}
    bad = [state, still, endless, {"line": "state"}, link, alone, matter]
    file.write_text("\n".join(map(json.dumps, [*lines[:3], *bad])) + "\n")
    other = sleeper()
    into = dynamics_of(other).file
    with pytest.raises(TransferError, match=r"strength must be between 0 and 1, not 7"):
        await import_records(other.store, file, dynamics=into)
    done = await import_records(other.store, file, dynamics=into, skip_bad=True)
    assert (done.ignored, done.refused, done.dynamics) == (0, 7, 1)
    assert "stability must be above 0" in done.reasons[1].why
    assert "used_at must be a finite number" in done.reasons[2].why
    assert "record and other must be two, not both 'a'" in done.reasons[5].why


async def test_a_line_of_a_newer_kind_is_named_and_loses_nothing(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    lines = await exported(memory, file)
    dream = {"line": "dream", "of": "sheep"}
    file.write_text("\n".join(map(json.dumps, [*lines[:4], dream, *lines[4:]])) + "\n")
    other = sleeper()
    into = dynamics_of(other).file
    said = "of the kind 'dream', and this version of coag does not know it.* 1 new.*wrote it, or"
    with pytest.raises(TransferError, match=said) as raised:
        await import_records(other.store, file, dynamics=into)
    assert (raised.value.line, len(await in_store(other))) == (5, 1)
    done = await import_records(other.store, file, dynamics=into, skip_bad=True)
    assert (done.new, done.known, done.refused, done.missing) == (1, 1, 1, 0)
    assert states_of(other) == states_of(memory)


async def test_lines_of_an_earlier_version_without_links_import_as_before(tmp_path: Path) -> None:
    memory, file = await lived(4), tmp_path / "a.jsonl"
    lines = await exported(memory, file)
    earlier = [one for one in lines if one.get("line") not in ("link", "matter")]
    assert len(earlier) < len(lines)
    file.write_text("\n".join(map(json.dumps, earlier)) + "\n")
    other = sleeper(settings=LINKED)
    await import_records(other.store, file, dynamics=dynamics_of(other).file)
    assert states_of(other) == states_of(memory)
    assert known(other) == []


async def two_scopes() -> tuple[LongTermMemory, list[str]]:
    """A memory of two scopes with a link within each of them, and one between both."""
    memory = sleeper(scope=Scopes(own="alice", writes=("team",)), settings=LINKED)
    told = ("The pump is in room 1.", "The pump is in room 2.")
    ids = [await tell(memory, text, scope) for scope in ("alice", "team") for text in told]
    dynamics = dynamics_of(memory)
    assert dynamics.links is not None
    for at in range(3):
        dynamics.links.learned(ids[at : at + 2])
    return memory, ids


async def test_an_export_of_one_scope_leaves_out_links_with_an_end_in_another(
    tmp_path: Path,
) -> None:
    memory, (_, _, old, new) = await two_scopes()
    lines = await exported(memory, tmp_path / "a.jsonl", scopes=["team"])
    links = [{one["record"], one["other"]} for one in lines if one.get("line") == "link"]
    matters = {one["record"]: one["yields_to"] for one in lines if one.get("line") == "matter"}
    assert links == [{old, new}]
    assert matters == {old: new, new: ""}


async def test_links_and_what_yields_move_with_their_records_to_another_scope(
    tmp_path: Path,
) -> None:
    memory, file = (await two_scopes())[0], tmp_path / "a.jsonl"
    await exported(memory, file, scopes=["team"])
    other = sleeper(scope="bob", owner="alice", settings=LINKED)
    dynamics = dynamics_of(other)
    await import_records(other.store, file, scope="bob", dynamics=dynamics.file)
    recall = await other.recall("Where is the pump?")
    assert recall.records[0].record.text == "The pump is in room 2."
    await tell(other, "The pump is in room 3.")
    assert dynamics.links is not None
    assert dynamics.matters is not None
    ids = {hit.record.text: hit.record.id for hit in recall.records}
    first, second = (ids[f"The pump is in room {n}."] for n in (1, 2))
    assert set(dynamics.links.neighbours([first])[first]) == {second}
    assert set(dynamics.matters.yielding([first])) == {first, second}


async def test_what_yields_to_a_record_that_is_not_exported_yields_to_the_next() -> None:
    memory = sleeper(settings=LINKED)
    ids = [await tell(memory, f"The pump is in room {number}.") for number in range(3)]

    def yields(exported: list[str]) -> dict[str, str]:
        parts = dynamics_lines(dynamics_of(memory).file, exported)
        lines = [json.loads(line) for some in parts for line in some]
        return {one["record"]: one["yields_to"] for one in lines if one["line"] == "matter"}

    assert yields([ids[0], ids[2]]) == {ids[0]: ids[2], ids[2]: ""}
    assert yields(ids[:2]) == {ids[0]: ids[1], ids[1]: ""}


async def test_what_is_there_stays_unless_it_is_to_be_taken(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    lines = await exported(memory, file)
    other = sleeper(settings="companion")
    dynamics = dynamics_of(other)
    dynamics.persona.roll_back(0, at=2.0)
    record = await note(other, "The door is red.")
    own = (dynamics.states.get([record.id]), dynamics.persona.versions(), dynamics.settings)
    kept = await import_records(other.store, file, dynamics=dynamics.file)
    assert (kept.new, kept.dynamics, kept.dynamics_differing) == (1, 1, 3)
    assert (dynamics.states.get([record.id]), dynamics.persona.versions(), dynamics.settings) == own
    await restore(other, lines[4]["record"]["id"])
    taken = await import_records(
        other.store, file, dynamics=dynamics.file, on_conflict=OnConflict.TAKE
    )
    assert (taken.new, taken.dynamics, taken.dynamics_differing) == (0, 4, 0)
    assert states_of(other) == states_of(memory)
    assert dynamics.persona.versions() == dynamics_of(memory).persona.versions()


async def test_a_personality_is_not_continued_by_that_of_another_life(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    dynamics_of(memory).persona.roll_back(0, at=3.0)
    await exported(memory, file)
    other = sleeper()
    own = dynamics_of(other).persona.roll_back(0, at=2.0)
    await import_records(other.store, file, dynamics=dynamics_of(other).file)
    assert dynamics_of(other).persona.versions() == (own,)


async def test_records_that_are_taken_come_back_from_the_archive(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    await exported(memory, file)
    clock = Calendar()
    other = sleeper(clock=clock)
    await note(other, "The door is red.")
    clock.passes(400)
    await sleep(other)
    assert not await in_store(other)
    into = dynamics_of(other).file
    assert (await import_records(other.store, file, dynamics=into)).known == 0
    assert not await in_store(other)
    await import_records(other.store, file, dynamics=into, on_conflict=OnConflict.TAKE)
    assert await in_store(other) == await in_store(memory)


async def test_another_scope_takes_its_dynamics_along(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    await exported(memory, file, scopes=["alice"])
    other = sleeper(scope="bob", owner="bob")
    dynamics = dynamics_of(other)
    await import_records(other.store, file, scope="bob", dynamics=dynamics.file)
    (away,) = next(dynamics.archive.scan())
    (here,) = await in_store(other)
    assert (away.scope, away.text) == ("bob", "The lamp is off.")
    assert {one.record for one in states_of(other)} == {here, away.id}
    assert dynamics.persona.traits.openness == 0.55


async def test_an_export_of_one_scope_holds_nothing_of_another(tmp_path: Path) -> None:
    memory = await faded()
    lines = await exported(memory, tmp_path / "a.jsonl", scopes=["bob"])
    assert [len(lines), lines[0]["dynamics"]] == [1, 0]


async def test_what_is_trusted_less_brings_no_state_setting_or_personality(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    await exported(memory, file)
    other = sleeper()
    into = dynamics_of(other)
    done = await import_records(other.store, file, trust=Trust.UNTRUSTED, dynamics=into.file)
    assert (done.new, done.ignored, done.missing) == (2, 4, 0)
    (away,) = next(into.archive.scan())
    assert away.provenance.trust is Trust.UNTRUSTED
    assert (states_of(other), into.persona.versions()) == ([], ())


async def test_what_an_interrupted_sleep_left_in_both_is_exported_once(tmp_path: Path) -> None:
    memory, file = await faded(), tmp_path / "a.jsonl"
    archive = dynamics_of(memory).archive
    (away,) = next(archive.scan())
    await memory.store.add([away])
    lines = await exported(memory, file)
    assert [one.get("line", "record") for one in lines[1:]].count("archived") == 0
    whole = dynamics_of(memory).whole(memory.store)
    await export_records(whole, file, dynamics=dynamics_of(memory).file)
    assert len(read(file).splitlines()) == len(lines)
