"""`coag judgment`: what one command learns, the next one knows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coag.cli import app, main


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


PLAIN = [
    "consult task",
    "consult task --json",
    "consult --after=read task --among read --among search",
    "report read 1 --after search --cost 0.25 --trust untrusted --source a",
    "report read 0.5 --consultation c1 --json",
    'reflect {"is":"method","statement":"s"} --source bob',
    "resume --json",
    "synthesize",
    "status --json",
]
"""Lines that need no typer."""
OTHER = [
    "",
    "consult",
    "consult a b",
    "consult a --stat s",
    "consult a --after",
    "consult a --json=yes",
    "report read x",
    "report read nan",
    "report read -- -1",
    "report read --cost",
    "status --help",
    "-h",
    "guess",
]
"""Lines that typer explains or refuses, or that are wrong by what they say."""


def made(state: Path) -> None:
    main(["judgment", "init", str(manifest_at(state)), "--state", str(state)])
    main(["judgment", "consult", "task", "--state", str(state)])


def manifest_at(state: Path) -> Path:
    manifest = state.with_name("m.json")
    manifest.write_text('{"capabilities": [{"name": "search"}, {"name": "read"}]}')
    return manifest


@pytest.mark.parametrize("line", PLAIN + OTHER)
def test_a_line_gives_the_same_with_and_without_typer(
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[tuple[object, str, str]] = []
    for at in range(2):
        state = tmp_path / str(at) / "j.json"
        state.parent.mkdir()
        made(state)
        monkeypatch.setenv("COAG_JUDGMENT", str(state))
        capsys.readouterr()
        code: object = None
        try:
            words = ["judgment", *line.split(" ")] if line else ["judgment"]
            main(words) if at else app(words, prog_name="coag")
        except SystemExit as ended:
            code = ended.code or None
        except ValueError:  # `main` says it in a line
            code = 2
        out, err = capsys.readouterr()
        said.append((code, out.replace(str(state), "STATE"), err if line in PLAIN else ""))
    assert said[0] == said[1]


def test_a_plain_line_starts_without_typer(tmp_path: Path) -> None:
    state = tmp_path / "j.json"
    made(state)
    lines = [["judgment", *line.split(" "), "--state", str(state)] for line in PLAIN]
    code = (
        "import sys; from coag.cli import main\n"
        f"for line in {lines!r}: main(line)\n"
        "assert not {'typer', 'pydantic', 'statistics'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
