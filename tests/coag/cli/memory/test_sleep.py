"""`coag memory sleep`, `archived` and `restore`: a memory that fades, seen by its owner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kits.fake_server import FakeServer, openai_body
from kits.remembered import remembered
from kits.sleepers import LONG, Calendar
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from coag.memory import LongTermMemory
from coag.memory.consolidation import sleep
from coag.memory.dynamics import DAY, DYNAMICS_FILE, DynamicsFile, MemoryDynamics
from coag.schema import Lineage, Record, SystemClock
from coag.store import ChromaStore, HashEmbedder

Say = Callable[..., Any]
OLD = remembered("The charger stood at the door.")
FIRST = remembered("The lamp is off.").model_copy(update={"superseded_by": OLD.id})
CHAINED = OLD.model_copy(update={"supersedes": FIRST.id})
LATER = remembered("So it was charged.", lineage=Lineage(derived_from=(OLD.id,)))


async def _lived(folder: Path, *records: Record, days: float = 0.0, ago: float = 390.0) -> None:
    """An agent's memory that slept long ago; all but the first of its records are used since.

    Those were last used so many days ago.
    """
    clock = Calendar(SystemClock().now() - timedelta(days=ago))
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    await store.add(records)
    dynamics = MemoryDynamics(path=folder / DYNAMICS_FILE, owner="alice", clock=clock)
    memory = LongTermMemory(store, scope="alice", dynamics=dynamics)
    await sleep(memory)
    states = dynamics.states.get([one.id for one in records[1:]]).values()
    dynamics.states.put(one._replace(used_at=one.used_at + (ago - days) * DAY) for one in states)
    await memory.close()


@pytest.fixture
def lived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "alice"
    asyncio.run(_lived(folder, OLD))
    monkeypatch.setenv("COAG_MEMORY", str(folder))
    monkeypatch.setenv("COAG_EMBEDDER", "hash-64")
    return folder


def test_sleep_says_what_would_change_then_does_it_and_the_archive_shows_it(
    say: Say, lived: Path
) -> None:
    trial = say("memory", "sleep", str(lived), "--dry-run")
    assert trial.code == 0
    assert "fade: 1 of 1 would change, done" in trial.out
    assert say("memory", "archived").code == 1
    done = say("memory", "sleep", str(lived), "--owner", "alice")
    assert "fade: 1 of 1 changed, done" in done.out
    listed = say("memory", "archived")
    assert listed.out.startswith(OLD.id[:8])
    assert OLD.text in listed.out
    (entry,) = say("memory", "archived", "--json").out.splitlines()
    assert json.loads(entry)["text"] == OLD.text
    log = (lived / "memory-log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(one)["details"]["fade"] for one in log] == [1]


def test_what_is_restored_is_found_again(say: Say, lived: Path) -> None:
    say("memory", "sleep", str(lived))
    assert OLD.text not in say("memory", "ls").out
    assert say("memory", "restore", OLD.id[:8]).out.startswith(f"{OLD.id} is recalled again")
    assert OLD.text in say("memory", "ls").out
    assert "fade: 0 of 1 changed" in say("memory", "sleep", str(lived)).out
    again = say("memory", "restore", OLD.id[:8])
    assert (again.code, again.err) == (1, f"There is no record '{OLD.id[:8]}' in the archive.\n")


def test_what_has_faded_goes_into_an_export_and_into_another_folder(
    say: Say, lived: Path, tmp_path: Path
) -> None:
    say("memory", "sleep", str(lived))
    file, before = tmp_path / "alice.jsonl", (lived / DYNAMICS_FILE).read_bytes()
    said = say("memory", "export", str(file)).out
    assert said.startswith("0 record(s) and 3 line(s) on dynamics are in ")
    piped = say("memory", "export", "-").out.splitlines()
    assert piped[1:] == file.read_text(encoding="utf-8").splitlines()[1:]
    assert (lived / DYNAMICS_FILE).read_bytes() == before
    other = ("-m", str(tmp_path / "other"))
    done = say("memory", "import", str(file), *other)
    assert done.out == "1 new, 0 known\n2 line(s) on dynamics are as in the file\n"
    assert say("memory", "archived", *other).out.startswith(OLD.id[:8])
    assert say("memory", "strength", *other).out == say("memory", "strength").out
    assert say("memory", "restore", OLD.id[:8], *other).code == 0
    again = say("memory", "import", str(file), *other).out
    assert "1 line(s) on dynamics differ from what is there" in again
    less = ("-m", str(tmp_path / "third"), "--trust", "untrusted")
    assert "2 line(s) on dynamics were ignored" in say("memory", "import", str(file), *less).out


def test_a_sleep_may_be_stopped_and_its_report_read_by_a_program(say: Say, lived: Path) -> None:
    first = json.loads(say("memory", "sleep", str(lived), "--seconds", "0", "--json").out)
    assert first["stopped_at"] == "encode"
    second = json.loads(say("memory", "sleep", str(lived), "--json").out)
    assert (second["resumed_at"], second["stopped_at"]) == ("encode", "")


def test_a_model_writes_the_gists_of_a_sleep(say: Say, lived: Path) -> None:
    gist = "Ann promised to bring the red ladder back by 5 May."

    async def answer(body: dict[str, Any], request: Request) -> Response:
        del body, request
        return JSONResponse(openai_body({"content": json.dumps({"gist": gist})}))

    asyncio.run(_lived(lived.parent / "bob", OLD, remembered(LONG), days=100))
    place = ("memory", "sleep", "-m", str(lived.parent / "bob"))
    with FakeServer(answer) as server:
        model = ("--model", f"{server.url}/v1#tiny")
        assert say(*place, *model, "--dry-run").code == 0
        assert server.seen == []
        done = json.loads(say(*place, *model, "--json").out)
    assert done["model_calls"] == len(server.seen) == 1
    shown = say("memory", "strength", remembered(LONG).id, "-m", str(lived.parent / "bob")).out
    assert gist in shown


@pytest.mark.parametrize("trial", [(), ("--dry-run",)])
def test_after_years_a_sleep_is_refused_unless_the_clock_is_said_to_be_right(
    say: Say, lived: Path, trial: tuple[str, ...]
) -> None:
    place = lived.parent / "bob"
    asyncio.run(_lived(place, OLD, ago=3_000))
    refused = say("memory", "sleep", str(place), *trial)
    assert (refused.code, refused.out) == (2, "")
    assert "more than 400 days ahead" in refused.err
    assert "coag memory sleep --allow-clock-jump" in refused.err
    assert OLD.text in say("memory", "ls", "-m", str(place)).out
    done = say("memory", "sleep", str(place), "--allow-clock-jump", *trial)
    assert (done.code, "fade: 1 of 1" in done.out) == (0, True)


def test_a_memory_without_dynamics_and_an_unknown_owner_are_said_so(say: Say, lived: Path) -> None:
    unknown = say("memory", "sleep", str(lived), "--owner", "bob")
    assert (unknown.code, "known: 'alice'" in unknown.err) == (2, True)
    (lived / DYNAMICS_FILE).unlink()
    none = say("memory", "sleep")
    assert (none.code, "has no dynamics" in none.err) == (2, True)


def test_a_step_that_fails_makes_the_command_fail(say: Say, lived: Path) -> None:
    file = DynamicsFile(lived / DYNAMICS_FILE)
    with file.transaction() as db:
        db.execute("UPDATE states SET strength = 'much'")
    file.close()
    failed = say("memory", "sleep", str(lived))
    assert failed.code == 1
    assert "fade: 0 of 0 changed, failed" in failed.out
    assert "archive: 0 of 0 changed, done" in failed.out


def test_settings_of_another_version_are_an_error(say: Say, lived: Path) -> None:
    file = DynamicsFile(lived / DYNAMICS_FILE)
    with file.transaction() as db:
        db.execute("UPDATE owners SET settings = '{\"telepathy\": 1}'")
    file.close()
    failed = say("memory", "sleep", str(lived))
    assert (failed.code, "dynamics of 'alice'" in failed.err) == (2, True)


# ---- The other commands, where something has faded ----


@pytest.fixture
def linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say) -> Path:
    """A record has faded that superseded one, and from which another was concluded."""
    folder = tmp_path / "alice"
    asyncio.run(_lived(folder, CHAINED, FIRST, LATER))
    monkeypatch.setenv("COAG_MEMORY", str(folder))
    monkeypatch.setenv("COAG_EMBEDDER", "hash-64")
    assert "fade: 1 of 3 changed" in say("memory", "sleep").out
    return folder


@pytest.mark.usefixtures("linked")
def test_history_shows_what_has_faded_and_stats_misses_nothing(say: Say) -> None:
    shown = say("memory", "history", OLD.id).out
    assert all(one.text in shown for one in (OLD, FIRST, LATER))
    health = json.loads(say("memory", "stats", "--json").out)
    assert (health["healthy"], health["findings"]) == (True, [])
    say("memory", "stats", "--mend")
    assert FIRST.text not in say("memory", "ls").out


@pytest.mark.usefixtures("linked")
def test_revoking_what_has_faded_takes_what_was_concluded_and_restores_what_was_before(
    say: Say,
) -> None:
    done = say("memory", "revoke", OLD.id, "--reason", "It was a lie.", "--yes").out
    assert f"hold again: {FIRST.id}" in done
    assert say("memory", "archived").code == 1
    left = say("memory", "ls").out
    assert FIRST.text in left
    assert LATER.text not in left


def test_what_has_faded_can_be_forgotten_with_all_that_is_known_of_it(
    say: Say, linked: Path
) -> None:
    assert say("memory", "forget", OLD.id[:8], "--yes").out == f"{OLD.id} is forgotten.\n"
    file = DynamicsFile(linked / DYNAMICS_FILE)
    assert file.rows("SELECT record FROM archive") == []
    assert file.rows("SELECT record FROM states WHERE record = ?", OLD.id) == []
    file.close()
