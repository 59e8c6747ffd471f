"""One agent, many people: whose memory counts now, and when somebody else is served."""

from __future__ import annotations

from typing import Generic, cast

from coag.errors import StateError
from coag.memory import LongTermMemory, is_user_scope
from coag.schema import Outcome, Percept, RetrievalOutcome, merge_patch

from ._hooks import DomainHooks
from ._states import StateT, load_state


class ServesPeople(DomainHooks[StateT], Generic[StateT]):
    """What follows from the domain's `_get_memory_scope`."""

    @property
    def keeps_people_apart(self) -> bool:
        """Whether the domain tells whose records are read and written."""
        return type(self)._get_memory_scope is not DomainHooks._get_memory_scope  # pyright: ignore[reportUnknownMemberType] - of any state

    def memory_scope(self) -> str | None:
        """Whose records are read and written now; empty for nobody's, None where one has all.

        Raises:
            StateError: The domain's hook raised, or gave no scope of a person; or the state is out
                of date, so that somebody may have logged in.
        """
        if not self.keeps_people_apart:
            return None
        if self._memory.stale is not None:
            raise StateError(
                f"It is not known who is served, until the state is reset: {self._memory.stale}"
            )
        return self._scope_in(self.state)

    def memory_for_now(self, memory: LongTermMemory) -> LongTermMemory:
        """The memory as it is read now: that of the person who is served, where there are many.

        Raises:
            StateError: The domain's hook did not tell whose.
            ConfigurationError: The memory reads a person's records by itself.
        """
        scope = self.memory_scope()
        if scope is None:
            return memory
        return memory.within(scope) if scope else memory.shared()

    def leaves_person(self, event: Percept | Outcome) -> bool:
        """Whether an event, once taken in, ends that the agent serves whom it serves now."""
        served = self._memory.memory_scope
        scope = event.memory_scope if isinstance(event, Percept | RetrievalOutcome) else None
        return bool(served) and scope is not None and scope != served

    def _scope_in(self, state: StateT) -> str:
        try:
            scope = cast("object", self._get_memory_scope(state))
        except Exception as error:  # the domain's own code; without its answer nothing is recalled
            raise StateError(f"_get_memory_scope raised {type(error).__name__}: {error}") from error
        if scope is not None and not (isinstance(scope, str) and is_user_scope(scope)):
            raise StateError(
                f"_get_memory_scope gave {scope!r}, which is no scope of a person. Give "
                "coag.memory.user_scope(ID), or None while nobody is known."
            )
        return scope or ""

    def _with_person(self, percept: Percept) -> Percept:
        """The percept with whom the agent serves from now on, where it brings another."""
        if not self.keeps_people_apart:
            return percept
        raw = self._memory.perceptual_state
        after = merge_patch(raw, percept.state_patch) if percept.state_patch else raw
        try:
            scope = self._scope_in(load_state(self.perceptual_state_schema, after))
        except StateError as error:  # nobody's records are read by a state that cannot be told
            return percept.model_copy(update={"memory_scope": "", "hook_problem": str(error)})
        if scope == self._memory.memory_scope:
            return percept
        return percept.model_copy(update={"memory_scope": scope})
