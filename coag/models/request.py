"""Asking a model for an answer of a type: one request, its repair, its record."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any, Generic, TypeVar, cast

from autogen_core import EVENT_LOGGER_NAME, FunctionCall
from autogen_core.logging import LLMCallEvent
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, RequestUsage
from pydantic import BaseModel

from coag._util.timeouts import in_time
from coag.errors import ModelAnswerError, ModelCallError, ModelTimeoutError, error_type
from coag.schema import (
    Clock,
    CountingIds,
    Given,
    IdSource,
    ModelCall,
    Phase,
    Prompt,
    PromptMessage,
    Redactor,
    Rung,
    SystemClock,
    TokenUsage,
    cut_to_tokens,
)

from .messages import (
    Brought,
    as_sent,
    brought,
    continued,
    one_system_message,
    sent_call,
    sent_messages,
    storable,
    to_autogen,
    with_addition,
)
from .parsing import Parsed, Problem, parse_answer
from .providers import form_arguments, limit_arguments, limit_name_of, model_name_of, rungs_of
from .response_format import can_be_strict, schema_name, schema_text

# ---- What can be set for a question, and what comes back ----


ModelT = TypeVar("ModelT", bound=BaseModel)


def _unheard(call: ModelCall) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Who asks and when, and who is told of each call."""

    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=CountingIds)
    """Gives the id of each call, of kind `call`."""
    cycle: int = 0
    phase: Phase | None = None
    on_call: Callable[[ModelCall], None] = _unheard
    """Is told of every call as soon as it is over, failed and cancelled ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskSettings:
    """The bounds of one question."""

    max_tokens: int | None = None
    """Longest completion, in tokens; None leaves it to the client."""
    timeout: float | None = 600.0
    """Seconds until one call is given up; None waits for ever."""
    reasks: int = 1
    """How many times an unusable answer is asked for again, with the error."""
    rung: Rung | None = None
    """The strictest rung to try; None begins with the strictest that the client can do."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of the client's call; those that ask for a form or a limit win."""

    def __post_init__(self) -> None:
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens!r}.")
        if self.timeout is not None and self.timeout <= 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {self.timeout!r}.")
        if self.reasks < 0:
            raise ValueError(f"reasks must not be negative, not {self.reasks!r}.")
        if self.rung is Rung.TEXT:
            raise ValueError("rung TEXT asks for no form; an answer of a type needs another one.")


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
    """The model's own thought, where its client tells one apart."""

    @property
    def usage(self) -> TokenUsage:
        """What all calls used together."""
        return usage_of(self.calls)


def usage_of(calls: Iterable[ModelCall]) -> TokenUsage:
    """What these calls used together."""
    return sum((call.usage for call in calls), TokenUsage())


# ---- What AutoGen's clients say about a response beside the result: cached tokens, above all ----
#
# AutoGen's `RequestUsage` has no place for cached tokens, but its clients publish the raw
# response as an `LLMCallEvent` on the logger `autogen_core.EVENT_LOGGER_NAME`, both of them
# public. Here we listen to that logger while a call is under way. Each call has a notebook of its
# own in a context variable, so that calls at the same time do not mix.
#
# The event is at INFO, which is off by default. While at least one call is under way, the logger
# makes records from INFO on, and a filter drops those that its level would have dropped: nobody's
# log changes. Where the events are off for good (`logging.disable`), or a client publishes none
# (a cache in front of it, a client outside AutoGen), no cached tokens are known and 0 is told.


_NOTHING = TokenUsage()


class Heard:
    """What was heard during one call."""

    def __init__(self) -> None:
        self._usage = _NOTHING

    def note(self, event: LLMCallEvent) -> None:
        """Takes down what the event tells."""
        response = event.kwargs.get("response")
        self._usage = TokenUsage(
            prompt_tokens=_count(event.prompt_tokens),
            completion_tokens=_count(event.completion_tokens),
            cached_tokens=_cached_tokens(response),
        )

    def usage(self, told: RequestUsage | None = None) -> TokenUsage:
        """The usage of this one call.

        Args:
            told: What the client says; without it (the client raised), what was heard counts.
                What is no number of tokens counts as 0.
        """
        if told is None:
            return self._usage.model_copy(update={"calls": 1})
        return TokenUsage(
            prompt_tokens=_count(told.prompt_tokens),
            completion_tokens=_count(told.completion_tokens),
            cached_tokens=self._usage.cached_tokens,
            calls=1,
        )


