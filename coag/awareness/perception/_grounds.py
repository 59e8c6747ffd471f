"""What of a model's reading the message itself bears out.

Small models copy what the prompt lists: earlier topics come back as topics of every message, and
every message refers to them. So what is known counts only where the message shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from coag.awareness.adapters import ConversationAnalysis
from coag.awareness.state import AwarenessState, folded

from ._conversation_rules import content, refers_back

_KNOWN = 300
"""Entities and goals, the latest of each, that are looked at."""


def shown_only(analysis: ConversationAnalysis, state: AwarenessState) -> ConversationAnalysis:
    """The analysis without known topics and references that its message does not show."""
    text = analysis.message
    return analysis.model_copy(
        update={
            "topics": _shown(analysis.topics, text, state),
            "references_previous": analysis.references_previous and _can_refer(text, state),
        }
    )


def _shown(topics: Sequence[str], text: str, state: AwarenessState) -> tuple[str, ...]:
    """The topics without known ones of which the message has no word, where it has one of others.

    Where it has no word of any, as in `And how long does it take?`, all stay.
    """
    said = content(text)
    known = {folded(name) for name in _names(state)}
    named = [topic for topic in topics if content(topic) & said]
    if not named:
        return tuple(topics)
    return tuple(topic for topic in topics if topic in named or folded(topic) not in known)


def _can_refer(text: str, state: AwarenessState) -> bool:
    """Whether a message has a word of something known, or says that it refers back."""
    if refers_back(text, state):
        return True
    said = content(text)
    goals = (goal.description for goal in state.goals.goals[-_KNOWN:])
    return any(content(one) & said for one in (*_names(state), *goals))


def _names(state: AwarenessState) -> tuple[str, ...]:
    entities = state.world.entities[-_KNOWN:]
    return tuple(name for one in entities for name in (one.name, *one.aliases))
