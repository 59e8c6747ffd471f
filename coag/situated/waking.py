"""What wakes an activity, and what it then perceives of deadlines and of other activities."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from coag._util.text import clip
from coag.schema import Percept, PerceptKind, Trust, one_line

from .activities import Activity, OnActivity, OnProperty, OnSignal, Wait
from .percepts import FLOOD
from .records import PropertyReading, SignalRecord

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
                data: Any = percept.data or {}
                if isinstance(condition, OnActivity) or data.get("reason") == FLOOD:
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
