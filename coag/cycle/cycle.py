"""The six phases in order, once, each committed and written down."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from coag._util.timeouts import LateError, SelfCancelledError, describe_error, within
from coag.errors import StateError
from coag.schema import (
    PHASES,
    ActionsListed,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    LazySink,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    SnapshotReason,
    content_id,
    phase_after,
    random_state,
)

from .deps import AnyContext, Deps, GuardDeps
from .evaluation import evaluate
from .execution import ActionBrokenOff, execute
from .proposal import propose
from .reasoning import reason
from .retrieval import retrieve
from .selection import select

# ---- The state of the whole mind, written into the trace where a run can be taken up again ----


ENVIRONMENT_SECONDS = 10.0
"""Time that an environment has to report its state."""


def write_snapshot(context: AnyContext, deps: Deps, reason: SnapshotReason) -> None:
    """Writes down a state that nothing recorded before led to, with all texts.

    A run begins with it: what modules cannot report of themselves is noted behind it.
    """
    problems: list[tuple[str, str]] = []
    modules = deps.modules.save_state(lambda name, problem: problems.append((name, problem)))
    _write(context, deps, reason, modules)
    for name, problem in problems:
        deps.modules.report(name, problem)


def _write(
    context: AnyContext,
    deps: Deps,
    reason: SnapshotReason,
    modules: dict[str, Any],
    environment: Any = None,
) -> None:
    """Writes the snapshot of now, or has it made later: working memory stays what it is."""
    memory, versions = context.working_memory, dict(deps.procedures.pin())
    procedures: dict[str, Any] = {"versions": versions}
    if deps.snapshots.changed("procedures", versions) or reason is not SnapshotReason.CYCLE:
        procedures["state"] = deps.procedures.save_state()
    at, ids, detector = deps.clock.now(), deps.ids.save(), deps.detector.save_state()
    drawn = deps.snapshots.changed("random", deps.random.getstate())
    random = random_state(deps.random) if drawn else None

    def make() -> Snapshot:
        return Snapshot(
            at=at,
            cycle=memory.cycle,
            reason=reason,
            working_memory=memory.to_json(),
            procedures=procedures,
            modules=modules,
            detector=detector,
            ids=ids,
            random=random,
            environment=environment,
        )

    if isinstance(deps.trace, LazySink):
        deps.trace.write_later(make)
    else:
        deps.trace.write(make())


async def _list_actions(context: AnyContext, deps: Deps) -> None:
    """Says in the trace which external actions there are, if that has changed.

    And which cannot be offered now, and which rules judge none that there is.
    """
    specs = await deps.actions.specs()
    if deps.modules.watching and deps.snapshots.changed("offered", tuple(specs.values())):
        deps.modules.actions_listed(tuple(specs.values()))
    external = tuple(spec for spec in specs.values() if not spec.internal)
    if not deps.actions.closing and deps.snapshots.changed("actions", external):
        cycle = context.working_memory.cycle
        deps.trace.write(ActionsListed(at=deps.clock.now(), cycle=cycle, specs=external))
        for rule, action in deps.constraints.without_action(specs):
            text = f"Rule {rule!r} judges {action!r}, and there is no such action now"
            deps.note(context, "rule", f"{text}. There are: {', '.join(specs)}."[:1_000])
    texts = deps.constraints.texts()
    if texts and deps.snapshots.changed("rules", texts):
        for name, text in texts.items():
            deps.note(context, "rule", f"{name}: {text}", rule=name)
    for problem in deps.actions.problems:
        deps.note(context, "actions", problem)


async def _environment(context: AnyContext, deps: Deps) -> Any:
    if deps.environment is None:
        return None
    try:
        state = await within(ENVIRONMENT_SECONDS, deps.environment.snapshot)
    except LateError:
        problem = f"it gave no answer within {ENVIRONMENT_SECONDS:g} s"
    except SelfCancelledError:
        problem = "it cancelled itself"
    except Exception as error:  # whatever somebody's environment raises; the turn continues
        problem = describe_error(error)
    else:
        text = content_id(json.dumps(state, sort_keys=True, default=str))  # it may be large
        return state if deps.snapshots.changed("environment", text) else None
    text = f"The environment's state is not in the trace, so no fork can restore it: {problem}."
    deps.note(context, "environment", text)
    return None


# ---- One cycle: the six phases in order, each committing one outcome. No back edges ----


RUN: Mapping[Phase, Callable[[AnyContext, Deps], Awaitable[Outcome]]] = {
    Phase.RETRIEVAL: retrieve,
    Phase.REASONING: reason,
    Phase.PROPOSAL: propose,
    Phase.EVALUATION: evaluate,
    Phase.SELECTION: select,
    Phase.EXECUTION: execute,
}
"""What each phase does."""


async def perceive(
    percepts: Iterable[Percept],
    context: AnyContext,
    deps: GuardDeps,
    taken_in: Callable[[Percept], None] = lambda percept: None,
) -> None:
    """Takes in percepts, each its own record, and passes them to the modules.

    Args:
        percepts: What arrived.
        context: Takes them in.
        deps: The trace and the modules.
        taken_in: Called with each percept that is in the trace and in working memory.

    Raises:
        StateError: A hook of the domain could not read a percept. All of them are taken in and
            recorded; but the constraints would judge by a state that is out of date, so nothing
            acts any more until it is reset.
    """
    problems: list[str] = []
    for percept in percepts:
        perceived = context.foresee_percept(percept)
        deps.trace.write(perceived)  # what cannot be written is not perceived
        before = context.working_memory
        context.perceive(perceived)
        taken_in(perceived)
        if before.leaves_person(perceived):
            deps.modules.reset_state()
        deps.detector.perceive(perceived)
        if perceived.hook_problem is not None:
            deps.note(context, "hook", perceived.hook_problem)
            problems.append(perceived.hook_problem)
        if not before.of_another(perceived):
            await deps.modules.observe(perceived)
    if problems:
        stale = "The perceptual state is out of date: until it is reset, nothing acts."
        take = "Let the hook take every return of its tools, failed ones too."
        raise StateError(f"{' '.join(problems)} {stale} {take}")


async def run_cycle(context: AnyContext, deps: Deps) -> AsyncGenerator[Outcome]:
    """Runs one cycle, or what is left of a begun one, and yields each committed outcome.

    What arrived from outside meanwhile is perceived first.
    """
    if not context.working_memory.in_cycle:
        await perceive(await deps.modules.take_percepts(), context, deps)
    memory = context.working_memory
    if not memory.in_cycle:  # texts and states are written only if they are new
        environment = await _environment(context, deps)
        modules = deps.modules.save_state()
        _write(context, deps, SnapshotReason.CYCLE, modules, environment)
    done = PHASES.index(memory.phase) + 1 if memory.in_cycle and memory.phase else 0
    try:
        for phase in PHASES[done:]:
            deps.actions.enter(phase)
            if phase is Phase.PROPOSAL:
                await _list_actions(context, deps)
            outcome = _with_sources(await RUN[phase](context, deps), context, deps)
            await commit(outcome, context, deps)
            yield outcome
    except ActionBrokenOff as stopped:
        await commit(_with_sources(stopped.outcome, context, deps), context, deps)
        raise stopped.by from stopped
    finally:
        deps.actions.enter(None)


def _with_sources(outcome: Outcome, context: AnyContext, deps: Deps) -> Outcome:
    """The outcome with whose untrusted text its prompt showed that is in no percept or record."""
    taint = context.working_memory.tainted_by
    known = set[str]() if taint is None else set(taint.sources)
    seen = {*deps.modules.untrusted, *context.strangers_shown()} - known
    deps.modules.untrusted.clear()
    return outcome.model_copy(update={"untrusted_from": tuple(sorted(seen))}) if seen else outcome


async def commit(outcome: Outcome, context: AnyContext, deps: Deps) -> None:
    """Writes an outcome down, commits it and passes it to the modules.

    What cannot be written is not committed: the trace would no longer be the state.
    """
    context.foresee(outcome)
    deps.trace.write(outcome)
    deps.trace.flush()
    leaves = context.working_memory.leaves_person(outcome)
    context.commit(outcome)
    if leaves:
        deps.modules.reset_state()
    await deps.modules.observe(outcome)


async def close_cycle(
    context: AnyContext, deps: Deps, reason: str, queued: tuple[Percept, ...] = ()
) -> None:
    """Ends a begun cycle without acting, so that a cycle always has six outcomes.

    Used when a turn is cancelled or fails, and when a run is resumed whose intent has no
    receipt: `queued` then holds for the agent what is not known.
    """
    while context.working_memory.in_cycle:
        memory = context.working_memory
        stamp = {"cycle": memory.cycle, "at": deps.clock.now()}
        outcome = EMPTY_OUTCOMES[phase_after(memory.phase)](stamp, reason, queued)
        await commit(outcome, context, deps)


EMPTY_OUTCOMES: Mapping[Phase, Callable[[dict[str, Any], str, tuple[Percept, ...]], Outcome]] = {
    Phase.RETRIEVAL: lambda stamp, why, queued: RetrievalOutcome(**stamp, query=""),
    Phase.REASONING: lambda stamp, why, queued: ReasoningOutcome(**stamp, situation=why),
    Phase.PROPOSAL: lambda stamp, why, queued: ProposalOutcome(**stamp, proposed_by="nobody"),
    Phase.EVALUATION: lambda stamp, why, queued: EvaluationOutcome(**stamp),
    Phase.SELECTION: lambda stamp, why, queued: SelectionOutcome(**stamp, reason=why),
    Phase.EXECUTION: lambda stamp, why, queued: ExecutionOutcome(
        **stamp, status=ExecutionStatus.NONE, result=why, queued=queued
    ),
}
"""The outcome of a phase that is not run, from its cycle and time, the reason, and percepts."""
