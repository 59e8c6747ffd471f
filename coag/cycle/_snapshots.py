"""The state of the whole mind, written into the trace where a run can be taken up again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coag.schema import ActionsListed, LazySink, Snapshot, SnapshotReason

from ._deps import AnyContext, Deps
from ._timed import LateError, SelfCancelledError, told, within

ENVIRONMENT_SECONDS = 10.0
"""Time that an environment has to tell its state."""


def write_snapshot(context: AnyContext, deps: Deps, reason: SnapshotReason) -> None:
    """Writes down a state that nothing recorded before led to, with all texts.

    A run begins with it: what modules cannot tell of themselves is noted behind it.
    """
    problems: list[tuple[str, str]] = []
    modules = deps.modules.save_state(lambda name, problem: problems.append((name, problem)))
    _write(_of_now(context, deps, reason, modules), deps)
    for name, problem in problems:
        deps.modules.report(name, problem)


async def write_cycle_snapshot(context: AnyContext, deps: Deps) -> None:
    """Writes down the state that a cycle begins with; texts and states only if they are new."""
    environment = await _environment(context, deps)
    modules = deps.modules.save_state()
    _write(_of_now(context, deps, SnapshotReason.CYCLE, modules, environment), deps)


async def list_actions(context: AnyContext, deps: Deps) -> None:
    """Says in the trace which external actions there are, if that has changed."""
    specs = await deps.actions.specs()
    external = tuple(spec for spec in specs.values() if not spec.internal)
    if not deps.actions.closing and deps.told.new_actions(external):
        cycle = context.working_memory.cycle
        deps.trace.write(ActionsListed(at=deps.clock.now(), cycle=cycle, specs=external))
        for rule, action in deps.constraints.without_action(specs):
            text = f"Rule {rule!r} judges {action!r}, and there is no such action now"
            deps.note(context, "rule", f"{text}. There are: {', '.join(specs)}."[:1_000])


def _write(make: Callable[[], Snapshot], deps: Deps) -> None:
    if isinstance(deps.trace, LazySink):
        deps.trace.write_later(make)
    else:
        deps.trace.write(make())


def _of_now(
    context: AnyContext,
    deps: Deps,
    reason: SnapshotReason,
    modules: dict[str, Any],
    environment: Any = None,
) -> Callable[[], Snapshot]:
    """Makes the snapshot of now, whenever it is called: working memory stays what it is."""
    memory = context.working_memory
    versions = dict(deps.procedures.pin())
    procedures: dict[str, Any] = {"versions": versions}
    if deps.told.new_procedures(versions) or reason is not SnapshotReason.CYCLE:
        procedures["state"] = deps.procedures.save_state()
    at, ids, random = deps.clock.now(), deps.ids.save(), deps.told.new_random(deps.random)
    detector = deps.detector.save_state()
    return lambda: Snapshot(
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


async def _environment(context: AnyContext, deps: Deps) -> Any:
    """The environment's state, if it tells one and it has changed."""
    if deps.environment is None:
        return None
    try:
        state = await within(ENVIRONMENT_SECONDS, deps.environment.snapshot)
    except LateError:
        problem = f"it gave no answer within {ENVIRONMENT_SECONDS:g} s"
    except SelfCancelledError:
        problem = "it cancelled itself"
    except Exception as error:  # whatever somebody's environment raises; the turn goes on
        problem = told(error)
    else:
        return state if deps.told.new_environment(state) else None
    text = f"The environment's state is not in the trace, so no fork can restore it: {problem}."
    deps.note(context, "environment", text)
    return None
