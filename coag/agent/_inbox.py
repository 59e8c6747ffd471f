"""AutoGen's messages as percepts."""

from __future__ import annotations

from collections.abc import Sequence

from autogen_agentchat.messages import BaseChatMessage, HandoffMessage
from autogen_core.models import AssistantMessage, UserMessage

from coag.schema import Clock, CountingIds, Percept, PerceptKind, Trust, well_formed

MESSAGE_CHARACTERS = 20_000
"""Characters of one message that working memory keeps; the prompt shows less."""


def message_percepts(
    messages: Sequence[BaseChatMessage], clock: Clock, ids: CountingIds
) -> list[Percept]:
    """Each message as a percept: `user`'s words with the user's trust, all others untrusted.

    What a handoff carries along comes before it, and is trusted no more than whoever handed it
    over: a stranger may carry words "of the user" that the user never said.
    """
    percepts: list[Percept] = []
    for message in messages:
        trust = _trust(message.source)
        if isinstance(message, HandoffMessage):
            percepts += [
                _percept(carried.source, _text(carried), _carried(carried, trust), clock, ids)
                for carried in message.context
                if isinstance(carried, UserMessage | AssistantMessage)
            ]
        percepts.append(_percept(message.source, message.to_model_text(), trust, clock, ids))
    return percepts


def _trust(source: str) -> Trust:
    return Trust.USER if source == "user" else Trust.UNTRUSTED


def _carried(message: UserMessage | AssistantMessage, sender: Trust) -> Trust:
    """The trust of a carried message: never above its sender's."""
    return _trust(message.source) if sender is Trust.USER else sender


def _text(message: UserMessage | AssistantMessage) -> str:
    return message.content if isinstance(message.content, str) else "[tool calls or images]"


def _percept(source: str, text: str, trust: Trust, clock: Clock, ids: CountingIds) -> Percept:
    return Percept(
        id=ids("percept"),
        at=clock.now(),
        kind=PerceptKind.MESSAGE,
        source=source,
        trust=trust,
        content=well_formed(text[:MESSAGE_CHARACTERS]),
    )
