"""Activities: goals that are pursued, each with its own working memory, and what wakes them.

An activity is ready, running, blocked or terminated (thesis, 5.4.1). A blocked one is data: it
costs no task, no model call and no object: it is a row of the store.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from coag._util.text import clip
from coag.schema import Moment, Percept, PerceptKind, Trust, Value, one_line

from .records import PropertyReading, SignalRecord, is_flood

Priority = Annotated[int, Field(ge=-(2**31), lt=2**31)]
"""Of an activity: higher ones run first. A column of the store, whose integers have 32 bits."""

# ---- What is waited for ----


class OnSignal(Value):
    """Wakes when a tool has emitted a signal, at once if it came since the last operation."""

    on: Literal["signal"] = "signal"
    tool: str
    """The tool's id."""
    name: str
    """The signal's name, e.g. `pump.pressure_nominal`."""
    where: dict[str, Any] = Field(default_factory=dict)
    """Fields that the payload must have, with these values."""

    def met_by(self, signal: SignalRecord) -> bool:
        """Whether this signal ends the wait."""
        return signal.name == self.name and all(
            signal.data.get(field, ...) == value for field, value in self.where.items()
        )

    def __str__(self) -> str:
        where = f" with {self.where}" if self.where else ""
        return f"signal {self.name!r} of {self.tool!r}{where}"


Comparison = Literal["==", "!=", "<", "<=", ">", ">="]
_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class OnProperty(Value):
    """Wakes when a property of a tool has a value, at once if it has."""

    on: Literal["property"] = "property"
    tool: str
    """The tool's id."""
    name: str
    """The property's name."""
    comparison: Comparison = "=="
    value: Any
    """What the property is compared with, JSON; values that cannot be compared wake nobody."""

    def met_by(self, properties: Mapping[str, Any]) -> bool:
        """Whether these properties end the wait; values that cannot be compared do not."""
        if self.name not in properties:
            return False
        try:
            return bool(_COMPARE[self.comparison](properties[self.name], self.value))
        except TypeError:
            return False

    def __str__(self) -> str:
        return f"property {self.name!r} of {self.tool!r} {self.comparison} {self.value!r}"


class OnActivity(Value):
    """Wakes when another activity has ended: what was delegated."""

    on: Literal["activity"] = "activity"
    activity: str
    """The other activity's id."""

    def __str__(self) -> str:
        return f"the end of activity {self.activity!r}"


Condition = OnSignal | OnProperty | OnActivity


class Wait(Value):
    """What a blocked activity waits for (thesis, 5.4.3: suspension)."""

    condition: Condition = Field(discriminator="on")
    since: Moment
    """When it began to wait."""
    deadline: Moment | None = None
    """When it is woken all the same, with a percept that says so; None for never."""


# ---- An activity ----


class ActivityState(StrEnum):
    """Where an activity is in its life (thesis, 5.4.1)."""

    READY = "ready"
    RUNNING = "running"
    BLOCKED = "blocked"
    TERMINATED = "terminated"


OPEN_STATES = tuple(state for state in ActivityState if state is not ActivityState.TERMINATED)
"""Those of an activity that has not ended."""


class ActivityEnd(StrEnum):
    """How a terminated activity ended: with an answer, without one, or because somebody said so."""

    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ActivityBudget(Value):
    """What an activity may use; None for no bound. One that reaches a bound ends as failed."""

    steps: int | None = 200
    """Cycles."""
    tokens: int | None = None
    step_seconds: float | None = Field(default=3_600.0, gt=0)
    """One step, with its model calls and the answers of persons that it waits for. A step that
    takes longer is cancelled and tried again, a few times."""


