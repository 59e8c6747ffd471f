"""Asking a model for an answer of a type: its output modes, the answer's repair, asking again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from autogen_core.models import ChatCompletionClient, LLMMessage
from pydantic import BaseModel

from coag._util.text import cut_to_tokens
from coag._util.timeouts import in_time
from coag.errors import ModelAnswerError
from coag.schema import AnswerDetails, ModelCall, OutputMode, Prompt, PromptMessage, TokenUsage

from .call_record import CallContext, CallRecord, call_error, is_refusal
from .messages import (
    NormalizedResponse,
    as_sent,
    continued,
    normalize_response,
    one_system_message,
    sent_call,
    sent_messages,
    storable,
    to_autogen,
    with_addition,
)
from .parsing import Parsed, Problem, parse_answer
from .providers import form_arguments, limit_arguments, limit_name_of, model_name_of, modes_of
from .response_format import can_be_strict, schema_name, schema_text
from .usage import UsageCapture, usage_of

# ---- What can be set for a question, and what comes back ----


ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings:
    """The bounds of one question."""

    max_tokens: int | None = None
    """Longest completion, in tokens; None leaves it to the client."""
    timeout: float | None = 600.0
    """Seconds until one call is given up; None waits for ever."""
    reasks: int = 1
    """How many times an unusable answer is asked for again, with the error."""
    mode: OutputMode | None = None
    """The strictest output mode to try; None begins with the strictest that the client can do."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of the client's call; those that ask for a form or a limit win."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens!r}.")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {self.timeout!r}.")
        if self.reasks < 0:
            raise ValueError(f"reasks must not be negative, not {self.reasks!r}.")
        if self.mode is OutputMode.TEXT:
            raise ValueError("mode TEXT asks for no form; an answer of a type needs another one.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[ModelT]):
    """A usable answer and what it took."""

    value: ModelT
    raw: str
    """The answer as the model gave it."""
    repaired: bool
    """True if the raw answer was no valid JSON of the wanted form and could be repaired."""
    calls: tuple[ModelCall, ...]
    """Every request that was made for it, in order; the last one brought the answer."""
    text: str = ""
    """The value as JSON: the raw answer, or what it was repaired to."""
    thought: str | None = None
    """The model's own thought, where its client separates it from the answer."""

    @property
    def usage(self) -> TokenUsage:
        """What all calls used together."""
        return usage_of(self.calls)


# ---- The sentences that are added to a prompt; everything else is the caller's ----


ECHO_TOKENS = 400
"""How much of an unusable answer is shown to the model again."""
EMPTY_ANSWER = "Your answer was empty. Call a tool, or answer in text."
"""Asks once more where tools were offered and nothing came."""


def form_of_answer(schema: str) -> str:
    """Says the form of the answer, where the server does not get it or cannot be relied on."""
    return (
        "Answer with one JSON object and nothing else: no prose, no code fence. "
        f"It must follow this JSON Schema:\n{schema}"
    )


def correction(problem: str, schema: str | None) -> str:
    """Asks once more, saying what was wrong; with the schema, if it was not in the prompt."""
    again = f"That answer could not be used. {problem}\nAnswer the same question again, corrected."
    return again if schema is None else f"{again}\n{form_of_answer(schema)}"


# ---- One question, and the requests that are made for it ----


@dataclass(slots=True, kw_only=True)
class _Question(Generic[ModelT]):
    """What is asked, and what has come of it so far."""

    prompt: Prompt
    output_type: type[ModelT]
    context: CallContext
    settings: AskSettings
    dialogue: tuple[LLMMessage, ...] = ()
    """Messages before the prompt, sent as they are."""
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    raw: str = ""
    """The last answer as it came."""
    thought: str | None = None
    problem: Problem | None = None
    """What was wrong with the last answer; None before the first."""

    def attempt(self, model: str, mode: OutputMode, number: int) -> tuple[Prompt, CallRecord]:
        """The request to make now, in this mode: what is sent, and its record."""
        prompt = self._prompt_in(mode)
        return prompt, CallRecord(
            (*sent_messages(self.dialogue), *as_sent(prompt)),
            model=model,
            context=self.context,
            mode=mode,
            attempt=number,
            expected=schema_name(self.output_type),
        )

    def read(
        self, record: CallRecord, result: object, usage: UsageCapture
    ) -> Parsed[ModelT] | Problem:
        """The answer of a request as its type, or what is wrong with it; records the call."""
        response = normalize_response(result, record.sent)
        calls = () if isinstance(response.content, str) else response.content
        self.raw = response.content if isinstance(response.content, str) else ""
        self.thought = thought = response.thought or None
        answer = self._parsed(response)
        self.problem = answer if isinstance(answer, Problem) else None
        ended = "text" if isinstance(response.content, str) else "calls"
        record.write(
            usage.usage(response.usage),
            usage_estimated=response.usage_estimated,
            raw=self.raw,
            tool_calls=tuple(map(sent_call, calls)),
            finish_reason=response.finish_reason,
            repaired=isinstance(answer, Parsed) and answer.repaired,
            error=self.problem and self.problem.text,
            given=None if thought is None else AnswerDetails(ended=ended, thought=thought),
        )
        return answer

    def _parsed(self, response: NormalizedResponse) -> Parsed[ModelT] | Problem:
        if response.fault:
            return Problem(response.fault)
        if not isinstance(response.content, str):
            names = ", ".join(repr(storable(call.name)) for call in response.content)
            problem = f"Instead of text, the answer called {names}; no tools can be called here."
            return Problem(problem if names else "The answer was empty.")
        truncated = response.finish_reason == "length"
        answer = parse_answer(response.content, self.output_type, truncated=truncated)
        if response.finish_reason == "content_filter" and isinstance(answer, Problem):
            return Problem(f"The answer was withheld by a content filter. {answer.text}")
        return answer

    def _prompt_in(self, mode: OutputMode) -> Prompt:
        """The prompt with what this mode and the last problem add to it."""
        in_prompt = mode is not OutputMode.JSON_SCHEMA
        schema = schema_text(self.output_type)
        prompt = with_addition(self.prompt, form_of_answer(schema)) if in_prompt else self.prompt
        if self.problem is None:
            return prompt
        text = correction(self.problem.text, None if in_prompt else schema)
        if not self.raw:
            return with_addition(prompt, text)
        echo = PromptMessage(role="assistant", content=cut_to_tokens(self.raw, ECHO_TOKENS))
        return (*prompt, echo, PromptMessage(role="user", content=text))


# ---- The one way in which a phase asks a model for a value ----


_DEFAULTS = AskSettings()


class StructuredModel:
    """Asks one client for typed answers, and remembers which output modes work.

    The modes, strictest first: a JSON schema that the server enforces; JSON mode with the schema
    in the prompt; the schema in the prompt alone. Where the client or the server refuses a mode,
    or lets an answer of another form through, the next one is the fallback, for good once it
    works.

    Args:
        client: Any AutoGen chat completion client.
        name: What the model is called in records; by default the client's own word for it.
        limit_name: The client's name for the completion limit, dotted if it is nested
            (`options.num_predict`); by default known for OpenAI-like, Ollama, Anthropic and
            scripted clients. To clients of another kind no limit is sent.
    """

    def __init__(
        self,
        client: ChatCompletionClient,
        *,
        name: str | None = None,
        limit_name: str | None = None,
    ) -> None:
        self.client = client
        self.name = name or model_name_of(client)
        self.limit_name = limit_name or limit_name_of(client)
        self._modes = modes_of(client)

    @property
    def vision(self) -> bool:
        """True if the client says that its model sees images."""
        return bool(self.client.model_info.get("vision"))

    @property
    def modes(self) -> tuple[OutputMode, ...]:
        """The output modes that are believed to work, from the strictest."""
        return self._modes

    async def ask(
        self,
        prompt: Prompt,
        output_type: type[ModelT],
        *,
        context: CallContext | None = None,
        settings: AskSettings = _DEFAULTS,
        dialogue: Sequence[LLMMessage] = (),
    ) -> Answer[ModelT]:
        """Asks for an answer of a type: strictly parsed, else repaired, else asked once more.

        Args:
            prompt: What to ask; its system messages are sent as one, at the front.
            output_type: What the answer must be. Bounds of numbers and texts are checked, and
                an answer outside them is asked for again, never clamped.
            context: Who asks and who is notified of each call.
            settings: The bounds of this question.
            dialogue: What was said before, in AutoGen's messages; sent as it is, in front of
                the prompt, which may then be empty.

        Raises:
            ModelAnswerError: No usable answer came, even after the model was shown the error.
            ModelCallError: The model could not be asked.
        """
        question = _Question(
            prompt=one_system_message(prompt),
            output_type=output_type,
            context=context or CallContext(),
            settings=settings,
            dialogue=tuple(dialogue),
        )
        question.context = question.context.collecting(question.calls)
        allowed = modes = self._modes_for(settings.mode, output_type)
        for number in range(1, settings.reasks + 2):
            answer, modes = await self._with_fallback(question, number, modes)
            if isinstance(answer, Parsed):
                failed = allowed[: -len(modes)]
                self._modes = tuple(mode for mode in self._modes if mode not in failed)
                return Answer(
                    value=answer.value,
                    raw=question.raw,
                    repaired=answer.repaired,
                    calls=tuple(question.calls),
                    text=answer.text,
                    thought=question.thought,
                )
            if answer.off_schema and modes[0] is OutputMode.JSON_SCHEMA:
                modes = modes[1:]
        raise ModelAnswerError(
            expected=output_type.__name__,
            problem=question.problem.text if question.problem else "",
            raw=question.raw,
            attempts=settings.reasks + 1,
        )

    def _modes_for(
        self, strictest: OutputMode | None, output_type: type[BaseModel]
    ) -> tuple[OutputMode, ...]:
        """The modes to try, from the strictest that is allowed; the prompt always works."""
        order = tuple(OutputMode)
        start = 0 if strictest is None else order.index(strictest)
        if not can_be_strict(output_type):
            start = max(start, order.index(OutputMode.JSON_MODE))
        return tuple(mode for mode in self._modes if order.index(mode) >= start)

    async def _with_fallback(
        self, question: _Question[ModelT], number: int, modes: tuple[OutputMode, ...]
    ) -> tuple[Parsed[ModelT] | Problem, tuple[OutputMode, ...]]:
        """The answer in the first mode that is not refused, and the modes from there on."""
        while True:
            prompt, record = question.attempt(self.name, modes[0], number)
            try:
                with record.failing() as usage:
                    create = partial(self._create, question, prompt, modes[0])
                    result = await in_time(question.settings.timeout, create)
            except Exception as error:
                # The one broad guard: clients are an open interface over packages that are not
                # imported here, and may raise anything.
                if len(modes) == 1 or not is_refusal(error):
                    raise call_error(self.name, error) from error
                modes = modes[1:]
                continue
            return question.read(record, result, usage), modes

    async def _create(self, question: _Question[Any], prompt: Prompt, mode: OutputMode) -> object:
        """The call itself: never with tools, which would leave the choice to the server."""
        json_output, extra = form_arguments(self.client, mode, question.output_type)
        limit = limit_arguments(self.client, self.limit_name, question.settings.max_tokens)
        messages = continued(question.dialogue, to_autogen(prompt, vision=self.vision))
        return await self.client.create(
            messages,
            json_output=json_output,
            extra_create_args={**question.settings.extra, **extra, **limit},
        )


async def ask(
    client: ChatCompletionClient,
    prompt: Prompt,
    output_type: type[ModelT],
    *,
    context: CallContext | None = None,
    settings: AskSettings = _DEFAULTS,
) -> Answer[ModelT]:
    """Asks a client once, without remembering which mode works; see `StructuredModel.ask`."""
    model = StructuredModel(client)
    return await model.ask(prompt, output_type, context=context, settings=settings)
