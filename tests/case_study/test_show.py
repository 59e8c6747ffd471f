"""`case-study run --show`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from case_study.__main__ import main
from case_study.runner import CONTROL_TOKEN

SHORT = ("energy-dilemma", "--max-actions", "1")


def called(monkeypatch: pytest.MonkeyPatch, logs: Path, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["case-study", "run", *words, "--logs", str(logs)])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else 0


def test_a_shown_run_says_where_to_look_and_keeps_stdout_for_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(CONTROL_TOKEN, raising=False)
    assert called(monkeypatch, tmp_path, *SHORT, "--show", "--pace", "0", "--json") == 0
    told = capsys.readouterr()
    page = re.search(r"^live page: (\S+):\d+/$", told.err, re.MULTILINE)
    assert page is not None
    assert page[1] == "http://127.0.0.1"
    token = re.search(r"^control token: (\S{20,})$", told.err, re.MULTILINE)
    assert token is not None
    assert told.out.startswith("{")
    kept = [path.read_text() for path in tmp_path.rglob("*.json*") if path.is_file()]
    assert not any(token[1] in text for text in kept)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--pace", "1"), "--pace: only with --show"),
        (("--port", "0"), "--port: only with --show"),
        (("--show", "--port", "1", "--world", "http://127.0.0.1:9"), "served elsewhere"),
    ],
)
def test_an_option_without_effect_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    assert called(monkeypatch, tmp_path, *SHORT, *words) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
