"""What components name by import: contexts, rules, tools, scripts, and things that cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from autogen_core.model_context import UnboundedChatCompletionContext
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from coag.context import CoagContext
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import Candidate, Outcome, Percept, Phase, Section, Situation, Verdict

FACTOR = 3


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class TankState(BaseModel):
    model_config = ConfigDict(frozen=True)

    litres: int = 0


class PlainTank(CoagContext[TankState]):
    """A domain without a constructor of its own."""


class Tank(PlainTank):
    """A domain with arguments of its own."""

    def __init__(
        self,
        *,
        size: int | None = 7,
        colours: Sequence[Colour] = (),
        manual: Path | None = None,
        rule: Any = None,
        **context: Any,
    ) -> None:
        self.size = size
        self.colours = colours
        self.manual = manual
        self.rule = rule
        super().__init__(**context)


class ShownMessages(UnboundedChatCompletionContext):
    """A foreign context that inherits its parent's provider."""


class Answer(BaseModel):
    """What is answered."""

    text: str
    sure: bool = False


def triple(number: int) -> int:
    """Three times a number."""
    return FACTOR * number


def no_deletion(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    del state, projection
    return Verdict.forbid("no") if candidate.action == "delete" else Verdict.allow()


def is_large(action: str, arguments: Mapping[str, Any]) -> bool:
    """A rule of approval."""
    del action
    return arguments.get("n", 0) > FACTOR


async def approves(request: Any) -> bool:
    """An approver."""
    del request
    return True


@dataclass(frozen=True)
class AtMost:
    """A rule with a setting."""

    limit: int
    names: tuple[str, ...] = ("n",)

    def __call__(self, candidate: Candidate, state: Any, projection: Any) -> Verdict:
        del state, projection
        given = candidate.arguments or {}
        over = [name for name in self.names if given.get(name, 0) > self.limit]
        return Verdict.forbid(f"{over} over {self.limit}") if over else Verdict.allow()


class Quiet:
    """A rule that holds nothing."""

    name = "quiet"

    def __call__(self, candidate: Candidate, state: Any, projection: Any) -> Verdict:
        del candidate, state, projection
        return Verdict.allow()


class Counter:
    """A rule of which only itself knows what it holds."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, candidate: Candidate, state: Any, projection: Any) -> Verdict:
        del candidate, state, projection
        return Verdict.allow()


@dataclass
class Observer:
    """A module with a setting and a state."""

    name: str = "observer"
    seen: list[str] = field(default_factory=list[str], init=False)

    async def observe(self, event: Percept | Outcome) -> None:
        self.seen.append(event.record)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        return None

    def save_state(self) -> Mapping[str, Any]:
        return {"seen": self.seen}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.seen = list(state["seen"])


@dataclass(frozen=True)
class FixedClock:
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True)
class LengthEmbedder:
    """Counts characters."""

    dimension: int = 4
    name: str = "length"
    minimum_similarity: float = 0.1

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[len(text)] * self.dimension for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])


def echo(request: ScriptedRequest) -> ScriptedReply:
    return request.last_user_text


def shout(call: Any, result: Any) -> str:
    """A summary formatter."""
    del call
    return str(result.content).upper()


class Outer:
    """What is within a class."""

    class Inner(CoagContext[TankState]):
        """No component is loaded from here."""

    @staticmethod
    def rule(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return no_deletion(candidate, state, projection)

    @classmethod
    def made(cls) -> Outer:
        return cls()
