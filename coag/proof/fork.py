"""Continuing a run from one of its phases otherwise than it did; the run itself stays as it is."""

from __future__ import annotations

import os
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from coag._util.html_cards import HtmlTable, html_card
from coag.agent import (
    CoagAgent,
    Mind,
    RecoveredState,
    detach_modules,
    rebuild,
    takes_rebuild,
    twin,
)
from coag.context import WorkingMemory
from coag.cycle import Deps, run_turn
from coag.errors import CoagError, ConfigurationError, ResumeError, TraceError
from coag.models import open_model
from coag.schema import (
    UNPERCEIVED,
    ModelCall,
    Outcome,
    Percept,
    Phase,
    RecalledRecord,
    Record,
    SelectionOutcome,
    Value,
    is_copy,
)
from coag.tracing import Parent, Rebuild, RunFolder, read_run, summarize_cycle

from .boundary import Boundary, Choice, CycleResult, choices, cycle_results, procedure_of
from .fork_changes import Changes, change_mind
from .fork_past import (
    Later,
    Past,
    end_turn_early,
    outcomes_of,
    own_memory,
    read_past,
    record_named,
    records_at,
    store_remembered,
    without_records,
)

NOTHING = Changes()


@runtime_checkable
class Describable(Protocol):
    """An environment that can describe its state in a sentence."""

    def describe(self, state: Any) -> str:
        """A state described for a person."""
        ...


@runtime_checkable
class Accompanied(Protocol):
    """An environment that knows what the run's driver did between its turns."""

    async def before_turn(self, agent: CoagAgent) -> None:
        """Does it, to the agent, as it was done before each turn; e.g. adds a new rule."""
        ...


class ForkReport(Value):
    """The result of a fork, beside that of the run that it was forked from."""

    run: Path
    """The fork's run folder."""
    parent: Path
    """The run folder that it was forked from."""
    at: Boundary
    """The first phase that was run again."""
    changes: tuple[str, ...]
    """What was changed, as it is written on the command line."""
    notices: tuple[str, ...]
    """What to know before comparing the two."""
    parent_cycles: tuple[CycleResult, ...]
    """The parent's cycles from the boundary's on."""
    fork_cycles: tuple[CycleResult, ...]
    """The fork's."""
    parent_end: str | None
    """The state of the parent's environment when its last cycle began, if it can be described."""
    fork_end: str | None
    """The state of the fork's environment, where it can be described."""
    stopped: str | None
    """Why the fork stopped before an Execution; None if it went to the end."""

    def _repr_html_(self) -> str:
        return html_card(
            f"Fork at {self.at} of {self.parent.name}",
            facts=[
                ("fork", self.run.name),
                ("changed", "; ".join(self.changes) or "nothing"),
                ("parent ended", self.parent_end),
                ("fork ended", self.fork_end),
                ("stopped", self.stopped),
            ],
            lines=self.notices,
            table=_side_by_side(self.parent_cycles, self.fork_cycles),
        )


class Counterfactual(Value):
    """The decision without a record."""

    record: RecalledRecord | None
    """The record that was left out; None for the decision taken again with all of them, by which
    one sees whether it is the same each time anyway."""
    times: int
    """How often it was taken again."""
    changed: int
    """How often it was another choice than the run's."""
    others: tuple[tuple[Choice, ...], ...]
    """The other choices, each once; empty for an impasse."""


def _side_by_side(parent: Sequence[CycleResult], fork: Sequence[CycleResult]) -> HtmlTable:
    def decided(one: CycleResult | None) -> str:
        if one is None or not one.chosen:
            return "" if one is None else "no decision" if one.chosen is None else "impasse"
        chosen = ", ".join(map(str, one.chosen))
        return f"{chosen}: {one.status}" if one.status else chosen

    ours, theirs = ({one.cycle: one for one in results} for results in (parent, fork))
    rows = [
        (cycle, decided(ours.get(cycle)), decided(theirs.get(cycle)))
        for cycle in sorted(ours.keys() | theirs.keys())
    ]
    return HtmlTable(columns=("cycle", "parent", "fork"), rows=rows)