_heard: ContextVar[Heard | None] = ContextVar("coag_models_heard", default=None)


class _Ear(logging.Filter):
    """Hears events on the way through the logger, and hides those nobody else asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._listeners = 0

    def filter(self, record: logging.LogRecord) -> bool:
        heard = _heard.get()
        if heard is not None and isinstance(record.msg, LLMCallEvent):
            heard.note(record.msg)
        return logging.Logger.isEnabledFor(logging.getLogger(record.name), record.levelno)

    def attach(self, logger: logging.Logger) -> None:
        with self._lock:
            self._listeners += 1
            if self._listeners > 1:
                return
            logger.addFilter(self)
            # The level itself stays: setting it has every logger of the process look its own up.
            vars(logger)["isEnabledFor"] = partial(_is_heard, logger)

    def detach(self, logger: logging.Logger) -> None:
        with self._lock:
            self._listeners -= 1
            if self._listeners:
                return
            logger.removeFilter(self)
            del vars(logger)["isEnabledFor"]


def _is_heard(logger: logging.Logger, level: int) -> bool:
    """Whether a record is made: at INFO, whatever the logger's level, unless logging is off."""
    heard = level >= logging.INFO and logger.manager.disable < level
    return heard or logging.Logger.isEnabledFor(logger, level)


_EAR = _Ear()


@contextmanager
def listening() -> Generator[Heard]:
    """Hears what the client says about the one call made within."""
    logger = logging.getLogger(EVENT_LOGGER_NAME)
    heard = Heard()
    token = _heard.set(heard)
    _EAR.attach(logger)
    try:
        yield heard
    finally:
        _EAR.detach(logger)
        _heard.reset(token)


def tell_usage(usage: TokenUsage, *, failed: bool = False) -> None:
    """Tells of a recorded call, as clients do, what its result has no place for.

    Args:
        usage: What was recorded.
        failed: Whether the client raised: then there is no result, and all of it is told.
    """
    if not usage.cached_tokens and not (failed and usage.tokens):
        return
    response = {"usage": {"prompt_tokens_details": {"cached_tokens": usage.cached_tokens}}}
    event = LLMCallEvent(
        messages=[],
        response=response,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )
    logging.getLogger(EVENT_LOGGER_NAME).info(event)


def _count(number: object) -> int:
    """A number of tokens, as far as it is one: a client may tell anything."""
    return max(0, number) if isinstance(number, int) else 0


def _cached_tokens(response: object) -> int:
    """How many prompt tokens the server took from its cache: OpenAI's way, or DeepSeek's."""
    usage = _field(response, "usage")
    details = _field(usage, "prompt_tokens_details")
    for value in (_field(details, "cached_tokens"), _field(usage, "prompt_cache_hit_tokens")):
        if isinstance(value, int) and value > 0:
            return value
    return 0


