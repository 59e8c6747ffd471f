"""Taking a run up at a boundary, as a run of its own: agent, memory, environment, changes."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coag.agent import CoagAgent, Mind, Remains, rebuild, twin
from coag.context import WorkingMemory
from coag.errors import ConfigurationError, TraceError
from coag.models import open_model
from coag.schema import Record, from_import_name
from coag.tracing import Parent, Rebuild, Recipe

from ._changes import Changes
from ._edits import change_mind
from ._memory import keep, own_memory, record_named, records_at, without_records
from ._past import Later, Past
from ._turns import Accompanied


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """An agent that stands at a boundary, its own run begun."""

    agent: CoagAgent
    remains: Remains
    stands: WorkingMemory
    """Its working memory there, changes made."""
    restored: bool
    """True if its environment is as it was there."""
    gone: tuple[Record, ...]
    """The records that it goes on without."""
    procedures: tuple[str, ...]
    """The procedures that have another text."""


@asynccontextmanager
async def taken_up(
    past: Past, later: Later, changes: Changes, *, logs: Path | None
) -> AsyncGenerator[TakenUp]:
    """The run's agent at the boundary; what was opened for it is closed at the end.

    Args:
        past: The run up to the boundary.
        later: The run from there on.
        changes: What to change.
        logs: Folder for the fork's own run; None keeps its trace in RAM.

    Raises:
        CoagError: The agent cannot be built, or a change cannot be made; nothing was begun.
    """
    async with AsyncExitStack() as opened:
        built = await rebuild(past.run, Rebuild(purpose="fork", model=changes.model))
        opened.push_async_callback(built.close)
        environment = built.environment
        if environment is not None:
            opened.push_async_callback(environment.close)
        records, gone = await _records(built, past, later, changes)
        restored = environment is not None and past.knows_environment
        if environment is not None and restored:
            await environment.restore(past.remains.environment)
        memory = await own_memory(built.long_term_memory, records.values(), gone)
        opened.push_async_callback(memory.close)
        model = await _model(past.info.recipe, changes.model, opened)
        agent = _twin(built, memory=memory, logs=logs, **model)
        opened.push_async_callback(agent.close)
        if isinstance(environment, Accompanied):
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
            gone=tuple(gone.values()),
            procedures=tuple(changes.procedures),
        )


async def _records(
    built: CoagAgent, past: Past, later: Later, changes: Changes
) -> tuple[dict[str, Record], dict[str, Record]]:
    """What the fork remembers, and what it does not remember any more."""
    held = await records_at(built.long_term_memory, past, later)
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


async def _model(
    recipe: Recipe | None, spec: str | None, opened: AsyncExitStack
) -> Mapping[str, Any]:
    """The arguments that put another model in place; a factory that is told does it itself."""
    if spec is None or recipe is None or _is_told(recipe):
        return {}
    try:
        client = open_model(spec)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{error} For a spec of the run's own, the recipe's factory {recipe.factory!r} must "
            "take a keyword rebuild and open rebuild.model."
        ) from error
    opened.push_async_callback(client.close)
    return {"model_client": client, "models": None}


def _is_told(recipe: Recipe) -> bool:
    try:
        return "rebuild" in inspect.signature(from_import_name(recipe.factory)).parameters
    except (TypeError, ValueError):  # some callables tell no signature
        return False


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
