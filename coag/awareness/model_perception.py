"""Perception by a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field

from coag._util.text import cleaned, cut_to_tokens
from coag.models import AskSettings, CallContext, StructuredModel
from coag.schema import Prompt, PromptMessage, Value, estimate_tokens, folded

from .adapters import (
    CodingAnalysis,
    ConversationAnalysis,
    ConversationEntityType,
    Sentiment,
)
from .fields import distinct
from .injection import as_item
from .perception import (
    KNOWN,
    PerceptionDomain,
    content,
    latest_names,
    refers_back,
    said_in,
    unresolved_errors,
)
from .state import AwarenessState

# ---- The form of the model's answer ----
#
# Docstrings of fields are shown to the model. Goals and errors that are known are named by the
# numbers under which the prompt lists them, since small models copy numbers better than texts.
Name = Annotated[str, Field(max_length=60)]
Sentence = Annotated[str, Field(max_length=200)]
Numbers = Annotated[tuple[int, ...], Field(max_length=5)]
Sentences = Annotated[tuple[Sentence, ...], Field(max_length=3)]


class SeenEntity(Value):
    """A thing that the message mentions."""

    name: Name
    type: ConversationEntityType


class Closings(Value):
    """What became of goals."""

    completed: Numbers
    """Numbers of open goals that the message says are reached."""
    abandoned: Numbers
    """Numbers of open goals that the message gives up."""


class ConversationAnswer(Value):
    """What one message of a talk says."""

    topics: Annotated[tuple[Name, ...], Field(max_length=4)]
    """What the message is about, one to three words each; reuse the known names."""
    references_previous: bool
    """True if the message takes up something from earlier in the talk that had been left."""
    entities: Annotated[tuple[SeenEntity, ...], Field(max_length=6)]
    """Things that the message mentions by name."""
    sentiment: Sentiment
    """How the user feels."""
    goals: Sentences
    """New aims that the user states, each as a short command; a mere question is none."""
    questions: Sentences
    """Questions that the message asks, word for word."""


class ConversationClosingAnswer(ConversationAnswer, Closings):
    """What one message of a talk says."""


class PartType(StrEnum):
    """What a part of software is."""

    FILE = "file"
    LIBRARY = "library"
    SERVICE = "service"
    ENDPOINT = "endpoint"
    FUNCTION = "function"
    CONFIG = "config"
    CONCEPT = "concept"


_PLURALS = {one: "libraries" if one is PartType.LIBRARY else f"{one}s" for one in PartType}
"""The names of the analysis's fields."""


class SeenPart(Value):
    """A part of the software that the message mentions."""

    name: Name
    type: PartType


class SeenError(Value):
    """An error that shows now."""

    name: Name
    """Its type or name, as ValueError."""
    message: Sentence
    """What it says; empty if that is not known."""


class CodingAnswer(Value):
    """What one message about software says."""

    parts: Annotated[tuple[SeenPart, ...], Field(max_length=10)]
    """Parts of the software that the message mentions, by their exact names."""
    errors: Annotated[tuple[SeenError, ...], Field(max_length=3)]
    """Errors that the message says happen now."""
    fixed: Numbers
    """Numbers of unresolved errors that the message says are fixed."""
    goals: Sentences
    """New aims that the user states, each as a short command; a mere question is none."""
    questions: Sentences
    """Questions that the message asks, word for word."""


class CodingClosingAnswer(CodingAnswer, Closings):
    """What one message about software says."""


# ---- The state in the prompt: short, numbered, within a budget ----

_ITEM = 30
"""Tokens of one goal, error or question; the rest is cut."""
_NAME_TOKENS = 12
"""Tokens of one name."""
_MOST_NAMES = 12
"""Items of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A state as text, and the meaning of the numbers in it."""

    text: str
    goals: tuple[str, ...]
    """Ids of the goals, the first of them number 1."""
    errors: tuple[str, ...]
    """Names of the unresolved errors, the first of them number 1."""


