"""Messages of the Agent Framework as AutoGen's, and what an agent of ours shows as its updates."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from agent_framework import AgentResponse, AgentResponseUpdate, Content, Message
from agent_framework.exceptions import AgentInvalidRequestException
from autogen_agentchat.base import Response
from autogen_agentchat.messages import (
    BaseAgentEvent,
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    MultiModalMessage,
    StructuredMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core import Image
from pydantic import BaseModel

from coag.models import token_usage
from coag.schema import TokenUsage, Trust

from .labels import trust_of

Show = Literal["phases", "tools", "answer"]
"""What is shown of a turn: every phase as reasoning, the calls of tools, or the answer only."""

# ---- What arrives ----


@dataclass(frozen=True, slots=True)
class Incoming:
    """What a run was given: messages, and answers to requests for approval."""

    messages: tuple[Message, ...]
    answers: tuple[Content, ...]

    @classmethod
    def of(cls, given: Sequence[Message], agent: str, heard: Iterable[str]) -> Incoming:
        """What of it is new.

        Edges of workflows hand over whole conversations. Left out are the agent's own messages,
        those whose id was heard, and those without an id that were heard and have a message of the
        agent's own behind them: a person may say "yes" twice.
        """
        known, answers, new = set(heard), list[Content](), list[Message]()
        own = [n for n, one in enumerate(given) if _is_own(one, agent, known)]
        last = own[-1] if own else -1
        for number, message in enumerate(given):
            answers += [c for c in message.contents if c.type == "function_approval_response"]
            repeated = key_of(message) in known and (bool(message.message_id) or number < last)
            if number not in own and not repeated and _is_said(message):
                new.append(message)
        return cls(tuple(new), tuple(answers))

    @property
    def keys(self) -> list[str]:
        """What it holds, in hashes that are the same wherever it is read from."""
        given = [f"{one.id}:{one.approved}" for one in self.answers]
        return [*map(digest_of_message, self.messages), *given]


def key_of(message: Message) -> str:
    """The key of a message that was heard: its id, or a hash of it."""
    return message.message_id or digest_of_message(message)


def keys_of(given: Iterable[Message], shown: Iterable[AgentResponseUpdate] = ()) -> list[str]:
    """The keys of a turn's messages: those it was given, and the texts that it gave.

    AG-UI hands over the agent's own messages with ids of its own and without the agent's name.
    """
    texts: dict[str | None, str] = {}
    for one in shown:
        if one.text:
            texts[one.message_id] = texts.get(one.message_id, "") + one.text
    said = [Message("assistant", [text]) for text in texts.values()]
    return [*map(key_of, given), *map(digest_of_message, said)]


def digest_of_message(message: Message) -> str:
    """A hash of who says what."""
    parts = [[c.type, c.text or c.uri or ""] for c in message.contents]
    text = json.dumps([message.role, message.author_name, parts])
    return "#" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _is_own(message: Message, agent: str, known: Collection[str]) -> bool:
    if message.role != "assistant":
        return False
    if message.author_name:
        return message.author_name == agent
    return digest_of_message(message) in known


def _is_said(message: Message) -> bool:
    """Whether it says anything; calls of others' tools and their results are left out."""
    return any(one.text or _media(one) for one in message.contents if one.type != "text_reasoning")


def _media(content: Content) -> str:
    """The media type of a picture or file."""
    return (content.media_type or "") if content.uri else ""


def as_autogen(message: Message, shown_by: str | None = None) -> BaseChatMessage:
    """A message with its pictures. `user`'s words are trusted as a user's, all others are not.

    A user's message that is labelled untrusted counts as another's, and so does what a context
    provider shows (`shown_by`). Pictures at an address are named and not fetched.
    """
    trusted = message.role == "user" and trust_of(message, unlabelled=Trust.USER) is Trust.USER
    trusted = trusted and shown_by is None
    name = shown_by or message.author_name or ("user" if trusted else str(message.role))
    source = "user" if trusted and name == "user" else f"another {name}" if name == "user" else name
    parts: list[str | Image] = []
    for one in message.contents:
        media = _media(one)
        if one.type == "text_reasoning":
            continue
        if media.startswith("image/") and (one.uri or "").startswith("data:"):
            parts.append(_picture(one.uri or ""))
        elif media:
            parts.append(f"[{media}: {one.uri or ''}]"[:500])
        elif one.text:
            parts.append(one.text)
    if any(isinstance(part, Image) for part in parts):
        return MultiModalMessage(content=parts, source=source)
    return TextMessage(content="\n".join(map(str, parts)), source=source)


