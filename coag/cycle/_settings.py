"""How a cycle deliberates, and where it stops."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from coag.schema import Value


class Bounds(Value):
    """Limits of one turn. Reaching one ends the turn with the best answer and the reason."""

    cycles: int = Field(default=20, ge=1)
    """Cycles a turn."""
    impasses: int = Field(default=3, ge=1)
    """Cycles in a row in which no candidate survives."""
    actions: int | None = Field(default=None, ge=1)
    """External actions a turn; None for no limit of their own."""


class CycleSettings(Value):
    """How each cycle deliberates."""

    depth: Literal["full", "compact"] = "full"
    """`full` asks the model once per deliberating phase; `compact` once per cycle, for
    reasoning, candidates and scores together. Constraints, order and log are the same."""
    selection: Literal["model", "rank"] = "model"
    """Who chooses among several survivors: the model, or the highest score."""
    proposal: Literal["json", "grounded"] = "json"
    """Where candidates come from: the model, or the domain's `_propose_grounded`."""
    enumerate_actions: bool = False
    """Limit `action` in the answer's schema to the actions that exist."""
    minimum_score: float = Field(default=0.0, ge=0.0, le=1.0)
    """Candidates that the model scores lower do not survive; 0 lets all through."""
    recall_k: int = Field(default=5, ge=0)
    """Records recalled per cycle."""
    module_seconds: float = Field(default=2.0, gt=0)
    """Time that a module has to observe or contribute."""
    bounds: Bounds = Bounds()
