"""The example ends in the same result in five processes as in one."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "distributed.py"


@pytest.mark.long  # tests/docs runs every example, too
@pytest.mark.slow
def test_a_team_over_processes_says_what_it_says_in_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "user: Where is the spare key?",
        "scout: I have noted it.",
        "guide: The spare key hangs behind the red cabinet.",
        "The same as in one process: True",
    ]