async def fork(
    run: RunFolder | Path | str,
    at: Boundary | str,
    changes: Changes = NOTHING,
    *,
    turns: int | None = None,
    live: bool = False,
    logs: Path | str | None = None,
    trust: Iterable[str] = (),
) -> ForkReport:
    """Restores a run right before one of its phases and continues it, as a run of its own.

    Nothing of the past is repeated, and nothing of the parent is changed: the fork has a memory
    of its own, which holds what the parent's held there, and acts in an environment that says it
    is a copy, put back into the state it had there. Without one, or where that state is not known,
    it stops before the first Execution that may have an effect outside.

    Args:
        run: The run's folder.
        at: The boundary, e.g. `3.evaluation`.
        changes: What to do otherwise.
        turns: How many turns to take after the one that it is in, with the parent's later
            messages; None for as many as the parent took.
        live: Lets it act, for real, on what the recipe's factory built, as that is, where there is
            no copy that can be put back.
        logs: Folder for the fork's run folder; None for the one that has the parent's.
        trust: Modules, or packages with their modules, from which the run may name its factory.

    Raises:
        ConfigurationError: There is no such boundary, or a change does not fit the run.
        ResumeError: The run's agent cannot be built again.
        CoagError: What a turn may raise: the fork's run is closed then and stays to be read.
    """
    if turns is not None and turns < 0:
        raise ConfigurationError(f"turns must be 0 or more, not {turns!r}.")
    past, later = read_past(run, at if isinstance(at, Boundary) else Boundary.parse(at))
    changes = _inheriting(past, changes)
    where = past.run.path.parent if logs is None else Path(logs)
    async with _restored(past, later, changes, logs=where, trust=trust) as restored:
        agent = restored.agent
        allowed = restored.put_back or live

        async def stop(selection: SelectionOutcome) -> str | None:
            names = () if allowed else await restored.acts(selection)
            return _stopped(names, restored) if names else None

        stopped = await restored.proceed(later.inputs[:turns], stop, acting=allowed)
        trace = (*outcomes_of(restored.begins), *agent.trace)
        return ForkReport(
            run=cast("RunFolder", agent.run_folder).path,
            parent=past.run.path,
            at=past.boundary,
            changes=changes.listed(),
            notices=tuple(_notices(past, later, restored, changes, turns, live=live)),
            parent_cycles=later.cycles,
            fork_cycles=tuple(cycle_results(trace, first=past.boundary.cycle)),
            parent_end=_described(agent, later.environment),
            fork_end=await _end(agent) if allowed else None,
            stopped=stopped,
        )


async def counterfactuals(
    run: RunFolder | Path | str,
    cycle: int,
    *,
    model: str | None = None,
    repeats: int = 1,
    trust: Iterable[str] = (),
    on_result: Callable[[Counterfactual], None] = lambda one: None,
) -> tuple[Counterfactual, ...]:
    """Takes a cycle's decision again: with everything, then without each recalled record.

    Each time the run is restored before the cycle's Retrieval and continued until its Selection is
    committed. Nothing is executed and nothing is written to a disk. The environment is not asked
    anything; one that says it is a copy is put back first, since rules may read it.

    Args:
        run: The run's folder.
        cycle: The cycle.
        model: A model spec that takes the place of the run's model.
        repeats: How often each is tried; for models that do not always answer the same.
        trust: Modules, or packages with their modules, from which the run may name its factory.
        on_result: Called with each as soon as it is known.

    Raises:
        ConfigurationError: There is no such cycle, or nothing was decided in it.
        CoagError: The agent cannot be built again, or its model cannot be asked.
    """
    if repeats < 1:
        raise ConfigurationError(f"repeats must be at least 1, not {repeats!r}.")
    past, later = read_past(run, Boundary(cycle=cycle))
    chosen = later.cycles[0].chosen if later.cycles else None
    if chosen is None:
        raise ConfigurationError(f"Nothing was decided in cycle {cycle} of {past.run.path.name!r}.")
    trusted = tuple(trust)
    results: list[Counterfactual] = []
    for left_out in (None, *later.retrieved):
        ids = () if left_out is None else (left_out.record.id,)
        changes = _inheriting(past, Changes(model=model, without_records=ids))
        again = [await _choice(past, later, changes, trusted) for _ in range(repeats)]
        others = [choice for choice in again if choice != chosen]
        distinct = tuple(dict.fromkeys(others))
        one = Counterfactual(record=left_out, times=repeats, changed=len(others), others=distinct)
        results.append(one)
        on_result(one)
    return tuple(results)


