"""The record of one request to a model: what was sent, and what became of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, LLMMessage
from autogen_core.tools import Tool, ToolSchema

from coag._util.text import ellipsis, in_a_line
from coag.errors import ModelCallError, ModelTimeoutError, error_type
from coag.schema import (
    AnswerDetails,
    Clock,
    CountingIds,
    IdSource,
    ModelCall,
    OutputMode,
    Phase,
    Redactor,
    RequestDetails,
    SystemClock,
    TokenUsage,
)

from .client import tool_schema
from .messages import sent_call, sent_messages, storable
from .usage import UsageCapture, capture_usage

_SHOWN = 600
"""Characters of an error that are recorded."""
_REFUSING = frozenset({400, 415, 422, 501})
"""HTTP statuses with which servers refuse a `response_format` that they do not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Who asks and when, and who is notified of each call."""

    clock: Clock = field(default_factory=SystemClock)
    ids: IdSource = field(default_factory=CountingIds)
    """Gives the id of each call, of kind `call`."""
    cycle: int = 0
    phase: Phase | None = None
    on_call: Callable[[ModelCall], None] = lambda _call: None
    """Gets every call as soon as it is over, failed and cancelled ones included."""

    def collecting(self, calls: list[ModelCall]) -> CallContext:
        """The same, with each call appended to a list before it is handed on."""

        def collect(call: ModelCall) -> None:
            calls.append(call)
            self.on_call(call)

        return replace(self, on_call=collect)


class CallRecord:
    """One request to a model, on its way into the trace.

    Args:
        sent: The messages as they are recorded.
        model: What the model is called in records; a function where the call itself shows it.
        context: Who asks, and who is notified when the call is over.
        mode: How the form of the answer was asked for.
        tools: Names of the tools that are offered.
        attempt: See `ModelCall`, as for the following two.
        expected: Name of the answer's type.
        details: The rest of the request, where it is to be replayed.
    """

    def __init__(
        self,
        sent: tuple[dict[str, Any], ...],
        *,
        model: str | Callable[[], str],
        context: CallContext,
        mode: OutputMode,
        tools: tuple[str, ...] = (),
        attempt: int = 1,
        expected: str | None = None,
        details: RequestDetails | None = None,
    ) -> None:
        self.sent = sent
        self._context = context
        self._start = context.clock.now(), context.clock.monotonic()
        self._model = model
        self._request: dict[str, Any] = {
            "rung": mode,
            "tools": tools,
            "attempt": attempt,
            "expected": expected,
            "messages": sent,
            "asked": details,
        }

    @classmethod
    def of(
        cls,
        messages: Sequence[LLMMessage],
        tools: Sequence[Tool | ToolSchema] = (),
        *,
        model: str,
        context: CallContext,
        attempt: int = 1,
        expected: str | None = None,
        details: RequestDetails | None = None,
    ) -> Self:
        """The record of a request as AutoGen's agents make it: for a text, or for tool calls."""
        return cls(
            sent_messages(messages),
            model=model,
            context=context,
            mode=OutputMode.NATIVE if tools else OutputMode.TEXT,
            tools=tuple(tool_schema(tool)["name"] for tool in tools),
            attempt=attempt,
            expected=expected,
            details=details,
        )

    @contextmanager
    def failing(self) -> Generator[UsageCapture]:
        """Captures the usage of the call made within, and records it if it fails or is cancelled.

        What it raises is raised.
        """
        with capture_usage() as usage:
            try:
                yield usage
            except BaseException as error:  # recorded whatever it is, and raised again
                self.failed(error, usage.usage())
                raise

    def answered(
        self,
        result: CreateResult,
        usage: TokenUsage,
        *,
        repaired: bool = False,
        error: str | None = None,
        details: AnswerDetails | None = None,
    ) -> ModelCall:
        """Records an answer: its text, or its thought and its tool calls.

        Args:
            result: The answer as it came.
            usage: What the request used.
            repaired: The answer had faults and is used all the same.
            error: Why the answer cannot be used.
            details: The rest of the answer, where it is to be replayed.
        """
        # A careless client may give None against its type: `or` makes that an empty answer.
        content = result.content or ""
        text = content if isinstance(content, str) else result.thought or ""
        calls: Sequence[FunctionCall] = () if isinstance(content, str) else content
        return self.write(
            usage,
            raw=storable(text),
            tool_calls=tuple(map(sent_call, calls)),
            finish_reason=result.finish_reason,
            repaired=repaired,
            error=error,
            given=details,
        )

    def failed(
        self,
        reason: str | BaseException,
        usage: TokenUsage,
        details: AnswerDetails | None = None,
    ) -> ModelCall:
        """Records that no answer came, and why."""
        cancelled = isinstance(reason, asyncio.CancelledError | GeneratorExit)
        of_form = self._request["rung"] not in (OutputMode.NATIVE, OutputMode.TEXT)
        if details is None and of_form:
            details = AnswerDetails(ended="cancelled" if cancelled else "raised")
        if cancelled:
            return self.write(usage, error="cancelled", given=details)
        if isinstance(reason, str):
            return self.write(usage, error=reason, given=details)
        text = reason_of(reason) if isinstance(reason, Exception) else type(reason).__name__
        return self.write(usage, error=text, error_type=error_type(reason), given=details)

    def write(self, usage: TokenUsage, **outcome: object) -> ModelCall:
        """Records what became of the request, by the fields of `ModelCall`."""
        at, begun = self._start
        call = ModelCall.model_validate(
            {
                "id": self._context.ids("call"),
                "at": at,
                "cycle": self._context.cycle,
                "phase": self._context.phase,
                "model": self._model if isinstance(self._model, str) else self._model(),
                **self._request,
                "raw": "",
                "usage": usage,
                "seconds": round(self._context.clock.monotonic() - begun, 6),
                **outcome,
            }
        )
        self._context.on_call(call)
        return call


