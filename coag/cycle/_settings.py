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
    proposal: Literal["auto", "native", "json", "grounded"] = "auto"
    """Where candidates come from. `native`: the model's own tool calls, or its text as the
    answer; `json`: a list of candidates that the model writes; `grounded`: the domain's
    `_propose_grounded`. `auto` is native for models that can call tools, else json; `CoagAgent`
    decides it from the client's `model_info`."""
    parallel: bool = True
    """Tool calls that the model makes in one answer may run together (`native`). Without it
    they are alternatives, and one is selected."""
    reflect: bool = False
    """When the bound on actions is reached, one more cycle without tools answers from what is
    known. Without it the turn ends with the last result."""
    enumerate_actions: bool = False
    """Limit `action` in the answer's schema to the actions that exist."""
    minimum_score: float = Field(default=0.0, ge=0.0, le=1.0)
    """Candidates that the model scores lower do not survive; 0 lets all through."""
    recall_k: int = Field(default=5, ge=0)
    """Records recalled per cycle."""
    module_seconds: float = Field(default=2.0, gt=0)
    """Time that a module has to observe or contribute."""
    bounds: Bounds = Bounds()
