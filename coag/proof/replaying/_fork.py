"""What a fork began with that its own trace does not tell: its parent's turn, its own memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from coag.schema import (
    ActionsListed,
    ActionSpec,
    Note,
    Outcome,
    Record,
    TraceRecord,
    TurnEnd,
    TurnStart,
)
from coag.tracing import Parent, RunFolder, read_run, read_trace

from ._tape import Tape

_GENERATIONS = 100
"""Forks of forks that are followed back; a trace may be hostile."""
_NO_BOUNDS = ("respond", "cancelled", "error")
"""How a turn ends that no bound ended."""
_LEFT_OUT, _MODEL = "--without-constraint ", "--model "


@dataclass(slots=True, kw_only=True)
class Before:
    """What a fork's turn was before the fork."""

    turn: int | None = None
    """Its number; None where no trace of it is at hand."""
    turn_open: bool = False
    """True if the fork went on in it."""
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    """The outcomes that it had had, which count towards its bounds."""
    listed: list[ActionSpec] = field(default_factory=list[ActionSpec])
    """The external actions that were listed last."""
    gone: str = ""
    """Folder of the ancestor that would tell of it and is not there any more."""
    needed: bool = False
    """True if the turn ended by a bound, towards which what came before counts."""

    def take(self, record: TraceRecord) -> None:
        """Takes in the next record of an ancestor."""
        match record:
            case TurnStart():
                self.turn, self.turn_open, self.outcomes = record.turn, True, []
            case TurnEnd():
                self.turn_open = False
            case ActionsListed():
                self.listed = list(record.specs)
            case _ if record.record == "outcome":
                self.outcomes.append(record)
            case _:
                pass


def before_fork(run: RunFolder, parent: Parent, tape: Tape) -> Before:
    """What the turn of a fork was before it, going by its ancestors as far as they are there.

    Args:
        run: The fork.
        parent: Where it comes from.
        tape: Its own trace, of which nothing was taken yet.

    Raises:
        TraceError: An ancestor's folder is there and cannot be read.
    """
    ancestors, gone = _ancestors(run, parent)
    before = Before()
    for folder, seq in reversed(ancestors):
        for entry in read_trace(folder.trace_path, lambda problem: None):
            if entry.seq >= seq:
                break
            before.take(entry.body)
    if before.turn is None:
        before.turn, before.turn_open = _first_turn(tape)
        before.gone, before.needed = gone, _ends_by_bound(tape)
    if not before.listed:
        ahead = (r for r in tape.ahead() if isinstance(r, ActionsListed))
        listed = next(ahead, None)
        before.listed = [] if listed is None else list(listed.specs)
    return before


def stop_ahead(tape: Tape) -> str | None:
    """Why the fork stopped before anything else was done; None if it went on."""
    following = next(islice(tape.ahead(), 1, None), None)
    if isinstance(following, Note) and following.about == "fork":
        return following.text
    return None


def constraints_left_out(parent: Parent | None) -> tuple[str, ...]:
    """Names of the constraints that a fork goes on without, its ancestors' included."""
    return _changes(parent, _LEFT_OUT)


def model_of(parent: Parent | None) -> str | None:
    """The model spec that took the place of the run's; None if none did."""
    return next(iter(_changes(parent, _MODEL)), None)


def remembered_in(run: RunFolder) -> tuple[Record, ...]:
    """The records that a fork's memory began with; none where that was not kept.

    Raises:
        TraceError: They cannot be read.
    """
    return run.remembered() if run.remembered_path.is_file() else ()


def tell_of(before: Before, remark: Callable[[str], None]) -> None:
    """Says what is not known of the turn, if anything."""
    if before.gone and before.needed:
        remark(
            f"The run that this one was forked from is not in {before.gone} any more: what its "
            "turn had done before the fork is not known, and cannot count towards its bounds."
        )


def _ancestors(run: RunFolder, parent: Parent) -> tuple[list[tuple[RunFolder, int]], str]:
    """The ancestors that are there, each with where it was left, and the one that is not."""
    found: list[tuple[RunFolder, int]] = []
    above: Parent | None = parent
    while above is not None and len(found) < _GENERATIONS:
        folder = RunFolder((run.path.parent / above.path).resolve())
        info = read_run(folder.path) if folder.exists else None
        if info is None or info.id != above.run:
            return found, above.path
        found.append((folder, above.seq))
        run, above = folder, info.parent
    return found, ""


def _first_turn(tape: Tape) -> tuple[int, bool]:
    """The turn that a fork began in, and whether it went on in it, going by its own trace."""
    for number, record in enumerate(tape.ahead()):
        if isinstance(record, TurnStart):
            return (record.turn - 1, number > 1)
        if isinstance(record, TurnEnd):
            return record.turn, True
    return 1, True


def _ends_by_bound(tape: Tape) -> bool:
    end = next((record for record in tape.ahead() if isinstance(record, TurnEnd)), None)
    return end is not None and end.reason not in _NO_BOUNDS


def _changes(parent: Parent | None, option: str) -> tuple[str, ...]:
    return tuple(_of_option(parent.changes if parent is not None else (), option))


def _of_option(changes: tuple[str, ...], option: str) -> Iterator[str]:
    for change in changes:
        if change.startswith(option):
            yield change.removeprefix(option)
