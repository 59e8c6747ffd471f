"""A porter for tests: an agent whose model is a function of its prompt, with a tool that logs.

The model keeps no count of its own, so an agent that is built again continues as the first did.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel

from coag.agent import CoagAgent
from coag.compat import tool
from coag.cycle import Ablation
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import Reconciliation, UnsettledAction
from coag.tracing import Recipe

TASK = "Carry granite and marble, and keep in mind that you did."
ANSWER = "Both stones are where they belong."
STONES = ("granite", "marble")
NOTE = "The stones were heavy."


class CarryArguments(BaseModel):
    stone: str


class Carried(BaseModel):
    text: str


class Carry(BaseTool[CarryArguments, Carried]):
    """Carries a stone; appends the id of each call to a file, as a world would."""

    def __init__(self, log: Path) -> None:
        super().__init__(CarryArguments, Carried, "carry", "Carries a stone.")
        self._log = log

    async def run_json(
        self,
        args: Mapping[str, Any],
        cancellation_token: CancellationToken,
        call_id: str | None = None,
    ) -> Any:
        with self._log.open("a") as log:
            log.write(f"{call_id}\n")
        return await super().run_json(args, cancellation_token, call_id)

    async def run(self, args: CarryArguments, cancellation_token: CancellationToken) -> Carried:
        return Carried(text=f"You carried {args.stone} up.")


def carry(log: Path) -> BaseTool[CarryArguments, Carried]:
    """The tool; its file shows whether a call was made."""

    def look(action: UnsettledAction) -> Reconciliation:
        calls = log.read_text().split() if log.exists() else []
        return "happened" if action.intent_id in calls else "did_not_happen"

    return tool(reconcile=look)(Carry(log))


def intention(text: str) -> Mapping[str, Any]:
    """What is left to do, going by a prompt."""
    for stone in STONES:
        if f"carried {stone} up" not in text:
            return {"action": "carry", "arguments": f'{{"stone": "{stone}"}}', "score": 0.9}
    if "(episodic, id" not in text:
        arguments = f'{{"summary": "{NOTE}"}}'
        return {"action": "tool_update_episodic_memory", "arguments": arguments, "score": 0.9}
    return {"action": "respond", "arguments": f'{{"text": "{ANSWER}"}}', "score": 0.9}


def think(request: ScriptedRequest) -> ScriptedReply:
    """Answers whatever phase asks, always with a second candidate that it likes less."""
    waiting = {"action": "respond", "arguments": '{"text": "I give up."}', "score": 0.1}
    candidates = [intention(request.text), waiting]
    reasoning: dict[str, Any] = {
        "situation": "Stones want carrying.",
        "risks": [],
        "goal_status": "open",
    }
    replies: Mapping[str | None, Mapping[str, Any]] = {
        "ReasoningAnswer": reasoning,
        "ProposalAnswer": {"candidates": candidates},
        "EvaluationAnswer": {
            "evaluations": [{"candidate": 1, "score": 0.9}, {"candidate": 2, "score": 0.1}]
        },
        "SelectionAnswer": {"reason": "It is next.", "choice": 1},
        "DeliberationAnswer": {**reasoning, "candidates": candidates},
    }
    return replies[request.schema_name]


def porter(
    *,
    log: str,
    logs: str | None = None,
    memory: str = ":memory:",
    depth: Literal["full", "compact"] = "full",
    without: Sequence[Ablation] = (),
) -> CoagAgent:
    """The porter; its recipe builds it again."""
    arguments = {"log": log, "logs": logs, "memory": memory, "depth": depth}
    arguments |= {"without": list(without)} if without else {}
    return CoagAgent(
        "porter",
        ScriptedModel(think),
        tools=[carry(Path(log))],
        logs=logs,
        memory=memory,
        depth=depth,
        ablations=without,
        recipe=Recipe(factory="kits.porters:porter", arguments=arguments),
        proposal="json",
    )


_KNOWN = re.compile(r"done: Remembered \(semantic, id (\w+)\)")
FIRST, SECOND, RULE = "Granite is light.", "Granite is heavy.", "Lift with your knees."


def learn(request: ScriptedRequest) -> ScriptedReply:
    """Learns a fact, then better, then a rule, then says so; compact."""
    known = list(dict.fromkeys(_KNOWN.findall(request.text)))
    if "is now version 2" in request.text:
        action, arguments = "respond", {"text": ANSWER}
    elif len(known) > 1:
        action = "tool_update_procedural_memory"
        arguments = {"procedure": "deliberation", "operation": "add", "rule": RULE, "reason": "So."}
    elif known:
        action = "tool_update_semantic_memory"
        arguments = {"fact": SECOND, "supersedes": known[0]}
    else:
        action, arguments = "tool_update_semantic_memory", {"fact": FIRST}
    candidate = {"action": action, "arguments": json.dumps(arguments), "score": 0.9}
    return {"situation": "", "risks": [], "goal_status": "open", "candidates": [candidate]}


def scholar(*, logs: str) -> CoagAgent:
    """An agent that learns, and keeps it in RAM."""
    recipe = Recipe(factory="kits.porters:scholar", arguments={"logs": logs})
    return CoagAgent(
        "scholar",
        ScriptedModel(learn),
        memory=":memory:",
        logs=logs,
        depth="compact",
        recipe=recipe,
        proposal="json",
    )


def no_agent() -> str:
    """A factory that makes something else."""
    return "a stone"
