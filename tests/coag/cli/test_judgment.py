"""`coag judgment`: what one command learns, the next one knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coag.cli import main


def run(capsys: pytest.CaptureFixture[str], state: Path, *words: str) -> str:
    try:
        main(["judgment", *words, "--state", str(state)])
    except SystemExit as ended:
        if ended.code:
            return capsys.readouterr().err
    return capsys.readouterr().out


def test_what_one_command_learns_the_next_one_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, manifest = tmp_path / "j.json", tmp_path / "m.json"
    manifest.write_text('{"capabilities": [{"name": "search"}, {"name": "read"}]}')
    assert "2 capabilities" in run(capsys, state, "init", str(manifest))
    assert "already" in run(capsys, state, "init")
    made = json.loads(run(capsys, state, "consult", "read it", "--json"))
    assert made["advice"][0]["capability"] == "read"
    said = run(capsys, state, "report", "search", "1", "--consultation", made["id"])
    assert "not what was advised" in said
    assert json.loads(run(capsys, state, "report", "read", "0", "--json"))["changed"] < 0
    dead = '{"is": "dead_end", "topic": "read PDF", "why_closed": "no parser"}'
    run(capsys, state, "reflect", dead)
    run(capsys, state, "flush", '{"task": "read PDF", "questions": ["which parser?"]}')
    assert "closed: read PDF" in run(capsys, state, "consult", "read PDF")
    assert "which parser?" in run(capsys, state, "resume")
    assert "no parser" in json.loads(run(capsys, state, "resume", "--json"))["text"]
    assert "Nothing waits" in run(capsys, state, "synthesize")
    insight = '{"statement": "Look for a parser first"}'
    assert run(capsys, state, "synthesize", insight, "--json") == '{"waiting": []}\n'
    assert "closed         1" in run(capsys, state, "status")
    state.write_text("{")
    assert "last good copy" in run(capsys, state, "status", "--json")


@pytest.mark.parametrize("entry", ["{", "[]", '{"is": "rumour"}', '{"is": "method"}'])
def test_a_wrong_entry_is_refused(
    entry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, tmp_path / "j.json", "reflect", entry)
    assert not (tmp_path / "j.json").exists()


def test_a_manifest_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "nowhere.json" in run(capsys, tmp_path / "j.json", "init", "nowhere.json")
