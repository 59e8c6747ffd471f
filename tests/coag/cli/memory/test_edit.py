"""`coag memory edit`, `forget`, `revoke`: a person corrects what an agent remembers."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from kits.statements import SEMANTIC, memory_over, origin

from coag.memory import ProceduralMemory
from coag.schema import Fact, Record, Trust
from coag.store import ChromaStore, HashEmbedder

Say = Callable[..., Any]
Ids = dict[str, str]
Answer = Callable[[str], None]


def shown(say: Say, name: str) -> Record:
    return Record.model_validate_json(say("memory", "show", name, "--json").out)


def log_of(folder: Path) -> list[Any]:
    lines = (folder / "memory-log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_another_text_is_a_new_record_of_the_person_in_the_old_ones_place(
    say: Say, own: Path, ids: Ids
) -> None:
    text = "The charger stands in the hall."
    result = say(
        *("memory", "edit", ids["charger"][:8], "--text", text, "--value", "hall"),
        *("--importance", "0.9", "--by", "eve", "--yes"),
    )
    assert result.code == 0
    new = shown(say, result.out.split()[0])
    old = shown(say, ids["charger"])
    assert (new.text, new.supersedes, old.superseded_by) == (text, old.id, new.id)
    assert old.text == "The charger stands at the window."
    origin = new.provenance
    assert (origin.source, origin.source_kind, origin.trust) == ("eve", "person", "user")
    assert new.fact is not None
    assert (new.fact.value, new.dynamics.importance) == ("hall", 0.9)
    assert "edited" in say("memory", "history", new.id).out
    (line,) = log_of(own)
    assert line["records"] == [old.id, new.id]
    assert "hall" not in json.dumps(line)


def test_a_fact_can_be_dropped_with_another_text_and_the_log_has_names_alone(
    say: Say, own: Path, ids: Ids
) -> None:
    words = ("--text", "The charger: nobody knows where.", "--no-fact", "--set", "note=secret: x")
    result = say("memory", "edit", ids["charger"], *words, "--yes")
    assert result.code == 0
    assert shown(say, result.out.split()[0]).fact is None
    (line,) = log_of(own)
    assert line["details"] == {"changed": ["text", "metadata", "fact"]}
    assert "window" not in json.dumps(line)


def test_all_but_the_text_is_written_over(say: Say, own: Path, ids: Ids) -> None:
    name = ids["charger"]
    before = shown(say, name)
    words = ("--type", "place", "--set", "floor=2", "--set", "by=me", "--until", "2026-03-01")
    result = say("memory", "edit", name, *words, "--yes")
    assert result.out == f"{name} was changed.\n"
    after = shown(say, name)
    assert (after.type, after.metadata) == ("place", {"floor": 2, "by": "me"})
    assert after.fact is not None
    assert str(after.fact.valid_until) == "2026-03-01 00:00:00+00:00"
    assert (after.text, after.provenance) == (before.text, before.provenance)
    say("memory", "edit", name, "--unset", "by", "--until", "never", "--yes")
    assert shown(say, name).metadata == {"floor": 2}
    assert [one["action"] for one in log_of(own)] == ["edited", "edited"]
    assert "says so already" in say("memory", "edit", name, "--type", "place", "--yes").err


@pytest.mark.usefixtures("own")
def test_a_text_is_read_from_standard_input(
    say: Say, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("Bob likes\x1b[2J coffee.\n"))
    result = say("memory", "edit", ids["bob"], "--text", "-", "--yes")
    assert shown(say, result.out.split()[0]).text == "Bob likes coffee."


@pytest.mark.usefixtures("own")
def test_without_options_an_editor_is_opened(
    say: Say, ids: Ids, at_a_terminal: Answer, editing: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    editing('sed -i s/tea/coffee/ "$1"')
    at_a_terminal("y")
    result = say("memory", "edit", ids["bob"])
    assert result.code == 0
    assert shown(say, result.out.split()[0]).text == "Bob likes coffee."
    monkeypatch.setattr("sys.stdin", StringIO(""))
    assert "no terminal for an editor" in say("memory", "edit", ids["walk"]).err


@pytest.mark.parametrize(
    ("name", "words", "error"),
    [
        ("walk", ["--value", "x"], "holds no fact in parts"),
        ("walk", ["--unset", "x"], "no metadata 'x'"),
        ("walk", ["--set", "x"], "takes KEY=VALUE"),
        ("walk", ["--set", "x=[1]"], "text, numbers and truth values"),
        ("walk", ["--set", "scope=bob"], "name of a field of every record"),
        ("walk", ["--type", " "], "type is empty"),
        ("walk", ["--until", "soon"], "is no time"),
        ("walk", ["--text", ""], "text is empty"),
        ("charger", ["--text", "It is in the hall."], "charger place = window"),
        ("charger", ["--no-fact", "--value", "hall"], "--no-fact drops"),
        ("walk", ["--importance", "2"], "--importance"),
        ("first", ["--text", "The charger is gone.", "--no-fact"], "was superseded by"),
        ("nobody", ["--type", "x"], "too short"),
    ],
)
@pytest.mark.usefixtures("kept")
def test_a_correction_that_cannot_be_is_refused(
    say: Say, ids: Ids, name: str, words: list[str], error: str
) -> None:
    result = say("memory", "edit", ids.get(name, name), *words, "--yes")
    assert (result.code, result.out) == (2, "")
    assert error in result.err


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    "words",
    [
        ("edit", "--type", "x"),
        ("forget",),
        ("revoke", "--reason", "A lie."),
        ("forget", "--everything", "--scope", "bob"),
        ("reembed", "--to", "hash-8"),
    ],
)
def test_nothing_is_changed_without_a_yes(
    say: Say,
    ids: Ids,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    at_a_terminal: Answer,
) -> None:
    named = [] if {"--everything", "reembed"} & set(words) else [ids["walk"]]
    monkeypatch.setattr("sys.stdin", StringIO(""))
    result = say("memory", words[0], *named, *words[1:])
    assert (result.code, result.out) == (2, "")
    assert "Add --yes" in result.err
    at_a_terminal("n")
    result = say("memory", words[0], *named, *words[1:])
    assert result.code == 1
    assert "Nothing was changed." in result.err
    assert shown(say, ids["walk"]).type == "note"


class Interrupting(StringIO):
    """A terminal at which somebody presses Ctrl-C, and where that ends nothing, says yes."""

    def isatty(self) -> bool:
        return True

    def readline(self, size: int | None = -1, /) -> str:
        signal.raise_signal(signal.SIGINT)
        return "y\n"


def test_ctrl_c_at_a_question_leaves_at_once_and_changes_nothing(
    say: Say, own: Path, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Interrupting())
    assert say("memory", "forget", ids["walk"]).code == 1
    assert shown(say, ids["walk"]).type == "note"


def test_a_record_is_forgotten_and_the_conclusions_from_it_are_counted(
    say: Say, own: Path, ids: Ids
) -> None:
    result = say("memory", "forget", ids["lie"], ids["walk"], "--yes")
    assert result.code == 0
    assert "1 record(s) were concluded from" in result.err
    assert say("memory", "show", ids["lie"]).code == 1
    assert shown(say, ids["derived"]).lineage.derived_from == (ids["lie"],)
    assert shown(say, ids["charger"]).lineage.contradicts == ()
    history = say("memory", "history", ids["walk"])
    assert (history.code, "forgotten" in history.err) == (1, True)
    assert "hall" not in (own / "memory-log.jsonl").read_text(encoding="utf-8")


@pytest.mark.usefixtures("own")
def test_what_a_forgotten_record_had_superseded_holds_again(say: Say, ids: Ids) -> None:
    result = say("memory", "forget", ids["charger"], "--yes")
    assert "The charger stands at the door. (holds again)" in result.err
    old = shown(say, ids["first"])
    assert old.superseded_by is None
    assert old.fact is not None
    assert old.fact.valid_until is None
    assert say("memory", "stats").code == 0


@pytest.mark.usefixtures("own")
def test_everything_of_a_scope_is_forgotten(say: Say) -> None:
    assert say("memory", "forget", "--everything", "--yes").code == 2
    assert say("memory", "forget", "--yes").code == 2
    assert say("memory", "forget", "--everything", "--scope", "eve", "--yes").code == 1
    result = say("memory", "forget", "--everything", "--scope", "bob", "--yes")
    assert result.out == "1 record(s) of scope 'bob' are forgotten.\n"
    assert "Bob likes tea." in result.err
    assert say("memory", "ls", "--scope", "bob").code == 1
    assert say("memory", "stats").code == 0


def test_a_revoked_record_goes_with_all_derived_from_it(say: Say, own: Path, ids: Ids) -> None:
    rule = "Charge in the cellar"
    procedures = ProceduralMemory(path=own / "procedures.json")
    assert rule in procedures.get("reasoning").text
    others = {name: procedures.versions(name) for name in procedures.names() if name != "reasoning"}
    result = say("memory", "revoke", ids["lie"][:8], "--reason", "The sign lied.", "--yes")
    assert result.code == 0
    assert "2 record(s) will be taken back" in result.err
    assert "reasoning@2" in result.err
    assert f"taken back: {ids['lie']}, {ids['derived']}" in result.out
    assert f"no longer name them: {ids['charger']}" in result.out
    assert "procedures rolled back: reasoning@3" in result.out
    after = ProceduralMemory(path=own / "procedures.json")
    assert rule not in after.get("reasoning").text
    assert {name: after.versions(name) for name in others} == others
    gone = say("memory", "history", ids["lie"])
    assert (gone.code, "by person: The sign lied" in gone.err.splitlines()[-1]) == (1, True)
    (line,) = log_of(own)
    assert (line["action"], line["reason"]) == ("revoked", "The sign lied.")
    assert line["details"]["procedures"] == {"reasoning": 3}
    again = say("memory", "revoke", ids["lie"], "--reason", "Once more.", "--yes")
    assert (again.code, "nothing depends on it" in again.err) == (1, True)


@pytest.mark.usefixtures("own")
def test_a_revocation_is_printed_as_json_and_stays_within_a_scope(say: Say, ids: Ids) -> None:
    assert say("memory", "revoke", ids["bob"], "--reason", " ", "--yes").code == 2
    nobody = say("memory", "revoke", "0123456789", "--reason", "x", "--yes")
    assert (nobody.code, nobody.out) == (1, "")
    words = ("revoke", ids["charger"], "--reason", "Wrong.", "--scope", "alice")
    revocation = json.loads(say("memory", *words, "--yes", "--json").out)
    assert revocation["content"]["records"] == [ids["charger"]]
    assert revocation["content"]["restored"] == [ids["first"]]
    assert shown(say, ids["first"]).superseded_by is None
    assert "restored by a revocation" in say("memory", "history", ids["first"]).out


def test_a_damaged_log_is_read_as_far_as_it_goes(say: Say, own: Path, ids: Ids) -> None:
    log = own / "memory-log.jsonl"
    log.write_text("nonsense\n", encoding="utf-8")
    say("memory", "edit", ids["walk"], "--type", "stroll", "--yes")
    history = json.loads(say("memory", "history", ids["walk"], "--json").out)
    assert [one["action"] for one in history["done"]] == ["edited"]


def test_a_log_that_cannot_be_written_is_reported_and_the_change_stays(
    say: Say, own: Path, ids: Ids
) -> None:
    (own / "memory-log.jsonl").mkdir()
    result = say("memory", "forget", ids["walk"], "--yes")
    assert result.code == 2
    assert "It is done, but could not be noted" in result.err
    assert say("memory", "show", ids["walk"]).code == 1


# ---- `coag memory revoke --source` ----


REASON = ("--reason", "She meant another house.")


async def _filled_further(folder: Path) -> dict[str, str]:
    memory = memory_over(ChromaStore(folder / "long_term", HashEmbedder(64)))
    ids: dict[str, str] = {}
    for name, source, trust, value in (
        ("rumour", "web", Trust.UNTRUSTED, "blue"),
        ("rumour", "ann", Trust.USER, "blue"),
        ("open", "web", Trust.UNTRUSTED, "open"),
        ("shut", "ann", Trust.USER, "shut"),
    ):
        of = "gate" if name == "rumour" else "hatch"
        done = await memory.remember(
            SEMANTIC,
            f"The {of} is {value}.",
            provenance=origin(source, trust, run=""),
            fact=Fact(subject=of, attribute="state", value=value),
        )
        ids[name] = done.record.id
    await memory.close()
    return ids


@pytest.fixture
def words(own: Path) -> dict[str, str]:
    """The ids of statements of Ann and of a page, besides those that the folder held."""
    return asyncio.run(_filled_further(own))


def test_all_that_a_source_said_is_taken_back_once_a_person_saw_what_that_means(
    say: Say, own: Path, words: dict[str, str]
) -> None:
    result = say("memory", "revoke", "--source", "ann", *REASON, "--by", "eve", "--yes")

    assert result.code == 0
    lines = result.err.splitlines()
    assert lines[0] == "1 record(s) will be taken back:"
    assert lines[2] == "1 record(s) stay without that source:"
    assert lines[3].endswith("The gate is blue. (user to untrusted)")
    assert lines[4].endswith("The hatch is open. (holds again)")
    assert result.out.splitlines() == [
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
def test_a_dry_run_says_the_same_and_changes_nothing(say: Say, words: dict[str, str]) -> None:
    before = say("memory", "ls", "--superseded", "--json").out
    for which in (("--source", "ann"), (words["shut"],), (words["rumour"], "--source", "ann")):
        result = say("memory", "revoke", *which, "--dry-run")
        assert (result.code, result.err.splitlines()[-1]) == (0, "Nothing was changed.")
        assert "would be " in result.out
    revocation = json.loads(say("memory", "revoke", "--source", "ann", "--dry-run", "--json").out)
    assert revocation["content"]["records"] == [words["shut"]]
    assert revocation["content"]["lowered"] == [words["rumour"]]
    assert say("memory", "ls", "--superseded", "--json").out == before


@pytest.mark.usefixtures("own")
def test_of_one_record_a_source_s_word_is_taken_back_alone(say: Say, words: dict[str, str]) -> None:
    result = say("memory", "revoke", words["rumour"][:8], "--source", "ann", *REASON, "--yes")
    assert result.out == f"left without that word: {words['rumour']}\n"
    assert shown(say, words["shut"]).provenance.source == "ann"
    nobody = say("memory", "revoke", words["shut"], "--source", "bob", *REASON, "--yes")
    assert (nobody.code, "not from 'bob'" in nobody.err) == (1, True)


@pytest.mark.usefixtures("own")
def test_what_is_to_be_taken_back_and_why_must_be_said(say: Say, ids: dict[str, str]) -> None:
    nothing = say("memory", "revoke", *REASON, "--yes")
    assert (nothing.code, "a record's id, or --source NAME" in nothing.err) == (2, True)
    without = say("memory", "revoke", ids["lie"], "--yes")
    assert (without.code, "--reason is empty" in without.err) == (2, True)


@pytest.mark.usefixtures("own")
def test_the_editor_of_a_fact_is_followed_by_the_question_of_its_value(
    say: Say, ids: Ids, at_a_terminal: Answer, editing: Answer, tmp_path: Path
) -> None:
    for script, text in (
        ("true", "Nothing is to be changed"),
        ('sed -i s/window/gate/ "$1"', ""),
    ):
        editing(script)
        at_a_terminal("gate\ny")
        result = say("memory", "edit", ids["charger"])
        assert text in result.err
    record = shown(say, result.out.split()[0])
    assert record.fact is not None
    assert (record.text, record.fact.value) == ("The charger stands at the gate.", "gate")
    (tmp_path / "editor.sh").unlink()
    at_a_terminal("y")
    failed = say("memory", "edit", ids["bob"])
    assert (failed.code, "Set EDITOR, or give --text." in failed.err) == (2, True)
