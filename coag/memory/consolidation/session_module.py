"""Sessions of an agent behind the seam: what it perceives is noted, and begins the next session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from coag._util.validation import module_state
from coag.memory.long_term import LongTermMemory
from coag.memory.procedural import ProceduralMemory
from coag.models import StructuredModel
from coag.schema import (
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Provenance,
    Section,
    Situation,
    Trust,
    Value,
)

from .notes import HeardMessage, notes_of
from .perspectives import EventWitness, PerspectiveObserver, WitnessedEvent
from .scope_index import ScopeEntry
from .sessions import SessionEnd, SessionStart, end_session, start_session

_MOST = 1_000
"""Percepts of a session that are kept until its end, the newest."""


class SessionState(Value):
    """What the module keeps between cycles."""

    session: str = Field(min_length=1)
    heard: tuple[HeardMessage, ...] = ()


class SessionModule:
    """Notes what an agent perceives in a session, and shows what earlier sessions left.

    Messages and tool returns wait until the session is ended. Their telling sentences are then its
    events, each trusted as what it was taken from; see `end_session`. A session is whatever the
    host says: a support case, a lesson, an evening of a game.

    Args:
        world: Where events, summaries, threads, scenario and index go.
        session: The name of the session that begins.
        witnesses: Who keeps perspectives and recaps; none for an agent alone.
        model: Who writes; None for rules.
        procedures: Where the prompts may be learned.
        exists: What the domain knows to exist.

    Raises:
        ValueError: The session has no name.
    """

    name = "sessions"

    def __init__(
        self,
        world: LongTermMemory,
        session: str,
        *,
        witnesses: Sequence[EventWitness] = (),
        model: StructuredModel | None = None,
        procedures: ProceduralMemory | None = None,
        exists: Sequence[ScopeEntry] = (),
    ) -> None:
        self.world = world
        self._witnesses = witnesses
        self._model = model
        self._procedures = procedures
        self._exists = exists
        self._state = SessionState(session=session)
        self._start: SessionStart | None = None

    @property
    def session(self) -> str:
        """The name of the present session."""
        return self._state.session

    async def observe(self, event: Percept | Outcome) -> None:
        """Keeps messages and tool returns until the session ends."""
        if isinstance(event, Percept) and event.kind in (
            PerceptKind.MESSAGE,
            PerceptKind.TOOL_RETURN,
        ):
            said = event.kind is PerceptKind.MESSAGE
            heard = HeardMessage(
                text=event.content,
                source=event.source,
                trust=event.trust,
                at=event.at,
                kind="said" if said else "outcome",
                succeeded=not event.is_error,
            )
            kept = (*self._state.heard, heard)[-_MOST:]
            self._state = self._state.model_copy(update={"heard": kept})

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """What earlier sessions left, for Reasoning and Proposal."""
        if phase not in (Phase.REASONING, Phase.PROPOSAL):
            return None
        if self._start is None:
            self._start = await start_session(self.world, self._witnesses)
        text = self._start.render(budget)
        if not text:
            return None
        return Section(
            title="Earlier sessions",
            text=text,
            source=self.name,
            trust=self._start.trust,
            budget=budget,
        )

    async def end(self, then: str) -> SessionEnd:
        """Ends the session, and begins the next one.

        Raises:
            ValueError: The next session has no name, or that of this one.
            RecordStoreError: The store cannot be used; the session is open, and can be ended again.
        """
        if not then.strip() or then == self.session:
            raise ValueError(f"The next session needs a name of its own, not {then!r}.")
        observer = PerspectiveObserver(self.world, model=self._model, procedures=self._procedures)
        for one in self._state.heard:
            events = [
                WitnessedEvent(text=note.text, importance=note.importance, at=one.at)
                for note in notes_of(one)
            ]
            await observer.observe(
                events, self._witnesses, provenance=self._origin(one), session=self.session
            )
        ended = await end_session(
            self.world,
            self.session,
            self._witnesses,
            model=self._model,
            procedures=self._procedures,
            exists=self._exists,
        )
        self._state, self._start = SessionState(session=then), None
        return ended

    def _origin(self, heard: HeardMessage) -> Provenance:
        untrusted = heard.trust is Trust.UNTRUSTED
        return Provenance(
            run="",
            activity=self.session,
            cycle=0,
            source=heard.source,
            source_kind=(
                PerceptKind.MESSAGE if heard.kind == "said" else PerceptKind.TOOL_RETURN
            ).value,
            trust=Trust.UNTRUSTED if untrusted else Trust.USER,
            shown=(heard.source,) if untrusted else (),
        )

    def save_state(self) -> Mapping[str, Any]:
        """The session and its messages."""
        return self._state.model_dump(mode="json")

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues a session.

        Raises:
            StateError: It is none.
        """
        self._state, self._start = module_state(SessionState, state, self.name), None
