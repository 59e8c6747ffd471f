"""Messages that arrive: each is taken in once, as percepts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, MultiModalMessage
from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    UserMessage,
)

from coag._util.text import well_formed
from coag.context import CoagContext, named_images
from coag.schema import Clock, CountingIds, Percept, PerceptKind, Trust

# ---- A turn that is retried with the same messages adds none of them twice ----


class MessageDeduplicator:
    """What was taken in of the turn that failed last.

    A repetition of it at the head of the next messages is not new: the whole of it or its end,
    once or several times (a team repeats what it got no answer to, and then the same task again).
    In another order messages are new: after "Delete it." and "No, stop.", "Delete it." is a third
    message.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._repeated: list[str] = []

    def new(self, messages: Sequence[BaseChatMessage]) -> list[BaseChatMessage]:
        """The messages after those that only repeat what was taken in last."""
        keys = [_identity(message) for message in messages]
        repeated = 0
        while length := self._overlap(keys[repeated:]):
            repeated += length
        self._repeated = keys[:repeated]
        if repeated:
            self._last = self._repeated.copy()
        return list(messages[repeated:])

    def note(self, message: BaseChatMessage) -> None:
        """One of the new messages was taken in; the turn that failed before is not the last."""
        self._repeated.append(_identity(message))
        self._last = self._repeated.copy()

    def forget(self) -> None:
        """All was answered: every message from now on is new."""
        self._last, self._repeated = [], []

    def _overlap(self, keys: Sequence[str]) -> int:
        """How many of the first ones are the last ones that were taken in."""
        longest = min(len(keys), len(self._last))
        return next((n for n in range(longest, 0, -1) if self._last[-n:] == keys[:n]), 0)


def _identity(message: BaseChatMessage) -> str:
    """The same for messages of the same kind, sender and content."""
    plain = message.model_dump(
        mode="json", exclude={"id", "created_at", "metadata", "models_usage"}
    )
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


class Inbox:
    """The messages of a turn: each is passed on and perceived once."""

    def __init__(
        self, context: CoagContext[Any], pass_on: Callable[[BaseChatMessage], Awaitable[None]]
    ) -> None:
        self._context = context
        self._pass_on = pass_on
        self._perceived = MessageDeduplicator()
        self._passed_on = MessageDeduplicator()
        self._waiting: dict[str, BaseChatMessage] = {}
        """The messages that are not taken in yet, by the id of their last percept."""

    async def receive(self, messages: Sequence[BaseChatMessage]) -> list[Percept]:
        """Passes new messages on, and gives their percepts, those of a retry once."""
        for message in self._passed_on.new(messages):
            await self._pass_on(message)
            self._passed_on.note(message)
        percepts: list[Percept] = []
        self._waiting = {}
        for message in self._perceived.new(messages):
            whole = not (percepts or self._context.working_memory.goal_open)  # a task is never cut
            fitting = str if whole else self._context.fitting
            percepts += message_percepts(message, self._context.clock, self._context.ids, fitting)
            self._waiting[percepts[-1].id] = message
        return percepts

    def taken_in(self, percept: Percept) -> None:
        """A percept is in the trace; with its last one, a message is taken in."""
        if message := self._waiting.pop(percept.id, None):
            self._perceived.note(message)

    def forget(self) -> None:
        """The turn was answered: every message from now on is new."""
        self._perceived.forget()
        self._passed_on.forget()


# ---- AutoGen's messages as percepts ----


TOO_LARGE = "[an image was too large and is left out]"


def message_percepts(
    message: BaseChatMessage,
    clock: Clock,
    ids: CountingIds,
    fitting: Callable[[str], str] = lambda text: text,
) -> list[Percept]:
    """A message as percepts: `user`'s words with the user's trust, all others untrusted.

    What a handoff carries along comes before it, and is trusted no more than its sender: a
    stranger may carry words "of the user" that the user never said.
    """
    text, images = message.to_model_text(), dict[str, str]()
    if isinstance(message, MultiModalMessage):
        uris = dict.fromkeys(part.data_uri for part in message.content if isinstance(part, Image))
        images = named_images([*uris])
        text = "\n".join([text, *[TOO_LARGE] * (len(uris) - len(images))])
    entries = [(message.source, text, images)]
    if isinstance(message, HandoffMessage):
        carried = [one for part in message.context for one in _carried_texts(part)]
        entries = [*((source, text, dict[str, str]()) for source, text in carried), *entries]
    by_user = message.source == "user"
    return [
        Percept(
            id=ids("percept"),
            at=clock.now(),
            kind=PerceptKind.MESSAGE,
            source=source,
            trust=Trust.USER if by_user and source == "user" else Trust.UNTRUSTED,
            content=well_formed(fitting(text)),
            images=images,
        )
        for source, text, images in entries
    ]


def _carried_texts(message: LLMMessage) -> Iterator[tuple[str, str]]:
    """Who said what in a carried message; what tools were called with and what they returned."""
    match message:
        case UserMessage() | AssistantMessage():
            content = message.content
            parts = [content] if isinstance(content, str) else content
            yield message.source, "\n".join(map(_part, parts))
        case FunctionExecutionResultMessage():
            for result in message.content:
                failed = " (failed)" if result.is_error else ""
                yield result.name, f"{result.name} returned{failed}: {result.content}"
        case _:
            return  # system messages are another agent's instructions


def _part(part: str | Image | FunctionCall) -> str:
    if isinstance(part, FunctionCall):
        return f"called {part.name} with {part.arguments}"
    return part if isinstance(part, str) else "[image]"
