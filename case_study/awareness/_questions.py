"""The 20 questions: the information types of the paper's table 7, each as something to ask."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from coag.errors import UnknownNameError
from coag.schema import Value


class Form(StrEnum):
    """What the answer to a question is made of."""

    PHRASES = "phrases"
    """Short phrases."""
    PAIRS = "pairs"
    """Two phrases that belong together, in order."""
    COMPUTED = "computed"
    """Nothing that is read: the text itself is measured."""


class Printed(Value):
    """The row of table 7 as the paper prints it: Y full, ~ partial, - not captured."""

    buffer: str
    summary: str
    awareness: str = "Y"


class Question(Value):
    """One question about a talk, as things stand after its last turn."""

    id: str
    label: str
    """The information type, as in table 7."""
    form: Form
    asked: str
    """How a model is asked."""
    printed: Printed
    sampled: bool = False
    """Whether the right items are only some of what is true, so that naming more costs nothing."""


_SAMPLED = ("entity_types", "transition_order", "compression")


def _question(id: str, label: str, printed: str, form: Form, asked: str) -> Question:
    buffer, summary = printed
    return Question(
        id=id,
        label=label,
        form=form,
        asked=asked,
        printed=Printed(buffer=buffer, summary=summary),
        sampled=id in _SAMPLED,
    )


_ONE, _TWO, _NONE = Form.PHRASES, Form.PAIRS, Form.COMPUTED

QUESTIONS = (
    _question(
        "explicit_goals",
        "Explicit goal identification",
        "~Y",
        _ONE,
        "Which goals did the user state, as things to reach or to have done?",
    ),
    _question(
        "implied_goals",
        "Inferred/implicit goals",
        "--",
        _ONE,
        "What else does the user want to reach or to find out, without having stated it as a goal "
        "(questions they asked, aims one can infer)?",
    ),
    _question(
        "goal_hierarchy",
        "Goal hierarchy (parent/child)",
        "--",
        _TWO,
        "Which goal of the user serves which larger goal? first: the goal that serves; second: the "
        "larger goal.",
    ),
    _question(
        "goal_lifecycle",
        "Goal lifecycle tracking",
        "--",
        _TWO,
        "What has become of each of the user's goals? first: the goal; second: open, completed or "
        "abandoned.",
    ),
    _question(
        "goal_priorities",
        "Goal priority ranking",
        "--",
        _TWO,
        "Which goal matters more to the user than which other? first: the one that matters more; "
        "second: the one that matters less.",
    ),
    _question(
        "active_topics",
        "Active topic tracking",
        "~~",
        _ONE,
        "What is the talk about right now, in the user's last message?",
    ),
    _question(
        "topic_pivots",
        "Topic pivot detection",
        "-~",
        _TWO,
        "Where did the talk change to a new subject? first: the subject that was left; second: the "
        "new subject.",
    ),
    _question(
        "callbacks",
        "Callback/return detection",
        "-Y",
        _ONE,
        "Which earlier subject did the user come back to after it had been left?",
    ),
    _question(
        "sentiment",
        "Sentiment/emotion tracking",
        "~Y",
        _ONE,
        "How does the user feel now? One word, or nothing if they are calm.",
    ),
    _question(
        "urgency",
        "Sentiment-driven urgency",
        "--",
        _ONE,
        "What needs attention most urgently now?",
    ),
    _question(
        "entity_types",
        "Entity type classification",
        "--",
        _TWO,
        "Which things and persons are told of, and of what kind is each? first: its name; second: "
        "person, topic, concept, reference, preference or emotion.",
    ),
    _question(
        "transition_order",
        "Temporal transition ordering",
        "YY",
        _TWO,
        "In which order was the talk about its subjects? Give each step from one to the next. "
        "first: the earlier subject; second: the later one.",
    ),
    _question(
        "transition_types",
        "Transition type classification",
        "--",
        _TWO,
        "Of what kind was each turn of events? first: what it was about; second: pivot, progress, "
        "failure, reversal, branch or discovery.",
    ),
    _question(
        "compression",
        "Memory decay/compression",
        "-~",
        _ONE,
        "What from the beginning of the talk still matters?",
    ),
    _question(
        "sticky_failures",
        "Failure/reversal sticky retention",
        "--",
        _ONE,
        "What failed, went wrong or was taken back, at any time in the talk?",
    ),
    _question(
        "unknowns",
        "Explicit unknown tracking",
        "--",
        _ONE,
        "What is not known about the user or the task, and would have to be found out?",
    ),
    _question(
        "assumptions",
        "Explicit assumption tracking",
        "--",
        _ONE,
        "What is taken for granted without proof?",
    ),
    _question(
        "watch_list",
        "Persistent scan pattern watchlist",
        "--",
        _ONE,
        "What should the assistant watch out for from now on?",
    ),
    _question(
        "token_budget",
        "Token-budget-aware rendering",
        "--",
        _NONE,
        "Does the text fit the budget?",
    ),
    _question(
        "machine_parseable",
        "Machine-parseable structured output",
        "--",
        _NONE,
        "Can a program read the text back into sections and items?",
    ),
)
"""In the order of table 7."""

_BY_ID = {question.id: question for question in QUESTIONS}


def questions_named(ids: Sequence[str]) -> tuple[Question, ...]:
    """The questions of these ids, in the order of table 7; all if none is named.

    Raises:
        UnknownNameError: There is no such question; lists all.
    """
    for id in ids:
        if id not in _BY_ID:
            raise UnknownNameError("question", id, tuple(_BY_ID))
    return tuple(one for one in QUESTIONS if not ids or one.id in ids)
