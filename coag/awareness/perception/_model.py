"""Perception by a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pydantic import Field

from coag.awareness.adapters import (
    CodingAnalysis,
    ConversationAnalysis,
    MentionedEntity,
    RaisedError,
    StatedGoal,
)
from coag.awareness.state import AwarenessState, folded
from coag.models import Asker, AskSettings, CallContext
from coag.schema import Prompt, Value

from ._answers import (
    Closings,
    CodingAnswer,
    CodingClosingAnswer,
    ConversationAnswer,
    ConversationClosingAnswer,
    PartType,
)
from ._grounds import shown_only
from ._prompts import perception_prompt
from ._protocol import Domain
from ._sentences import given_up_in, reached_in, sentences
from ._summary import Summary, summary_of

_Form = TypeVar("_Form", ConversationAnswer, CodingAnswer)


class PerceptionSettings(Value):
    """The bounds of asking what a text says."""

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


class ModelPerception:
    """Asks a model what a text says, through the structured caller, in a fixed form.

    The prompt has the text and a summary of the state, both as data. Of an answer, blanks and
    repetitions are left out, and so are numbers that stand for no goal or error of the prompt;
    and unless the model is trusted, what the message does not show.

    Args:
        asker: Asks the model: `Asker(open_model("openai:gpt-5-mini"))`.
        domain: Which adapter's analysis to give.
        settings: The bounds.
        context: Gives, for each text, who asks and who is told of the calls, so that a trace can
            record them; the type that they expect is named after the domain.
    """

    def __init__(
        self,
        asker: Asker,
        *,
        domain: Domain = Domain.CONVERSATION,
        settings: PerceptionSettings | None = None,
        context: Callable[[], CallContext] = CallContext,
    ) -> None:
        self._asker = asker
        self._domain = Domain(domain)
        self._settings = settings or PerceptionSettings()
        self._context = context

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says where things stand so.

        Raises:
            ModelAnswerError: No usable answer came, even after the error was told.
            ModelCallError: The model could not be asked.
        """
        settings = self._settings
        summary = summary_of(state, settings.summary_tokens)
        prompt = perception_prompt(
            self._domain,
            summary.text,
            text,
            budget=settings.text_tokens,
            closing=settings.trusted,
        )
        if self._domain is Domain.CODING:
            form = CodingClosingAnswer if settings.trusted else CodingAnswer
            coding = await self._answer(prompt, form)
            analysis = _coding(coding, text, summary, _closings(coding, text, summary, state))
        else:
            form = ConversationClosingAnswer if settings.trusted else ConversationAnswer
            talk = await self._answer(prompt, form)
            analysis = _conversation(talk, text, _closings(talk, text, summary, state))
            if not settings.trusted:
                analysis = shown_only(analysis, state)
        return analysis.model_dump(mode="json")

    async def _answer(self, prompt: Prompt, form: type[_Form]) -> _Form:
        settings = self._settings
        asking = AskSettings(
            max_tokens=settings.answer_tokens, timeout=settings.timeout, reasks=settings.reasks
        )
        answer = await self._asker.ask(prompt, form, context=self._context(), settings=asking)
        return answer.value


class _Closed(NamedTuple):
    """Ids of goals."""

    completed: tuple[str, ...]
    abandoned: tuple[str, ...]


def _closings(answer: Value, text: str, summary: Summary, state: AwarenessState) -> _Closed:
    """The goals that the model says are closed, where it was asked; else those by the rules.

    One that is said to be both reached and given up is reached.
    """
    if isinstance(answer, Closings):
        reached = _numbered(answer.completed, summary.goals)
        given_up = _numbered(answer.abandoned, summary.goals)
    else:
        said = sentences(text)
        reached, given_up = reached_in(said, state), given_up_in(said, state)
    return _Closed(reached, tuple(goal for goal in given_up if goal not in reached))


def _conversation(answer: ConversationAnswer, text: str, closed: _Closed) -> ConversationAnalysis:
    named = {folded(one.name): one for one in reversed(answer.entities) if one.name.strip()}
    return ConversationAnalysis(
        message=text,
        topics=_said(answer.topics),
        entities=tuple(
            MentionedEntity(name=one.name.strip(), type=one.type)
            for one in reversed(named.values())
        ),
        goals=tuple(StatedGoal(description=goal) for goal in _said(answer.goals)),
        questions=_said(answer.questions),
        completed=closed.completed,
        abandoned=closed.abandoned,
        sentiment=answer.sentiment,
        references_previous=answer.references_previous,
    )


def _coding(answer: CodingAnswer, text: str, summary: Summary, closed: _Closed) -> CodingAnalysis:
    def named(type: PartType) -> tuple[str, ...]:
        return _said(part.name for part in answer.parts if part.type is type)

    errors = {folded(one.name): one for one in reversed(answer.errors) if one.name.strip()}
    return CodingAnalysis(
        message=text,
        files=named(PartType.FILE),
        libraries=named(PartType.LIBRARY),
        services=named(PartType.SERVICE),
        endpoints=named(PartType.ENDPOINT),
        functions=named(PartType.FUNCTION),
        configs=named(PartType.CONFIG),
        concepts=named(PartType.CONCEPT),
        errors=tuple(
            RaisedError(name=one.name.strip(), message=one.message)
            for one in reversed(errors.values())
        ),
        fixed=tuple(
            name
            for name in _numbered(answer.fixed, summary.errors)
            if folded(name) not in errors  # what shows now is not gone
        ),
        goals=tuple(StatedGoal(description=goal) for goal in _said(answer.goals)),
        questions=_said(answer.questions),
        completed=closed.completed,
        abandoned=closed.abandoned,
    )


def _said(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without blank ones and repetitions."""
    kept: dict[str, str] = {}
    for text in texts:
        if text.strip():
            kept.setdefault(folded(text), text.strip())
    return tuple(kept.values())


def _numbered(numbers: Sequence[int], items: Sequence[str]) -> tuple[str, ...]:
    """What the numbers stand for, each once; numbers of nothing are left out."""
    known = dict.fromkeys(number for number in numbers if 1 <= number <= len(items))
    return tuple(items[number - 1] for number in known)
