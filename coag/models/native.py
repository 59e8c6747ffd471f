"""Offering a model the actions as tools, and taking what it calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from autogen_core.models import CreateResult
from autogen_core.tools import ParametersSchema, ToolSchema

from coag._util.timeouts import in_time
from coag.errors import ModelCallError, error_type
from coag.schema import (
    ActionSpec,
    ModelCall,
    Prompt,
    PromptMessage,
    Rung,
    TokenUsage,
    let_others_run,
)

from .messages import Brought, as_sent, brought, one_system_message, storable, to_autogen
from .parsing import calls_in_text, repeats
from .providers import limit_arguments
from .request import (
    EMPTY_ANSWER,
    Asker,
    AskSettings,
    CallContext,
    Heard,
    call_error,
    listening,
    reason_of,
    usage_of,
)

# ---- Showing a text while it is written, unless it turns out to be tool calls ----


class Release:
    """Passes on pieces of a text, unless it begins like tool calls that are written as text."""

    def __init__(self, passed_on: Callable[[str], None], names: Collection[str]) -> None:
        self._pass_on = passed_on
        self._names = names
        self._held: list[str] = []
        self._open = False
        self._blank = True

    def take(self, piece: str) -> None:
        """Passes the piece on, or keeps it until it is known what the text is."""
        if self._open:
            self._pass_on(piece)
            return
        self._held.append(piece)
        begun = piece.lstrip() if self._blank else ""
        if begun:
            self._blank = False
            if begun[0] not in "{[<`":
                self.release()

    def release(self) -> None:
        """It is a text: everything that was kept goes out."""
        self._open = True
        for piece in self._held:
            self._pass_on(piece)
        self._held.clear()

    def end(self, text: str) -> None:
        """The text is whole."""
        if not self._open and not calls_in_text(text, self._names):
            self.release()


# ---- Reading a streamed answer: bounded, and never without a pause for everybody else ----


ANSWER_CHARACTERS = 200_000
"""Characters of an answer in text that are kept, and shown."""
EMPTY_PIECES = 100_000
"""Pieces without a letter that a stream may have; servers send some to show that they live."""
_AFTER = 32
"""Pieces after the result that are waited for."""


async def streamed(
    stream: AsyncGenerator[str | CreateResult], release: Release
) -> CreateResult | None:
    """The whole answer; None if the stream ended without one.

    A text that grows beyond `ANSWER_CHARACTERS` is cut there, and the stream is left: the
    result says so (`length`) and has no usage, since the client could not tell it any more.
    So is a stream of more than `EMPTY_PIECES` that say nothing.
    """
    heard: list[str] = []
    room = ANSWER_CHARACTERS
    number, after, empty = 0, 0, 0
    result: CreateResult | None = None
    async with aclosing(stream):
        async for part in stream:
            number += 1
            await let_others_run(number)
            if result is not None:  # let the client come to its end: it may count or cache there
                after += 1
                if after > _AFTER:
                    break
                continue
            if not isinstance(part, str):
                result = part
                continue
            if piece := storable(part)[:room]:
                heard.append(piece)
                room -= len(piece)
                release.take(piece)
            empty += not part
            if len(part) > len(piece) or empty > EMPTY_PIECES:
                return _cut("".join(heard), release)
    return None if result is None else _whole(result, heard, release)


def _whole(result: CreateResult, heard: list[str], release: Release) -> CreateResult:
    """The result; where a client loses the only piece of its stream, the piece.

    What came as the result may be anything at all; it is looked at later.
    """
    content: object = getattr(result, "content", None)
    if isinstance(result, CreateResult) and not content and heard:  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
        content = "".join(heard)
        result = result.model_copy(update={"content": content})
    if isinstance(content, str):
        release.end(content)
    return result


def _cut(text: str, release: Release) -> CreateResult:
    release.end(text)
    # Not validated, because its usage is missing: an estimate takes its place.
    return CreateResult.model_construct(
        finish_reason="length", content=text, usage=None, cached=False, thought=None, logprobs=None
    )


# ---- Offering a model tools, and reading its answer as proposals: nothing is run here ----


CALLS = 16
"""Tool calls of one answer that are kept."""
_ID = 200
"""Characters of a call's id that are kept."""
_DEFAULTS = AskSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """A tool call as the model wrote it."""

    name: str
    arguments: str
    """As it came: ought to be a JSON object."""
    id: str = ""
    """The model's own id of the call; empty where it gave none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What a model answered when tools were offered: calls, or a text; neither if unusable."""

    calls: tuple[ToolRequest, ...] = ()
    text: str = ""
    thought: str = ""
    """The model's own thought, where its client tells one apart; or the text beside calls."""
    repaired: bool = False
    """True if the calls had been written as text."""
    dropped: int = 0
    """Calls beyond `CALLS`."""
    records: tuple[ModelCall, ...] = ()
    """Every request that was made, in order."""

    @property
    def usable(self) -> bool:
        """True if there is anything to propose."""
        return bool(self.calls or self.text)

    @property
    def usage(self) -> TokenUsage:
        """What all requests used together."""
        return usage_of(self.records)


