"""MCP servers within this process, for tests that need no process of their own."""

import pytest
from kits.mcp_client import in_this_process

from coag.mcp import sdk


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs servers on stdio within this process."""
    monkeypatch.setattr(sdk(), "stdio_client", in_this_process)
