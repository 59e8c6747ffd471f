"""A memory of more records than a screen has lines: what is shown, and how many more there are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.remembered import remembered
from kits.statements import memory_over, origin

from coag.schema import MemoryKind, Trust
from coag.store import ChromaStore, HashEmbedder

Say = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("crowd")


async def _filled(folder: Path) -> None:
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    facts: dict[str, Any] = {"kind": MemoryKind.SEMANTIC, "trust": Trust.UNTRUSTED}
    await store.add(
        [
            remembered(f"Guest {number} has room {number}.", source="page", minutes=number, **facts)
            for number in range(24)
        ]
        + [
            remembered(f"House {n} is open.", scope=f"house-{n}", type=f"type-{n}", minutes=n)
            for n in range(24)
        ]
    )
    memory = memory_over(store)
    for source in ("page", "ann"):
        for number in range(22):
            trust = Trust.UNTRUSTED if source == "page" else Trust.USER
            text, proof = f"Door {number} is green.", origin(source, trust, run="")
            await memory.remember(MemoryKind.SEMANTIC, text, provenance=proof)
    await memory.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with many records of several scopes, types and sources."""
    folder = tmp_path_factory.mktemp("crowd")
    asyncio.run(_filled(folder))
    return folder


@pytest.fixture
def crowd(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That folder, as the one which commands mean."""
    monkeypatch.setenv("COAG_MEMORY", str(made))
    monkeypatch.setenv("COAG_EMBEDDER", "hash-64")
    return made


def test_counts_and_scopes_are_cut_off_with_how_many_more(say: Say) -> None:
    assert "more" in say("memory", "stats").out
    assert "… and " in say("memory", "stats").out
    unknown = say("memory", "ls", "--scope", "zed")
    assert (unknown.code, "more" in unknown.err) == (1, True)


def test_what_is_to_be_forgotten_is_shown_as_far_as_it_fits(
    say: Say, at_a_terminal: Callable[[str], None]
) -> None:
    at_a_terminal("n")
    result = say("memory", "forget", "--everything", "--scope", "alice")
    assert result.code != 0
    assert "  … and " in result.err
    assert len(say("memory", "ls", "--json", "--limit", "500").out.splitlines()) == 70


def test_a_revocation_counts_what_it_does_not_show(say: Say) -> None:
    result = say("memory", "revoke", "--source", "page", "--dry-run")
    assert "24 record(s) will be taken back:" in result.err
    assert "22 record(s) stay without that source:" in result.err
    assert result.err.count("  … and ") == 2


def test_of_many_bad_lines_the_first_are_named(say: Say, tmp_path: Path) -> None:
    file = tmp_path / "crowd.jsonl"
    assert say("memory", "export", str(file)).code == 0
    header, *lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join([header, *["nonsense\n"] * 12, *lines[12:]]), encoding="utf-8")
    result = say("memory", "import", str(file), "-m", str(tmp_path / "other"), "--skip-bad")
    assert (result.code, "… and 2 more" in result.out) == (1, True)


def test_an_id_that_begins_several_records_is_refused_with_their_scopes(say: Say) -> None:
    records = map(json.loads, say("memory", "ls", "--json", "--limit", "500").out.splitlines())
    ids = [record["id"] for record in records]
    shared = {one[:2] for one in ids if sum(other.startswith(one[:2]) for other in ids) > 1}
    result = say("memory", "show", sorted(shared)[0])
    assert result.code == 2
