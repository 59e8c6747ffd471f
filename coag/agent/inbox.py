"""Messages that arrive: each is taken in once, as percepts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, MultiModalMessage
from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    UserMessage,
)

from coag.context import named_images
from coag.schema import Clock, CountingIds, Percept, PerceptKind, Trust, well_formed

# ---- Who tries a turn again says the same once more; it is not heard twice ----


class Heard:
    """What was taken in of the turn that broke off last.

    A repetition of it at the head of what is said next is not new: the whole of it or its end,
    once or several times (a team says what it had not got an answer to, and then the same task
    again). What comes in another order is said anew: after "Delete it." and "No, stop.", "Delete
    it." is a third message.
    """

    def __init__(self) -> None:
        self._last: list[str] = []
        self._repeated: list[str] = []

    def new(self, messages: Sequence[BaseChatMessage]) -> list[BaseChatMessage]:
        """The messages after those that only repeat what was heard last."""
        said = [_identity(message) for message in messages]
        repeated = 0
        while length := self._overlap(said[repeated:]):
            repeated += length
        self._repeated = said[:repeated]
        if repeated:
            self._last = self._repeated.copy()
        return list(messages[repeated:])

    def note(self, message: BaseChatMessage) -> None:
        """One of the new ones was taken in; the turn that broke off before is not the last."""
        self._repeated.append(_identity(message))
        self._last = self._repeated.copy()

    def forget(self) -> None:
        """All was answered: whatever is said from now on is new."""
        self._last, self._repeated = [], []

    def _overlap(self, said: Sequence[str]) -> int:
        """How many of the first ones are the last ones that were heard."""
        longest = min(len(said), len(self._last))
        return next((n for n in range(longest, 0, -1) if self._last[-n:] == said[:n]), 0)


def _identity(message: BaseChatMessage) -> str:
    """The same for messages of the same kind, sender and content."""
    told = message.model_dump(mode="json", exclude={"id", "created_at", "metadata", "models_usage"})
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


# ---- AutoGen's messages as percepts ----


TOO_LARGE = "[an image was too large and is left out]"


def message_percepts(
    messages: Sequence[BaseChatMessage],
    clock: Clock,
    ids: CountingIds,
    fitting: Callable[[str], str] = lambda text: text,
) -> list[Percept]:
    """Each message as a percept: `user`'s words with the user's trust, all others untrusted.

    What a handoff carries along comes before it, and is trusted no more than whoever handed it
    over: a stranger may carry words "of the user" that the user never said.

    Args:
        messages: What was said.
        clock: Dates the percepts.
        ids: Names them.
        fitting: Cuts a text that no prompt has room for; the text that it is given otherwise.
    """
    percepts: list[Percept] = []
    for message in messages:
        trust = _trust(message.source)
        if isinstance(message, HandoffMessage):
            for carried in message.context:
                percepts += [
                    _percept(source, fitting(text), _carried(source, trust), clock, ids)
                    for source, text in _said(carried)
                ]
        text, images = message.to_model_text(), dict[str, str]()
        if isinstance(message, MultiModalMessage):
            images, left_out = _images(message.content)
            text = "\n".join([text, *([TOO_LARGE] * left_out)])
        percepts.append(_percept(message.source, fitting(text), trust, clock, ids, images))
    return percepts


def _trust(source: str) -> Trust:
    return Trust.USER if source == "user" else Trust.UNTRUSTED


def _carried(source: str, sender: Trust) -> Trust:
    """The trust of a carried message: never above its sender's."""
    return _trust(source) if sender is Trust.USER else sender


def _said(message: LLMMessage) -> Iterator[tuple[str, str]]:
    """Who said what in a carried message; what tools were called with and what they returned."""
    match message:
        case UserMessage():
            yield message.source, _text(message.content)
        case AssistantMessage():
            yield message.source, _text(message.content)
        case FunctionExecutionResultMessage():
            for result in message.content:
                failed = " (failed)" if result.is_error else ""
                yield result.name, f"{result.name} returned{failed}: {result.content}"
        case _:
            return  # system messages are another agent's instructions


def _text(content: str | Sequence[str | Image | FunctionCall]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_part(part) for part in content)


def _part(part: str | Image | FunctionCall) -> str:
    if isinstance(part, FunctionCall):
        return f"called {part.name} with {part.arguments}"
    return part if isinstance(part, str) else "[image]"


def _images(content: Sequence[str | Image]) -> tuple[dict[str, str], int]:
    """The images by hash, as data URIs, and how many were too large."""
    found = [part.data_uri for part in content if isinstance(part, Image)]
    named = named_images(found)
    return named, len(dict.fromkeys(found)) - len(named)


def _percept(
    source: str,
    text: str,
    trust: Trust,
    clock: Clock,
    ids: CountingIds,
    images: Mapping[str, str] | None = None,
) -> Percept:
    return Percept(
        id=ids("percept"),
        at=clock.now(),
        kind=PerceptKind.MESSAGE,
        source=source,
        trust=trust,
        content=well_formed(text),
        images=dict(images or {}),
    )
