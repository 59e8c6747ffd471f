"""Which things texts name: found by the words of their names, in one pass over the texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from coag.awareness._names import words_of
from coag.awareness.state import (
    Attention,
    AwarenessState,
    Entity,
    Goal,
    TransitionType,
    folded,
)

PROJECTED = "projection"
"""Source of the attention items that projection raises; they name, but they do not hold."""
_LONGEST = 8
"""Words of a name that are compared; of a longer one the first ones."""
_INTACT, _LOST = 2, 2
"""Letters of a word that are the same in the singular, and by how many that is shorter."""
_SALIENT = (TransitionType.FAILURE, TransitionType.DISCOVERY)


def named_by(texts: Iterable[str], entities: Iterable[Entity]) -> set[str]:
    """The names of those entities that one of the texts names, by any of their names.

    Case, spacing and number do not count. It rather finds too much than too little: `scrapers`
    names `scraper`, `web-scraper` names `web scraper`.
    """
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    wordless: list[tuple[str, str]] = []
    for entity in entities:
        for name in (entity.name, *entity.aliases):
            words = words_of(name)[:_LONGEST]
            if words:
                wanted[_singular("".join(words))].append(entity.name)
            else:
                wordless.append((folded(name), entity.name))
    if not wanted and not wordless:
        return set()
    said = tuple(texts)
    found = {name for form in _said(said, wanted.keys()) for name in wanted[form]}
    plain = [folded(text) for text in said] if wordless else []
    return found | {name for form, name in wordless if any(form in text for text in plain)}


def _said(texts: Iterable[str], wanted: Collection[str]) -> set[str]:
    """Those of the wanted forms that words of a text, in a row, make."""
    beginnings = {form[:_INTACT] for form in wanted}
    longest = max(map(len, wanted), default=0) + _LOST
    found: set[str] = set()
    for text in texts:
        words = words_of(text)
        for start, word in enumerate(words):
            if len(word) >= _INTACT and word[:_INTACT] not in beginnings:
                continue
            joined = ""
            for following in words[start : start + _LONGEST]:
                joined += following
                if len(joined) > longest:
                    break
                form = _singular(joined)
                if form in wanted:
                    found.add(form)
    return found


def held_texts(state: AwarenessState) -> Iterator[str]:
    """What open goals and attention items say: whatever these name stays in the world."""
    for goal in state.goals.goals:
        if goal.is_open:
            yield from texts_of(goal)
    yield from (one.description for one in state.attention.items if one.source != PROJECTED)


def texts_of(goal: Goal) -> tuple[str, ...]:
    """What a goal says."""
    return tuple(text for text in (goal.description, goal.completion_criteria) if text)


def salient_texts(state: AwarenessState) -> tuple[str, ...]:
    """What failures and discoveries say, in the trajectory and in the notes of mistakes."""
    said: list[str] = []
    for one in state.trajectory.transitions:
        if one.type in _SALIENT:
            said += [one.description, *(str(value) for value in one.detail.values())]
    for note in state.self_model.failures:
        said += [note.action, note.reason, note.lesson]
    return tuple(said)


class Attended:
    """Which goals attention items name, by their words or their ids."""

    def __init__(self, attention: Attention) -> None:
        told = [item.description for item in attention.items if item.source != PROJECTED]
        self._told = [(text, folded(text)) for text in told]

    def names(self, goal: Goal) -> bool:
        """Whether an item names this goal."""
        if not self._told:
            return False
        wanted = folded(goal.description)
        return any(goal.id in text or wanted in plain for text, plain in self._told)


def _singular(word: str) -> str:
    """Without the `s` or `es` of a plural, roughly, and the same way everywhere."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word.removesuffix("s").removesuffix("e") if len(word) > 3 else word
