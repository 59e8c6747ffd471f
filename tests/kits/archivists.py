"""An agent with awareness whose model is a function of its prompt; its recipe builds it again."""

from __future__ import annotations

from typing import Any

from coag.agent import CoagAgent
from coag.awareness import Awareness, SelfModel, ToolAdapter
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.tracing import Recipe

TASK, ANSWER = "Where is order 17?", "It is shipped."


async def look(order_id: str) -> dict[str, Any]:
    """Looks an order up."""
    return {"order_id": order_id, "status": "shipped"}


async def delete_file(name: str) -> str:
    """Deletes a file."""
    raise AssertionError(f"{name} must not be deleted.")


async def jam() -> str:
    """Fails."""
    raise OSError("jammed")


def _wish(text: str) -> dict[str, Any]:
    """Tries what is forbidden, then what fails, then what helps."""
    if "status=shipped" in text:
        return {"action": "respond", "arguments": {"text": ANSWER}}
    if "jammed" in text:
        return {"action": "look", "arguments": {"order_id": "17"}}
    if "is forbidden" in text:
        return {"action": "jam", "arguments": {}}
    return {"action": "delete_file", "arguments": {"name": "orders"}}


def _think(request: ScriptedRequest) -> ScriptedReply:
    match request.schema_name:
        case "ReasoningAnswer":
            return {"situation": "An order is looked for."}
        case "ProposalAnswer":
            return {"candidates": [_wish(request.text)]}
        case _:
            return {"evaluations": [{"candidate": 1, "reason": "so", "score": 0.9}]}


def awareness() -> Awareness:
    """The module as the archivist has it."""
    adapter = ToolAdapter(entities={"order_id": "order"})
    return Awareness(adapter, self_model=SelfModel(forbidden=("delete file",)))


def _recipe(logs: str) -> Recipe:
    return Recipe(factory="kits.archivists:archivist", arguments={"logs": logs})


def archivist(*, logs: str | None = None) -> CoagAgent:
    """Finds an order after an attempt that is forbidden and one that fails."""
    return CoagAgent(
        "archivist",
        ScriptedModel(_think),
        tools=[look, delete_file, jam],
        modules=[awareness()],
        proposal="json",
        logs=logs,
        recipe=None if logs is None else _recipe(logs),
    )
