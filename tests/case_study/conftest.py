from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from case_study.__main__ import main
from case_study.measures import CaseResult
from case_study.runner import CaseFolder, CaseRequest, checked, run_case


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., object]:
    """Plays a case of a scripted temperament; gives its result."""

    async def run(scenario: str, agent: str, temperament: str, **options: object) -> CaseResult:
        request = CaseRequest.model_validate(
            {"scenario": scenario, "agent": agent, "model": f"scripted:{temperament}", **options}
        )
        return await run_case(CaseFolder.create(tmp_path, checked(request)))

    return run


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `case-study` with these words; gives its exit code."""

    def call(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["case-study", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        return code if isinstance(code, int) else 0

    return call
