"""What can be set on a `CoagAgent` besides AssistantAgent's arguments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from autogen_core.memory import Memory
from autogen_core.models import ModelInfo
from pydantic import ValidationError

from coag.cycle import Bounds, Budget, CycleSettings, Part
from coag.errors import ConfigurationError
from coag.memory import LongTermMemory

MemoryArgument = str | Path | LongTermMemory | Memory | Sequence[Memory]
"""Long-term memory: a folder, a Chroma server's URL, `":memory:"` for one in RAM, one of ours, or
AutoGen memories."""


class Deliberation(TypedDict, total=False):
    """How the agent deliberates; see `coag.CycleSettings` for what each means."""

    depth: Literal["full", "compact"]
    selection: Literal["model", "rank"]
    proposal: Literal["auto", "native", "json", "grounded"]
    parallel: bool
    enumerate_actions: bool | Literal["calls", "allowed"]
    answers: Literal["complete", "brief"]
    minimum_score: float
    recall_k: int
    summarize: bool
    module_seconds: float
    rule_seconds: float | None
    bounds: Bounds
    budget: Budget
    without: Collection[Part]


def cycle_settings(
    given: Deliberation, *, rounds: int | None, reflect: bool, info: ModelInfo, tools: bool
) -> CycleSettings:
    """The settings of every cycle.

    Args:
        given: What the caller set.
        rounds: How many times a turn may use tools; None leaves it to the bounds.
        reflect: Whether an answer follows the last time.
        info: What the model can do; `proposal="auto"` is decided by it.
        tools: Whether there are tools to call.

    Raises:
        TypeError: An argument that nothing has; lists those that exist.
        ConfigurationError: A setting that cannot be.
    """
    values: dict[str, Any] = dict(given)
    unknown = sorted(set(values) - set(CycleSettings.model_fields) | {"reflect"} & set(values))
    if unknown:
        known = [name for name in CycleSettings.model_fields if name != "reflect"]
        raise TypeError(
            f"CoagAgent has no argument {', '.join(map(repr, unknown))}. Beside AssistantAgent's "
            f"it has modules, constraints, procedures, logs, recipe, seed, tool_timeout, models, "
            f"prices, approval, approve, environment, gate, rewriting, {', '.join(known)}."
        )
    if rounds is not None:
        bounds: Bounds = values.get("bounds") or Bounds()
        values["bounds"] = bounds.model_copy(update={"actions": rounds})
    try:
        settings = CycleSettings.model_validate({**values, "reflect": reflect})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        told = f"{name}={first['input']!r}: {first['msg']}. See coag.CycleSettings."
        raise ConfigurationError(told) from error
    if settings.proposal != "auto":
        return settings
    return settings.model_copy(update={"proposal": _by_model(info, tools)})


def _by_model(info: ModelInfo, tools: bool) -> Literal["native", "json"]:
    """Native for a model that can call tools, or that is given none and knows no JSON either."""
    if info.get("function_calling", False):
        return "native"
    knows_json = info.get("json_output", False) or info.get("structured_output", False)
    return "json" if tools or knows_json else "native"
