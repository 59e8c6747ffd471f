"""A shop for tests: an agent that orders until it is stopped, and can be built again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from coag.agent import CoagAgent
from coag.models import ScriptedModel, ScriptedRequest


def _wish(request: ScriptedRequest) -> dict[str, Any]:
    if "order" in request.text and "rejected by" not in request.text:
        wanted = {"action": "order", "arguments": {"pieces": 5}, "score": 0.9}
    else:
        wanted = {"action": "respond", "arguments": {"text": "closed"}, "score": 0.9}
    return {"situation": "s", "candidates": [wanted]}


def open_shop(orders: str, **more: Any) -> CoagAgent:
    """An agent whose tool writes each order into a file."""

    async def order(pieces: int) -> str:
        """Orders pieces."""
        with Path(orders).open("a") as file:  # noqa: ASYNC230 - a test's own little file
            file.write(f"{pieces}\n")
        return "ordered"

    return CoagAgent(
        "shop", ScriptedModel(_wish), tools=[order], depth="compact", **more, proposal="json"
    )
