"""`ProbeClient`: the client that is examined, asked within limits, with timing and usage."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from autogen_core import ComponentModel, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from autogen_core.tools import ToolSchema
from pydantic import BaseModel

from coag.models import (
    capture_usage,
    form_arguments,
    is_refusal,
    limit_arguments,
    limit_name_of,
    reason_of,
)
from coag.schema import OutputMode, TokenUsage

from .findings import Grade, Probe, ProbeFinding, ProbeLimits, ProbeOutcome, finding

ToolChoice: TypeAlias = Literal["auto", "required", "none"]

AGAIN = "Ask again when the server is less busy, or raise --seconds."
"""Advice where an answer came too late."""

_ENDLESS = 4
"""A stream is ended after this many times the pieces that its token limit allows."""
_REASON = 300
"""Characters of an error that are shown."""


@dataclass(slots=True, kw_only=True)
class Reply:
    """What one request brought."""

    text: str = ""
    thought: str = ""
    """What the model thought aloud, where the server separates it."""
    calls: tuple[FunctionCall, ...] = ()
    finish: str = ""
    """AutoGen's `finish_reason`; empty if no answer came."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    seconds: float = 0.0
    first_piece: float | None = None
    """Seconds until the first piece of a stream; None if none came."""
    pieces: int = 0
    endless: bool = False
    """Whether a stream was ended because it went far beyond its limit."""
    error: str | None = None
    """Why no answer came, in one line without keys."""
    refused: bool = False
    """Whether client or server said that it does not do this, or not in this form."""
    late: bool = False
    """Whether the request was given up because its time was over."""

    @property
    def outcome(self) -> ProbeOutcome:
        """What an error means for the probe."""
        if self.late:
            return ProbeOutcome.LATE
        return ProbeOutcome.REFUSED if self.refused else ProbeOutcome.FAILED

    def unanswered(self, probe: Probe, what: str, advice: str) -> ProbeFinding:
        """The finding of a probe that brought an error; a late answer says nothing of the form."""
        verb = "is refused" if self.refused else "got no answer" if self.late else "fails"
        return finding(
            probe,
            self.outcome,
            f"{what} {verb}: {self.error}.",
            AGAIN if self.late else advice,
            grade=Grade.UNKNOWN if self.late else Grade.POOR,
        )

    def take(self, result: CreateResult) -> None:
        """Takes over what a result says."""
        # A careless client may bring None against its type: `or` makes that an empty answer.
        content = result.content or self.text
        self.text = content if isinstance(content, str) else ""
        self.calls = () if isinstance(content, str) else tuple(content)
        self.thought = result.thought or ""
        self.finish = result.finish_reason


class ProbeClient:
    """A model server as agents meet it: through an AutoGen client."""

    def __init__(self, client: ChatCompletionClient, limits: ProbeLimits) -> None:
        self.client = client
        self.limits = limits
        self.usage = TokenUsage()
        self.findings: dict[Probe, ProbeFinding] = {}
        """What was found so far."""
        self._limit_name = limit_name_of(client)

    def found(self, probe: Probe) -> ProbeOutcome:
        """What an earlier probe found."""
        return self.findings[probe].found

    async def ask(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[ToolSchema] = (),
        tool_choice: ToolChoice = "auto",
        mode: OutputMode = OutputMode.TEXT,
        form: type[BaseModel] | None = None,
        client: ChatCompletionClient | None = None,
    ) -> Reply:
        """Asks for a whole answer."""
        target = client or self.client
        json_output, extra = (None, {}) if form is None else form_arguments(target, mode, form)
        extra |= limit_arguments(target, self._limit_name, self.limits.max_tokens)
        reply = Reply()
        with capture_usage() as captured, self._timed(reply, captured.usage):
            async with asyncio.timeout(self.limits.seconds):
                result = await target.create(
                    messages,
                    tools=tools,
                    tool_choice=tool_choice,
                    json_output=json_output,
                    extra_create_args=extra,
                )
            reply.take(result)
            reply.usage = captured.usage(result.usage)
        return reply

    async def stream(self, messages: Sequence[LLMMessage], max_tokens: int) -> Reply:
        """Asks for an answer in pieces, with its usage where the client can ask for that."""
        # Only OpenAI-like clients must ask for usage in a stream, and take this argument.
        asks = "include_usage" in inspect.signature(self.client.create_stream).parameters
        extra: dict[str, Any] = {"stream_options": {"include_usage": True}} if asks else {}
        extra |= limit_arguments(self.client, self._limit_name, max_tokens)
        parts = self.client.create_stream(messages, extra_create_args=extra)
        reply, started = Reply(), time.monotonic()
        with self._timed(reply, lambda: TokenUsage(calls=1)):
            async with asyncio.timeout(self.limits.seconds), aclosing(parts):
                async for part in parts:
                    if isinstance(part, CreateResult):
                        reply.take(part)
                        reply.usage = TokenUsage(
                            prompt_tokens=part.usage.prompt_tokens,
                            completion_tokens=part.usage.completion_tokens,
                            calls=1,
                        )
                        continue
                    reply.pieces += 1
                    reply.text += part
                    reply.first_piece = reply.first_piece or time.monotonic() - started
                    if reply.pieces > max_tokens * _ENDLESS:
                        reply.endless = True
                        break
        if not reply.finish and not reply.pieces and reply.error is None:
            reply.error = "the stream ended without a result"
        return reply

    @contextmanager
    def _timed(self, reply: Reply, usage: Callable[[], TokenUsage]) -> Generator[None]:
        """Times a request and counts its usage; an error becomes part of the reply."""
        started = time.monotonic()
        try:
            yield
        except Exception as error:
            # The one guard of requests: a client may raise anything, and that it does is what
            # is looked for here.
            reply.late = isinstance(error, TimeoutError)
            late = f"no answer within {self.limits.seconds:g} s"
            reply.error = (late if reply.late else reason_of(error))[:_REASON]
            reply.refused = not reply.late and is_refusal(error)
        reply.seconds = time.monotonic() - started
        if not reply.usage.calls:
            reply.usage = usage()
        self.usage += reply.usage


def component_of(client: ChatCompletionClient) -> ComponentModel | None:
    """The client as a component; None if it is no component that can say so."""
    try:
        return client.dump_component()
    except (NotImplementedError, AttributeError, TypeError, ValueError):
        return None


def claiming(client: ChatCompletionClient, **abilities: bool) -> ChatCompletionClient | None:
    """A client of the same server with other claims in its `model_info`; None if none can be made.

    AutoGen's clients refuse or change requests by what they claim, which hides the server.
    """
    component = component_of(client)
    if component is None or "model_info" not in component.config:
        return None
    claims: Mapping[str, Any] = {**client.model_info, **abilities}
    config = {**component.config, "model_info": claims}
    return ChatCompletionClient.load_component(component.model_copy(update={"config": config}))