def summary_of(state: AwarenessState, budget: int) -> Summary:
    """The state in at most `budget` tokens; of each list the newest, whole.

    Goals and errors come before names, since the answer refers to them.
    """
    lines: list[str] = []

    def rest() -> int:
        return budget - sum(map(_cost, lines))

    def numbered(heading: str, items: Iterable[str]) -> int:
        """Adds as many of the items as fit, and returns how many."""
        new = [f"{number}. {_short(item, _ITEM)}" for number, item in enumerate(items, 1)]
        new.insert(0, f"{heading}:")
        fitting = sum(cost <= rest() for cost in accumulate(map(_cost, new)))
        lines.extend(new[:fitting] if fitting > 1 else ())
        return max(0, fitting - 1)

    def named(heading: str, names: Sequence[str]) -> None:
        """Adds as many of the names as fit, on one line."""
        short = [_short(name, _NAME_TOKENS) for name in names[:_MOST_NAMES]]
        longer = (f"{heading}: {', '.join(short[:count])}" for count in range(1, len(short) + 1))
        lines.extend([line for line in longer if _cost(line) <= rest()][-1:])

    open_goals = [goal for goal in state.goals.goals if goal.is_open]
    goals = sorted(open_goals, key=lambda goal: -goal.updated_step)[:_MOST_NAMES]
    shown_goals = numbered("Open goals", [goal.description for goal in goals])
    errors = unresolved_errors(state)[:_MOST_NAMES]
    shown_errors = numbered("Unresolved errors", [error.name for error in errors])
    entities = sorted(state.world.entities, key=lambda one: -one.last_step)
    now = [one.name for one in entities if one.last_step == entities[0].last_step]
    named("In the message before", now)
    named("Earlier", [one.name for one in entities[len(now) :]])
    return Summary(
        text="\n".join(lines) or "Nothing yet: this is the first message.",
        goals=tuple(goal.id for goal in goals[:shown_goals]),
        errors=tuple(error.name for error in errors[:shown_errors]),
    )


def _cost(line: str) -> int:
    return estimate_tokens(line + "\n")


def _short(text: str, tokens: int) -> str:
    return cut_to_tokens(as_item(text), tokens)


# ---- Which parts of an answer the message supports ----
#
# Small models copy what the prompt lists: earlier topics come back as topics of every message,
# and every message refers to them. So what is known counts only where the message shows it.


def _about(topics: Sequence[str], text: str, state: AwarenessState) -> tuple[str, ...]:
    """The topics without known ones of which the message has no word, if it has one of others.

    If it has no word of any, as in `And how long does it take?`, all stay.
    """
    words = content(text)
    known = {folded(name) for _, name in latest_names(state)}
    named = [topic for topic in topics if content(topic) & words]
    if not named:
        return tuple(topics)
    return tuple(topic for topic in topics if topic in named or folded(topic) not in known)


def _can_refer(text: str, state: AwarenessState) -> bool:
    """Whether a message has a word of something known, or says that it refers back."""
    if refers_back(text, state):
        return True
    words = content(text)
    known = [name for _, name in latest_names(state)]
    known += [goal.description for goal in state.goals.goals[-KNOWN:]]
    return any(content(one) & words for one in known)


# ---- The prompt ----


class PerceptionSettings(Value):
    """The bounds of a call."""

    summary_tokens: int = Field(default=300, ge=0)
    """Of the state in the prompt."""
    text_tokens: int = Field(default=2000, gt=0)
    """Of the text in the prompt; the rest is cut with a note."""
    answer_tokens: int = Field(default=600, gt=0)
    timeout: float = Field(default=600.0, gt=0)
    """Seconds until a call is given up."""
    reasks: int = Field(default=1, ge=0)
    """How often an unusable answer is asked for again, with the error."""
    trusted: bool = False
    """Whether the model is believed where the message does not show what it says. Small models
    copy what the prompt lists: by default, known topics that the message does not name where it
    names others, and references to something previous of which it has neither a word nor a
    phrase such as `as I said`, do not count, and goals are closed by the rules of
    `RulePerception`. A large model sees more than this; it is then also asked which goals the
    message closes."""


_GAP = r"[\s\u00ad\u200b-\u200f\u2060-\u2064\ufeff]*"
_DELIMITER = re.compile(rf"<(?={_GAP}(?:/{_GAP})?data)", re.IGNORECASE)


def _prompt(
    domain: PerceptionDomain, summary: str, text: str, settings: PerceptionSettings
) -> Prompt:
    """The rules, the same for every message; then what is known, and the message, cut."""
    rules = f"{_text_of('rules')}\n{_text_of(domain.value)}"
    if settings.trusted:
        rules += f"\n\n{_text_of('closing')}"
    message = cut_to_tokens(cleaned(text), settings.text_tokens)
    return (
        PromptMessage(role="system", content=rules),
        PromptMessage(
            role="user",
            content=f"## What is known\n{_data('awareness', 'untrusted', summary)}\n\n"
            f"## The message\n{_data('message', 'user', message)}",
        ),
    )


@cache
def _text_of(prompt: str) -> str:
    """The text of a file in `prompts`."""
    return (Path(__file__).parent / "prompts" / f"{prompt}.md").read_text("utf-8").rstrip("\n")


def _data(source: str, trust: str, text: str) -> str:
    """A text between delimiters that it cannot close itself."""
    inside = _DELIMITER.sub(r"<\\", text)
    return f'<data source="{source}" trust="{trust}">\n{inside}\n</data>'


