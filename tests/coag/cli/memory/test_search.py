"""`coag memory ls`, `search`, `show`, `history`: reading what an agent remembers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kits.remembered import remembered

from coag.agent import CoagAgent
from coag.memory import LongTermMemory, said_by_person
from coag.models import ScriptedModel
from coag.schema import Fact, MemoryKind, Record
from coag.store import ChromaStore, HashEmbedder

Say = Callable[..., Any]
Ids = dict[str, str]

pytestmark = pytest.mark.usefixtures("kept")


def rows(out: str) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


def test_help_teaches_with_an_example(say: Say) -> None:
    assert "Example: coag memory search" in say("memory", "--help").out
    for command in ("ls", "search", "show", "history", "edit", "forget", "revoke", "stats"):
        result = say("memory", command, "--help")
        assert (result.code, "Example: coag memory" in result.out) == (0, True)


def test_records_are_listed_newest_first_within_80_columns(say: Say, ids: Ids) -> None:
    result = say("memory", "ls", "--scope", "alice", "--limit", "4")
    head, *lines = result.out.splitlines()
    assert result.code == 0
    assert head.split() == ["id", "kind", "made", "type", "text"]
    assert lines[0].split()[:3] == [ids["hostile"][:8], "episodic", "2026-01-01"]
    assert all(len(line.rstrip()) <= 80 for line in lines[:-1])
    assert lines[-1].endswith("4 are shown of 12 in all; --limit N shows more")


def test_marks_tell_what_is_untrusted_superseded_and_contradicted(say: Say, ids: Ids) -> None:
    out = say("memory", "ls", "--kind", "semantic", "--superseded", "--scope", "alice").out
    marked = {line.split()[0]: line.split()[5] for line in out.splitlines()[1:-1]}
    assert marked[ids["lie"][:8]] == "!x"
    assert marked[ids["first"][:8]] == "-"
    assert "! untrusted" in out
    assert ids["first"][:8] not in say("memory", "ls").out


def test_a_narrow_terminal_leaves_room_for_the_text(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    head, *lines = say("memory", "ls", "--scope", "bob").out.splitlines()
    assert head.split() == ["id", "made", "text"]
    assert "scope" in say("memory", "ls").out.splitlines()[0]
    assert "Bob likes tea." in lines[0]


def test_the_error_of_an_unknown_scope_names_those_that_there_are(say: Say) -> None:
    result = say("memory", "ls", "--scope", "zed")
    assert result.code == 1
    assert "There is no scope 'zed'. There are: 'alice', 'bob'." in result.err


def test_both_places_where_a_memory_may_be_are_named(say: Say, tmp_path: Path, kept: Path) -> None:
    result = say("memory", "ls", "-m", str(tmp_path))
    assert result.code == 2
    assert f"Neither {str(tmp_path / 'long_term')!r}" in result.err
    assert f"nor {str(tmp_path)!r} itself has a chroma.sqlite3" in result.err
    (tmp_path / "long_term").mkdir()
    for folder in (tmp_path, tmp_path / "long_term"):
        (folder / "chroma.sqlite3").touch()
    result = say("memory", "ls", "-m", str(tmp_path))
    assert (result.code, "There are two memories" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--type", "obstacle"], 5),
        (["--type", "obstacle", "--where", '{"x": {"$gte": 3}}'], 2),
        (["--source", "alice", "--kind", "semantic"], 4),
        (["--trust", "untrusted"], 3),
        (["--limit", "2"], 2),
        (["--superseded", "--kind", "semantic", "--scope", "alice"], 4),
    ],
)
def test_filters_leave_out_what_does_not_pass(say: Say, words: list[str], count: int) -> None:
    result = say("memory", "ls", "--json", *words)
    assert len([Record.model_validate(one) for one in rows(result.out)]) == count


@pytest.mark.parametrize("limit", ["0", "-3", "many", "99999999999999999999"])
def test_a_limit_that_is_none_is_refused_with_what_to_give(say: Say, limit: str) -> None:
    for words in (["ls"], ["search", "charger"]):
        result = say("memory", *words, f"--limit={limit}")
        assert result.code == 2
        error = " ".join(result.err.replace("│", " ").split())
        assert f"'{limit}' is no number of records" in error
        assert "Give one from 1 to 1,000,000, e.g. --limit 20." in error


def test_where_nothing_passes_the_filter_the_exit_code_is_1(say: Say) -> None:
    result = say("memory", "ls", "--type", "nonsense")
    assert (result.code, result.out) == (1, "")
    assert "No record passes" in result.err
    assert say("memory", "search", "zzz qqq", "--min-score", "0.99").code == 1
    assert say("memory", "show", "0123456789abcdef").code == 1


def test_a_search_shows_the_parts_of_each_score(say: Say, ids: Ids) -> None:
    result = say("memory", "search", "where is the charger")
    first, text, parts, *_ = result.out.splitlines()
    assert first.split()[1:3] == [ids["charger"][:8], "semantic"]
    assert text.strip() == "The charger stands at the window."
    assert "dense +" in parts
    assert "lexical +" in parts
    found = rows(say("memory", "search", "where is the charger", "--limit", "2", "--json").out)
    why = found[0]["why"]
    assert len(found) == 2
    assert found[0]["score"] == pytest.approx(min(1.0, sum(why.values())), abs=0.002)


def test_everything_that_a_record_says_is_shown(say: Say, ids: Ids) -> None:
    out = say("memory", "show", ids["charger"][:8], ids["walk"]).out
    assert f"id           {ids['charger']}" in out
    assert '"value": "window"' in out
    assert f"supersedes   {ids['first']}" in out
    assert '{"episode": "walk", "order": 1, "place": "hall"}' in out
    assert "alice (agent, user), cycle 1 of run run-1" in out
    (record,) = rows(say("memory", "show", ids["walk"], "--json").out)
    assert Record.model_validate(record).id == ids["walk"]


def test_history_shows_the_chain_and_what_a_record_has_to_do_with_others(
    say: Say, ids: Ids
) -> None:
    out = say("memory", "history", ids["charger"][:8]).out
    chain = out.split("says otherwise")[0].splitlines()[1:]
    assert [line.split()[0] for line in chain] == [ids["first"][:8], ">"]
    assert ids["lie"][:8] in out.split("says otherwise")[1]
    lie = say("memory", "history", ids["lie"]).out
    assert "Go down to the cellar" in lie.split("concluded from it")[1]
    history = json.loads(say("memory", "history", ids["derived"], "--json").out)
    assert [one["id"] for one in history["derived_from"]] == [ids["lie"]]
    assert [one["id"] for one in history["chain"]] == [ids["derived"]]


def test_what_hides_in_a_text_is_made_visible(say: Say, ids: Ids) -> None:
    name = ids["hostile"]
    for words in (["ls"], ["show", name], ["history", name], ["search", "look here at once"]):
        out = say("memory", *words).out
        assert not {"\x1b", "\u202e", "\x07", "\U000e0041"} & set(out)
    assert r"Look\x1b[2J here\u202e at \U000e0041once\x07" in say("memory", "show", name).out
    out = say("memory", "show", name, "--json").out
    assert "\x1b" not in out
    assert "\\u001b" in out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["show", "0123"], "too short"),
        (["ls", "--where", "nonsense"], "is no filter"),
        (["ls", "--where", '{"x": {"$near": 1}}'], "Unknown operator '$near'"),
        (["ls", "--kind", "musical"], "'musical' is not one of"),
        (["ls", "--memory", "nowhere"], "There is no memory in 'nowhere'"),
        (["ls", "--memory", " "], "Which memory?"),
        (["ls", "--memory", "http://127.0.0.1:9"], "Chroma at http://127.0.0.1:9"),
        (["ls", "--embedder", "nonsense"], "no embedder named 'nonsense'"),
        (["ls", "--embedder", "hash-3"], "was made with"),
    ],
)
def test_a_wrong_call_is_an_error_with_exit_code_2(say: Say, words: list[str], error: str) -> None:
    result = say("memory", *words)
    assert (result.code, result.out) == (2, "")
    assert error in result.err


def test_the_embedder_of_a_memory_is_found_out(
    say: Say, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    monkeypatch.delenv("COAG_EMBEDDER")
    assert say("memory", "ls", "--memory", str(kept / "long_term")).code == 0


async def test_the_folder_of_an_agents_memory_is_the_one_to_name(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COAG_EMBEDDER")
    folder = tmp_path / "robbie"
    agent = CoagAgent("robbie", ScriptedModel(lambda _: {}), memory=folder)
    await agent.long_term_memory.store.add([remembered("It rained.", scope="robbie")])
    await agent.close()
    monkeypatch.setenv("COAG_MEMORY", str(folder))

    assert "It rained." in (await asyncio.to_thread(say, "memory", "ls")).out


async def _returned(folder: Path) -> str:
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    memory = LongTermMemory(store, scope="alice")
    ids: list[str] = []
    for month, value in ((1, "open"), (3, "shut"), (6, "open")):
        since = datetime(2025, month, 1, tzinfo=UTC)
        done = await memory.remember(
            MemoryKind.SEMANTIC,
            f"The hatch is {value}.",
            provenance=said_by_person("eve"),
            fact=Fact(subject="hatch", attribute="state", value=value, valid_from=since),
        )
        ids.append(done.record.id)
    await memory.close()
    return ids[-1]


def test_history_shows_each_time_in_which_a_text_held_also_after_an_import(
    say: Say, own: Path, tmp_path: Path
) -> None:
    name = asyncio.run(_returned(own))
    file = str(tmp_path / "alice.jsonl")
    for folder in (own, tmp_path / "other"):
        lines = say("memory", "history", name, "-m", str(folder)).out.splitlines()
        assert [line.partition("The ")[2] for line in lines[1:4]] == [
            "hatch is open. (2025-01-01 00:00Z to 2025-03-01 00:00Z)",
            "hatch is shut. (2025-03-01 00:00Z to 2025-06-01 00:00Z)",
            "hatch is open. (2025-06-01 00:00Z to now)",
        ]
        assert [line[:1] for line in lines[1:4]] == [">", " ", ">"]
        history = json.loads(say("memory", "history", name, "--json", "-m", str(folder)).out)
        assert [one["since"][:7] for one in history["held"]] == ["2025-01", "2025-03", "2025-06"]
        assert len(history["chain"]) == 2
        if folder == own:
            assert say("memory", "export", file, "-m", str(own)).code == 0
            assert say("memory", "import", file, "-m", str(tmp_path / "other")).code == 0