def _inheriting(past: Past, changes: Changes) -> Changes:
    parent = past.info.parent
    return changes if parent is None else changes.inheriting(parent.changes)


async def _choice(
    past: Past, later: Later, changes: Changes, trust: Iterable[str]
) -> tuple[Choice, ...]:
    """What is chosen in the boundary's cycle; nothing for an impasse."""
    decisions: list[tuple[Choice, ...]] = []
    async with _restored(past, later, changes, logs=None, trust=trust) as restored:

        async def stop(selection: SelectionOutcome) -> str:
            memory = restored.agent.context.working_memory
            decisions.append(choices(summarize_cycle([*outcomes_of(memory), selection])) or ())
            return "The choice is known."

        await restored.proceed((), stop, acting=False)
    return decisions[0] if decisions else ()


# ---- What to know before a fork is compared with its parent ----


def _stopped(actions: Sequence[str], restored: RestoredRun) -> str:
    why = (
        "the trace does not have the state of the environment there. Give "
        "CoagAgent(environment=...) one that gives its state (snapshot, restore, close) and, in "
        "a fork, that it is a copy (is_copy = True)."
    )
    if restored.agent.environment is not None and not restored.copied:
        why = (
            "the environment does not say that it is a copy, so what is done in it may be real. "
            'Let the factory open a copy where rebuild.purpose is "fork", with is_copy = True.'
        )
    live = "With --live (live=True) the fork acts, for real, on what the recipe's factory built."
    return f"Stopped before the Execution of {', '.join(actions)}: {why} {live}"


def _notices(
    past: Past,
    later: Later,
    restored: RestoredRun,
    changes: Changes,
    turns: int | None,
    *,
    live: bool,
) -> Iterator[str]:
    if restored.put_back:
        cycle = past.boundary.cycle
        yield f"The environment was put back into the state that it had when cycle {cycle} began."
    elif live:
        yield "It acts on what the recipe's factory built, as that is now."
    memory = past.working_memory
    retrieval = memory.cognitive_state.retrieval if memory.in_cycle else None
    recalled = {hit.record.id for hit in (retrieval.records if retrieval else ())}
    for record in restored.left_out:
        if record.id in recalled:
            name, phase = record.id[:12], past.boundary.phase.value
            yield f"Record {name} was recalled in this cycle: phases before {phase} had seen it."
    if turns is not None and turns > len(later.inputs):
        yield f"The parent took {len(later.inputs)} later turns: so many can be taken, not {turns}."
    used = dict.fromkeys(
        procedure_of(record)
        for record in restored.agent.trace
        if isinstance(record, ModelCall) and record.cycle >= past.boundary.cycle
    )
    others = ", ".join(filter(None, used)) or "none"
    for name in changes.procedures:
        if name not in used:
            unused = f"No model was asked by procedure {name!r}, so its new text changed nothing."
            yield f"{unused} Those that were used: {others}."
    if later.sensed:
        yield f"{later.sensed} percepts that reached the parent on their own are left out."
    if restored.agent.context.dialogue_source is not None:
        yield "The context that selects its dialogue keeps a state that the trace does not hold."


def _described(agent: CoagAgent, state: object) -> str | None:
    known = state is not None and isinstance(agent.environment, Describable)
    return cast("Describable", agent.environment).describe(state) if known else None


