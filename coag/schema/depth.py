"""How deeply a cycle deliberated with `depth="auto"`, and why."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .values import SparseValue, Value

Depth = Literal["full", "compact", "auto"]
"""How an agent deliberates; see `CycleSettings.depth`."""


class DepthAdvice(Value):
    """The advice of a module that learns which depth pays (`DepthAdviser`)."""

    depth: Literal["one_call", "full"]
    probability: float = Field(ge=0, le=1)
    """The probability with which it was drawn: the logged propensity."""
    why: str
    source: str
    """The module's name."""


class DepthEvidence(SparseValue):
    """The conditions that decide a cycle's depth; only those that hold are written down."""

    SPARSE = frozenset(
        {
            "only_call",
            "procedure",
            "foreseen",
            "news",
            "answers_only",
            "impasse",
            "disagreed",
            "stakes",
            "advice",
        }
    )

    situation: str
    """Digests of the goal and the state, and behind the dash of what was just said; procedures are
    compiled for one."""
    only_call: str = ""
    """The only call that nothing in force forbids, where there is exactly one."""
    procedure: str = ""
    """The compiled procedure for this situation: what it calls, and how it has done so far."""
    foreseen: str = ""
    """The one call that brings the goal nearer by the domain's forward model and value, where all
    others do clearly less."""
    news: tuple[str, ...] = ()
    """Events that only a model can weigh; after them the predictions of code are not relied on."""
    answers_only: bool = False
    """True where a budget leaves room for an answer only."""
    impasse: bool = False
    """True if no candidate survived in the last cycle."""
    disagreed: tuple[str, ...] = ()
    """Fields of the state in which the last action did not lead to what was predicted."""
    stakes: tuple[str, ...] = ()
    """Calls that may be made now and have a lot at stake, each with the reason."""
    advice: DepthAdvice | None = None
    """What a module advises; asked for only where nothing else decides."""


class DepthChoice(Value):
    """The depth of one cycle."""

    depth: Literal["reflex", "one_call", "full"]
    """`reflex`: the model is not asked; `one_call`: once, for reasoning, candidates and scores;
    `full`: once per deliberating phase."""
    reason: str
    evidence: DepthEvidence

    @property
    def line(self) -> str:
        """The choice in one line."""
        return f"{self.depth.replace('_', ' ')}: {self.reason}"
