"""The context of an agent whose tools have a state of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from coag.schema import Percept, PerceptKind
from coag.situated import PropertyReading

from .context import CoagContext
from .prompt_budgets import Budgets


class ToolState(BaseModel):
    """What is known of one tool: the last reading of its properties."""

    model_config = ConfigDict(frozen=True)

    epoch: str = ""
    rev: int = 0
    properties: dict[str, Any] = Field(default_factory=dict)


class SituatedState(BaseModel):
    """The perceptual state of a situated agent; a domain's own derives from it."""

    model_config = ConfigDict(frozen=True)

    tools: dict[str, ToolState] = Field(default_factory=dict)
    """The tools in focus, by id."""
    tool_calls: int = 0
    """Operations that have returned."""
    failures: int = 0
    """Those of them that failed or were refused."""


SituatedStateT = TypeVar("SituatedStateT", bound=SituatedState)


class SituatedContext(CoagContext[SituatedStateT]):
    """Keeps the properties of tools in the perceptual state, as readings bring them.

    Subclass it for a domain: give a state that derives from `SituatedState`, and the hooks that
    the domain needs; `_update_state_from_percept` gets signals, too.
    """

    default_budgets: ClassVar[Budgets] = Budgets(module=8_000)
    """With room for manuals, which are shown whole."""

    def _update_state_from_percept(self, state: SituatedStateT, percept: Percept) -> SituatedStateT:
        """The state with a reading of properties; an older one changes nothing."""
        if percept.kind is not PerceptKind.PROPERTY_CHANGE:
            return state
        reading = PropertyReading.model_validate(percept.data)
        known = state.tools.get(reading.tool)
        if known is not None and known.epoch == reading.epoch and known.rev > reading.rev:
            return state
        now = ToolState(epoch=reading.epoch, rev=reading.rev, properties=reading.properties)
        return state.model_copy(update={"tools": {**state.tools, reading.tool: now}})

    def _update_state_from_function_result(
        self, state: SituatedStateT, percept: Percept
    ) -> SituatedStateT:
        """The state after an operation's acknowledgement: what it leads to is read, not assumed."""
        failures = state.failures + percept.is_error
        changes = {"tool_calls": state.tool_calls + 1, "failures": failures}
        return state.model_copy(update=changes)

    def _get_state_description(self, state: SituatedStateT) -> str:
        """One line for each tool: its properties as JSON."""
        return "\n".join(
            f"{tool}: {json.dumps(now.properties, ensure_ascii=False)}"
            for tool, now in state.tools.items()
        )

    def _progress_key(self, state: SituatedStateT) -> str:
        """A failed operation is worth repeating once a property has changed."""
        properties: Mapping[str, Any] = {name: one.properties for name, one in state.tools.items()}
        return json.dumps(properties, sort_keys=True, default=str)
