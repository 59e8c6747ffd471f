"""Who says what of that which an agent of the Agent Framework is shown.

Other agents' words come as `assistant`, as the agent's own do, and their authors' names prove
nothing: two agents may have one name, and a remote one has none. So an agent's own words are known
by hashes of what its model answered and its tools returned. All else that arrives is another's.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from agent_framework import (
    GROUP_ANNOTATION_KEY,
    SUMMARY_OF_MESSAGE_IDS_KEY,
    AgentSession,
    ChatResponse,
    Content,
    InMemoryHistoryProvider,
    Message,
)

from coag.compat import Guard
from coag.schema import Trust

from .guarded_tools import json_of
from .labels import trust_of

_LOG = logging.getLogger(__name__)
_TEXTS = (
    "text", "message", "error_details", "inputs", "commands", "actions", "items", "outputs",
    "output", "stdout", "stderr",
)  # fmt: skip
"""Fields of contents that hold what a reader is shown."""
_TEXT_FILE = re.compile(r"data:(?:text/|application/[^,;]*(?:json|xml|yaml)).*", re.IGNORECASE)
_FILE = "file"
"""Who speaks in a file that the user gives."""
_BEFORE = (
    "What agents said in this session before these rules were in force is taken for the agent's "
    "own, and not heard: {count} texts."
)
Heard = tuple[str, str, Trust]
"""Who speaks, what is said, and how far it is trusted."""


# ---- The dialogue of an agent in a session ----


class _Piece(NamedTuple):
    """A part of what another says."""

    digest: str
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Speaker:
    """An agent in a session, whose own words a guard knows."""

    name: str
    session: AgentSession | None
    apart: str = ""
    """The session, where one guard serves several."""

    def know(self, said: Iterable[Message], guard: Guard) -> None:
        """Keeps what the agent says, so that it is not heard where it comes back."""
        for message in said:
            whole = (text for _, text in _said(message, {}))
            guard.know(map(self._digest, (*whole, *map(words_of, message.contents))))
            guard.know([self._id(message)] if message.message_id else ())

    async def hear(self, messages: Sequence[Message], guard: Guard) -> bool:
        """Takes in what the agent is shown and did not say; whether something was new.

        The user's words are the user's, as far as no context provider shows them. All that another
        says, calls or brings is untrusted.
        """
        tools = _tools_in(messages)
        others = [(one, self._pieces(one, tools)) for one in messages if _is_others(one)]
        own, before = self._own(others, guard)
        pieces = {id(message): texts for message, texts in others}
        said: list[Heard] = []
        unanswered = False
        for message in messages:
            if _is_users(message):
                unanswered = True
                said += _said_by_user(message)
                continue
            foreign = [one for one in pieces.get(id(message), ()) if one.digest not in own]
            said += ((one.source, one.text, Trust.UNTRUSTED) for one in foreign)
            unanswered = unanswered and (message.role != "assistant" or bool(foreign))
        new = await guard.hear(said, unanswered=unanswered, own=sorted(own))
        if before:
            text = _BEFORE.format(count=before)
            _LOG.info("%s: %s", self.name, text)
            guard.note("dialogue", text)
        return new

    def _own(
        self, others: Sequence[tuple[Message, Sequence[_Piece]]], guard: Guard
    ) -> tuple[set[str], int]:
        """Digests of the agent's own words, and how many nobody here has seen it say.

        What a history holds when the guard first meets the session is taken for them. Later, so is
        what stands there by the only author of whom it holds words of the agent: other middleware
        may have changed them.
        """
        own = {one.digest for _, said in others for one in said if guard.knows(one.digest)}
        kept = [(message, said) for message, said in others if _is_provided(message)]
        met, before = self._hashed(""), set[str]()
        if not guard.knows(met):
            before = {one.digest for m, said in kept if self._keeps(m) for one in said} - own
        own |= before
        authors = {
            message.author_name
            for message, said in kept
            if not own.isdisjoint(one.digest for one in said)
            or (message.message_id and guard.knows(self._id(message)))
        }
        if len(authors) == 1 and None not in authors:
            own |= {one.digest for m, said in kept if m.author_name in authors for one in said}
        return own | {met}, len(before)

    def _keeps(self, message: Message) -> bool:
        """Whether the history of this session may hold it, not that of a workflow around it."""
        told: Mapping[str, Any] = message.additional_properties.get("_attribution") or {}
        states: Mapping[str, Any] = {} if self.session is None else self.session.state
        if told.get("source_type") != InMemoryHistoryProvider.__name__:
            return told.get("source_id") in states  # each provider of the agent has a state there
        state: Any = states.get(str(told.get("source_id"))) or {}
        return bool(state.get("messages"))

    def _pieces(self, message: Message, tools: Mapping[str, str]) -> list[_Piece]:
        return [_Piece(self._digest(text), source, text) for source, text in _said(message, tools)]

    def _digest(self, text: str) -> str:
        """What own words are known by, however they are broken into pieces."""
        return self._hashed(f"{self.name}\n{''.join(text.split())}")

    def _id(self, message: Message) -> str:
        return self._hashed(f"{self.name}\nid {message.message_id}")

    def _hashed(self, text: str) -> str:
        said = f"{self.apart}\n{text}".encode(errors="surrogatepass")
        return hashlib.sha256(said).hexdigest()[:32]


async def hear_results(response: ChatResponse[Any], guard: Guard) -> None:
    """Takes in what tools returned that the model's service, or the client, ran for the answer."""
    tools = _tools_in(response.messages)
    results = [
        (one.tool_name or tools.get(one.call_id or "") or "tool", words_of(one), Trust.UNTRUSTED)
        for message in response.messages
        for one in message.contents
        if one.type == "function_result" or one.type.endswith("_tool_result")
    ]
    if results:
        await guard.hear(results, unanswered=False)


