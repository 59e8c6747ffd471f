"""`coag activities`: what a situated agent pursues, and what it waits for."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table
from rich.text import Text

from coag._util.text import cleaned, one_line
from coag.errors import ConfigurationError
from coag.situated import (
    OPEN_STATES,
    RUNS_NAME,
    STORE_NAME,
    Activity,
    ActivityState,
    ActivityStore,
    activity_in,
    is_database,
)

from .commands import lazy_group
from .options import AsJson
from .output import screen, write_json
from .output import show as print_lines

_SHORT = 60
"""Characters of a goal that the table shows."""

Folder = Annotated[
    str,
    typer.Argument(
        help="The agent's folder: what it was given as `folder`; or its `store`, postgresql://..."
    ),
]
ActivityId = Annotated[str, typer.Argument(metavar="ID", help="The activity's id.")]
OnlyOpen = Annotated[bool, typer.Option("--open", help="Only those that have not ended.")]
Reason = Annotated[str, typer.Option(help="Why; it becomes the activity's result.")]


app = lazy_group(
    "activities",
    "Shows and steers what a situated agent pursues, while it runs or not.\n\n"
    "Example: coag activities ls ~/keeper --open",
    {
        "activities": {
            "ls": "Lists an agent's activities: state, wait, deadline, goal.",
            "show": "Shows one activity, and what is in its inbox.",
            "cancel": "Asks the agent to end an activity.",
            "wake": "Asks the agent to wake an activity before its time.",
        }
    },
)


def ls(folder: Folder, only_open: OnlyOpen = False, as_json: AsJson = False) -> None:
    """Lists an agent's activities: state, wait, deadline, goal."""
    with closing(_opened(folder)) as store:
        activities = store.find(*OPEN_STATES) if only_open else store.find()
    if as_json:
        write_json(*(one.model_dump_json() for one in activities))
        return
    table = Table("id", "state", "steps", "tokens", "waits for", "until", "goal", box=None)
    for one in activities:
        table.add_row(*map(cleaned, _cells(one)))
    screen().print(table)


def _cells(activity: Activity) -> tuple[str, ...]:
    wait, until = activity.wait, ""
    if wait is not None and wait.deadline is not None:
        until = f"{wait.deadline:%Y-%m-%d %H:%M:%S}"
    return (
        activity.id,
        str(activity.end or activity.state),
        f"{activity.steps:,}",
        f"{activity.tokens:,}",
        str(wait.condition) if wait else "",
        until,
        one_line(activity.goal, _SHORT),
    )


def show(folder: Folder, activity_id: ActivityId, as_json: AsJson = False) -> None:
    """Shows one activity, and what is in its inbox."""
    with closing(_opened(folder)) as store:
        activity = activity_in(store, activity_id)
        inbox = store.inbox(activity_id)
    if as_json:
        write_json(activity.model_dump_json(), *(one.percept.model_dump_json() for one in inbox))
        return
    facts = {
        "goal": f"{activity.goal} (set by {activity.source})",
        "state": str(activity.end or activity.state),
        "waits for": str(activity.wait.condition) if activity.wait else "",
        "result": activity.result,
        "run": _run_of(folder, activity.run),
        "used": f"{activity.steps:,} steps, {activity.tokens:,} tokens",
    }
    print_lines(Text(cleaned(f"{name:10}{value}")) for name, value in facts.items() if value)
    print_lines(
        Text(cleaned(f"  not perceived yet: {one.percept.source}: {one.percept.content}"))
        for one in inbox
    )


def _run_of(folder: str, run: str | None) -> str:
    if run is None or is_database(folder):
        return run or ""
    return str(Path(folder) / RUNS_NAME / run)


def cancel(folder: Folder, activity_id: ActivityId, reason: Reason = "It was cancelled.") -> None:
    """Asks the agent to end an activity.

    The agent does so when it runs: at once, or when it is started next.
    """
    _ask(folder, activity_id, "cancel", reason)


def wake(folder: Folder, activity_id: ActivityId) -> None:
    """Asks the agent to wake an activity before its time."""
    _ask(folder, activity_id, "wake")


def _ask(folder: str, activity_id: str, what: Literal["cancel", "wake"], reason: str = "") -> None:
    with closing(_opened(folder)) as store:
        activity = activity_in(store, activity_id)
        if activity.over:
            raise ConfigurationError(f"Activity {activity_id!r} has ended: {activity.end}.")
        if what == "wake" and activity.state is not ActivityState.BLOCKED:
            problem = f"Activity {activity_id!r} waits for nothing: {activity.state}."
            raise ConfigurationError(problem)
        store.request(activity_id, what, reason)
    print_lines([f"Asked to {what} {activity_id}."])


def _opened(folder: str) -> ActivityStore:
    if is_database(folder):
        return ActivityStore(folder, owner=False)
    path = Path(folder) / STORE_NAME
    if not path.is_file():
        raise ConfigurationError(
            f"There are no activities in {str(folder)!r}: it has no {STORE_NAME!r}. Give the "
            "folder that the agent was given as `folder`."
        )
    return ActivityStore(path, owner=False)
