"""Letting a fork's agent go on: to the end of its turn, and on with its parent's later inputs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from coag.agent import CoagAgent, Remains
from coag.context import CoagContext
from coag.cycle import Deps, TurnResult, close_cycle, run_turn
from coag.schema import (
    UNPERCEIVED,
    Outcome,
    Percept,
    Phase,
    SelectionOutcome,
    TurnEnd,
)


@runtime_checkable
class Accompanied(Protocol):
    """An environment that knows what whoever drove the run did between its turns."""

    async def before_turn(self, agent: CoagAgent) -> None:
        """Does it, to the agent, as it was done before each turn; e.g. tells it of a new rule."""
        ...


Stop = Callable[[SelectionOutcome], Awaitable[str | None]]
"""Says why a fork is not to go on to the Execution of what was selected; None if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A fork's agent on its way.

    Args:
        agent: It was taken up, and its run has begun.
        remains: What it was taken up from.
        stop: Asked after every Selection.
        acting: Whether it may act in its environment. Else that is neither asked how it stands
            nor what became of actions of unknown outcome.
    """

    agent: CoagAgent
    remains: Remains
    stop: Stop
    acting: bool

    async def go_on(self, inputs: Sequence[Sequence[Percept]]) -> str | None:
        """Ends the turn that goes on, then takes one turn for each of these inputs.

        Returns:
            Why it stopped before an Execution; None if it went to the end.

        Raises:
            CoagError: A turn broke off; its cycle is closed.
        """
        remains = self.remains
        begun = list(remains.outcomes) if remains.turn_open else None
        stopped = await self._turn((), remains.turn, begun)
        for number, said in enumerate(inputs, remains.turn + 1):
            if stopped is not None:
                break
            environment = self.agent.environment if self.acting else None
            if isinstance(environment, Accompanied):
                await environment.before_turn(self.agent)
            stopped = await self._turn(said, number, None)
        return stopped

    async def _turn(
        self, said: Sequence[Percept], number: int, begun: list[Outcome] | None
    ) -> str | None:
        context, deps = self.agent.context, self.agent.mind.deps
        if not self.acting:
            deps = replace(deps, environment=None, reconcilers=())
        standing = context.working_memory
        if begun is not None and standing.in_cycle and standing.phase is Phase.SELECTION:
            selection = standing.cognitive_state.selection
            why = None if selection is None else await self.stop(selection)
            if why is not None:
                await _break_off(why, number, context, deps)
                return why
        heard = (heard_again(percept, deps) for percept in said)
        turn = run_turn(heard, context, deps, turn=number, begun=begun)
        async with aclosing(turn):
            return await self._until_stopped(turn)

    async def _until_stopped(self, turn: AsyncGenerator[Outcome | TurnResult]) -> str | None:
        """Runs the turn; the generator is closed by the caller, which closes the cycle."""
        async for item in turn:
            if isinstance(item, SelectionOutcome):
                why = await self.stop(item)
                if why is not None:
                    self.agent.mind.deps.note(self.agent.context, "fork", why)
                    return why
        return None


async def acts(agent: CoagAgent, selection: SelectionOutcome) -> tuple[str, ...]:
    """Names of the selected actions that may have an effect outside the agent."""
    proposal = agent.context.working_memory.cognitive_state.proposal
    wanted = [c.action for c in proposal.candidates if c.id in selection.chosen] if proposal else []
    specs = await agent.mind.deps.actions.specs()
    found = [specs[name] for name in wanted if name in specs]
    return tuple(spec.name for spec in found if not (spec.internal and spec.repeatable))


def heard_again(percept: Percept, deps: Deps) -> Percept:
    """A parent's message as the fork hears it: what it changes is worked out anew."""
    own = {
        "id": deps.ids("percept"),
        "at": deps.clock.now(),
        **UNPERCEIVED,
    }
    return percept.model_copy(update=own)


async def _break_off(why: str, turn: int, context: CoagContext[Any], deps: Deps) -> None:
    """Ends a cycle whose Selection is of the past already, and its turn."""
    deps.note(context, "fork", why)
    await close_cycle(context, deps, why)
    cycle = context.working_memory.cycle
    end = TurnEnd(at=deps.clock.now(), turn=turn, cycle=cycle, reason="cancelled", response=why)
    deps.trace.write(end)
    deps.trace.flush()
