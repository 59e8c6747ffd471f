"""A counter that serves one person after the other, and a model that keeps all it is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from autogen_core import FunctionCall
from pydantic import BaseModel

from coag import CoagAgent, CoagContext, LongTermMemory, ScriptedModel
from coag.awareness import Awareness
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION, user_scope
from coag.models import ScriptedRequest
from coag.schema import Percept
from coag.store import HashEmbedder, InMemoryStore, RecordStore

TOKEN = re.compile(r"T-(\w+)-\d+")
PEOPLE = ("ann", "bob", "cyd")


class Counter(BaseModel, frozen=True):
    customer: str | None = None


class Served(CoagContext[Counter]):
    def _update_state_from_function_result(self, state: Counter, percept: Percept) -> Counter:
        if percept.source not in ("log_in", "log_out") or percept.is_error:
            return state
        return Counter(customer=percept.data["customer"])

    def _get_memory_scope(self, state: Counter) -> str | None:
        return None if state.customer is None else user_scope(state.customer)


class Till:
    """A counter at which people log in one after the other; every look brings a new token.

    Its tools take no thread, for which a busy machine might need longer than a call may take.
    """

    def __init__(self) -> None:
        self.customer: str | None = None
        self.looks = 0

    def tools(self) -> list[Any]:
        async def log_in(customer: str) -> dict[str, Any]:
            """Logs a customer in."""
            self.customer = customer
            return {"customer": customer}

        async def log_out() -> dict[str, Any]:
            """Logs out whoever is in."""
            self.customer = None
            return {"customer": None}

        async def look_up() -> str:
            """Tells what is known of whoever is logged in."""
            self.looks += 1
            return f"The order is T-{self.customer or 'nobody'}-{self.looks}."

        return [log_in, log_out, look_up]


class Leaky:
    """A scripted model that repeats and keeps whatever it is shown, in the steps it is given."""

    def __init__(self) -> None:
        self.todo: list[Sequence[str]] = []
        self.shown: list[tuple[str, str]] = []
        """Whom the state named when the model was asked, and what it was shown."""
        self.served: Callable[[], str] = str

    def model(self) -> ScriptedModel:
        return ScriptedModel(self._answer)

    def _answer(self, request: ScriptedRequest) -> Any:
        self.shown.append((self.served(), request.text))
        tokens = " ".join(found[0] for found in TOKEN.finditer(request.text)) or "nothing"
        if not self.todo:
            return f"I know {tokens}."
        return [call(step, tokens, len(self.shown)) for step in self.todo.pop(0)]


def call(step: str, tokens: str, number: int) -> FunctionCall:
    keeping = {
        "note": (EPISODIC_ACTION, {"summary": f"At {number} the caller had {tokens}."}),
        "fact": (
            SEMANTIC_ACTION,
            {
                "fact": f"The caller's order is {tokens} ({number}).",
                "about": "caller",
                "attribute": "order",
                "value": f"{tokens} {number}"[:200],
            },
        ),
        "same": (SEMANTIC_ACTION, {"fact": "The caller wants it quick."}),
        "rule": (
            PROCEDURAL_ACTION,
            {
                "procedure": "reasoning",
                "operation": "add",
                "rule": f"Think of {tokens}.",
                "reason": "so",
            },
        ),
    }
    name, arguments = keeping.get(step, (step, dict[str, Any]()))
    if step in PEOPLE:
        name, arguments = "log_in", {"customer": step}
    return FunctionCall(id="", name=name, arguments=json.dumps(arguments))


def at_desk(model: Leaky, store: RecordStore, **options: Any) -> CoagAgent:
    till = Till()
    agent = CoagAgent(
        "desk",
        model.model(),
        tools=[*till.tools(), *options.pop("extra", [])],
        tool_timeout=0.2,
        model_context=options.pop("model_context", None) or Served(),
        memory=LongTermMemory(store, scope="desk"),
        depth="compact",
        **options,
    )
    model.served = lambda: till.customer or ""
    return agent


def empty_desk() -> CoagAgent:
    """The desk as it was made, for replays and for going on with a run; remembers in RAM."""
    return at_desk(Leaky(), InMemoryStore(HashEmbedder()))


def aware_desk() -> CoagAgent:
    """The same with awareness."""
    return at_desk(Leaky(), InMemoryStore(HashEmbedder()), modules=[Awareness()])
