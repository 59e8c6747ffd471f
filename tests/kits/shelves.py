"""Archives for awareness: one that lasts under a name, and ones that fail or never answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any

from coag.agent import CoagAgent
from coag.awareness import (
    ArchivedItem,
    Awareness,
    AwarenessSettings,
    DynamicsSettings,
    FoundItem,
    ItemKind,
    RecordArchive,
    ToolAdapter,
)
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import SteppingClock
from coag.store import HashEmbedder, InMemoryStore
from coag.tracing import Recipe

_SHELVES: dict[str, InMemoryStore] = {}


def shelf(name: str = "") -> RecordArchive:
    """The archive that lasts under a name; a new one where none is given."""
    store = InMemoryStore(HashEmbedder())
    if name:
        store = _SHELVES.setdefault(name, store)
    return RecordArchive(store, clock=SteppingClock())


class FailingShelf:
    """An archive that can be reached or not, as `broken` says."""

    def __init__(self) -> None:
        self.broken = True
        self.items: list[ArchivedItem] = []
        self.asked: list[str] = []

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        if self.broken:
            raise OSError("the shelf is locked")
        self.items += items

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        self.asked.append(text)
        if self.broken:
            raise OSError("the shelf is locked")
        return ()


class SilentShelf:
    """An archive that never answers."""

    async def put(self, items: Sequence[ArchivedItem]) -> None:
        await asyncio.Event().wait()

    async def find(self, text: str, k: int, kind: ItemKind | None = None) -> Sequence[FoundItem]:
        await asyncio.Event().wait()
        return ()


async def look(order_id: str) -> dict[str, Any]:
    """Looks an order up."""
    return {"order_id": order_id, "status": f"shipped in box {order_id}"}


def _think(request: ScriptedRequest) -> ScriptedReply:
    """Looks up an order, and says when it is known."""
    order = re.findall(r"\[explicit\] Where is order (\d+)\?", request.text)[0]
    wish: dict[str, Any] = {"action": "look", "arguments": {"order_id": order}}
    if f"order:{order} (status" in request.text:
        wish = {"action": "respond", "arguments": {"text": f"In box {order}."}}
    return {"situation": "An order is asked for.", "candidates": [{**wish, "score": 0.9}]}


def clerk(*, on: str = "", logs: str | None = None) -> CoagAgent:
    """Has room for one order only; the others are archived on the shelf of this name."""
    awareness = Awareness(
        ToolAdapter(entities={"order_id": "order"}),
        settings=AwarenessSettings(kept_entities=2, kept_goals=2),
        dynamics=DynamicsSettings.all_on(),
        archive=shelf(on),
    )
    recipe = Recipe(factory="kits.shelves:clerk", arguments={"on": on, "logs": logs})
    return CoagAgent(
        "clerk",
        ScriptedModel(_think),
        tools=[look],
        modules=[awareness],
        depth="compact",
        module_seconds=60.0,  # a machine may be busy
        proposal="json",
        logs=logs,
        recipe=None if logs is None else recipe,
    )
