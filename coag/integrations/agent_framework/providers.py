"""Our memory and our awareness as context providers of the Agent Framework."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Literal

from agent_framework import (
    AgentSession,
    ContextProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
)

from coag.awareness import Adapter, AwarenessState, DynamicsSettings, EngineSettings
from coag.compat import RECALLED, SITUATION, AutoGenMemory
from coag.compat.awareness import AwarenessMemory
from coag.memory import LongTermMemory
from coag.schema import MemoryKind, Provenance, Trust

from .labels import set_label, trust_of

_LOG = logging.getLogger(__name__)
_KEPT = 20
"""Ids of the last records that a session names."""


class MemoryProvider(ContextProvider):
    """A `LongTermMemory` around a stock agent: `context_providers=[MemoryProvider(memory)]`.

    Before a run, what is recalled for the request is one user message: quoted data that names its
    source and its trust, labelled untrusted unless all of it is trusted. After a run, what was
    said becomes records by the memory's write policy, with the trust that its label allows. A run
    that fails writes nothing.

    `session.state[source_id]` has `turn`, and the ids of the records that were `recalled` and
    `written` last.

    Args:
        memory: Where things are remembered. It is not closed.
        source_id: The name under which messages and state are kept.
        writes: `"user"`: what the user says. `"all"`: what the agent answers, too, as untrusted:
            it may repeat what a tool or a document said. `"nothing"`: only recall.
        scope: Whose memory a session is about, e.g. `lambda s: user_scope(s.state["user"])`; None
            for the memory's own scope.
        k: Records recalled at most.
        min_score: Less similar records are left out; None for the embedder's own minimum.
        budget: Tokens (estimated) that recalled records may take.

    Raises:
        ValueError: `k` or `budget` is less than 1.
    """

    def __init__(
        self,
        memory: LongTermMemory,
        source_id: str = "coag_memory",
        *,
        writes: Literal["user", "all", "nothing"] = "user",
        scope: Callable[[AgentSession], str] | None = None,
        k: int = 5,
        min_score: float | None = None,
        budget: int = 800,
    ) -> None:
        super().__init__(source_id)
        self._memory = memory
        self._writes = writes
        self._scope = scope
        self._options: dict[str, Any] = {"k": k, "min_score": min_score, "budget": budget}
        AutoGenMemory(memory, **self._options)  # checks them

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Recalls for the request, and shows the recalled records.

        Raises:
            RecordStoreError: No memory could be asked.
        """
        request = "\n".join(filter(None, (one.text for one in _said(context))))
        memory = AutoGenMemory(self._for(session), **self._options)
        text, shown = await memory.recalled(request)
        state["recalled"] = [(one.metadata or {}).get("id") for one in shown][:_KEPT]
        if not text:
            return
        trusts = {Trust((one.metadata or {})["trust"]) for one in shown}
        lowest = Trust.UNTRUSTED if Trust.UNTRUSTED in trusts or not trusts else Trust.USER
        context.extend_messages(self, [_shown(RECALLED.quoted(text), lowest)])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Remembers what was said.

        Raises:
            RecordStoreError: The store cannot be reached or refuses.
        """
        turn = state["turn"] = int(state.get("turn", 0)) + 1
        if self._writes == "nothing":
            return
        memory, written = self._for(session), list[str]()
        for message in _said(context):
            trust = trust_of(message, unlabelled=Trust.USER)
            written += await _remember(memory, message, trust, session, turn)
        if self._writes == "all" and context.response is not None:
            for message in context.response.messages:
                if message.role == "assistant":
                    written += await _remember(memory, message, Trust.UNTRUSTED, session, turn)
        state["written"] = written[:_KEPT]

    def _for(self, session: AgentSession) -> LongTermMemory:
        return self._memory if self._scope is None else self._memory.within(self._scope(session))


async def _remember(
    memory: LongTermMemory, message: Message, trust: Trust, session: AgentSession, turn: int
) -> list[str]:
    """The id of the record that a message became; none where it is no record."""
    if not message.text:
        return []
    by = message.author_name or ("user" if message.role == "user" else "agent")
    provenance = Provenance(
        run=session.session_id,
        activity="",
        cycle=turn,
        source=by,
        source_kind="message",
        trust=trust,
    )
    try:
        kept = await memory.remember(
            MemoryKind.EPISODIC, message.text, provenance=provenance, type="message"
        )
    except ValueError as error:  # the write policy refuses it
        _LOG.warning("Not remembered: %s", error)
        return []
    return [kept.record.id]


class AwarenessProvider(ContextProvider):
    """The situation around a stock agent: `context_providers=[AwarenessProvider(adapter)]`.

    Before a run, what was said brings the situation up to date, and the situation is one user
    message, quoted as data. It is kept as JSON in `session.state[source_id]["situation"]`, so
    each session has its own.

    Args:
        adapter: The domain; None for talk (`ConversationAdapter`).
        source_id: The name under which messages and state are kept.
        read: Makes what the adapter takes of a message; None gives `{"message": TEXT}`.
        budget: Tokens (estimated) of the situation.
        settings: How names are recognised and how much is kept.
        dynamics: How the state changes by itself; None for not at all.

    Raises:
        ValueError: The budget is less than 1.
    """

    def __init__(
        self,
        adapter: Adapter | None = None,
        source_id: str = "coag_awareness",
        *,
        read: Callable[[Message], Mapping[str, Any]] | None = None,
        budget: int = 500,
        settings: EngineSettings | None = None,
        dynamics: DynamicsSettings | None = None,
    ) -> None:
        super().__init__(source_id)
        self._read = read
        self._options: dict[str, Any] = {
            "adapter": adapter,
            "budget": budget,
            "settings": settings,
            "dynamics": dynamics,
        }
        AwarenessMemory(**self._options)  # checks them

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Takes in what was said, and shows the situation.

        Raises:
            AwarenessError: The domain cannot read it; the situation is as it was.
        """
        held = state.get("situation")
        before = None if held is None else AwarenessState.model_validate(held)
        situation = AwarenessMemory(**self._options, state=before)
        for message in _said(context):
            if self._read is not None:
                await situation.take(self._read(message))
            elif message.text:
                await situation.take({"message": message.text})
        state["situation"] = situation.state.model_dump(mode="json")
        text = "\n".join(str(one.content) for one in (await situation.query()).results)
        if text:
            context.extend_messages(self, [_shown(SITUATION.quoted(text), Trust.UNTRUSTED)])


def _said(context: SessionContext) -> list[Message]:
    return [message for message in context.input_messages if message.role == "user"]


def _shown(text: str, trust: Trust) -> Message:
    message = Message("user", [text])
    set_label(message, trust)
    for content in message.contents:
        set_label(content, trust)
    return message