# ---- What a message says, and who ----


def _is_provided(message: Message) -> bool:
    """Whether a context provider shows it: a history, or another."""
    return "_attribution" in (message.additional_properties or {})


def _is_users(message: Message) -> bool:
    return message.role == "user" and not _is_provided(message)


def _is_others(message: Message) -> bool:
    """Whether it is neither the user's nor the developer's, nor a summary of older messages."""
    developers = message.role in ("system", "developer") and not message.author_name
    group: object = (message.additional_properties or {}).get(GROUP_ANNOTATION_KEY)
    summary = isinstance(group, Mapping) and SUMMARY_OF_MESSAGE_IDS_KEY in group
    return not (message.role == "user" or developers or summary)


def _said_by_user(message: Message) -> Iterator[Heard]:
    """What the user says, with the addresses he gives; a file's words are not his."""
    links = [link for one in message.contents if (link := _link_of(one))]
    words = "\n".join([message.text, *links]) if links else message.text
    yield message.author_name or "user", words, trust_of(message, unlabelled=Trust.USER)
    for one in message.contents:
        yield _FILE, _file_of(one), Trust.UNTRUSTED


def _said(message: Message, tools: Mapping[str, str]) -> list[tuple[str, str]]:
    """Who says what in another's message: its text, then all else that it holds, piece by piece."""
    said = [(message.author_name or message.role, message.text)]
    for one in message.contents:
        if one.type != "text":
            tool = one.tool_name or tools.get(one.call_id or "") or message.role
            said.append((message.author_name or tool, words_of(one)))
    return [one for one in said if one[1].strip()]


def _tools_in(messages: Iterable[Message]) -> dict[str, str]:
    """Which tools are called, by the ids of their calls."""
    contents = [one for message in messages for one in message.contents if one.call_id]
    return {one.call_id or "": name for one in contents if (name := one.name or one.tool_name)}


def words_of(said: object) -> str:
    """The text in a content of whatever kind, or in several; JSON for arguments of calls."""
    return "\n".join(_words(said))


def _words(said: object) -> Iterator[str]:
    if isinstance(said, str):
        yield from (said,) if said else ()
    elif isinstance(said, Content) and said.type in ("text", "text_reasoning"):
        yield said.text or ""
    elif isinstance(said, Content):
        yield from _words(_link_of(said) or _file_of(said))
        yield from _words(_arguments(said) if said.arguments else None)
        for field in _TEXTS if said.items else (*_TEXTS, "result"):
            if (one := getattr(said, field, None)) is not None:
                yield from _words(one)
    elif isinstance(said, Mapping):
        yield json.dumps(json_of(cast("object", said)), sort_keys=True, default=str)
    elif isinstance(said, Sequence):
        for one in cast("Sequence[object]", said):
            yield from _words(one)


def _arguments(call: Content) -> str:
    """What a tool is called with; empty where that is nothing."""
    given: Any = call.arguments
    try:
        given = json.loads(given) if isinstance(given, str) else json_of(given)
        return json.dumps(given, sort_keys=True, ensure_ascii=False) if given else ""
    except (ValueError, TypeError, RecursionError):
        return str(given)


def _link_of(content: Content) -> str:
    """The address of a picture, page or file; empty where it is a part of the message."""
    address = content.uri or ""
    return "" if address[:5].lower() == "data:" else address


def _file_of(content: Content) -> str:
    """The text of a file that is a part of the message; empty where it is no text."""
    head, _, data = (content.uri or "").partition(";base64,")
    if not data or not _TEXT_FILE.fullmatch(head):
        return ""
    try:
        return base64.b64decode(data).decode(errors="replace")
    except ValueError:
        return ""