# ---- The perception ----

_Form = TypeVar("_Form", ConversationAnswer, CodingAnswer)


class ModelPerception:
    """Asks a model for the analysis of a text, in a fixed form.

    The prompt has the text and a summary of the state, both as data. Left out of an answer are
    blanks, repetitions, numbers that refer to no goal or error of the prompt and, unless the
    model is trusted, what the message does not show.

    Args:
        asker: Asks the model: `StructuredModel(open_model("openai:gpt-5-mini"))`.
        domain: Which adapter's analysis to give.
        settings: The bounds.
        context: Gives the context of each call, so that a trace can record it; the type that it
            expects is named after the domain.
    """

    def __init__(
        self,
        asker: StructuredModel,
        *,
        domain: PerceptionDomain = PerceptionDomain.CONVERSATION,
        settings: PerceptionSettings | None = None,
        context: Callable[[], CallContext] = CallContext,
    ) -> None:
        self._asker = asker
        self._domain = PerceptionDomain(domain)
        self._settings = settings or PerceptionSettings()
        self._context = context

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """The analysis of a text in a state.

        Raises:
            ModelAnswerError: No usable answer came, even after asking again with the error.
            ModelCallError: The model could not be asked.
        """
        settings = self._settings
        summary = summary_of(state, settings.summary_tokens)
        prompt = _prompt(self._domain, summary.text, text, settings)
        asking = AskSettings(
            max_tokens=settings.answer_tokens, timeout=settings.timeout, reasks=settings.reasks
        )

        async def ask(form: type[_Form]) -> _Form:
            context = self._context()
            answer = await self._asker.ask(prompt, form, context=context, settings=asking)
            return answer.value

        if self._domain is PerceptionDomain.CODING:
            coding = await ask(CodingClosingAnswer if settings.trusted else CodingAnswer)
            common = _common(coding, text, summary, state)
            analysis = CodingAnalysis.model_validate(_of_code(coding, summary) | common)
            return analysis.model_dump(mode="json")
        form = ConversationClosingAnswer if settings.trusted else ConversationAnswer
        talk = await ask(form)
        topics, refers = _texts(talk.topics), talk.references_previous
        if not settings.trusted:
            topics, refers = _about(topics, text, state), refers and _can_refer(text, state)
        entities = [{"name": one.name.strip(), "type": one.type} for one in _named(talk.entities)]
        fields = {"topics": topics, "references_previous": refers, "entities": entities}
        fields |= {"sentiment": talk.sentiment} | _common(talk, text, summary, state)
        return ConversationAnalysis.model_validate(fields).model_dump(mode="json")


def _common(
    answer: ConversationAnswer | CodingAnswer, text: str, summary: Summary, state: AwarenessState
) -> dict[str, Any]:
    """What both domains have. Goals are closed as the model says, if it was asked, or by the rules.

    One that is said to be both reached and given up is reached.
    """
    by_rules = said_in(text, state)
    reached, given_up = by_rules["completed"], by_rules["abandoned"]
    if isinstance(answer, Closings):
        reached = _numbered(answer.completed, summary.goals)
        given_up = _numbered(answer.abandoned, summary.goals)
    return {
        "message": text,
        "goals": _texts(answer.goals),
        "questions": _texts(answer.questions),
        "completed": reached,
        "abandoned": tuple(goal for goal in given_up if goal not in reached),
    }


def _of_code(answer: CodingAnswer, summary: Summary) -> dict[str, Any]:
    errors = _named(answer.errors)
    now = {folded(one.name) for one in errors}
    fixed = _numbered(answer.fixed, summary.errors)
    return {
        **{
            _PLURALS[type]: _texts(part.name for part in answer.parts if part.type is type)
            for type in PartType
        },
        "errors": [{"name": one.name.strip(), "message": one.message} for one in errors],
        "fixed": [name for name in fixed if folded(name) not in now],  # what shows is not gone
    }


_Seen = TypeVar("_Seen", SeenEntity, SeenError)


def _named(seen: Sequence[_Seen]) -> list[_Seen]:
    """Those with a name, the first of each."""
    first = {folded(one.name): one for one in reversed(seen) if one.name.strip()}
    return list(reversed(first.values()))


def _texts(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without blank ones and repetitions."""
    return distinct(text.strip() for text in texts if text.strip())


def _numbered(numbers: Sequence[int], items: Sequence[str]) -> tuple[str, ...]:
    """The items of these numbers, each once; other numbers are left out."""
    known = dict.fromkeys(number for number in numbers if 1 <= number <= len(items))
    return tuple(items[number - 1] for number in known)
