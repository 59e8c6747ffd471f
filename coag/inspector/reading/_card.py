"""The card of a run, from its `run.json` and what was counted in its trace."""

from __future__ import annotations

from typing import Any, cast

from coag.inspector.views import RunCard, RunState, TaskOutcome, Trouble
from coag.tracing import RunInfo

from ._clip import in_a_line
from ._tally import Totals

_NAME = 120
"""Characters of a scenario's name."""


def card_of(
    key: str,
    folder: str,
    info: RunInfo | None,
    totals: Totals | None,
    trouble: Trouble | None,
) -> RunCard:
    """The card of a run.

    Args:
        key: Names it in addresses.
        folder: Its folder as seen from the folder of logs.
        info: Its `run.json`; None where that cannot be read.
        totals: What its trace holds; None where that is not known yet.
        trouble: Why it cannot be shown, or not whole.
    """
    ended = info.ended_at if info else None
    return RunCard(
        key=key,
        folder=folder,
        info=info,
        state=RunState.OPEN if ended is None else RunState.ENDED,
        outcome=_outcome(info),
        told=_told(info, totals),
        scenario=_scenario(info),
        goal=in_a_line(totals.goal, _NAME) if totals else "",
        seconds=(ended - info.started_at).total_seconds() if info and ended else None,
        cycles=totals.cycles if totals else None,
        calls=totals.calls if totals else None,
        usage=totals.usage if totals else None,
        trouble=trouble,
    )


def _outcome(info: RunInfo | None) -> TaskOutcome:
    match _result(info).get("success"):
        case True:
            return TaskOutcome.SUCCESS
        case False:
            return TaskOutcome.FAILURE
        case _:
            return TaskOutcome.UNKNOWN


def _told(info: RunInfo | None, totals: Totals | None) -> str:
    summary = _result(info).get("summary")
    if isinstance(summary, str) and summary:
        return in_a_line(summary)
    return in_a_line(totals.ended) if totals else ""


def _scenario(info: RunInfo | None) -> str:
    """What the result says, or the recipe: among its arguments, or among those of one of them."""
    recipe = info.recipe.arguments if info and info.recipe else {}
    for told in (_result(info), recipe, *recipe.values()):
        scenario = cast("dict[str, Any]", told).get("scenario") if isinstance(told, dict) else None
        if isinstance(scenario, str) and scenario:
            return in_a_line(scenario, _NAME)
    return ""


def _result(info: RunInfo | None) -> dict[str, Any]:
    return (info.result if info else None) or {}
