"""Offering a model the actions as tools, and taking what it calls."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult
from autogen_core.tools import ParametersSchema, ToolSchema

from coag._util.timeouts import in_time, let_others_run
from coag.errors import ModelCallError
from coag.schema import (
    ActionSpec,
    ModelCall,
    OutputMode,
    Prompt,
    PromptMessage,
    TokenUsage,
)

from .call_record import CallContext, CallRecord, call_error
from .messages import (
    NormalizedResponse,
    as_sent,
    normalize_response,
    one_system_message,
    sent_call,
    storable,
    to_autogen,
)
from .parsing import calls_in_text, repeats
from .providers import limit_arguments
from .request import EMPTY_ANSWER, AskSettings, StructuredModel
from .usage import usage_of

# ---- Showing a text while it is written, unless it turns out to be tool calls ----


class TextRelease:
    """Passes on pieces of a text, but holds back what begins like tool calls written as text."""

    def __init__(self, passed_on: Callable[[str], None], names: Collection[str]) -> None:
        self._pass_on = passed_on
        self._names = names
        self._held: list[str] = []
        self._open = False
        self._blank = True

    def take(self, piece: str) -> None:
        """Passes the piece on, or holds it until it is known what the text is."""
        if self._open:
            self._pass_on(piece)
            return
        self._held.append(piece)
        beginning = piece.lstrip() if self._blank else ""
        if beginning:
            self._blank = False
            if beginning[0] not in "{[<`":
                self.release()

    def release(self) -> None:
        """It is a text: everything that was held is passed on."""
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
    stream: AsyncGenerator[str | CreateResult], release: TextRelease
) -> CreateResult | None:
    """The whole answer; None if the stream ended without one.

    A text that grows beyond `ANSWER_CHARACTERS` is cut there, and the stream is left: the
    result says so (`length`) and has no usage, since the client could not report it any more.
    So is a stream of more than `EMPTY_PIECES` that say nothing.
    """
    pieces: list[str] = []
    room = ANSWER_CHARACTERS
    number, after, empty = 0, 0, 0
    result: CreateResult | None = None
    async with aclosing(stream):
        async for part in stream:
            number += 1
            await let_others_run(number)
            if result is not None:  # let the client finish: it may count or cache there
                after += 1
                if after > _AFTER:
                    break
                continue
            if not isinstance(part, str):
                result = part
                continue
            if piece := storable(part)[:room]:
                pieces.append(piece)
                room -= len(piece)
                release.take(piece)
            empty += not part
            if len(part) > len(piece) or empty > EMPTY_PIECES:
                return _cut("".join(pieces), release)
    # What came as the result may be anything at all; it is looked at later. Some clients lose the
    # only piece of their stream.
    content: object = getattr(result, "content", None)
    if isinstance(result, CreateResult) and not content and pieces:
        content = "".join(pieces)
        result = result.model_copy(update={"content": content})
    if isinstance(content, str):
        release.end(content)
    return result


def _cut(text: str, release: TextRelease) -> CreateResult:
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
CALL_AS_TEXT = (
    "The model {name!r} answered with a text that is a call of a tool. It was taken as a text, and "
    'nothing was run. If it means to call tools, set "function_calling": False in its client\'s '
    "model_info; `coag doctor` tries what a model server can do."
)
"""The warning where a model that is said to call tools writes a call as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a model answered when tools were offered: calls, or a text; neither if unusable."""

    calls: tuple[FunctionCall, ...] = ()
    """As the model wrote them; a call has an empty id where it gave none."""
    text: str = ""
    thought: str = ""
    """The model's own thought, where its client separates it; or the text beside calls."""
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


