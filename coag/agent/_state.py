"""The saved state of a whole mind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag.errors import CoagError, StateError
from coag.schema import ActionCall, random_state, set_random

from ._memories import memory_location
from ._mind import Mind


class AgentState(BaseModel):
    """A mind as JSON. AssistantAgent's state is read too: `llm_context` with its messages."""

    model_config = ConfigDict(extra="ignore")

    type: str = "CoagAgentState"
    version: str = "1.0.0"
    llm_context: dict[str, Any] = Field(default_factory=dict)
    """The context's state: working memory, and plain messages for any AutoGen context."""
    procedures: dict[str, Any] | None = None
    """Every version of them; empty where they are as the developer gave them, None where it is not
    known, as in AssistantAgent's state."""
    modules: dict[str, Any] = Field(default_factory=dict)
    detector: dict[str, Any] = Field(default_factory=dict)
    ids: dict[str, int] = Field(default_factory=dict)
    random: Any = None
    """State of the random source; None while nothing was drawn from it."""
    turn: int = 0
    pending: list[ActionCall] = Field(default_factory=list[ActionCall])
    """Actions that had begun and not ended when it was saved: nobody knows whether they had
    their effect, and they are not run again."""
    long_term_memory: str | None = None
    """Where long-term memory rests; its records are not part of a state. None for RAM."""


async def save_agent_state(mind: Mind, turn: int) -> AgentState:
    """Everything that the mind holds besides its long-term memory, which lasts by itself."""
    deps = mind.deps
    return AgentState(
        llm_context=dict(await mind.context.save_state()),
        procedures={} if deps.procedures.as_given else dict(deps.procedures.save_state()),
        modules=deps.modules.save_state(),
        detector=deps.detector.save_state(),
        ids=deps.ids.save(),
        random=None if mind.fresh_random() else random_state(deps.random),
        turn=turn,
        pending=list(deps.actions.running.values()),
        long_term_memory=memory_location(deps.memory),
    )


def read_agent_state(state: object) -> AgentState:
    """A saved state, with its fields as they must be.

    Raises:
        StateError: It is none; names the field that cannot be.
    """
    if not isinstance(state, Mapping):
        raise StateError(
            f"This is no agent's state but a {type(state).__name__}. Give what save_state() gave."
        )
    try:
        return AgentState.model_validate(dict(cast("Mapping[str, Any]", state)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        given = repr(first["input"])[:80]
        raise StateError(
            f"This is no agent's state: {where}: {first['msg']} (got {given}). Give what "
            "save_state() gave."
        ) from error


async def load_agent_state(state: AgentState, mind: Mind) -> int:
    """Goes on from a saved state and returns its turn.

    Where it cannot be loaded, the mind is as it was.

    Raises:
        StateError: It is no agent's state, one of a newer version, or damaged.
    """
    _check_kind(state)
    before = await save_agent_state(mind, 0)
    try:
        return await _apply(state, mind)
    except (CoagError, ValueError, TypeError, KeyError) as error:
        await _apply(before, mind)
        raise StateError(f"The saved state cannot be loaded: {error}") from error


def _check_kind(state: AgentState) -> None:
    if not state.llm_context:
        raise StateError("This is no agent's state: it has no 'llm_context'.")
    if state.type not in ("CoagAgentState", "AssistantAgentState"):
        raise StateError(f"This is a {state.type}, not the state of an agent.")
    if state.version.partition(".")[0] != "1":
        raise StateError(
            f"This state is of version {state.version!r}; this coag reads versions 1. Update coag."
        )


async def _apply(state: AgentState, mind: Mind) -> int:
    deps = mind.deps
    await mind.context.load_state(state.llm_context)
    if state.procedures == {}:
        deps.procedures.undo_all()
    elif state.procedures is not None:
        deps.procedures.load_state(state.procedures)
    deps.modules.load_state(state.modules)
    deps.detector.load_state(state.detector)
    deps.ids.load(state.ids)
    deps.actions.running.clear()
    deps.actions.running.update({call.id: call for call in state.pending})
    _note_other_memory(state, mind)
    if state.random is not None:
        set_random(deps.random, state.random)
    else:
        deps.random.seed(mind.seed)
    return state.turn


def _note_other_memory(state: AgentState, mind: Mind) -> None:
    """Says in the trace that this agent remembers elsewhere than the saved one did."""
    saved, here = state.long_term_memory, memory_location(mind.deps.memory)
    if saved is None or saved == here:
        return
    text = (
        f"The state was saved by an agent whose long-term memory rests in {saved!r}; this one's "
        f"rests in {here or 'RAM'!r}, so it recalls other records."
    )
    mind.deps.note(mind.context, "memory", text)
