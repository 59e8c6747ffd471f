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


LINES = [
    "consult task",
    "consult task --json",
    "consult --after=read task --among read --among search",
    "report read 1 --after search --cost 0.25 --trust untrusted --source a",
    "report read 0.5 --consultation c1 --json",
    'reflect {"is":"method","statement":"s"} --source bob',
    "resume --json",
    "synthesize",
    "status --json",
    "status --help",
    "-h",
    "",
]
WRONG = {
    "consult": "required: TASK; see coag judgment consult --help.",
    "consult a b": "unrecognized arguments: b",
    "consult a --stat s": "unrecognized arguments: --stat s",
    "consult a --after": "argument --after: expected one argument",
    "consult a --json=yes": "argument --json: ignored explicit argument 'yes'",
    "consult a --state": "argument --state: expected one argument",
    "consult a --state .": "argument --state: '.' is no name of a file",
    "consult ": "a word is empty",
    "report read x": "argument REWARD: invalid float value: 'x'",
    "report read 1 --trust nobody": "argument --trust: invalid choice: 'nobody'",
    "report read nan": "reward must be from 0 to 1, got nan",
    "report read -- -1": "reward must be from 0 to 1, got -1.0",
    "guess": "argument COMMAND: invalid choice: 'guess'",
}


def made(state: Path) -> None:
    manifest = state.with_name("m.json")
    manifest.write_text('{"capabilities": [{"name": "search"}, {"name": "read"}]}')
    main(["judgment", "init", str(manifest), "--state", str(state)])
    main(["judgment", "consult", "task", "--state", str(state)])


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_line_is_a_users_error(
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made(tmp_path / "j.json")
    monkeypatch.setenv("COAG_JUDGMENT", str(tmp_path / "j.json"))
    with pytest.raises(SystemExit) as ended:
        main(["judgment", *line.split(" ")])
    assert ended.value.code == 2
    assert WRONG[line] in capsys.readouterr().err


def test_it_starts_without_typer(tmp_path: Path) -> None:
    made(tmp_path / "j.json")
    code = (
        "import os, sys; from coag.cli import main\n"
        f"os.environ['COAG_JUDGMENT'] = {str(tmp_path / 'j.json')!r}\n"
        f"for line in {LINES!r}:\n"
        "    try: main(['judgment', *line.split()])\n"
        "    except SystemExit as ended: assert not ended.code, line\n"
        "assert not {'typer', 'pydantic', 'statistics'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_whole_app_hands_its_words_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        app(["judgment", "status", "--state", str(tmp_path / "j.json"), "--json"])
    assert json.loads(capsys.readouterr().out)["capabilities"] == 0
