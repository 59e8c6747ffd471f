"""All rules together, for a kind of run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from coag.context import CoagContext, WorkingMemory
from coag.schema import Percept, TraceRecord
from coag.tracing import RunKind, cycle_of

from ._book import Book, Checker
from ._rules_ancestry import Ancestry
from ._rules_effects import Effects
from ._rules_execution import Executions
from ._rules_ids import Ids
from ._rules_plain import PlainEffects, PlainTurns
from ._rules_procedures import Procedures, Writes
from ._rules_story import Hook, Story
from ._rules_turns import Calls, Turns


def checkers_for(
    kind: RunKind,
    book: Book,
    version: int,
    hooks: CoagContext[Any] | None,
    *,
    run: str | None,
    cut: bool,
) -> tuple[Checker, ...]:
    """The rules for a kind of run; the story last, so that the others see how things stood."""
    if kind == "plain":
        return (PlainTurns(book), PlainEffects(book, cut=cut))
    hook = None if hooks is None else _hook(hooks)
    story = Story(book, version=version, cut=cut, hook=hook)
    effects = Effects(book, story)
    return (
        Turns(book, story),
        Ancestry(book, story),
        Executions(book, story, effects),
        effects,
        Procedures(book, story),
        Writes(book, story, run),
        Calls(book, story, version),
        Ids(book),
        story,
    )


def _hook(context: CoagContext[Any]) -> Hook:
    def perceive(memory: WorkingMemory, percept: Percept) -> Percept:
        context.restore(memory)
        return context.perceive(percept)

    return perceive


def steps(checkers: Iterable[Checker], book: Book) -> Callable[[TraceRecord], None]:
    """Takes record after record to the rules that look at it."""
    takers: dict[str, list[Callable[[Any], None]]] = {}
    for checker in checkers:
        for tag, take in checker.takes.items():
            takers.setdefault(tag, []).append(take)

    def step(record: TraceRecord) -> None:
        named = cycle_of(record)
        book.cycle = book.cycle if named is None else named
        for take in takers.get(record.record, ()):
            take(record)

    return step
