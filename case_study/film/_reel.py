"""What is shown of a run: all of a short one, the beginning and the end of a long one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from coag.schema import Entry, EvaluationOutcome, SelectionOutcome, TurnEnd

from ._deliberation import Deliberation
from ._plain import PlainStory
from ._scenes import Chapter, Scene, said

_UNENDED = "So far: the run goes on, or broke off here."
FIRST, LAST = 20, 20
"""Cycles that are shown from the beginning and from the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What is left out between the beginning and the end."""

    first: int
    """The first cycle that is not shown."""
    last: int
    cycles: int
    """How many that are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reel:
    """The pictures of a run, in order."""

    first: tuple[Chapter, ...]
    gap: Gap | None
    """None where all is shown."""
    last: tuple[Chapter, ...]
    """What stands behind the gap; empty without one."""
    cycles: int
    """How many cycles the run has."""
    end: Scene | None
    """The last picture; None for a run without a cycle."""

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """All that is shown."""
        return (*self.first, *self.last)


class _Ending:
    """Counts what the last picture tells."""

    def __init__(self) -> None:
        self.turn: TurnEnd | None = None
        self.actions = 0
        self.rejected = 0
        self.impasses = 0

    def take(self, entry: Entry) -> None:
        record = entry.body
        if isinstance(record, TurnEnd):
            self.turn = record
        elif record.record == "receipt":
            self.actions += 1
        elif isinstance(record, EvaluationOutcome):
            self.rejected += sum(not one.survived for one in record.evaluations)
        elif isinstance(record, SelectionOutcome):
            self.impasses += record.impasse


def read_reel(
    entries: Iterable[Entry],
    story: Deliberation | PlainStory,
    *,
    over: bool,
    found: str = "",
    on_cycle: Callable[[int], None] = lambda cycle: None,
) -> Reel:
    """Reads a trace once, and keeps of it what a film shows.

    Args:
        entries: The trace's records in order.
        story: Tells them, as fits the kind of run.
        over: Whether the run has ended.
        found: What whoever ran it found out, as a sentence; empty for nothing.
        on_cycle: Is told the cycle that was read.
    """
    ending, count, shown_before = _Ending(), 0, 0
    first: list[Chapter] = []
    last: deque[Chapter] = deque(maxlen=LAST)
    for chapter in _chapters(entries, story, ending):
        on_cycle(chapter.cycle)
        count += 1
        if len(first) < FIRST:
            first.append(chapter)
            shown_before = chapter.cycle
        else:
            last.append(chapter)
    left_out = count - len(first) - len(last)
    gap = Gap(first=shown_before + 1, last=last[0].cycle - 1, cycles=left_out) if left_out else None
    opening = _opening((*first, *last))
    return Reel(
        first=tuple(first),
        gap=gap,
        last=tuple(last),
        cycles=count,
        end=_end(opening, (*first, *last), ending, found if over else _UNENDED),
    )


def _chapters(
    entries: Iterable[Entry], story: Deliberation | PlainStory, ending: _Ending
) -> Iterator[Chapter]:
    for entry in entries:
        ending.take(entry)
        yield from story.take(entry.body)
    yield from story.end()


def _opening(chapters: Sequence[Chapter]) -> Scene | None:
    return next((scene for chapter in chapters for scene in chapter.scenes), None)


def _end(
    opening: Scene | None, chapters: Sequence[Chapter], ending: _Ending, first: str
) -> Scene | None:
    """The last picture: how things stand, and what it took."""
    if opening is None:
        return None
    scene = chapters[-1].scenes[-1]
    told = [first or "The run has ended."]
    before, after = opening.truth or opening.belief, scene.truth or scene.belief
    if before and after:
        left = len(after.dirty & before.dirty)
        whose = "" if scene.truth else " (as far as it was sensed)"
        told.append(
            f"{len(before.dirty) - left} of {len(before.dirty)} dirty cells are clean{whose}; "
            f"battery {after.battery}{', stranded' if after.stranded else ''}."
        )
    counted = ((ending.actions, "actions"), (ending.rejected, "candidates rejected by code"))
    counts = [f"{count} {what}" for count, what in (*counted, (ending.impasses, "impasses"))]
    told.append(", ".join(count for count in counts if not count.startswith("0 ")) or "No action")
    told[-1] += "."
    if ending.turn is not None and ending.turn.reason == "respond":
        told.append(f"Its last words: {said(ending.turn.response, 200)}")
    elif ending.turn is not None and ending.turn.reason != "actions":
        told.append(f"Its last turn ended for: {said(ending.turn.reason, 60)}.")
    return replace(scene, phase="", options=(), about="\n".join(told), lasting=4.0)