@dataclass(slots=True, kw_only=True)
class _Offer:
    """One offer as it is made, again if it must be, and written down."""

    asker: Asker
    prompt: Prompt
    tools: Sequence[ActionSpec]
    context: CallContext
    settings: AskSettings
    on_chunk: Callable[[str], None] | None
    written: frozenset[str]
    """Names of the actions that the model calls in text, since it cannot call tools."""
    records: list[ModelCall] = field(default_factory=list[ModelCall])

    async def make(self, attempt: int) -> Offered:
        prompt = self._prompt(attempt)
        at, begun = self.context.clock.now(), self.context.clock.monotonic()
        with listening() as heard:
            try:
                result = await in_time(self.settings.timeout, lambda: self._create(prompt))
            except BaseException as error:  # written down whatever it is, and raised again
                cancelled = isinstance(error, asyncio.CancelledError)
                reason = "cancelled" if cancelled else _reason(error)
                kind = None if cancelled else error_type(error)
                usage = heard.usage()
                self._record(prompt, attempt, at, begun, usage, error=reason, error_type=kind)
                if isinstance(error, Exception):
                    raise call_error(self.asker.name, error) from error
                raise
        got = brought(result, as_sent(prompt))
        offered = _read(got, self.written, self.prompt)
        self._take(prompt, attempt, at, begun, heard, got, offered)
        return offered

    def _prompt(self, attempt: int) -> Prompt:
        if attempt == 1:
            return self.prompt
        return (*self.prompt, PromptMessage(role="user", content=EMPTY_ANSWER))

    async def _create(self, prompt: Prompt) -> CreateResult:
        client, messages = self.asker.client, to_autogen(prompt, vision=self.asker.vision)
        extra = limit_arguments(client, self.asker.limit_name, self.settings.max_tokens)
        tools = [_schema(tool) for tool in self.tools]
        if self.on_chunk is None:
            return await client.create(messages, tools=tools, extra_create_args=extra)
        release = Release(self.on_chunk, self.written)
        stream = client.create_stream(messages, tools=tools, extra_create_args=extra)
        result = await streamed(stream, release)
        if result is None:
            raise ModelCallError(self.asker.name, "the stream ended without a result")
        return result

    def _take(
        self,
        prompt: Prompt,
        attempt: int,
        at: datetime,
        begun: float,
        heard: Heard,
        got: Brought,
        offered: Offered,
    ) -> None:
        problem = None if offered.usable else got.fault or "The answer was empty."
        self._record(
            prompt,
            attempt,
            at,
            begun,
            heard.usage(got.usage),
            usage_estimated=got.usage_estimated,
            raw=offered.text or offered.thought,
            tool_calls=tuple(map(_told, offered.calls)),
            finish_reason=got.finish_reason,
            repaired=offered.repaired,
            error=problem,
        )

    def _record(
        self,
        prompt: Prompt,
        attempt: int,
        at: datetime,
        begun: float,
        usage: TokenUsage,
        **outcome: Any,
    ) -> None:
        call = ModelCall.model_validate(
            {
                "id": self.context.ids("call"),
                "at": at,
                "cycle": self.context.cycle,
                "phase": self.context.phase,
                "model": self.asker.name,
                "rung": Rung.NATIVE,
                "attempt": attempt,
                "messages": as_sent(prompt),
                "tools": tuple(tool.name for tool in self.tools),
                "usage": usage,
                "seconds": self.context.clock.monotonic() - begun,
                "raw": "",
                **outcome,
            }
        )
        self.records.append(call)
        self.context.on_call(call)