async def _end(agent: CoagAgent) -> str | None:
    if agent.environment is None or not isinstance(agent.environment, Describable):
        return None
    try:
        return _described(agent, await agent.environment.snapshot())
    except Exception as error:  # somebody's environment; what the fork did stays to be read
        return f"not known: the environment raised {type(error).__name__}: {error}"


# ---- An agent that is restored at a boundary ----


Stop = Callable[[SelectionOutcome], Awaitable[str | None]]
"""Says why a fork is not to continue with the Execution of what was selected; None if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredRun:
    """An agent at a boundary, its own run begun."""

    agent: CoagAgent
    remains: RecoveredState
    begins: WorkingMemory
    """Its working memory there, changes made."""
    put_back: bool
    """True if its environment is in the state that it had there."""
    copied: bool
    """True if it has an environment that says it is a copy."""
    left_out: tuple[Record, ...]

    async def acts(self, selection: SelectionOutcome) -> tuple[str, ...]:
        """Names of the selected actions that may have an effect outside the agent."""
        proposal = self.agent.context.working_memory.cognitive_state.proposal
        candidates = proposal.candidates if proposal else ()
        specs = await self.agent.mind.deps.actions.specs()
        wanted = [one.action for one in candidates if one.id in selection.chosen]
        described = [specs[name] for name in wanted if name in specs]
        return tuple(spec.name for spec in described if not (spec.internal and spec.repeatable))

    async def proceed(
        self, inputs: Sequence[Sequence[Percept]], stop: Stop, *, acting: bool
    ) -> str | None:
        """Ends the open turn, then takes one turn for each of these inputs."""
        deps = self.agent.mind.deps
        if not acting:
            deps = replace(deps, environment=None, reconcilers=())
        begun = list(self.remains.outcomes) if self.remains.turn_open else None
        stopped = await self._turn((), self.remains.turn, begun, stop, deps)
        for number, messages in enumerate(inputs, self.remains.turn + 1):
            if stopped is not None:
                break
            environment = self.agent.environment if acting else None
            if isinstance(environment, Accompanied):
                await environment.before_turn(self.agent)
            stopped = await self._turn(messages, number, None, stop, deps)
        return stopped

    async def _turn(
        self,
        messages: Sequence[Percept],
        number: int,
        begun: list[Outcome] | None,
        stop: Stop,
        deps: Deps,
    ) -> str | None:
        context = self.agent.context
        memory = context.working_memory
        selection = memory.cognitive_state.selection
        if begun is not None and memory.in_cycle and memory.phase is Phase.SELECTION and selection:
            why = await stop(selection)
            if why is not None:  # the Selection is of the past already: the cycle is closed here
                deps.note(context, "fork", why)
                await end_turn_early(context, deps, number, why)
                deps.trace.flush()
                return why
        arriving = (  # what a parent's message changes is computed again
            percept.model_copy(
                update={"id": deps.ids("percept"), "at": deps.clock.now(), **UNPERCEIVED}
            )
            for percept in messages
        )
        turn = run_turn(arriving, context, deps, turn=number, begun=begun)
        async with aclosing(turn):  # which closes the cycle where it is left
            async for item in turn:
                why = await stop(item) if isinstance(item, SelectionOutcome) else None
                if why is not None:
                    self.agent.mind.deps.note(context, "fork", why)
                    return why
        return None


@asynccontextmanager
async def _restored(
    past: Past, later: Later, changes: Changes, *, logs: Path | None, trust: Iterable[str]
) -> AsyncGenerator[RestoredRun]:
    """The run's agent at the boundary; what was opened for it is closed at the end."""
    trusted = tuple(trust)
    async with AsyncExitStack() as opened:
        built = await rebuild(past.run, Rebuild(purpose="fork", model=changes.model), trusted)
        opened.push_async_callback(built.close)
        detach_modules(built)
        environment = built.environment
        copied, put_back = is_copy(environment), False
        if environment is not None:
            opened.push_async_callback(environment.close)
        records, left_out = await _records(built, past, later, changes)
        if environment is not None and copied and past.knows_environment:
            try:
                await environment.restore(past.remains.environment)
            except CoagError:
                raise
            except Exception as error:  # somebody's environment, which may raise anything
                problem = f"its restore raised {type(error).__name__}: {error}"
                where = f"The environment of {past.run.path} cannot be put back to {past.boundary}"
                raise ResumeError(f"{where}: {problem}") from error
            put_back = True
        memory = await own_memory(built.long_term_memory, records.values(), left_out)
        opened.push_async_callback(memory.close)
        others = await _model(past, changes.model, trusted, opened)
        recorded = read_run(past.run.path).configuration
        others |= built.arguments.recorded_defaults(recorded)
        if changes.depth is not None:
            others["depth"] = changes.depth
        agent = twin(built, memory=memory, memory_dynamics=None, logs=logs, **others)
        for rule in built.constraints.own():  # rules that were added since it was built
            if rule.name not in agent.constraints.names():
                agent.constraints.add(rule.judge, name=rule.name)
        opened.push_async_callback(agent.close)
        if copied and isinstance(environment, Accompanied):
            await environment.before_turn(agent)
        remains = _remains(past, later, changes, left_out)
        await agent.restore(remains, _parent(past, changes, logs))
        if agent.run_folder is not None:
            store_remembered(agent.run_folder, records.values())
        yield RestoredRun(
            agent=agent,
            remains=remains,
            begins=agent.context.working_memory,
            put_back=put_back,
            copied=copied,
            left_out=tuple(left_out.values()),
        )