def _picture(uri: str) -> Image:
    try:
        return Image.from_base64(uri.partition(";base64,")[2])
    except (OSError, ValueError) as error:
        raise AgentInvalidRequestException(
            f"A picture cannot be read ({uri[:40]!r}...): {error}. Nothing was run."
        ) from error


# ---- What is shown ----


@dataclass(slots=True)
class Updates:
    """Makes the updates of one run."""

    agent: str
    agent_id: str
    show: Show
    response_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    usage: TokenUsage = field(default_factory=TokenUsage)
    """What the turn has used so far."""
    _written: set[str] = field(default_factory=set[str])

    def of(self, item: BaseAgentEvent | BaseChatMessage | Response) -> list[AgentResponseUpdate]:
        """The updates that show an event or the answer, the usage last."""
        if isinstance(item, Response):
            return self._answer(item.chat_message)
        self._use(item)
        if isinstance(item, ModelClientStreamingChunkEvent):
            self._written.add(item.full_message_id or "")
            text = Content.from_text(item.content)
            return [self.update([text], message_id=item.full_message_id)]
        if self.show == "answer":
            return []
        if isinstance(item, ToolCallRequestEvent):
            calls = [
                Content.from_function_call(
                    call_id=one.id, name=one.name, arguments=one.arguments, informational_only=True
                )
                for one in item.content
            ]
            return [self.update(calls)]
        if isinstance(item, ToolCallExecutionEvent):
            results = [
                Content.from_function_result(
                    call_id=one.call_id,
                    result=one.content,
                    exception=one.content if one.is_error else None,
                )
                for one in item.content
            ]
            return [self.update(results, role="tool")]
        if isinstance(item, ThoughtEvent) and self.show == "phases":
            return [self.update([Content.from_text_reasoning(text=item.content)])]
        return []

    def said(self, text: str) -> AgentResponseUpdate:
        """An answer that was given before."""
        return self.update([Content.from_text(text)])

    def update(
        self, contents: Sequence[Content], *, role: str = "assistant", message_id: str | None = None
    ) -> AgentResponseUpdate:
        """An update with these contents."""
        return AgentResponseUpdate(
            contents=contents,
            role=role,
            author_name=self.agent,
            agent_id=self.agent_id,
            response_id=self.response_id,
            message_id=message_id or str(uuid.uuid4()),
        )

    def _answer(self, message: BaseChatMessage) -> list[AgentResponseUpdate]:
        self._use(message)
        given: list[AgentResponseUpdate] = []
        if message.id not in self._written:
            given.append(self.update([Content.from_text(_text_of(message))], message_id=message.id))
        spent = Content.from_usage(
            {
                "input_token_count": self.usage.prompt_tokens,
                "output_token_count": self.usage.completion_tokens,
                "total_token_count": self.usage.tokens,
            }
        )
        last = self.update([spent] if self.usage.tokens else [], message_id=message.id)
        last.additional_properties = dict(message.metadata)
        return [*given, last]

    def _use(self, item: BaseAgentEvent | BaseChatMessage) -> None:
        if (used := item.models_usage) is not None:
            self.usage += token_usage(used)


def _text_of(message: BaseChatMessage) -> str:
    if isinstance(message, StructuredMessage):
        return cast("StructuredMessage[BaseModel]", message).content.model_dump_json()
    return message.to_model_text()


def response_of(updates: Sequence[AgentResponseUpdate], form: Any = None) -> AgentResponse[Any]:
    """The whole response; where somebody is asked, only that: a workflow takes nothing else."""
    asking = [one for one in updates if one.user_input_requests]
    return AgentResponse[Any].from_updates(asking or updates, output_format_type=form)
