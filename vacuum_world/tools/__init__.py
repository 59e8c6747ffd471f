"""The robot's abilities as AutoGen tools: `world_tools(client)`.

They are plain `BaseTool`s, so any AutoGen agent can be given them. Their texts end with a
`STATE {json}` line, in the one format of `vacuum_world.state_line`.
"""

from ._tools import (
    CleanCurrentCell,
    MoveAgent,
    MoveArgs,
    NoArgs,
    Sense,
    ToolText,
    UseGadget,
    world_tools,
)

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
