"""Which things a text names: found by the words of their names, in one pass over the text."""

from __future__ import annotations

from collections.abc import Iterable

from coag.awareness._names import words_of
from coag.awareness.state import AwarenessState, Entity, Goal, TransitionType, folded

PROJECTED = "projection"
"""Source of the attention items that projection raises; they name, but they do not hold."""
_LONGEST = 8
"""Words of a name that are compared; of a longer one the first ones."""
_SALIENT = (TransitionType.FAILURE, TransitionType.DISCOVERY)


class Named:
    """All names that some texts say, in whatever case, spacing and number.

    It rather finds too much than too little: `scrapers` names `scraper`, `web-scraper` names
    `web scraper`.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._said: set[str] = set()
        self._plain: list[str] = []
        for text in texts:
            self._plain.append(folded(text))
            words = words_of(text)
            for start in range(len(words)):
                for end in range(start + 1, min(start + _LONGEST, len(words)) + 1):
                    self._said.add(_singular("".join(words[start:end])))

    def names(self, entity: Entity) -> bool:
        """Whether one of the texts says a name of this entity."""
        return any(self.says(name) for name in (entity.name, *entity.aliases))

    def says(self, name: str) -> bool:
        """Whether one of the texts says this name."""
        words = words_of(name)[:_LONGEST]
        if words:
            return _singular("".join(words)) in self._said
        plain = folded(name)
        return any(plain in text for text in self._plain)


def held_texts(state: AwarenessState) -> tuple[str, ...]:
    """What open goals and attention items say: whatever these name stays in the world."""
    goals = tuple(goal for goal in state.goals.goals if goal.is_open)
    items = (item.description for item in state.attention.items if item.source != PROJECTED)
    return (*(text for goal in goals for text in texts_of(goal)), *items)


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


def attended(goal: Goal, state: AwarenessState) -> bool:
    """Whether an attention item names the goal, by its words or its id."""
    wanted = folded(goal.description)
    return any(
        wanted in folded(item.description) or goal.id in item.description
        for item in state.attention.items
        if item.source != PROJECTED
    )


def _singular(word: str) -> str:
    """Without the `s` or `es` of a plural, roughly, and the same way everywhere."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word.removesuffix("s").removesuffix("e") if len(word) > 3 else word
