from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from case_study.__main__ import main

Run = Callable[..., int]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, data: Path) -> Run:
    """Runs the command on the small folder; gives its exit code."""

    def call(*words: str) -> int:
        command = ["case-study", "awareness", "coverage", "--data", str(data), *words]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return code if isinstance(code, int) else 0

    return call


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A component file of a scripted model, as a spec."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "coverage_script.py").write_text(
        "def answer(request):\n"
        "    form = request.schema_name or ''\n"
        "    if 'Conversation' in form:\n"
        "        return {'topics': ['fence'], 'references_previous': False, 'entities': [],\n"
        "                'sentiment': 'neutral', 'goals': ['Paint the fence'], 'questions': []}\n"
        "    raise OSError(form)\n"
    )
    component = {
        "provider": "coag.models.ScriptedModel",
        "component_type": "model",
        "config": {"script": {"name": "coverage_script:answer"}},
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(component))
    return str(path)


def test_the_page_is_printed_and_written(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    assert run("-o", str(page)) == 0
    out = capsys.readouterr().out
    assert page.read_text() == out
    assert "read by rules" in out
    assert "case-study awareness coverage --data DIR" in out
    assert str(tmp_path) not in out


def test_a_model_perceives_and_a_second_run_asks_it_nothing(
    run: Run, model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    readings = tmp_path / "r" / "r.jsonl"
    words = ["--model", model, "--questions", "explicit_goals,urgency", "--dialogue", "a fence"]
    kept = ["--readings", str(readings)]
    assert run(*words, *kept) == 0
    first = capsys.readouterr().out
    assert "awareness by model" in first
    assert "model.json" in first
    assert len(readings.read_text().splitlines()) > 0
    (tmp_path / "coverage_script.py").write_text("def answer(request): raise OSError('no')\n")
    sys.modules.pop("coverage_script", None)
    assert run(*words, *kept) == 0
    assert capsys.readouterr().out == first


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--questions", "weather"], "no question named 'weather'"),
        (["--dialogue", "a wall"], "no dialogue named 'a wall'"),
        (["--trusted"], "--trusted: only with --model"),
        (["--model", "nobody"], "form of model spec named 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    run: Run, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert run(*words) == 2
    assert told in " ".join(capsys.readouterr().err.split())


def test_a_limit_keeps_the_papers_dialogue(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--limit", "1") == 0
    out = capsys.readouterr().out
    assert "a fence" not in out
    assert "paper: SAGEN" in out
