"""The robot's abilities as AutoGen tools: `world_tools(client)`.

They are plain `BaseTool`s, so any AutoGen agent can be given them. Their texts end with a
`STATE {json}` line, in the one format of `vacuum_world.state_line`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, RootModel

from vacuum_world.client import CallError, RobotStrandedError, WorldClient
from vacuum_world.errors import WorldError
from vacuum_world.world import CLEAN_COST, MOVE_COST, ActionResult, Direction, Manual, state_line

__all__ = [
    "world_tools",
    "MoveAgent",
    "CleanCurrentCell",
    "Sense",
    "UseGadget",
    "MoveArgs",
    "NoArgs",
    "ToolText",
]

ArgsT = TypeVar("ArgsT", bound=BaseModel)

# AutoGen hands the call's id to `run_json` but not on to `run`.
_call_id: ContextVar[str | None] = ContextVar("vacuum_world_call_id", default=None)


class MoveArgs(BaseModel):
    """Arguments of `move_agent`."""

    model_config = ConfigDict(extra="forbid")

    direction: Direction = Field(
        description="Where to go: north (y-1), east (x+1), south (y+1) or west (x-1)."
    )


class NoArgs(BaseModel):
    """A tool without arguments."""

    model_config = ConfigDict(extra="forbid")


class ToolText(RootModel[str]):
    """The text of a tool; AutoGen wants a model, `str()` of it is the text."""

    def __str__(self) -> str:
        return self.root


class _WorldTool(BaseTool[ArgsT, ToolText]):
    """A tool whose text ends with a fresh reading of the sensors."""

    def __init__(self, client: WorldClient, args: type[ArgsT], name: str, description: str) -> None:
        super().__init__(args, ToolText, name, description)
        self._client = client

    async def run_json(
        self,
        args: Mapping[str, Any],
        cancellation_token: CancellationToken,
        call_id: str | None = None,
    ) -> Any:
        """Run; an action is known to the world by `call_id`."""
        before = _call_id.set(call_id)
        try:
            return await super().run_json(args, cancellation_token, call_id)
        finally:
            _call_id.reset(before)

    async def run(self, args: ArgsT, cancellation_token: CancellationToken) -> ToolText:
        """Run to the end: what was sent is waited for, so that its outcome is known.

        Raises:
            WorldError: The call was cancelled before anything was sent.
            CallError: The world could not be reached, did not answer, or refused.
        """
        if cancellation_token.is_cancelled():
            raise WorldError(f"{self.name} was cancelled before anything was sent")
        return ToolText(await self._text(args))

    def return_value_as_string(self, value: Any) -> str:
        """The text itself."""
        return str(value)

    @abstractmethod
    async def _text(self, args: ArgsT) -> str: ...


class _Action(_WorldTool[ArgsT]):
    """A tool that acts: the outcome as JSON, then the sensors."""

    async def _text(self, args: ArgsT) -> str:
        try:
            result = await self._act(args, _call_id.get())
        except RobotStrandedError as error:
            fields = {name: error.body.get(name) for name in ActionResult.model_fields}
            result = ActionResult.model_validate(fields)
        return f"{json.dumps(result.model_dump(mode='json'))}\n{await self._sensed()}"

    async def _sensed(self) -> str:
        try:
            return state_line(await self._client.sense())
        except CallError as error:
            return f"SENSING FAILED: {error}"

    @abstractmethod
    async def _act(self, args: ArgsT, action_id: str | None) -> ActionResult: ...


class MoveAgent(_Action[MoveArgs]):
    """Moves the robot one cell."""

    def __init__(self, client: WorldClient) -> None:
        super().__init__(
            client,
            MoveArgs,
            "move_agent",
            f"Move one cell north, east, south or west. Costs {MOVE_COST} battery, even if the "
            "way is blocked. North is y-1, south is y+1, east is x+1, west is x-1. Moving onto "
            "the charger restores the battery to 100. The result says ok true or false, the "
            "reason, and then the new STATE.",
        )

    async def _act(self, args: MoveArgs, action_id: str | None) -> ActionResult:
        return await self._client.move(args.direction, action_id)


class CleanCurrentCell(_Action[NoArgs]):
    """Cleans the robot's cell."""

    def __init__(self, client: WorldClient) -> None:
        super().__init__(
            client,
            NoArgs,
            "clean_current_cell",
            f"Clean the cell you are on. Costs {CLEAN_COST} battery, even if it fails. Use it "
            "only where STATE shows dirty.here true. It may fail (failure transient: try again) "
            "or the cell may be dirty again at once: look at dirty.here in the new STATE. With "
            f"less than {CLEAN_COST} battery it does nothing and drains the battery to 0.",
        )

    async def _act(self, args: NoArgs, action_id: str | None) -> ActionResult:
        return await self._client.clean(action_id)


class Sense(_WorldTool[NoArgs]):
    """Reads all sensors."""

    def __init__(self, client: WorldClient) -> None:
        super().__init__(
            client,
            NoArgs,
            "sense",
            "Look around. Free. Gives STATE with position [x,y], battery, dirty (here and the "
            "four neighbours; null is outside the grid), blocked (true means you cannot move "
            "there), the charger's cell and the grid's size.",
        )

    async def _text(self, args: NoArgs) -> str:
        return state_line(await self._client.sense())


class UseGadget(_Action[NoArgs]):
    """Uses a gadget; its description is what the world promises."""

    def __init__(self, client: WorldClient, manual: Manual) -> None:
        super().__init__(
            client,
            NoArgs,
            manual.name,
            f"{manual.promise} The result says ok true or false, the reason, and then the new "
            "STATE.",
        )

    async def _act(self, args: NoArgs, action_id: str | None) -> ActionResult:
        return await self._client.use(self.name, action_id)


def world_tools(client: WorldClient, gadgets: Sequence[Manual] = ()) -> list[BaseTool[Any, Any]]:
    """`move_agent`, `clean_current_cell`, `sense` and gadgets for the robot that `client` drives.

    The text of an action is two lines: the outcome as the world gave it, as JSON, and
    `STATE {json}`, a fresh reading (or `SENSING FAILED: reason`, the outcome standing). That of
    `sense` is the `STATE` line. The id that AutoGen gives to a call becomes `X-Action-Id`.

    Args:
        client: Drives the robot.
        gadgets: The world's manuals (`await client.gadgets()`, or
            `vacuum_world.world.manuals(world)`); each becomes one more tool.
    """
    used = [UseGadget(client, manual) for manual in gadgets]
    return [MoveAgent(client), CleanCurrentCell(client), Sense(client), *used]
