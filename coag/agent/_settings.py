"""What can be set on a `CoagAgent` besides AssistantAgent's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from autogen_core.memory import Memory

from coag.cycle import Bounds, CycleSettings
from coag.memory import LongTermMemory

MemoryArgument = str | Path | LongTermMemory | Memory | Sequence[Memory]
"""Long-term memory: a folder or a Chroma server's URL, one of ours, or AutoGen memories."""


class Deliberation(TypedDict, total=False):
    """How the agent deliberates; see `coag.CycleSettings` for what each means."""

    depth: Literal["full", "compact"]
    selection: Literal["model", "rank"]
    proposal: Literal["json", "grounded"]
    enumerate_actions: bool
    minimum_score: float
    recall_k: int
    module_seconds: float
    bounds: Bounds


def cycle_settings(given: Deliberation, max_tool_iterations: int | None) -> CycleSettings:
    """The settings of every cycle, AssistantAgent's limit on tool use included.

    Raises:
        TypeError: An argument that nothing has; lists those that exist.
        ValueError: `max_tool_iterations` is less than 1.
    """
    values: dict[str, Any] = dict(given)
    unknown = sorted(set(values) - set(CycleSettings.model_fields))
    if unknown:
        raise TypeError(
            f"CoagAgent has no argument {', '.join(map(repr, unknown))}. Beside AssistantAgent's "
            f"it has modules, constraints, procedures, logs, recipe, seed, tool_timeout, "
            f"{', '.join(CycleSettings.model_fields)}."
        )
    if max_tool_iterations is not None:
        if max_tool_iterations < 1:
            raise ValueError(
                f"max_tool_iterations must be at least 1, or None, not {max_tool_iterations!r}."
            )
        bounds: Bounds = values.get("bounds") or Bounds()
        values["bounds"] = bounds.model_copy(update={"actions": max_tool_iterations})
    return CycleSettings.model_validate(values)