async def _records(
    built: CoagAgent, past: Past, later: Later, changes: Changes
) -> tuple[dict[str, Record], dict[str, Record]]:
    memory = built.long_term_memory
    if built.context.keeps_people_apart:
        memory = await memory.reaching_all()
    held = await records_at(memory, past, later)
    retrieval = past.working_memory.cognitive_state.retrieval
    hits = (*(retrieval.records if retrieval else ()), *later.retrieved)
    known = {**{hit.record.id: hit.record for hit in hits}, **held}
    names = [record_named(name, known) for name in changes.without_records]
    return without_records(held, names), {name: known[name] for name in names}


async def _model(
    past: Past, spec: str | None, trust: Iterable[str], opened: AsyncExitStack
) -> dict[str, Any]:
    """The arguments that put another model in place, where the factory does not do that itself."""
    recipe = past.info.recipe
    if spec is None or recipe is None or takes_rebuild(recipe, past.run.path, trust):
        return {}
    try:
        client = open_model(spec)
    except ConfigurationError as error:
        named = f"the recipe's factory {recipe.factory!r} must take a keyword rebuild"
        raise ConfigurationError(f"{error} For a spec of the run's own, {named}.") from error
    opened.push_async_callback(client.close)
    return {"model_client": client, "models": None}


def _remains(
    past: Past, later: Later, changes: Changes, left_out: Mapping[str, Record]
) -> RecoveredState:
    memory, at = past.working_memory, past.at
    retrieval = memory.cognitive_state.retrieval if memory.in_cycle else None
    promised = (later.constraints or ()) if retrieval is None else retrieval.constraints
    if at is None:
        raise AssertionError("A boundary comes after a record.")

    def change(mind: Mind) -> None:
        change_mind(mind, changes, left_out=left_out, promised=promised, at=at)

    written = [line for line in past.remains.written if line.what == "procedure"]
    return replace(past.remains, written=written, change=change)


def _parent(past: Past, changes: Changes, logs: Path | None) -> Parent:
    start = (past.run.path.parent if logs is None else logs).resolve()
    try:
        path = os.path.relpath(past.run.path.resolve(), start)
    except ValueError as error:  # another drive
        raise TraceError(start, f"has no path to {past.run.path}: {error}") from error
    return Parent(
        run=past.info.id,
        path=Path(path).as_posix(),
        cycle=past.boundary.cycle,
        phase=past.boundary.phase,
        seq=past.seq,
        changes=changes.listed(),
    )
