"""A crew's foreman for tests: a model that calls several tools in one answer, natively.

The model keeps no count of its own, so an agent that is built again continues as the first did.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from autogen_core import FunctionCall

from coag.agent import CoagAgent
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.tracing import Recipe

from .porters import ANSWER, NOTE, STONES, carry


def lead(request: ScriptedRequest) -> ScriptedReply:
    """Has all stones carried at once, then notes it, then answers."""
    if not request.tools:
        return {"situation": "Stones want carrying.", "risks": [], "goal_status": "open"}
    text = request.text
    left = [stone for stone in STONES if f"carried {stone} up" not in text]
    calls = [FunctionCall(id=s, name="carry", arguments=json.dumps({"stone": s})) for s in left]
    if "(episodic, id" not in text and len(calls) != 1:
        arguments = json.dumps({"summary": NOTE})
        calls.append(FunctionCall(id="n", name="tool_update_episodic_memory", arguments=arguments))
    return calls or ANSWER


def foreman(*, log: str, logs: str, depth: Literal["full", "compact"] = "full") -> CoagAgent:
    """The foreman; its recipe builds it again."""
    arguments = {"log": log, "logs": logs, "depth": depth}
    return CoagAgent(
        "foreman",
        ScriptedModel(lead),
        memory=":memory:",
        tools=[carry(Path(log))],
        logs=logs,
        depth=depth,
        recipe=Recipe(factory="kits.crews:foreman", arguments=arguments),
        proposal="native",
    )
