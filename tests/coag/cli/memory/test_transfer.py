"""`coag memory export`, `import`, `stats`, `reembed`: a memory as a whole."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coag.store import ChromaStore, HashEmbedder, ReembedProgress, reembed
from coag.store.lexical import Lexicon

Say = Callable[..., Any]
Ids = dict[str, str]
WORDS = Path("long_term", "coag-words.sqlite3")


def records_in(say: Say, folder: Path) -> list[Any]:
    out = say("memory", "ls", "-m", str(folder), "--superseded", "--limit", "99", "--json").out
    return [json.loads(line) for line in out.splitlines()]


def test_what_is_exported_is_imported_again(say: Say, kept: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "alice.jsonl", tmp_path / "other"
    result = say("memory", "export", str(file))
    assert result.out.startswith("12 record(s) are in ")
    assert say("memory", "import", str(file), "-m", str(other)).out == "12 new, 0 known\n"
    assert say("memory", "import", str(file), "-m", str(other)).out == "0 new, 12 known\n"
    assert records_in(say, other) == records_in(say, kept)
    log = (other / "memory-log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["details"]["new"] for line in log] == [12]


@pytest.mark.usefixtures("kept")
def test_a_file_that_is_there_is_not_written_over_unasked(say: Say, tmp_path: Path) -> None:
    file = tmp_path / "alice.jsonl"
    file.write_text("mine", encoding="utf-8")
    result = say("memory", "export", str(file))
    assert (result.code, file.read_text(encoding="utf-8")) == (2, "mine")
    assert "exists and would be overwritten" in result.err
    assert say("memory", "export", str(file), "--yes").code == 0
    assert file.read_text(encoding="utf-8").startswith('{"format":"coag-memory"')


@pytest.mark.usefixtures("kept")
def test_an_export_onto_standard_output_can_be_imported(say: Say, tmp_path: Path) -> None:
    out = say("memory", "export", "-", "--kind", "episodic", "--scope", "alice").out
    assert "\x1b" not in out
    file = tmp_path / "piped.jsonl"
    file.write_text(out, encoding="utf-8")
    other = str(tmp_path / "other")
    words = ("--scope", "carol", "--trust", "untrusted", "--json")
    counts = json.loads(say("memory", "import", str(file), "-m", other, *words).out)
    assert (counts["new"], counts["refused"], counts["missing"]) == (7, 0, 0)
    found = records_in(say, Path(other))
    assert {(one["scope"], one["provenance"]["trust"]) for one in found} == {("carol", "untrusted")}


@pytest.mark.usefixtures("kept")
def test_bad_lines_are_named_and_left_out_on_demand(say: Say, tmp_path: Path) -> None:
    file, other = tmp_path / "alice.jsonl", str(tmp_path / "other")
    say("memory", "export", str(file))
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join([*lines[:3], "nonsense\x1b\n", *lines[3:-1]]), encoding="utf-8")
    result = say("memory", "import", str(file), "-m", other)
    assert result.code == 1
    assert "line 4 of" in result.err
    assert "2 new" in result.err
    assert "--skip-bad" in result.err
    assert "\x1b" not in result.err
    result = say("memory", "import", str(file), "-m", other, "--skip-bad")
    assert result.code == 1
    assert "9 new, 2 known" in result.out
    assert "  line 4: it holds no record" in result.out
    assert say("memory", "import", __file__, "-m", other).code == 2
    assert say("memory", "import", "nowhere.jsonl", "-m", other).code == 2


@pytest.mark.usefixtures("own")
def test_what_differs_is_taken_on_demand(say: Say, tmp_path: Path, ids: Ids) -> None:
    file = tmp_path / "alice.jsonl"
    say("memory", "export", str(file))
    say("memory", "edit", ids["walk"], "--type", "mine", "--yes")
    assert "1 were there with other fields and stay" in say("memory", "import", str(file)).out
    assert "were changed" in say("memory", "import", str(file), "--take").out
    assert '"type":"note"' in say("memory", "show", ids["walk"], "--json").out


@pytest.mark.usefixtures("kept")
def test_the_health_of_a_memory_is_a_table_with_a_verdict(say: Say) -> None:
    result = say("memory", "stats")
    assert result.code == 0
    assert result.out.splitlines()[-1] == "healthy, 2 thing(s) to look at"
    assert all(len(line.rstrip()) <= 80 for line in result.out.splitlines())
    health = json.loads(say("memory", "stats", "--json").out)
    assert (health["episodic"], health["semantic"], health["superseded"]) == (7, 5, 1)
    assert health["scopes"] == {"alice": {"episodic": 7, "semantic": 4}, "bob": {"semantic": 1}}
    assert (health["contradictions"], health["duplicates"]) == (1, 0)
    assert (health["embedder"], health["dimension"]) == ("hash-64", 64)
    assert health["index"]["records"] == 12
    assert health["healthy"] is True


def _nonsense(words: Path) -> None:
    words.write_bytes(b"nonsense" * 1000)


def _of_another(words: Path) -> None:
    lexicon = Lexicon(words)
    lexicon.drop(lexicon.other_than([])[:2])
    lexicon.begin(["broken-off"])
    lexicon.close()


def _stale(words: Path) -> None:
    with sqlite3.connect(words) as db:
        db.execute("UPDATE entries SET text = 'other' WHERE n = (SELECT min(n) FROM entries)")
    db.close()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (Path.unlink, "There is no such file."),
        (_nonsense, "file is not a database"),
        (_of_another, "2 record(s) are not in it, 1 were being written when that was interrupted"),
        (_stale, "1 are in it as they were"),
    ],
)
def test_an_index_that_does_not_fit_is_reported_and_repaired(
    say: Say, own: Path, damage: Callable[[Path], object], problem: str
) -> None:
    damage(own / WORDS)
    stats = say("memory", "stats")
    assert stats.code == 1
    assert f"The index of words: {problem}" in " ".join(stats.out.split()) or problem in stats.out
    assert "not healthy: 1 thing(s) to repair" in stats.out
    assert say("memory", "stats", "--mend").code == 0
    assert say("memory", "stats").code == 0


async def _hidden(folder: Path, name: str) -> None:
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    (record,) = await store.get([name])
    await store.update([record.model_copy(update={"superseded_by": "0" * 32})])
    await store.close()


def test_what_something_gone_superseded_is_made_to_hold_again(
    say: Say, own: Path, ids: Ids
) -> None:
    asyncio.run(_hidden(own, ids["walk"]))
    assert say("memory", "stats").code == 1
    result = say("memory", "stats", "--mend")
    assert (result.code, "1 record(s) hold again." in result.err) == (0, True)
    assert "made to hold again" in say("memory", "history", ids["walk"]).out


@pytest.mark.usefixtures("kept")
def test_a_file_of_several_scopes_becomes_no_other_and_no_store_is_made(
    say: Say, tmp_path: Path
) -> None:
    file, other = tmp_path / "alice.jsonl", tmp_path / "other"
    say("memory", "export", str(file))
    result = say("memory", "import", str(file), "-m", str(other), "--scope", "eve")
    assert (result.code, other.exists()) == (2, False)
    assert "export --scope NAME" in result.err
    assert "skip-bad" not in result.err


class _InterruptedError(Exception):
    pass


def _interrupt(now: ReembedProgress) -> None:
    raise _InterruptedError


def test_an_interrupted_reembedding_is_reported(say: Say, own: Path) -> None:
    with pytest.raises(_InterruptedError):
        asyncio.run(reembed(own / "long_term", HashEmbedder(8), batch=2, progress=_interrupt))
    notice = say("memory", "stats").err
    assert "half way: 2 of 12 record(s) have vectors of hash-8" in " ".join(notice.split())
    assert "`coag memory reembed --to hash-8` continues" in " ".join(notice.split())
    assert "--abandon" in notice
    state = json.loads(say("memory", "stats", "--json").out)["reembedding"]
    assert (state["embedder"], state["done"], state["records"]) == ("hash-8", 2, 12)
    assert state["notice"] == " ".join(notice.split())
    assert say("memory", "reembed", "--abandon", "--yes").out == "It is dropped.\n"
    assert "half way" not in say("memory", "stats").err
    assert json.loads(say("memory", "stats", "--json").out)["reembedding"] is None


def test_vectors_are_made_again(
    say: Say, own: Path, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COAG_EMBEDDER")
    before = records_in(say, own)
    result = say("memory", "reembed", "--to", "hash-8", "--yes")
    assert result.code == 0
    assert result.out.startswith("12 record(s) have vectors of hash-8.")
    assert records_in(say, own) == before
    assert "already" in say("memory", "reembed", "--to", "hash-8", "--yes").out
    assert say("memory", "reembed", "--to", "nonsense", "--yes").code == 2
    assert say("memory", "reembed", "--abandon", "--yes").out == "There was none to drop.\n"
    assert say("memory", "search", "charger").code == 0
