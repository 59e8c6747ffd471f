"""Taking back what an agent remembers, with a line in its trace."""

from __future__ import annotations

from typing import Any

from coag.context import CoagContext
from coag.cycle import perceive, settled_by_person
from coag.memory import LongTermMemory, Revocation, revoke_origin

from ._mind import Mind
from ._runs import Runs


class Correctable:
    """What the owner of an agent may take back."""

    _context: CoagContext[Any]
    _long_term: LongTermMemory
    _mind: Mind
    _runs: Runs

    async def revoke(self, record_id: str, reason: str) -> Revocation:
        """Takes back a record, all that was concluded from it, and the rules that rest on it.

        For between turns. The trace says what went, and what holds again; with `logs` it is on
        the disk once this returns. See `LongTermMemory.revoke`.

        Args:
            record_id: The record's id.
            reason: Why, in one sentence.

        Raises:
            ValueError: If the reason is empty, or the record is of a scope that may not be
                written.
            RecordStoreError: If the store or the file of procedures cannot be reached.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        procedures = self._mind.deps.procedures
        memory = await self._reached()
        return self._told(await memory.revoke(record_id, reason, procedures=procedures))

    async def revoke_origin(self, record_id: str | None, source: str, reason: str) -> Revocation:
        """Takes back what a source stated; what others stated too is trusted as they are.

        For between turns, with a line in the trace as for `revoke`. See
        `coag.memory.revoke_origin`.

        Args:
            record_id: The record's id; None for all that the source stated.
            source: Whose word is taken back (`Provenance.source`).
            reason: Why, in one sentence.

        Raises:
            ValueError: If the reason is empty, or the source stated nothing of that which may be
                written.
            RecordStoreError: If the store or the file of procedures cannot be reached.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        procedures = self._mind.deps.procedures
        return self._told(
            await revoke_origin(
                await self._reached(), record_id, source, reason, procedures=procedures
            )
        )

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Says what became of an action of unknown outcome; from then on it may be run again.

        For between turns. The actions are in `agent.context.working_memory.unsettled`.

        Args:
            intent_id: The intent of the action.
            happened: Whether it had its effect.

        Raises:
            UnknownNameError: No action with this intent is of unknown outcome.
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open(self._mind)
        deps = self._mind.deps
        found = settled_by_person(intent_id, happened=happened, context=self._context, deps=deps)
        await perceive([found], self._context, deps)
        self._mind.trace.flush()

    async def _reached(self) -> LongTermMemory:
        """What is taken back from: everybody's records, where the agent keeps people apart."""
        apart = self._context.keeps_people_apart
        return await self._long_term.reaching_all() if apart else self._long_term

    def _told(self, gone: Revocation) -> Revocation:
        """Writes what was taken back to the trace."""
        for line in gone.written(self._context.working_memory.cycle):
            self._mind.trace.write(line)
        self._mind.trace.flush()
        return gone
