"""A memory in RAM."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from kits.statements import memory_over

from coag.memory import LongTermMemory


@pytest.fixture
async def memory() -> AsyncIterator[LongTermMemory]:
    memory = memory_over()
    yield memory
    await memory.close()
