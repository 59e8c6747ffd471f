"""One question as it is asked, again if it must be, and written down."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic

from autogen_core import FunctionCall
from autogen_core.models import LLMMessage

from coag.errors import error_type
from coag.schema import Given, ModelCall, Prompt, PromptMessage, Rung, TokenUsage

from ._brought import Brought, brought
from ._dialogue import sent_call, sent_messages, storable
from ._listen import Heard
from ._messages import as_sent, with_addition
from ._parse import Parsed, Problem, parse_answer
from ._refusals import reason_of
from ._schema import schema_name, schema_text
from ._settings import AskSettings, CallContext, ModelT
from ._wording import correction, echo, form_of_answer


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
