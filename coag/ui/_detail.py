"""One run in full, as far as its latest cycle tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from ._rows import style_of, vetoes
from ._status import CandidateStatus, RunStatus, short
from ._watch import RunState, RunView
from ._words import count, duration, money

LABEL = 12
"""Characters that a label has room for."""
_STATES = {
    RunState.READING: "its trace is being read",
    RunState.RUNNING: "running",
    RunState.WAITING: "waiting for the model",
    RunState.ACTING: "an action goes on",
    RunState.IDLE: "waiting for the next turn",
    RunState.ENDED: "ended",
    RunState.BROKE_OFF: "broke off: it has not ended, and its process is gone",
    RunState.UNREADABLE: "its log cannot be read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailRow:
    """One thing about a run."""

    label: str
    """What it is; empty where it goes on with the thing before."""
    text: Text

    @property
    def plain(self) -> str:
        """The row as one line of plain text."""
        return f"{self.label:<{LABEL}}{self.text.plain}".rstrip()


def head(view: RunView) -> Text:
    """Which run it is: agent, id, model."""
    text = Text(view.agent, style="bold")
    text.append(f"  {view.name}", style="not bold dim")
    model = "" if view.info is None else short(view.info.model, 30)
    return text.append(f"  {model}", style="not bold dim")


def detail(view: RunView) -> Iterator[DetailRow]:
    """The run's latest situation, candidates, result and notes.

    Args:
        view: The run.
    """
    if view.problem:
        yield _row("problem", view.problem, "red")
    if view.state is RunState.UNREADABLE:
        return
    status = view.status
    yield _row("now", _now(view), style_of(view.state).replace("dim", ""))
    if status.situation:
        yield _row("situation", status.situation)
    yield from _rows("risks", status.risks)
    yield from _candidates(status)
    yield from _outcome(status)
    yield _row("vetoes", vetoes(view))
    yield _row("impasses", str(status.impasses))
    yield _row("used", _used(status))
    yield from _rows("notes", tuple(reversed(status.notes)), "yellow")
    if status.goal:
        yield _row("goal", status.goal)


def _now(view: RunView) -> str:
    status = view.status
    told = [_STATES[view.state]]
    if view.state is RunState.ACTING:
        told = [f"acting: {status.acting}"]
    elif status.phase and not view.over:
        told.append(f"{status.phase} of cycle {status.cycle}")
    elif status.ended_by:
        told.append(f"the last turn by {status.ended_by}, after cycle {status.cycle}")
    if view.seconds is not None:
        told.append(f"for {duration(view.seconds)}")
    return ", ".join(told)


def _candidates(status: RunStatus) -> Iterator[DetailRow]:
    current = status.proposed_in == status.cycle
    label = "candidates" if current else f"in cycle {status.proposed_in}"
    for number, candidate in enumerate(status.candidates):
        yield DetailRow(label="" if number else label, text=_candidate(candidate))
    if status.left_out:
        yield _row("", f"and {status.left_out:,} more")


def _candidate(candidate: CandidateStatus) -> Text:
    score = "" if candidate.score is None else f" {candidate.score:.2f}"
    if candidate.survived is None:
        verdict, style = "proposed", ""
    elif not candidate.survived:
        verdict, style = f"rejected by {candidate.died_of}", "red"
    else:
        verdict, style = f"{'chosen' if candidate.chosen else 'survived'}{score}", "green"
    text = Text().append(verdict, style=style).append("  ")
    text.append(candidate.action, style="bold").append(f" {candidate.arguments}")
    return text.append(f"  {candidate.reason}", style="dim" if candidate.survived else "")


def _outcome(status: RunStatus) -> Iterator[DetailRow]:
    if status.decision is not None:
        reason = f": {status.decision.reason}" if status.decision.reason else ""
        yield _row("decision", f"{status.decision.action}, by {status.decision.decided_by}{reason}")
    if status.result:
        yield _row("result", status.result)
    if status.response:
        yield _row("answer", status.response, "bold")


def _used(status: RunStatus) -> str:
    usage = status.usage
    cost = f", cost {money(usage.cost)}" if usage.cost else ""
    return (
        f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached), "
        f"{usage.completion_tokens:,} completion tokens, "
        f"{count(status.calls, 'model call')}{cost}"
    )


def _rows(label: str, texts: Sequence[str], style: str = "") -> Iterator[DetailRow]:
    for number, text in enumerate(texts):
        yield _row("" if number else label, text, style)


def _row(label: str, text: str, style: str = "") -> DetailRow:
    return DetailRow(label=label, text=Text(text, style=style))
