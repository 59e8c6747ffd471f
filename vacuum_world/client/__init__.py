"""The typed, asynchronous way to a served world.

`WorldClient` drives a robot, `WorldControl` is the experimenter's. What can go wrong is in
type: nothing was sent (`WorldUnreachableError`), sent but unanswered (`OutcomeUnknownError`), or
refused with a reason (`WorldRefusedError`, `RobotStrandedError`). Nothing is ever sent twice.
"""

from vacuum_world.errors import (
    CallError,
    OutcomeUnknownError,
    RobotStrandedError,
    WorldRefusedError,
    WorldUnreachableError,
)

from .control import Happening, WorldControl
from .robot import Membership, WorldClient, join_world

__all__ = [
    "WorldClient",
    "WorldControl",
    "join_world",
    "Membership",
    "Happening",
    "CallError",
    "WorldUnreachableError",
    "OutcomeUnknownError",
    "WorldRefusedError",
    "RobotStrandedError",
]