# ---- Errors of clients: refused forms, and models that cannot be asked at all ----


def is_refusal(error: Exception) -> bool:
    """True if the same question may be answered when it is asked in a looser form.

    AutoGen's clients refuse with `ValueError` what their `model_info` rules out, or lose a bad
    answer in pydantic's `ValidationError`; servers refuse with a status. A client of ours has
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
    raised = _of_both_types(kind, type(error))(model, reason_of(error))
    if type(raised) is not kind:
        own = {name: value for name, value in vars(error).items() if not name.startswith("__")}
        vars(raised).update(own)
    return raised


@cache
def _of_both_types(kind: type[ModelCallError], own: type[Exception]) -> type[ModelCallError]:
    """A class of errors that is both; `kind` alone where no class can be."""
    if issubclass(kind, own):
        return kind

    def begin(self: ModelCallError, model: str, reason: str) -> None:
        # The client's own constructor wants a response or a body.
        BaseException.__init__(self, str(kind(model, reason)))
        vars(self)["_arguments"] = (model, reason)

    def reduce(self: ModelCallError) -> tuple[type[ModelCallError], tuple[str, str]]:
        # A class that is made here cannot be found again by its name.
        return kind, vars(self)["_arguments"]

    name = kind.__name__ if own.__module__ == "builtins" else own.__name__
    methods = {"__init__": begin, "__reduce__": reduce, "__module__": kind.__module__}
    try:
        return cast("type[ModelCallError]", type(name, (kind, own), methods))
    except TypeError:  # some errors of Python's own have another layout
        return kind


def reason_of(error: BaseException) -> str:
    """The error and what caused it, on one line without keys."""
    parts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(parts) < 3:
        text = in_a_line(str(current))
        parts.append(f"{type(current).__name__}: {text}" if text else type(current).__name__)
        current = current.__cause__
    text = Redactor.from_environment().clean_text(", because of ".join(parts))
    return ellipsis(text, _SHOWN + 1)


def _status(error: Exception) -> int | None:
    """The HTTP status, where the error has one: `openai`, `anthropic`, `ollama` and `httpx`."""
    holders = (error, getattr(error, "response", None))
    codes: list[object] = [getattr(holder, "status_code", None) for holder in holders]
    return next((code for code in codes if isinstance(code, int)), None)
