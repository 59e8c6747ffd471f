"""The body's abilities as AutoGen tools.

The text of each is a line of JSON, whether something happened and why not, with the reading,
and then the reading in words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, RootModel

from ._body import Body
from ._physics import ACTIONS, Action

LOOK = "look"
_DESCRIPTIONS: Mapping[Action, str] = {
    "turn_left": "Turn a quarter to the left, without moving.",
    "turn_right": "Turn a quarter to the right, without moving.",
    "move_forward": "Move one cell ahead. Walls, closed doors, keys, balls and boxes block the "
    "way. Lava kills.",
    "pick_up": "Pick up the key, ball or box in the cell ahead. One thing can be carried.",
    "drop": "Put what you carry onto the free floor ahead.",
    "toggle": "Open or close the door in the cell ahead. A locked door opens only if you carry "
    "the key of its colour.",
}


class NoArgs(BaseModel):
    """A tool without arguments."""

    model_config = ConfigDict(extra="forbid")


class ToolText(RootModel[str]):
    """The text of a tool; AutoGen wants a model, `str()` of it is the text."""

    def __str__(self) -> str:
        return self.root


class Ability(BaseTool[NoArgs, ToolText]):
    """An action of the body, or `look`, which is none."""

    def __init__(self, body: Body, name: str, description: str, action: Action | None) -> None:
        super().__init__(NoArgs, ToolText, name, description)
        self._body = body
        self._action: Action | None = action

    async def run(self, args: NoArgs, cancellation_token: CancellationToken) -> ToolText:
        """Acts at once; there is nothing to wait for."""
        problem = self._body.act(self._action) if self._action else ""
        return ToolText(tool_text(self._body, problem))

    def return_value_as_string(self, value: Any) -> str:
        """The text itself."""
        return str(value)


def tool_text(body: Body, problem: str = "") -> str:
    """The text of a tool after an action.

    Args:
        body: Who acted.
        problem: Why nothing happened; empty if something did.
    """
    fields: dict[str, Any] = {"ok": not problem}
    if problem:
        fields |= {"failure": "deterministic", "reason": f"Nothing happened: {problem}."}
    fields |= body.reading.as_json()
    return f"{json.dumps(fields, separators=(',', ':'))}\n{body.reading.words()}"


def minigrid_tools(body: Body) -> list[BaseTool[Any, Any]]:
    """The six actions, and `look`, which costs nothing."""
    acts = [Ability(body, action, _DESCRIPTIONS[action], action) for action in ACTIONS]
    return [*acts, Ability(body, LOOK, "Look again at what you see. Changes nothing.", None)]
