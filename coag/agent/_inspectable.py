"""What can be looked at in a `CoagAgent`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from autogen_agentchat.messages import BaseChatMessage
from autogen_core.model_context import ChatCompletionContext

from coag.context import CoagContext
from coag.cycle import ConstraintSet
from coag.memory import LongTermMemory, ProceduralMemory
from coag.schema import Environment, Outcome, TraceRecord, TraceSink
from coag.tracing import RunFolder

from ._making import Arguments
from ._mind import Mind
from ._runs import Runs
from ._voice import Voice


class Inspectable:
    """The parts of an agent that its users may read."""

    _given: Arguments
    _context: CoagContext[Any]
    _long_term: LongTermMemory
    _mind: Mind
    _runs: Runs
    _voice: Voice
    _turn: int
    _begun: list[Outcome] | None

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        """A text, an answer in its form, a handoff, or a summary of tool calls."""
        return self._voice.message_types

    @property
    def context(self) -> CoagContext[Any]:
        """The context that owns this agent's working memory."""
        return self._context

    @property
    def model_context(self) -> ChatCompletionContext:
        """The context that was given as `model_context`, else the agent's own."""
        return self._given.model_context or self._context

    @property
    def constraints(self) -> ConstraintSet:
        """The constraints; what is added here is in force from the next cycle."""
        return self._mind.deps.constraints

    @property
    def procedures(self) -> ProceduralMemory:
        """The prompts that the agent works by, with all their versions."""
        return self._mind.deps.procedures

    @property
    def long_term_memory(self) -> LongTermMemory:
        """What the agent remembers beyond its turns."""
        return self._long_term

    @property
    def run_folder(self) -> RunFolder | None:
        """The folder of the current run; None before the first turn and without `logs`."""
        return self._runs.folder

    @property
    def trace(self) -> tuple[TraceRecord, ...]:
        """The records of this run: the last 10,000 in RAM, or with `logs` all, read anew."""
        return self._runs.records(self._mind.trace)

    def watch(self, watcher: TraceSink) -> Callable[[], None]:
        """Tells a further sink of every record from now on, once it is in the trace.

        Secrets are still in them. The watcher must be quick and must not raise: what it raises
        ends the turn. A `LazySink` is asked for late records, snapshots, by `write_later`.

        Returns:
            What ends the watching.
        """
        return self._mind.trace.watch(watcher)

    @property
    def environment(self) -> Environment | None:
        """What the agent was told that it acts in."""
        return self._given.environment

    @property
    def arguments(self) -> Arguments:
        """What the agent was given."""
        return self._given

    @property
    def mind(self) -> Mind:
        """The parts in working order, for what takes a run up again; no part of a stable API."""
        return self._mind

    @property
    def turn(self) -> int:
        """How many turns have begun."""
        return self._turn

    @property
    def in_turn(self) -> bool:
        """True for a resumed agent whose turn was broken off; the next call goes on with it."""
        return self._begun is not None
