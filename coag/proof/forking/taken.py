"""An agent that takes up a run at a boundary."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from coag.agent import CoagAgent, Mind, Remains, rebuild, takes_rebuild, twin
from coag.context import CoagContext, WorkingMemory
from coag.cycle import Deps, TurnResult, close_cycle, run_turn
from coag.errors import CoagError, ConfigurationError, ResumeError, TraceError
from coag.models import open_model
from coag.schema import (
    UNPERCEIVED,
    Environment,
    Outcome,
    Percept,
    Phase,
    Record,
    SelectionOutcome,
    TurnEnd,
    is_copy,
)
from coag.tracing import Parent, Rebuild

from .changes import Changes, change_mind
from .past import Later, Past, keep, own_memory, record_named, records_at, without_records


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


# ---- Taking a run up at a boundary, as a run of its own: agent, memory, environment, changes ----


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """An agent that stands at a boundary, its own run begun."""

    agent: CoagAgent
    remains: Remains
    stands: WorkingMemory
    """Its working memory there, changes made."""
    restored: bool
    """True if its environment is as it was there."""
    copied: bool
    """True if it has an environment that says it is a copy."""
    gone: tuple[Record, ...]
    """The records that it goes on without."""
    procedures: tuple[str, ...]
    """The procedures that have another text."""


@asynccontextmanager
async def taken_up(
    past: Past, later: Later, changes: Changes, *, logs: Path | None, trust: Iterable[str]
) -> AsyncGenerator[TakenUp]:
    """The run's agent at the boundary; what was opened for it is closed at the end.

    Args:
        past: The run up to the boundary.
        later: The run from there on.
        changes: What to change.
        logs: Folder for the fork's own run; None keeps its trace in RAM.
        trust: Modules from which the run may name its factory.

    Raises:
        CoagError: The agent cannot be built, or a change cannot be made; nothing was begun.
    """
    trusted = tuple(trust)
    async with AsyncExitStack() as opened:
        built = await rebuild(past.run, Rebuild(purpose="fork", model=changes.model), trusted)
        opened.push_async_callback(built.close)
        environment = built.environment
        if environment is not None:
            opened.push_async_callback(environment.close)
        records, gone = await _records(built, past, later, changes)
        copied = is_copy(environment)
        restored = copied and past.knows_environment
        if environment is not None and restored:
            await _put_back(environment, past)
        memory = await own_memory(built.long_term_memory, records.values(), gone)
        opened.push_async_callback(memory.close)
        model: Mapping[str, Any] = {}
        if changes.model is not None and not _is_told(past, trusted):
            model = await _model(past, changes.model, opened)
        agent = _twin(built, memory=memory, logs=logs, **model)
        opened.push_async_callback(agent.close)
        if copied and isinstance(environment, Accompanied):
            await environment.before_turn(agent)
        remains = _remains(past, _change(past, later, changes, gone))
        await agent.take_up(remains, _parent(past, changes, logs))
        if agent.run_folder is not None:
            keep(agent.run_folder, records.values())
        yield TakenUp(
            agent=agent,
            remains=remains,
            stands=agent.context.working_memory,
            restored=restored,
            copied=copied,
            gone=tuple(gone.values()),
            procedures=tuple(changes.procedures),
        )


async def _put_back(environment: Environment, past: Past) -> None:
    """Puts a copy into the state that the run's environment had at the boundary."""
    try:
        await environment.restore(past.remains.environment)
    except CoagError:
        raise
    except Exception as error:  # somebody's environment, which may raise anything
        raise ResumeError(
            f"The environment of {past.run.path} cannot be put back to where it stood at "
            f"{past.boundary}: its restore raised {type(error).__name__}: {error}"
        ) from error


async def _records(
    built: CoagAgent, past: Past, later: Later, changes: Changes
) -> tuple[dict[str, Record], dict[str, Record]]:
    """What the fork remembers, and what it does not remember any more."""
    memory = built.long_term_memory
    if built.context.keeps_people_apart:
        memory = await memory.reaching_all()
    held = await records_at(memory, past, later)
    retrieval = past.working_memory.cognitive_state.retrieval
    recalled = {hit.record.id: hit.record for hit in (retrieval.records if retrieval else ())}
    recalled |= {hit.record.id: hit.record for hit in later.retrieved}
    known = {**recalled, **held}
    names = [record_named(name, known) for name in changes.without_records]
    return without_records(held, names), {name: known[name] for name in names}


def _twin(built: CoagAgent, **arguments: Any) -> CoagAgent:
    """The built agent with a memory and a trace of its own, and with its rules added since."""
    agent = twin(built, **arguments)
    for rule in built.constraints.own():
        if rule.name not in agent.constraints.names():
            agent.constraints.add(rule.judge, name=rule.name)
    return agent


async def _model(past: Past, spec: str, opened: AsyncExitStack) -> Mapping[str, Any]:
    """The arguments that put another model in place."""
    try:
        client = open_model(spec)
    except ConfigurationError as error:
        factory = past.info.recipe and past.info.recipe.factory
        raise ConfigurationError(
            f"{error} For a spec of the run's own, the recipe's factory {factory!r} must "
            "take a keyword rebuild and open rebuild.model."
        ) from error
    opened.push_async_callback(client.close)
    return {"model_client": client, "models": None}


def _is_told(past: Past, trust: Iterable[str]) -> bool:
    """Whether the run's factory opens another model itself."""
    recipe = past.info.recipe
    return recipe is None or takes_rebuild(recipe, past.run.path, trust)


def _change(
    past: Past, later: Later, changes: Changes, gone: Mapping[str, Record]
) -> Callable[[Mind], None]:
    memory = past.working_memory
    retrieval = memory.cognitive_state.retrieval
    promised = later.constraints or ()
    if memory.in_cycle and retrieval is not None:
        promised = retrieval.constraints
    at = past.at
    if at is None:
        raise AssertionError("A boundary comes after a record.")
    return lambda mind: change_mind(mind, changes, gone=gone, promised=promised, at=at)


def _remains(past: Past, change: Callable[[Mind], None]) -> Remains:
    """What the agent is taken up from; its memory holds the records already."""
    written = [line for line in past.remains.written if line.what == "procedure"]
    return replace(past.remains, written=written, change=change)


def _parent(past: Past, changes: Changes, logs: Path | None) -> Parent:
    start = (past.run.path.parent if logs is None else logs).resolve()
    try:
        path = os.path.relpath(past.run.path.resolve(), start)
    except ValueError as error:  # another drive
        raise TraceError(start, f"cannot be told from {past.run.path}: {error}") from error
    return Parent(
        run=past.info.id,
        path=Path(path).as_posix(),
        cycle=past.boundary.cycle,
        phase=past.boundary.phase,
        seq=past.seq,
        changes=changes.listed(),
    )
