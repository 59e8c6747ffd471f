"""`coag memory revoke --source`: a person takes back what one source said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coag.memory import LongTermMemory
from coag.schema import Fact, MemoryKind, Provenance, Record, Trust
from coag.store import ChromaStore, HashEmbedder

Say = Callable[..., Any]
REASON = ("--reason", "She meant another house.")


def by(source: str, trust: Trust) -> Provenance:
    return Provenance(
        run="", activity="", cycle=0, source=source, source_kind="message", trust=trust
    )


async def _told(folder: Path) -> dict[str, str]:
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    memory = LongTermMemory(store, scope="alice")
    ids: dict[str, str] = {}
    for name, source, trust, value in (
        ("rumour", "web", Trust.UNTRUSTED, "blue"),
        ("rumour", "ann", Trust.USER, "blue"),
        ("open", "web", Trust.UNTRUSTED, "open"),
        ("shut", "ann", Trust.USER, "shut"),
    ):
        of = "gate" if name == "rumour" else "hatch"
        told = await memory.remember(
            MemoryKind.SEMANTIC,
            f"The {of} is {value}.",
            provenance=by(source, trust),
            fact=Fact(subject=of, attribute="state", value=value),
        )
        ids[name] = told.record.id
    await memory.close()
    return ids


@pytest.fixture
def words(own: Path) -> dict[str, str]:
    """The ids of what Ann and a page said, besides what the folder held."""
    return asyncio.run(_told(own))


def shown(say: Say, name: str) -> Record:
    return Record.model_validate_json(say("memory", "show", name, "--json").out)


def test_all_that_a_source_said_is_taken_back_once_a_person_saw_what_that_means(
    say: Say, own: Path, words: dict[str, str]
) -> None:
    said = say("memory", "revoke", "--source", "ann", *REASON, "--by", "eve", "--yes")

    assert said.code == 0
    lines = said.err.splitlines()
    assert lines[0] == "1 record(s) will be taken back:"
    assert lines[2] == "1 record(s) stay without that source:"
    assert lines[3].endswith("The gate is blue. (user to untrusted)")
    assert lines[4].endswith("The hatch is open. (holds again)")
    assert said.out.splitlines() == [
        f"taken back: {words['shut']}",
        f"left without that word: {words['rumour']}",
        f"hold again: {words['open']}",
    ]
    gate = shown(say, words["rumour"])
    assert (gate.provenance.source, gate.provenance.trust) == ("web", Trust.UNTRUSTED)
    assert gate.lineage.also_from == ()
    history = say("memory", "history", words["rumour"]).out
    assert "what ann said of it was taken back" in history
    assert "by eve: She meant another house" in history
    (noted,) = (own / "memory-log.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(noted)["records"] == [words["shut"]]
    assert json.loads(noted)["details"]["source"] == "ann"
    again = say("memory", "revoke", "--source", "ann", *REASON, "--yes")
    assert (again.code, again.out) == (1, "")
    assert "stems from 'ann'" in again.err


@pytest.mark.usefixtures("own")
def test_a_dry_run_tells_the_same_and_changes_nothing(say: Say, words: dict[str, str]) -> None:
    before = say("memory", "ls", "--superseded", "--json").out
    for asked in (("--source", "ann"), (words["shut"],), (words["rumour"], "--source", "ann")):
        said = say("memory", "revoke", *asked, "--dry-run")
        assert (said.code, said.err.splitlines()[-1]) == (0, "Nothing was changed.")
        assert "would be " in said.out
    told = json.loads(say("memory", "revoke", "--source", "ann", "--dry-run", "--json").out)
    assert told["content"]["records"] == [words["shut"]]
    assert told["content"]["lowered"] == [words["rumour"]]
    assert say("memory", "ls", "--superseded", "--json").out == before


@pytest.mark.usefixtures("own")
def test_of_one_record_a_source_s_word_is_taken_back_alone(say: Say, words: dict[str, str]) -> None:
    said = say("memory", "revoke", words["rumour"][:8], "--source", "ann", *REASON, "--yes")
    assert said.out == f"left without that word: {words['rumour']}\n"
    assert shown(say, words["shut"]).provenance.source == "ann"
    nobody = say("memory", "revoke", words["shut"], "--source", "bob", *REASON, "--yes")
    assert (nobody.code, "not from 'bob'" in nobody.err) == (1, True)


@pytest.mark.usefixtures("own")
def test_what_is_to_be_taken_back_and_why_must_be_said(say: Say, ids: dict[str, str]) -> None:
    nothing = say("memory", "revoke", *REASON, "--yes")
    assert (nothing.code, "a record's id, or --source NAME" in nothing.err) == (2, True)
    without = say("memory", "revoke", ids["lie"], "--yes")
    assert (without.code, "--reason is empty" in without.err) == (2, True)
