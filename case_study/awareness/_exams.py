"""A dialogue with its hand-written analyses, and the right answers to the questions about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from coag.awareness.adapters import ConversationAnalysis
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Value, one_line

from ._questions import QUESTIONS, Form, Question, questions_named
from .dialogues import CONVERSATION, Dialogue, load_dialogues

PAPER = "the paper's four turns"
"""What the paper's own dialogue is called in the file of questions."""
DIALOGUES, KEY = "dialogues.json", "questions.json"
_SHOWN = 80

Phrase = Annotated[str, Field(pattern=r"\S", max_length=200)]
"""A short phrase; `|` stands between alternatives."""
Item = Annotated[tuple[Phrase, ...], Field(min_length=1)]
"""One phrase, or several that belong together in order."""


class Key(Value):
    """What one dialogue is asked by, beside its messages."""

    replies: tuple[str, ...]
    """What the assistant said after each turn."""
    summary: Annotated[str, Field(pattern=r"\S", max_length=2000)]
    """A summary of the talk after the last turn, written by hand."""
    answers: dict[str, tuple[Item, ...]]
    """The right items by question; none means that there is nothing to be told."""


class Exam(Value):
    """A dialogue and the key to it."""

    name: str
    turns: tuple[ConversationAnalysis, ...] = Field(min_length=1)
    """What each message says by hand, with the message."""
    key: Key

    @property
    def messages(self) -> tuple[str, ...]:
        """What the user said."""
        return tuple(turn.message for turn in self.turns)

    def right(self, question: Question) -> tuple[Item, ...]:
        """The right items; none where there is nothing to be told."""
        return self.key.answers.get(question.id, ())


_KEYS = TypeAdapter(dict[str, Key])


def exams_in(folder: Path) -> tuple[Exam, ...]:
    """The paper's dialogue and those of a folder's `dialogues.json`, keyed by `questions.json`.

    Raises:
        ConfigurationError: A file cannot be read, a dialogue has no answers or answers no
            dialogue, or the answers do not fit the questions; says where.
        UnknownNameError: An answer is to no question.
    """
    dialogues = (
        Dialogue(name=PAPER, turns=CONVERSATION),
        *load_dialogues(folder / DIALOGUES),
    )
    path = folder / KEY
    keys = _keys(path)
    _same_names([one.name for one in dialogues], keys, path)
    return tuple(_exam(dialogue, keys[dialogue.name], path) for dialogue in dialogues)


def exams_named(exams: Sequence[Exam], names: Sequence[str]) -> tuple[Exam, ...]:
    """The exams of these names; all if none is named.

    Raises:
        UnknownNameError: There is no such dialogue; lists all.
    """
    known = tuple(exam.name for exam in exams)
    for name in names:
        if name not in known:
            raise UnknownNameError("dialogue", name, known)
    return tuple(exam for exam in exams if not names or exam.name in names)


def _keys(path: Path) -> dict[str, Key]:
    try:
        return _KEYS.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"Questions cannot be read from {str(path)!r}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = " > ".join(map(str, first["loc"])) or "its beginning"
        given = one_line(repr(first["input"]), _SHOWN)
        raise ConfigurationError(
            f"{str(path)!r} holds no questions: wrong at {place}: {first['msg']}, given {given}. "
            'Write {NAME: {"replies": [TEXT, ...], "summary": TEXT, "answers": {ID: [[PHRASE], '
            "...]}}}."
        ) from error


def _same_names(dialogues: Sequence[str], keys: Mapping[str, Key], path: Path) -> None:
    twice = [name for name in dict.fromkeys(dialogues) if dialogues.count(name) > 1]
    if twice:
        raise ConfigurationError(f"Two dialogues are called {twice[0]!r}. Give each its own name.")
    for name in dialogues:
        if name not in keys:
            raise ConfigurationError(f"{str(path)!r} has no answers for {name!r}. Add them.")
    for name in keys:
        if name not in dialogues:
            raise ConfigurationError(
                f"{str(path)!r} has answers for {name!r}, which is no dialogue. Add the dialogue "
                f"to {DIALOGUES}, or take the answers out."
            )


def _exam(dialogue: Dialogue, key: Key, path: Path) -> Exam:
    """Holds a key to its dialogue.

    Raises:
        ConfigurationError: It does not fit.
        UnknownNameError: An answer is to no question.
    """
    place = f"{str(path)!r}, dialogue {dialogue.name!r}"
    if len(key.replies) != len(dialogue.turns):
        raise ConfigurationError(
            f"{place}: {len(key.replies)} replies to {len(dialogue.turns)} turns. Write one each."
        )
    questions_named(tuple(key.answers))
    for question in QUESTIONS:
        if question.form is Form.COMPUTED:
            continue
        if question.id not in key.answers:
            raise ConfigurationError(
                f"{place}: no answer to {question.id!r}. Write [] where nothing is to be told."
            )
        for item in key.answers[question.id]:
            if (len(item) > 1) is not (question.form is Form.PAIRS):
                wanted = "two phrases" if question.form is Form.PAIRS else "one phrase"
                raise ConfigurationError(
                    f"{place}: an answer to {question.id!r} is {wanted}, not {list(item)!r}."
                )
    return Exam(name=dialogue.name, turns=dialogue.turns, key=key)
