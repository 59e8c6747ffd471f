"""What a domain may override, and how the cycle calls it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Generic, cast, get_args, get_origin

from pydantic import BaseModel

from coag._util.json_diff import diff_patch, merge_patch
from coag.errors import StateError
from coag.memory import LongTermMemory, is_user_scope
from coag.schema import (
    Candidate,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    Reconciliation,
    Settlement,
    Trust,
    UnsettledAction,
)

from .prompts import PhaseMaterial, Renderer
from .states import AssistantState, StateT, dump_state, load_state
from .working_memory import WorkingMemory

_TELLING = (PerceptKind.TOOL_RETURN, PerceptKind.PROPERTY_CHANGE, PerceptKind.SIGNAL)
"""Kinds of percepts by which the state may show what became of an action."""


@lru_cache(maxsize=256)
def _named_state(kind: type) -> type[BaseModel]:
    """The state that a class, or the nearest of its bases, names: `Desk` in `CoagContext[Desk]`."""
    bases = [base for one in kind.__mro__ for base in one.__dict__.get("__orig_bases__", ())]
    for base in bases:
        if issubclass(get_origin(base) or object, DomainHooks):
            for named in get_args(base):
                state = getattr(named, "__bound__", named)
                if state not in (Any, BaseModel) and issubclass(state, BaseModel):
                    return state
    return AssistantState


class DomainHooks(Generic[StateT]):
    """What a subclass of `CoagContext` overrides; the names are the paper's (A.3).

    The cycle never calls these; it calls the public methods of `CoagContext`, which do.
    """

    no_progress_fields: ClassVar[frozenset[str]] = frozenset(
        {"clock", "time", "tick", "ticks", "step", "steps", "battery", "energy", "budget"}
    )
    """State fields whose change alone makes no failed action worth repeating."""

    _memory: WorkingMemory
    _renderer: Renderer

    @property
    def state(self) -> StateT:
        """The typed perceptual state; `CoagContext` keeps it."""
        raise NotImplementedError

    @property
    def perceptual_state_schema(self) -> type[StateT]:
        """The pydantic model of the perceptual state: what the class names in brackets.

        `class Ours(CoagContext[Desk])` has `Desk`; a class that names none has `AssistantState`.
        """
        return cast("type[StateT]", _named_state(type(self)))

    def _initial_state(self) -> StateT:
        """The state before anything was perceived; by default the schema's defaults."""
        return self.perceptual_state_schema()

    def _update_state_from_function_result(self, state: StateT, percept: Percept) -> StateT:
        """The state after a tool's return (`percept.source`, `.content`, `.data`, `.is_error`)."""
        if not isinstance(state, AssistantState):
            return state
        update = {
            "tool_calls": state.tool_calls + 1,
            "successes": state.successes + (0 if percept.is_error else 1),
            "last_tool": percept.source,
            "last_failed": percept.is_error,
        }
        return state.model_copy(update=update)

    def _update_state_from_percept(self, state: StateT, percept: Percept) -> StateT:
        """The state after a property change or a signal."""
        return state

    def _update_state_from_unknown_outcome(self, state: StateT, percept: Percept) -> StateT:
        """The state after an action (`percept.source`, `.arguments`) of unknown outcome.

        A domain may assume the worst here, e.g. that money is gone. By default nothing changes.
        """
        return state

    def _update_state_from_settlement(self, state: StateT, percept: Percept) -> StateT:
        """The state once it is known what became of such an action (`percept.settlement`).

        By default what the forward model predicts, if it happened.
        """
        if percept.settlement is not Settlement.HAPPENED:
            return state
        done = Candidate(id="", action=percept.source, arguments=percept.arguments or {})
        projection = self._project(done, state)
        return state if projection is None else projection

    def _settles(self, percept: Percept, action: UnsettledAction) -> bool:
        """Whether a percept shows the outcome of an action whose outcome was unknown.

        By default it does where it changes a part of the state that the action would have changed
        by the forward model, unless the percept is the return of a call that would change that
        part as well. An answer to exactly the same call shows it, too.
        """
        same = (percept.source, percept.arguments) == (action.action, action.arguments)
        if percept.kind is PerceptKind.TOOL_RETURN and same:
            return not percept.is_error
        if percept.kind not in _TELLING or not percept.state_patch:
            return False
        changed = _leaves(percept.state_patch) & self._touched(action.action, action.arguments)
        if percept.kind is PerceptKind.TOOL_RETURN:
            changed -= self._touched(percept.source, percept.arguments)
        return bool(changed)

    def _touched(self, action: str, arguments: Mapping[str, Any] | None) -> set[tuple[str, ...]]:
        """The parts of the state that the forward model says a call changes now."""
        call = Candidate(id="", action=action, arguments=dict(arguments or {}))
        projection = self._project(call, self.state)
        if projection is None:
            return set()
        return _leaves(diff_patch(self._memory.perceptual_state, dump_state(projection)))

    async def _reconcile(self, action: UnsettledAction) -> Reconciliation:
        """Finds out what became of an action of unknown outcome.

        Asked after a time-out and when a run is resumed, before the model is. It looks, and
        changes nothing.
        """
        return "unknown"

    def _get_state_description(self, state: StateT) -> str:
        """The state in words for the prompt; empty to leave the section out."""
        # What the default state knows is in "What just happened" and "Your earlier actions".
        return "" if isinstance(state, AssistantState) else state.model_dump_json(exclude_none=True)

    def _get_retrieval_query(self, state: StateT) -> str:
        """What long-term memory is searched for: by default the goal and the last message."""
        del state
        memory = self._memory
        last = memory.dialogue[-1].content if memory.dialogue else ""
        return memory.goal if last == memory.goal else f"{memory.goal}\n{last}".strip()

    def _get_episodic_context_filter(self, state: StateT) -> Mapping[str, Any] | None:
        """A metadata filter on episodic recall, e.g. `{"place": "kitchen"}`."""
        return None

    def _get_memory_metadata(self, state: StateT) -> Mapping[str, str | int | float | bool]:
        """Metadata for the records that the agent writes now, e.g. where it is."""
        return {}

    def _get_memory_scope(self, state: StateT) -> str | None:
        """Whom the agent serves now, as the scope of his or her records: `user_scope(id)`, or None.

        For a domain that serves many people. From then on records are written for this person, and
        only this person's are recalled, with those of the agent itself, which it only reads. While
        it is None, nothing is remembered. When it changes, working memory drops what was said and
        done for the person before. Take the id from what a login returned, never from what somebody
        wrote. By default one memory for all.
        """
        return None

    def _get_procedure_values(self) -> Mapping[str, str]:
        """Values for the placeholders of the domain's procedures; the same in every cycle."""
        return {}

    def _build_prompt_for_phase(self, phase: Phase, material: PhaseMaterial) -> Prompt:
        """The prompt of a phase, from working memory and what the cycle brings."""
        return self._renderer.render(phase, self._memory_shown(), material)

    def _project(self, candidate: Candidate, state: StateT) -> StateT | None:
        """The state that the candidate is predicted to lead to, or None without a model."""
        return None

    def _get_prediction_description(self, projection: StateT) -> str:
        """A predicted state as Evaluation and Selection are shown it; by default all of it."""
        return json.dumps(dump_state(projection), ensure_ascii=False)

    def _value(self, state: StateT) -> float | None:
        """How near the goal a state is, by the domain's heuristic; None where it has none.

        The difference between the predicted state and the state now, limited to -1..1, is a
        candidate's gain: Evaluation shows it, and ranking adds it to the model's score. Scale it
        so that a good step is worth about 0.5 (CoALA §4.6: proposals may be evaluated by rules).
        """
        return None

    def _propose_grounded(self, state: StateT) -> Sequence[Candidate] | None:
        """The legal candidates now, where the action space is small and finite."""
        return None

    def _progress_key(self, state: StateT) -> str:
        """What must change for a failed action to be worth repeating."""
        if isinstance(state, AssistantState):
            return f"successes={state.successes}"
        dumped = dump_state(state)
        return repr({key: dumped[key] for key in sorted({*dumped} - self.no_progress_fields)})

    def _opens_goal(self, percept: Percept) -> bool:
        """Whether a message sets the goal.

        By default the user's does if no goal is open; somebody else's only if there is none.
        """
        taken = self._memory.goal_open if percept.trust is Trust.USER else self._memory.goal
        return bool(percept.content) and not taken

    def _memory_shown(self) -> WorkingMemory:
        """Working memory as prompts show it."""
        return self._memory

    # ---- one agent, many people: whose memory counts now, and when somebody else is served ----

    @property
    def keeps_people_apart(self) -> bool:
        """Whether the domain decides whose records are read and written."""
        return type(self)._get_memory_scope is not DomainHooks._get_memory_scope  # pyright: ignore[reportUnknownMemberType] - of any state

    def memory_scope(self) -> str | None:
        """Whose records are read and written now; empty for nobody's, None where one has all.

        Raises:
            StateError: The domain's hook raised, or gave no scope of a person; or the state is out
                of date, so that somebody may have logged in.
        """
        if not self.keeps_people_apart:
            return None
        if self._memory.stale is not None:
            raise StateError(
                f"It is not known who is served, until the state is reset: {self._memory.stale}"
            )
        return self._scope_in(self.state)

    def memory_for_now(self, memory: LongTermMemory) -> LongTermMemory:
        """The memory as it is read now: that of the person who is served, where there are many.

        Raises:
            StateError: The domain's hook did not say whose.
            ConfigurationError: The memory reads a person's records by itself.
        """
        scope = self.memory_scope()
        if scope is None:
            return memory
        return memory.within(scope) if scope else memory.shared()

    def _scope_in(self, state: StateT) -> str:
        try:
            scope = cast("object", self._get_memory_scope(state))
        except Exception as error:  # the domain's own code; without its answer nothing is recalled
            raise StateError(f"_get_memory_scope raised {type(error).__name__}: {error}") from error
        if scope is not None and not (isinstance(scope, str) and is_user_scope(scope)):
            raise StateError(
                f"_get_memory_scope gave {scope!r}, which is no scope of a person. Give "
                "coag.memory.user_scope(ID), or None while nobody is known."
            )
        return scope or ""

    def _with_person(self, percept: Percept) -> Percept:
        """The percept with whom the agent serves from now on, where it brings another."""
        if not self.keeps_people_apart:
            return percept
        raw = self._memory.perceptual_state
        after = merge_patch(raw, percept.state_patch) if percept.state_patch else raw
        try:
            scope = self._scope_in(load_state(self.perceptual_state_schema, after))
        except StateError as error:  # without a scope nobody's records are read
            return percept.model_copy(update={"memory_scope": "", "hook_problem": str(error)})
        if scope == self._memory.memory_scope:
            return percept
        return percept.model_copy(update={"memory_scope": scope})


def _leaves(patch: Mapping[str, Any], path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """The paths that a merge patch changes."""
    result: set[tuple[str, ...]] = set()
    for name, value in patch.items():
        here = (*path, name)
        result |= (
            _leaves(cast("dict[str, Any]", value), here) if isinstance(value, dict) else {here}
        )
    return result
