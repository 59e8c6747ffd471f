"""A ground on which faults are injected, shared by the tests of a module."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from case_study.faults import Ground, open_ground


@pytest.fixture
async def ground() -> AsyncGenerator[Ground]:
    """A served world."""
    async with open_ground() as opened:
        yield opened