async def offer_tools(
    asker: Asker,
    prompt: Prompt,
    tools: Sequence[ActionSpec],
    *,
    context: CallContext | None = None,
    settings: AskSettings = _DEFAULTS,
    on_chunk: Callable[[str], None] | None = None,
    written: Collection[str] = (),
) -> Offered:
    """Asks a model that is offered tools; it calls some, or answers in text.

    A text is a call only where the model cannot call tools, if it is nothing but the call and
    repeats nothing that it was shown: a model that quotes a file with a call in it asks for
    nothing. An empty answer is asked for again.

    Args:
        asker: Whom to ask.
        prompt: What to ask; its system messages are sent as one, at the front.
        tools: What may be called. None for a model that knows no tools.
        context: Who asks and who is told of each call.
        settings: The bounds of this question.
        on_chunk: Streams, and is told each piece of a text as it comes.
        written: For a model that cannot call tools, the names of the actions it may call in text.

    Raises:
        ModelCallError: The model could not be asked.
    """
    offer = _Offer(
        asker=asker,
        prompt=one_system_message(prompt),
        tools=tools,
        context=context or CallContext(),
        settings=settings,
        on_chunk=on_chunk,
        written=frozenset(written),
    )
    offered = Offered()
    for attempt in range(1, settings.reasks + 2):
        offered = await offer.make(attempt)
        if offered.usable:
            break
    return Offered(
        calls=offered.calls,
        text=offered.text,
        thought=offered.thought,
        repaired=offered.repaired,
        dropped=offered.dropped,
        records=tuple(offer.records),
    )


def _read(got: Brought, names: Collection[str], shown: Prompt) -> Offered:
    content, thought = got.content, got.thought
    if isinstance(content, str):
        text = content[:ANSWER_CHARACTERS] if content[:ANSWER_CHARACTERS].strip() else ""
        written = calls_in_text(content, names)
        if not written or repeats(content, (message.content for message in shown)):
            return Offered(text=text, thought=thought)
        calls = tuple(ToolRequest(name=name, arguments=given) for name, given in written)
        return Offered(calls=calls[:CALLS], repaired=True, dropped=max(0, len(calls) - CALLS))
    calls = tuple(
        ToolRequest(
            name=storable(call.name[:ANSWER_CHARACTERS]),
            arguments=storable((call.arguments or "")[:ANSWER_CHARACTERS]),
            id=storable((call.id or "")[:_ID]),
        )
        for call in content
    )
    return Offered(calls=calls[:CALLS], thought=thought, dropped=max(0, len(calls) - CALLS))


def _told(call: ToolRequest) -> dict[str, str]:
    named = {"id": call.id} if call.id else {}
    return {**named, "name": call.name, "arguments": call.arguments}


def _schema(tool: ActionSpec) -> ToolSchema:
    parameters = {"type": "object", "properties": dict[str, Any](), **tool.parameters}
    return ToolSchema(
        name=tool.name,
        description=tool.description,
        parameters=cast("ParametersSchema", parameters),
        strict=False,
    )


def _reason(error: BaseException) -> str:
    return reason_of(error) if isinstance(error, Exception) else type(error).__name__