def _field(value: object, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None


# ---- Telling a client that refuses a form of answer from a model that cannot be asked at all ----


_SHOWN = 600
"""Characters of an error that are kept."""
_REFUSING = frozenset({400, 415, 422, 501})
"""HTTP statuses with which servers refuse a `response_format` that they do not know."""


def is_refusal(error: Exception) -> bool:
    """True if the same question may be answered when it is asked in a looser form.

    AutoGen's clients refuse with `ValueError` what their `model_info` rules out, or lose a bad
    answer in pydantic's `ValidationError`; servers refuse with a status. A client of ours tells
    either as the cause of its own error.
    """
    if isinstance(error, ModelCallError):
        return isinstance(error.__cause__, Exception) and is_refusal(error.__cause__)
    if isinstance(error, json.JSONDecodeError):
        return False
    return isinstance(error, ValueError | NotImplementedError) or _status(error) in _REFUSING


def call_error(model: str, error: Exception) -> ModelCallError:
    """The error for a client's error that is not a refusal: of the client's own type, too."""
    kind = ModelTimeoutError if isinstance(error, TimeoutError) else ModelCallError
    found = _also(kind, type(error))(model, reason_of(error))
    if type(found) is not kind:
        told = {name: value for name, value in vars(error).items() if not name.startswith("__")}
        vars(found).update(told)
    return found


@cache
def _also(kind: type[ModelCallError], own: type[Exception]) -> type[ModelCallError]:
    """An error that is both; `kind` alone where no class can be."""
    if issubclass(kind, own):
        return kind

    def begin(self: ModelCallError, model: str, reason: str) -> None:
        # The client's own constructor wants a response or a body.
        BaseException.__init__(self, str(kind(model, reason)))
        vars(self)["_asked"] = (model, reason)

    def reduce(self: ModelCallError) -> tuple[type[ModelCallError], tuple[str, str]]:
        # A class that is made here cannot be found again by its name.
        return kind, vars(self)["_asked"]

    name = kind.__name__ if own.__module__ == "builtins" else own.__name__
    methods = {"__init__": begin, "__reduce__": reduce, "__module__": kind.__module__}
    try:
        return cast("type[ModelCallError]", type(name, (kind, own), methods))
    except TypeError:  # some errors of Python's own have another layout
        return kind


def reason_of(error: BaseException) -> str:
    """The error and what it was caused by, in one line without keys."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 3:
        text = " ".join(str(current).split())
        parts.append(f"{type(current).__name__}: {text}" if text else type(current).__name__)
        current = current.__cause__
    text = Redactor.from_environment().clean_text(", because of ".join(parts))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _status(error: Exception) -> int | None:
    """The HTTP status, where the error has one: `openai`, `anthropic`, `ollama` and `httpx`."""
    for holder in (error, getattr(error, "response", None)):
        status: object = getattr(holder, "status_code", None)
        if isinstance(status, int):
            return status
    return None


# ---- The sentences that `ask` itself adds to a prompt; everything else is the caller's ----


ECHO_TOKENS = 400
"""How much of an unusable answer is shown to the model again."""


def form_of_answer(schema: str) -> str:
    """Tells the form of the answer, where the server is not told or cannot be relied on."""
    return (
        "Answer with one JSON object and nothing else: no prose, no code fence. "
        f"It must follow this JSON Schema:\n{schema}"
    )


def correction(problem: str, schema: str | None) -> str:
    """Asks once more, saying what was wrong; with the schema, if it was not in the prompt."""
    again = f"That answer could not be used. {problem}\nAnswer the same question again, corrected."
    return again if schema is None else f"{again}\n{form_of_answer(schema)}"


def echo(raw: str) -> str:
    """The unusable answer as it is shown again, within its bound."""
    return cut_to_tokens(raw, ECHO_TOKENS)


EMPTY_ANSWER = "Your answer was empty. Call a tool, or answer in text."
"""Asks once more where tools were offered and nothing came."""


# ---- One question as it is asked, again if it must be, and written down ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request on its way."""

    model: str
    rung: Rung
    attempt: int
    prompt: Prompt
    """The prompt as it is sent."""
    at: datetime
    begun: float
    """The clock's monotonic reading, in seconds."""


@dataclass(slots=True, kw_only=True)
class Inquiry(Generic[ModelT]):
    """What is asked, and what has come of it so far."""

    prompt: Prompt
    output_type: type[ModelT]
    context: CallContext
    settings: AskSettings
    dialogue: tuple[LLMMessage, ...] = ()
    """What was said before the prompt, sent as it is."""
    attempt: int = 1
    calls: list[ModelCall] = field(default_factory=list[ModelCall])
    raw: str = ""
    """The last answer as it came."""
    thought: str | None = None
    """The model's thought beside the last answer."""
    problem: Problem | None = None
    """What was wrong with the last answer; None before the first."""

    def request(self, model: str, rung: Rung) -> Request:
        """The request to make now, on this rung."""
        return Request(
            model=model,
            rung=rung,
            attempt=self.attempt,
            prompt=self._prompt_on(rung),
            at=self.context.clock.now(),
            begun=self.context.clock.monotonic(),
        )

    def take(self, request: Request, result: object, heard: Heard) -> Parsed[ModelT] | Problem:
        """Reads what a request brought, and writes the call down.

        Args:
            request: What was asked.
            result: What the client gave back, as it came.
            heard: What the client said beside it.
        """
        got = brought(result, self._sent(request))
        content = got.content
        self.raw = content if isinstance(content, str) else ""
        self.thought = got.thought or None
        found = self._read(got)
        failed = isinstance(found, Problem)
        self._record(
            request,
            usage=heard.usage(got.usage),
            usage_estimated=got.usage_estimated,
            raw=self.raw,
            tool_calls=() if isinstance(content, str) else tuple(map(sent_call, content)),
            finish_reason=got.finish_reason,
            repaired=not failed and found.repaired,
            error=found.text if failed else None,
            given=self._given(content),
        )
        self.problem = found if failed else None
        return found

    def fail(self, request: Request, error: BaseException, usage: TokenUsage) -> None:
        """Writes down a request that brought no answer, but an error or a cancellation."""
        if isinstance(error, asyncio.CancelledError):
            self._record(
                request, usage=usage, raw="", error="cancelled", given=Given(ended="cancelled")
            )
            return
        self._record(
            request,
            usage=usage,
            raw="",
            error=reason_of(error),
            error_type=error_type(error),
            given=Given(ended="raised"),
        )

    def _given(self, content: object) -> Given | None:
        """What of the answer its text, or its calls, do not tell."""
        if self.thought is None:
            return None
        return Given(ended="text" if isinstance(content, str) else "calls", thought=self.thought)

    def _read(self, got: Brought) -> Parsed[ModelT] | Problem:
        """The answer as its type, or what is wrong with it."""
        if got.fault:
            return Problem(got.fault)
        if not isinstance(got.content, str):
            return _called_tools(got.content)
        truncated = got.finish_reason == "length"
        found = parse_answer(got.content, self.output_type, truncated=truncated)
        if got.finish_reason == "content_filter" and isinstance(found, Problem):
            return Problem(f"The answer was withheld by a content filter. {found.text}")
        return found

    def _sent(self, request: Request) -> tuple[dict[str, Any], ...]:
        """The messages of a request as they are recorded."""
        return (*sent_messages(self.dialogue), *as_sent(request.prompt))

    def _record(self, request: Request, **outcome: object) -> None:
        call = ModelCall.model_validate(
            {
                "id": self.context.ids("call"),
                "at": request.at,
                "cycle": self.context.cycle,
                "phase": self.context.phase,
                "model": request.model,
                "expected": schema_name(self.output_type),
                "rung": request.rung,
                "attempt": request.attempt,
                "messages": self._sent(request),
                "seconds": self.context.clock.monotonic() - request.begun,
                **outcome,
            }
        )
        self.calls.append(call)
        self.context.on_call(call)

    def _prompt_on(self, rung: Rung) -> Prompt:
        """The prompt with what this rung and the last problem add to it."""
        told = rung is not Rung.JSON_SCHEMA
        schema = schema_text(self.output_type)
        prompt = with_addition(self.prompt, form_of_answer(schema)) if told else self.prompt
        if self.problem is None:
            return prompt
        text = correction(self.problem.text, None if told else schema)
        if not self.raw:
            return with_addition(prompt, text)
        shown = PromptMessage(role="assistant", content=echo(self.raw))
        return (*prompt, shown, PromptMessage(role="user", content=text))


def _called_tools(calls: Sequence[FunctionCall]) -> Problem:
    if not calls:
        return Problem("The answer was empty.")
    names = ", ".join(repr(storable(call.name)) for call in calls)
    return Problem(f"Instead of text, the answer called {names}; no tools can be called here.")


# ---- The one way in which a phase speaks to a model ----


_DEFAULTS = AskSettings()


class Asker:
    """Asks one client for typed answers, and remembers which rungs of the ladder hold.

    The ladder: a JSON schema that the server enforces; JSON mode with the schema in the prompt;
    the schema in the prompt alone. A rung that the client or the server refuses, or that lets
    an answer of another form through, is left for the next, for good once the next one works.

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
        self._rungs = rungs_of(client)

    @property
    def vision(self) -> bool:
        """True if the client says that its model sees images."""
        return bool(self.client.model_info.get("vision"))

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The rungs that are believed to work, from the strictest."""
        return self._rungs

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
            context: Who asks and who is told of each call.
            settings: The bounds of this question.
            dialogue: What was said before, in AutoGen's messages; sent as it is, in front of
                the prompt, which may then be empty.

        Raises:
            ModelAnswerError: No usable answer came, even after the error was told.
            ModelCallError: The model could not be asked.
        """
        inquiry = Inquiry(
            prompt=one_system_message(prompt),
            output_type=output_type,
            context=context or CallContext(),
            settings=settings,
            dialogue=tuple(dialogue),
        )
        first = ladder = self._ladder(settings.rung, output_type)
        for attempt in range(1, settings.reasks + 2):
            inquiry.attempt = attempt
            found, ladder = await self._climb(inquiry, ladder)
            if isinstance(found, Parsed):
                self._leave(first[: -len(ladder)])
                return Answer(
                    value=found.value,
                    raw=inquiry.raw,
                    repaired=found.repaired,
                    calls=tuple(inquiry.calls),
                    text=found.text,
                    thought=inquiry.thought,
                )
            if found.off_schema and ladder[0] is Rung.JSON_SCHEMA:
                ladder = ladder[1:]
        raise ModelAnswerError(
            expected=output_type.__name__,
            problem=inquiry.problem.text if inquiry.problem else "",
            raw=inquiry.raw,
            attempts=settings.reasks + 1,
        )

    def _ladder(self, strictest: Rung | None, output_type: type[BaseModel]) -> tuple[Rung, ...]:
        """The rungs to try, from the strictest that is allowed; the prompt always works."""
        order = tuple(Rung)
        start = 0 if strictest is None else order.index(strictest)
        if not can_be_strict(output_type):
            start = max(start, order.index(Rung.JSON_MODE))
        return tuple(rung for rung in self._rungs if order.index(rung) >= start)

    def _leave(self, rungs: tuple[Rung, ...]) -> None:
        """Forgets rungs that did not hold where a lower one did."""
        self._rungs = tuple(rung for rung in self._rungs if rung not in rungs)

    async def _climb(
        self, inquiry: Inquiry[ModelT], ladder: tuple[Rung, ...]
    ) -> tuple[Parsed[ModelT] | Problem, tuple[Rung, ...]]:
        """What comes from the first rung that is not refused, and the ladder from there on."""
        while True:
            request = inquiry.request(self.name, ladder[0])
            with listening() as heard:
                result = await self._send(inquiry, request, heard, last=len(ladder) == 1)
            if result is not None:
                return inquiry.take(request, result, heard), ladder
            ladder = ladder[1:]

    async def _send(
        self, inquiry: Inquiry[ModelT], request: Request, heard: Heard, *, last: bool
    ) -> CreateResult | None:
        """The client's answer, or None if it refused the rung and there is another one."""
        try:
            return await self._create(inquiry, request)
        except asyncio.CancelledError as error:
            inquiry.fail(request, error, heard.usage())
            raise
        except Exception as error:
            # The one broad guard: clients are an open interface over packages that are not
            # imported here, and whatever one of them raises belongs into the record.
            inquiry.fail(request, error, heard.usage())
            if last or not is_refusal(error):
                raise call_error(self.name, error) from error
            return None

    async def _create(self, inquiry: Inquiry[ModelT], request: Request) -> CreateResult:
        """The call itself: never with tools, which would leave the choice to the server."""
        json_output, extra = form_arguments(self.client, request.rung, inquiry.output_type)
        limit = limit_arguments(self.client, self.limit_name, inquiry.settings.max_tokens)
        messages = continued(inquiry.dialogue, to_autogen(request.prompt, vision=self.vision))
        creating = partial(
            self.client.create,
            messages,
            json_output=json_output,
            extra_create_args={**inquiry.settings.extra, **extra, **limit},
        )
        return await in_time(inquiry.settings.timeout, creating)


async def ask(
    client: ChatCompletionClient,
    prompt: Prompt,
    output_type: type[ModelT],
    *,
    context: CallContext | None = None,
    settings: AskSettings = _DEFAULTS,
) -> Answer[ModelT]:
    """Asks a client once, without remembering which rung holds; see `Asker.ask`."""
    return await Asker(client).ask(prompt, output_type, context=context, settings=settings)
