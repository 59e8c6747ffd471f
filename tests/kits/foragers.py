"""A forager for tests of forks: its choices hang on memory, a procedure, constraints and state.

Its environment can report its state and be put back; its model is a function of its prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict

from coag.agent import CoagAgent
from coag.context import CoagContext
from coag.cycle import Ablation
from coag.memory import LongTermMemory
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import (
    Candidate,
    Constraint,
    MemoryKind,
    Percept,
    Phase,
    Provenance,
    Section,
    Situation,
    Trust,
    Verdict,
)
from coag.store import HashEmbedder, InMemoryStore
from coag.tracing import Recipe, RunFolder

TASK, LATER = "Fill the basket with berries.", "Go on."
BITTER = "Red berries are bitter."
GREEN = "Pick green ones."
_HOLDS = re.compile(r"basket holds (\d+)")


class Patch:
    """Where berries grow: an environment that reports its state and can be put back."""

    is_copy = True

    def __init__(self, start: Sequence[str] = ()) -> None:
        self.picked = list(start)
        self.closed = 0

    async def snapshot(self) -> Any:
        return {"picked": list(self.picked)}

    async def restore(self, state: Any) -> None:
        self.picked = list(state["picked"])

    async def close(self) -> None:
        self.closed += 1

    def describe(self, state: Any) -> str:
        return f"Picked: {', '.join(state['picked']) or 'nothing'}."


class PickArguments(BaseModel):
    colour: str


class Picked(BaseModel):
    text: str


class Pick(BaseTool[PickArguments, Picked]):
    """Picks a berry; appends each call to a file, as a world would."""

    def __init__(self, patch: Patch, log: Path) -> None:
        super().__init__(PickArguments, Picked, "pick", "Picks a berry.")
        self._patch = patch
        self._log = log

    async def run(self, args: PickArguments, cancellation_token: CancellationToken) -> Picked:
        self._patch.picked.append(args.colour)
        with self._log.open("a") as log:
            log.write(f"{args.colour}\n")
        return Picked(
            text=f"Picked a {args.colour} berry: the basket holds {len(self._patch.picked)}."
        )


class Basket(BaseModel):
    model_config = ConfigDict(frozen=True)

    held: int = 0
    colours: tuple[str, ...] = ()


class BasketContext(CoagContext[Basket]):
    def _update_state_from_function_result(self, state: Basket, percept: Percept) -> Basket:
        held = _HOLDS.search(percept.content)
        colour = (percept.arguments or {}).get("colour", "")
        return Basket(held=int(held[1]) if held else state.held, colours=(*state.colours, colour))

    def _get_state_description(self, state: Basket) -> str:
        return f"The basket holds {state.held}: {', '.join(state.colours)}."

    def _get_retrieval_query(self, state: Basket) -> str:
        return BITTER


def two_are_enough(candidate: Candidate, state: Basket, projection: Basket | None) -> Verdict:
    del projection
    full = candidate.action == "pick" and state.held >= 2
    return Verdict.forbid(f"it holds {state.held}") if full else Verdict.allow()


def nothing_green(candidate: Candidate, state: Basket, projection: Basket | None) -> Verdict:
    del state, projection
    green = (candidate.arguments or {}).get("colour") == "green"
    return Verdict.forbid("green is not ripe") if green else Verdict.allow()


class Ripeness:
    """A module that brings a constraint and counts what it observes."""

    name = "ripeness"

    def __init__(self) -> None:
        self.observed = 0

    async def observe(self, event: object) -> None:
        self.observed += 1

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> Mapping[str, Any]:
        return {"observed": self.observed}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.observed = state.get("observed", 0)

    def constraints(self) -> Sequence[Constraint]:
        return (nothing_green,)


def forage(request: ScriptedRequest) -> ScriptedReply:
    """Picks until the basket holds three: red ones, unless it is known that they are bitter."""
    text = request.text
    held = max((int(found) for found in _HOLDS.findall(text)), default=0)
    colour = "green" if GREEN in text else "blue" if BITTER in text else "red"
    pick = {"action": "pick", "arguments": json.dumps({"colour": colour}), "score": 0.9}
    rest = {"action": "respond", "arguments": f'{{"text": "I have {held}."}}', "score": 0.1}
    candidates = [rest] if held >= 3 else [pick, rest]
    reasoning: dict[str, Any] = {
        "situation": f"It holds {held}.",
        "risks": [],
        "goal_status": "open",
    }
    scores = [{"candidate": n, "score": 1 / n} for n in range(1, len(candidates) + 1)]
    replies: Mapping[str | None, Mapping[str, Any]] = {
        "ReasoningAnswer": reasoning,
        "ProposalAnswer": {"candidates": candidates},
        "EvaluationAnswer": {"evaluations": scores},
        "SelectionAnswer": {"reason": "It is next.", "choice": 1},
        "DeliberationAnswer": {**reasoning, "candidates": candidates},
    }
    return replies[request.schema_name]


def forager(
    *,
    log: str,
    logs: str | None = None,
    memory: str | None = None,
    depth: Literal["full", "compact"] = "full",
    world: bool = True,
    without: Sequence[Ablation] = (),
) -> CoagAgent:
    """The forager; its recipe builds it again, in a patch where nothing was picked."""
    arguments = {"log": log, "logs": logs, "memory": memory, "depth": depth, "world": world}
    arguments |= {"without": list(without)} if without else {}
    patch = Patch()
    own = LongTermMemory(InMemoryStore(HashEmbedder(64)), scope="forager")
    return CoagAgent(
        "forager",
        ScriptedModel(forage),
        tools=[Pick(patch, Path(log))],
        model_context=BasketContext(),
        modules=[Ripeness()],
        constraints=[two_are_enough],
        memory=own if memory is None else memory,
        logs=logs,
        depth=depth,
        ablations=without,
        recipe=Recipe(factory="kits.foragers:forager", arguments=arguments),
        proposal="json",
        environment=patch if world else None,
    )


async def foraged(where: Path, *, facts: Sequence[str] = (BITTER,), **options: Any) -> RunFolder:
    """A finished run of two turns, the berries of which are in `calls.txt`."""
    agent = forager(log=str(where / "calls.txt"), logs=str(where / "logs"), **options)
    for text in facts:
        await agent.long_term_memory.remember(MemoryKind.SEMANTIC, text, provenance=from_a_friend())
    for text in (TASK, LATER):
        messages = [TextMessage(content=text, source="user")]
        await agent.on_messages(messages, CancellationToken())
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder


def from_a_friend() -> Provenance:
    return Provenance(
        run="", activity="", cycle=0, source="friend", source_kind="agent", trust=Trust.USER
    )


def calls(where: Path) -> list[str]:
    """The berries that were really picked."""
    log = where / "calls.txt"
    return log.read_text().split() if log.exists() else []