async def offer_tools(
    model: StructuredModel,
    prompt: Prompt,
    tools: Sequence[ActionSpec],
    *,
    context: CallContext | None = None,
    settings: AskSettings = _DEFAULTS,
    on_chunk: Callable[[str], None] | None = None,
    written: Collection[str] = (),
) -> ToolAnswer:
    """Asks a model that is offered tools; it calls some, or answers in text.

    A text is a call only where the model cannot call tools, if it is nothing but the call and
    repeats nothing that it was shown: a model that quotes a file with a call in it asks for
    nothing. One that is said to call tools, and writes a call as text, brings a warning. An empty
    answer is asked for again.

    Args:
        model: Whom to ask.
        prompt: What to ask; its system messages are sent as one, at the front.
        tools: What may be called. None for a model that knows no tools.
        context: Who asks and who is notified of each call.
        settings: The bounds of this question.
        on_chunk: Streams, and gets each piece of a text as it comes.
        written: For a model that cannot call tools, the names of the actions it may call in text.

    Raises:
        ModelCallError: The model could not be asked.
    """
    records: list[ModelCall] = []
    offer = _Offer(
        model=model,
        prompt=one_system_message(prompt),
        tools=tools,
        context=(context or CallContext()).collecting(records),
        settings=settings,
        on_chunk=on_chunk,
        names=frozenset(written),
    )
    answer = ToolAnswer()
    for attempt in range(1, settings.reasks + 2):
        answer = await offer.make(attempt)
        if answer.usable:
            break
    offered = [tool.name for tool in tools]
    if calls_in_text(answer.text, offered) and not quoted(answer.text, prompt):
        warnings.warn(CALL_AS_TEXT.format(name=model.name), stacklevel=2)
    return replace(answer, records=tuple(records))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offer:
    """The arguments of `offer_tools`, for each of its requests."""

    model: StructuredModel
    prompt: Prompt
    tools: Sequence[ActionSpec]
    context: CallContext
    settings: AskSettings
    on_chunk: Callable[[str], None] | None
    names: frozenset[str]

    async def make(self, attempt: int) -> ToolAnswer:
        """One request, recorded whatever becomes of it."""
        again = (PromptMessage(role="user", content=EMPTY_ANSWER),) if attempt > 1 else ()
        sent = (*self.prompt, *again)
        record = CallRecord(
            as_sent(sent),
            model=lambda: self.model.name,
            context=self.context,
            mode=OutputMode.NATIVE,
            tools=tuple(tool.name for tool in self.tools),
            attempt=attempt,
        )
        try:
            with record.failing() as usage:
                result = await in_time(self.settings.timeout, partial(self._send, sent))
        except Exception as error:  # clients may raise anything; it is recorded
            raise call_error(self.model.name, error) from error
        response = normalize_response(result, record.sent)
        answer = _read(response, self.names, self.prompt)
        calls = [
            {key: value for key, value in sent_call(call).items() if value or key != "id"}
            for call in answer.calls
        ]
        record.write(
            usage.usage(response.usage),
            usage_estimated=response.usage_estimated,
            raw=answer.text or answer.thought,
            tool_calls=tuple(calls),
            finish_reason=response.finish_reason,
            repaired=answer.repaired,
            error=None if answer.usable else response.fault or "The answer was empty.",
        )
        return answer

    async def _send(self, prompt: Prompt) -> CreateResult:
        model = self.model
        tools = [
            ToolSchema(
                name=tool.name,
                description=tool.description,
                parameters=cast(
                    "ParametersSchema", {"type": "object", "properties": {}, **tool.parameters}
                ),
                strict=False,
            )
            for tool in self.tools
        ]
        messages = to_autogen(prompt, vision=model.vision)
        extra = limit_arguments(model.client, model.limit_name, self.settings.max_tokens)
        if self.on_chunk is None:
            return await model.client.create(messages, tools=tools, extra_create_args=extra)
        stream = model.client.create_stream(messages, tools=tools, extra_create_args=extra)
        result = await streamed(stream, TextRelease(self.on_chunk, self.names))
        if result is None:
            raise ModelCallError(model.name, "the stream ended without a result")
        return result


def quoted(text: str, prompt: Prompt) -> bool:
    """Whether a call in a text repeats one that the model was shown."""
    return repeats(text, (message.content for message in prompt))


def _read(response: NormalizedResponse, names: Collection[str], prompt: Prompt) -> ToolAnswer:
    content, thought = response.content, response.thought
    as_text = isinstance(content, str)
    if isinstance(content, str):
        text = content[:ANSWER_CHARACTERS]
        written = calls_in_text(content, names)
        if not written or quoted(content, prompt):
            return ToolAnswer(text=text if text.strip() else "", thought=thought)
        calls = [FunctionCall(id="", name=name, arguments=given) for name, given in written]
    else:
        calls = [
            FunctionCall(
                name=storable(call.name[:ANSWER_CHARACTERS]),
                arguments=storable((call.arguments or "")[:ANSWER_CHARACTERS]),
                id=storable((call.id or "")[:_ID]),
            )
            for call in content
        ]
    return ToolAnswer(
        calls=tuple(calls[:CALLS]),
        thought="" if as_text else thought,
        repaired=as_text,
        dropped=max(0, len(calls) - CALLS),
    )
