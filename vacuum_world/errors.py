"""Everything that can go wrong in and around the world.

```
WorldError
├── RuleError                  the rules do not allow it
│   ├── UnknownRobotError
│   ├── UnknownGadgetError
│   ├── NameTakenError
│   ├── WorldFullError
│   ├── ImpossibleInterventionError
│   └── NotPausedError             a step of a world that is not paused
├── OutsideGridError           a report names a cell that the grid does not have
├── UnknownScenarioError       no scenario of that name
├── StateFileError             the file of a kept world cannot be read
├── ControlTokenError          the experimenter's token is unusable
└── CallError                  a call to a world server did not succeed
    ├── WorldUnreachableError      nothing was sent: nothing happened
    ├── OutcomeUnknownError        sent, but no answer: it may have happened
    └── WorldRefusedError          the world answered no, with a status and a reason
        └── RobotStrandedError     ... because the robot has no charge left
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class WorldError(Exception):
    """The root: catch this to catch all of them."""


class RuleError(WorldError):
    """The rules of the world do not allow what was asked."""


class UnknownRobotError(RuleError):
    """There is no robot with this id in the world."""

    def __init__(self, robot_id: str, known: Iterable[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"no robot {robot_id!r} in this world; there are: {names}")


class UnknownGadgetError(RuleError):
    """There is no gadget of this name in the world."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = ", ".join(known) or "none"
        super().__init__(f"no gadget {name!r} in this world; there are: {names}")


class NameTakenError(RuleError):
    """A robot of this name is already in the world."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"a robot named {name!r} is already in this world; choose another name, "
            "or join with the control token to take the robot over"
        )


class WorldFullError(RuleError):
    """No free cell is left for one more robot."""

    def __init__(self) -> None:
        super().__init__("no free cell is left for one more robot; remove a robot or an obstacle")


class ImpossibleInterventionError(RuleError):
    """An intervention would break the world, for example an obstacle on a robot."""


class NotPausedError(RuleError):
    """A step was requested in a world that is not paused."""

    def __init__(self) -> None:
        super().__init__("the world is not paused, so it needs no steps; pause it first")


class OutsideGridError(WorldError):
    """A report names a cell that the grid does not have."""

    def __init__(self, cell: tuple[int, int], grid: tuple[int, int]) -> None:
        super().__init__(f"belief: cell {cell} lies outside the grid {grid}; report only its cells")


class UnknownScenarioError(WorldError):
    """No scenario of this name exists."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"unknown scenario {name!r}; there are: {', '.join(known)}")


class StateFileError(WorldError):
    """The file that keeps a world cannot be read as one."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the state file {path!r} does not hold a world ({reason}); "
            "move it away to start a new world there"
        )


class ControlTokenError(WorldError):
    """The control token given is unusable."""


class CallError(WorldError):
    """A call to a world server did not succeed."""


class WorldUnreachableError(CallError):
    """The server could not be reached: nothing was sent, so nothing happened."""

    def __init__(self, call: str, url: str, reason: str) -> None:
        super().__init__(
            f"{call} was not sent: no world answers at {url} ({reason}); nothing happened"
        )


class OutcomeUnknownError(CallError):
    """The request may have reached the world, but no usable answer came back."""

    may_have_happened = True
    """Tells the tool's caller that the action may have had its effect."""

    def __init__(self, call: str, url: str, reason: str) -> None:
        super().__init__(
            f"{call} was sent to {url} but no usable answer came back ({reason}); "
            "it may or may not have happened: sense before you repeat it"
        )


class WorldRefusedError(CallError):
    """The world answered with an error; nothing was done."""

    def __init__(
        self, call: str, status: int, error: str, detail: str, body: Mapping[str, object]
    ) -> None:
        super().__init__(f"{call} was refused ({status} {error}): {detail}")
        self.status = status
        """HTTP status, 400 to 499 or 503."""
        self.error = error
        """Short name of the problem, such as `unauthorized`."""
        self.detail = detail
        """The reason as a sentence."""
        self.body = body
        """The whole answer."""


class RobotStrandedError(WorldRefusedError):
    """The robot's battery is empty away from the charger: it cannot act any more.

    `body` holds the fields of an `ActionResult` too.
    """
