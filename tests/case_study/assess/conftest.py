from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kits.ponds import Noted, pond_plan

from case_study.assess import How, begun


@pytest.fixture
def noted() -> Noted:
    return Noted()


@pytest.fixture
def pond(tmp_path: Path) -> Callable[..., Path]:
    """Begins an assessment of ponds; gives its folder."""

    def begin(*contenders: str, **fields: object) -> Path:
        folder = tmp_path / "assessment"
        begun(folder, pond_plan(*contenders, **fields))
        return folder

    return begin


@pytest.fixture
def at_once() -> How:
    """Tries again without a pause, and keeps all."""
    return How(pause=0, keep="all")
