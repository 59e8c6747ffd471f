"""What the owner of a `CoagAgent` may tell it between its turns."""

from __future__ import annotations

from coag.cycle import perceive, settled_by_person
from coag.memory import LongTermMemory, Revocation, retract_source
from coag.schema import Percept

from .readable import ReadableAgent


class CorrectableAgent(ReadableAgent):
    """Takes in percepts, takes records back, and says what became of actions."""

    async def perceive(self, percept: Percept) -> None:
        """Takes in a percept between turns, e.g. a property change or a signal of a sensor.

        It is recorded, changes the state by the context's hook, and the modules observe it.

        Raises:
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open()
        await perceive([percept], self.context, self._mind.deps)
        self._mind.trace.flush()

    async def revoke(self, record_id: str, reason: str) -> Revocation:
        """Takes back a record, all that was concluded from it, and the rules that depend on it.

        For between turns. The trace lists what was removed, and what is valid again; with `logs`
        it is on the disk once this returns. See `LongTermMemory.revoke`, also for the errors.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        memory = await self._revocable()
        return self._traced(await memory.revoke(record_id, reason, procedures=self.procedures))

    async def revoke_origin(self, record_id: str | None, source: str, reason: str) -> Revocation:
        """Takes back what a source stated; what others stated too keeps their trust.

        For between turns, with a line in the trace as for `revoke`. See
        `coag.memory.retract_source`, also for the errors.

        Args:
            record_id: The record's id; None for all that the source stated.
            source: Whose statements are taken back (`Provenance.source`).
            reason: Why, in one sentence.
        """
        memory, procedures = await self._revocable(), self.procedures
        return self._traced(
            await retract_source(memory, record_id, source, reason, procedures=procedures)
        )

    async def _revocable(self) -> LongTermMemory:
        """What can be revoked: everybody's records, where the agent keeps people apart."""
        self._runs.open()
        apart, memory = self.context.keeps_people_apart, self.long_term_memory
        return await memory.reaching_all() if apart else memory

    def _traced(self, gone: Revocation) -> Revocation:
        self._mind.trace.write_now(*gone.written(self.context.working_memory.cycle))
        return gone

    async def settle(self, intent_id: str, *, happened: bool) -> None:
        """Says whether an action of unknown outcome had its effect; then it may be run again.

        For between turns. The actions are in `agent.context.working_memory.unsettled`.

        Raises:
            UnknownNameError: No action with this intent is of unknown outcome.
            StateError: The context's hook could not read it; it is recorded all the same.
            TraceError: The run's folder cannot be written to.
        """
        self._runs.open()
        deps = self._mind.deps
        await self.perceive(
            settled_by_person(intent_id, happened=happened, context=self.context, deps=deps)
        )