class Activity(Value):
    """One goal that an agent pursues, with a working memory of its own (thesis, 5.3).

    A frozen value: each change makes a new one, which the store keeps.
    """

    id: str
    """Unique within the agent's store."""
    agent: str
    """The agent's name."""
    goal: str
    """What is to be reached, in words."""
    created: Moment
    updated: Moment
    """When it changed last."""
    source: str = "user"
    """Who set the goal: a person, an agent, `timer`, or `signal:TOOL/NAME`."""
    trust: Trust = Trust.USER
    priority: Priority = 0
    """Higher ones run first."""
    state: ActivityState = ActivityState.READY
    wait: Wait | None = None
    """For a blocked one: what it waits for."""
    end: ActivityEnd | None = None
    result: str = ""
    """For a terminated one: the answer, or why there is none."""
    run: str | None = None
    """Name of its run folder, where runs are kept on disk."""
    steps: int = 0
    """Cycles so far."""
    tokens: int = 0
    """Tokens of its model calls so far."""
    budget: ActivityBudget = Field(default_factory=ActivityBudget)
    parent: str | None = None
    """The activity of this agent that this one is a part of."""
    lineage: tuple[str, ...] = ()
    """The activities of other agents through which the goal came, each `AGENT/ACTIVITY`."""

    @property
    def as_caller(self) -> tuple[str, ...]:
        """The lineage of what it asks for: those that passed its goal on, then itself."""
        return (*self.lineage, f"{self.agent}/{self.id}")

    @property
    def over(self) -> bool:
        """True if it has terminated."""
        return self.state is ActivityState.TERMINATED


class InboxEntry(Value):
    """A percept that has arrived for an activity and is not perceived yet."""

    number: int
    """Grows with every entry of an activity."""
    percept: Percept


# ---- One step of an activity, as the scheduler sees it ----


class Step(Value):
    """What came of one step: one cycle of the six phases."""

    wait: Wait | None = None
    """Given if the activity waits from now on."""
    end: ActivityEnd | None = None
    """Given if it has ended."""
    result: str = ""
    """With `end`: the answer, or what went wrong."""
    tokens: int = 0
    """Tokens that the step's model calls used."""
    cycles: int = 1
    """Steps that it counts as: 0 for the end of a turn behind a cycle that was counted."""
    run: str | None = None
    """The name of the activity's run folder, once it has one."""


_SHOWN = 2_000
"""Characters of a result that are shown."""


def ends_wait(wait: Wait, percept: Percept) -> bool:
    """Whether a percept wakes the activity that waits so.

    What is waited for does; a gap in what its tool said, since it may have been in there; and all
    that concerns the activity itself: a message, a time-out, what became of an action. An
    erroneous signal does not, and neither does a gap where a tool emits too many signals: one that
    is waited for is delivered all the same.
    """
    condition = wait.condition
    try:
        match percept.kind:
            case PerceptKind.SIGNAL:
                if isinstance(condition, OnActivity):
                    return percept.source == condition.activity
                return (
                    isinstance(condition, OnSignal)
                    and not percept.is_error
                    and percept.source == condition.tool
                    and condition.met_by(SignalRecord.model_validate(percept.data))
                )
            case PerceptKind.PROPERTY_CHANGE:
                return (
                    isinstance(condition, OnProperty)
                    and percept.source == condition.tool
                    and condition.met_by(PropertyReading.model_validate(percept.data).properties)
                )
            case PerceptKind.GAP:
                if isinstance(condition, OnActivity) or is_flood(percept):
                    return False
                return percept.source == condition.tool
            case _:
                return True
    except ValidationError:  # nobody can say what it is: the activity looks at it itself
        return True


def time_out_percept(activity_id: str, number: int, wait: Wait, now: datetime) -> Percept:
    """What is perceived when a deadline has passed."""
    return Percept(
        id=f"{activity_id}/time-out-{number}",
        at=now,
        kind=PerceptKind.TIME_OUT,
        source=activity_id,
        trust=Trust.UNTRUSTED,  # it names what a model or a tool may have chosen
        content=f"What was waited for since {wait.since:%Y-%m-%d %H:%M:%S} has not come until "
        f"{wait.deadline or now:%Y-%m-%d %H:%M:%S}: {one_line(str(wait.condition))}.",
        data=wait.model_dump(mode="json"),
    )


def end_percept(activity_id: str, activity: Activity | None, now: datetime) -> Percept:
    """The end of an activity as a signal for others; None for one that never was."""
    if activity is None or activity.end is None:
        end, result = None, f"There is no activity {activity_id!r}."
    else:
        end, result = activity.end.value, activity.result
    record = SignalRecord(
        event_id=f"{activity_id}/end/1",
        name="ended",
        timestamp=now,
        data={"end": end, "result": result},
        cursor="end:1",
        rev=0,
    )
    content = f"Activity {activity_id!r} ended ({end}): {result}" if end else result
    return Percept(
        id=record.event_id,
        at=now,
        kind=PerceptKind.SIGNAL,
        source=activity_id,
        trust=Trust.UNTRUSTED,
        content=clip(content, _SHOWN),
        data=record.model_dump(mode="json"),
    )
