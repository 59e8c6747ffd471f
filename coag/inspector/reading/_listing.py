"""Runs filtered, sorted and cut into pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from coag.inspector.views import RunCard, RunList

from ._clip import clip

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_QUERY = 200
"""Characters of what is looked for."""
_CHOICES = 200
"""Kinds, models and agents that can be filtered by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which runs are wanted, and in which order; an empty text lets all through."""

    query: str = ""
    """Words to be met in id, agent, model, scenario, goal, folder or outcome, in any case."""
    kind: str = ""
    model: str = ""
    outcome: str = ""
    """As `coag.inspector.views.TaskOutcome` has it; `open` for runs that have not ended."""
    agent: str = ""
    without: str = ""
    """Key of a run that is left out, whatever the others let through."""
    sort: str = "newest"
    """`newest`, `oldest`, `cycles`, `tokens`, `cost` or `duration`; another is `newest`."""
    page: int = 1
    """From 1; the last one where there are not as many."""
    page_size: int = 50


def listing_of(logs: str, cards: Sequence[RunCard], filters: Filters) -> RunList:
    """A page of the runs that the filters let through."""
    cards = [card for card in cards if not filters.without or card.key != filters.without]
    words = filters.query[:_QUERY].casefold().split()
    matching = [card for card in cards if _passes(card, filters, words)]
    _sort(matching, filters.sort)
    size = max(filters.page_size, 1)
    pages = max(-(-len(matching) // size), 1)
    page = min(max(filters.page, 1), pages)
    infos = [card.info for card in cards if card.info is not None]
    return RunList(
        logs=logs,
        cards=tuple(matching[(page - 1) * size : page * size]),
        total=len(cards),
        matching=len(matching),
        page=page,
        pages=pages,
        query=filters.query[:_QUERY],
        kind=filters.kind,
        model=filters.model,
        outcome=filters.outcome,
        agent=filters.agent,
        sort=filters.sort if filters.sort in _ORDERS else "newest",
        kinds=_choices([info.kind for info in infos]),
        models=_choices([info.model for info in infos]),
        agents=_choices([info.agent for info in infos]),
    )


def _choices(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value})[:_CHOICES])


def _passes(card: RunCard, filters: Filters, words: Sequence[str]) -> bool:
    info = card.info
    if filters.kind and (info is None or info.kind != filters.kind):
        return False
    if filters.model and (info is None or info.model != filters.model):
        return False
    if filters.agent and (info is None or info.agent != filters.agent):
        return False
    if filters.outcome and filters.outcome not in (card.outcome.value, card.state.value):
        return False
    if not words:
        return True
    named = (info.id, info.agent, info.model) if info else ()
    ended = (card.outcome.value, card.state.value, card.told)
    told = (*named, *ended, card.key, card.scenario, card.goal, card.folder)
    text = "\n".join(clip(each, 1_000) for each in told)
    folded = text.casefold()
    return all(word in folded for word in words)


def _started(card: RunCard) -> datetime:
    return card.info.started_at if card.info else _LONG_AGO


_ORDERS: dict[str, Callable[[RunCard], float | None]] = {
    "newest": lambda card: None,
    "oldest": lambda card: None,
    "cycles": lambda card: card.cycles,
    "tokens": lambda card: card.usage.tokens if card.usage else None,
    "cost": lambda card: card.usage.cost if card.usage else None,
    "duration": lambda card: card.seconds,
}
"""By what each order sorts, highest first; runs of which it is not known come last."""


def _sort(cards: list[RunCard], order: str) -> None:
    cards.sort(key=_moment, reverse=order != "oldest")
    measure = _ORDERS.get(order)
    if measure is not None and order not in ("newest", "oldest"):
        cards.sort(key=lambda card: _height(measure(card)), reverse=True)


def _moment(card: RunCard) -> tuple[float, str]:
    """Times with and without a zone can stand in logs."""
    started = _started(card)
    aware = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    return ((aware - _LONG_AGO).total_seconds(), card.key)


def _height(value: float | None) -> float:
    return -1.0 if value is None else value
