"""Making a fork's changes in a mind that stands at the boundary."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from coag.agent import Mind
from coag.context import WorkingMemory
from coag.errors import ConfigurationError, UnknownNameError
from coag.memory import PendingRewrite
from coag.schema import RetrievalOutcome

from ._changes import Changes
from ._set import with_settings

AUTHOR = "developer"
REASON = "A fork was to go on with this text."


def change_mind(
    mind: Mind, changes: Changes, *, gone: Collection[str], promised: Collection[str], at: datetime
) -> None:
    """Makes the changes; the mind stands at the boundary and has not begun its run.

    Args:
        mind: The fork's mind.
        changes: What to change.
        gone: Ids of the records that are not recalled any more.
        promised: Constraints that were in force in the boundary's cycle.
        at: When the past ended; the time since then does not count as spent.

    Raises:
        UnknownNameError: There is no such constraint or procedure.
        ConfigurationError: A constraint that was in force would be missing.
        ProcedureRejected: The gate refuses a text.
        StateError: A value cannot be set.
    """
    deps, context = mind.deps, mind.context
    pinned = _leave_out(mind, changes.without_constraints, promised)
    missing = [
        name for name in promised if name not in pinned and name not in changes.without_constraints
    ]
    if missing:
        raise ConfigurationError(
            f"{', '.join(map(repr, missing))} was in force there, and the run's recipe does not "
            "make it. Let the recipe's factory make it, or leave it out: --without-constraint "
            f"{missing[0]}."
        )
    versions = {name: _rewritten(mind, name, text) for name, text in changes.procedures.items()}
    memory = context.working_memory
    if gone or memory.in_cycle:
        waited = deps.clock.now() - at
        memory = _with_retrieval(memory, gone, changes.without_constraints, versions, waited)
    if changes.settings:
        schema = context.perceptual_state_schema
        memory = with_settings(memory, schema, changes.settings)
    if memory is not context.working_memory:
        context.restore(memory)


def _leave_out(mind: Mind, names: Collection[str], promised: Collection[str]) -> tuple[str, ...]:
    rules = mind.deps.constraints
    known = {*rules.pin(), *promised}
    for name in names:
        if name not in known:
            raise UnknownNameError("constraint", name, known)
        rules.leave_out(name)
    return rules.pin()


def _rewritten(mind: Mind, name: str, text: str) -> int:
    """The version that a developer's text became."""
    procedures = mind.deps.procedures
    made = procedures.rewrite(name, text, author=AUTHOR, reason=REASON)
    if isinstance(made, PendingRewrite):
        made = procedures.approve(made.id, by=AUTHOR)
    return made.version


def _with_retrieval(
    memory: WorkingMemory,
    gone: Collection[str],
    constraints: Collection[str],
    versions: Mapping[str, int],
    waited: timedelta,
) -> WorkingMemory:
    """The working memory with the cycle's Retrieval as the changes make it."""
    cognitive = memory.cognitive_state
    was = cognitive.retrieval
    if was is None:
        return memory
    update: dict[str, object] = {
        "records": tuple(hit for hit in was.records if hit.record.id not in gone)
    }
    if memory.in_cycle:
        update["constraints"] = tuple(name for name in was.constraints if name not in constraints)
        update["procedures"] = {**was.procedures, **versions}
        update["at"] = was.at + max(waited, timedelta())
    retrieval: RetrievalOutcome = was.model_copy(update=update)
    changed = cognitive.model_copy(update={"retrieval": retrieval})
    return memory.model_copy(update={"cognitive_state": changed})
