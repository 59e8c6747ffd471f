from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from case_study.measures import CaseResult
from coag.tracing import RunFolder, list_runs

PlayCase = Callable[..., object]


@pytest.fixture
def played(play: PlayCase) -> Callable[..., object]:
    """Plays a case, and gives the folder of its first run."""

    async def run(scenario: str, agent: str, temperament: str, **options: object) -> RunFolder:
        result = await play(scenario, agent, temperament, **options)  # type: ignore[misc]  # async
        assert isinstance(result, CaseResult)
        return next(list_runs(Path(result.run)))

    return run
