"""The hooks by which a domain shapes its context; all have defaults for a general assistant."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, cast

from coag.schema import Candidate, Evaluation, Percept, Phase, Prompt, Trust

from ._rendering import PhaseMaterial, Renderer
from ._states import AssistantState, StateT, dump_state, load_state
from ._working_memory import WorkingMemory


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
        """The pydantic model of the perceptual state."""
        return cast("type[StateT]", AssistantState)

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

    def _get_state_description(self, state: StateT) -> str:
        """The state in words for the prompt; empty to leave the section out."""
        if not isinstance(state, AssistantState):
            return state.model_dump_json(exclude_none=True)
        if not state.tool_calls:
            return ""
        ended = "failed" if state.last_failed else "succeeded"
        return f"{state.tool_calls} tool call(s) so far; the last, {state.last_tool}, {ended}."

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
        kept = {key: dumped[key] for key in sorted(dumped) if key not in self.no_progress_fields}
        return repr(kept)

    def _opens_goal(self, percept: Percept) -> bool:
        """Whether a message sets the goal.

        By default the user's does if no goal is open; somebody else's only if there is none.
        """
        taken = self._memory.goal_open if percept.trust is Trust.USER else self._memory.goal
        return bool(percept.content) and not taken

    def _memory_shown(self) -> WorkingMemory:
        """Working memory as prompts show it."""
        return self._memory

    # ---- what the cycle calls: the hooks, upon the state as it is now ----

    def describe(self) -> str:
        """The perceptual state in words."""
        return self._get_state_description(self.state)

    def retrieval_query(self) -> str:
        """What long-term memory is to be searched for now."""
        return self._get_retrieval_query(self.state)

    def episodic_filter(self) -> dict[str, Any] | None:
        """The filter on episodic recall now."""
        wanted = self._get_episodic_context_filter(self.state)
        return None if wanted is None else dict(wanted)

    def memory_metadata(self) -> dict[str, str | int | float | bool]:
        """Metadata for records written now."""
        return dict(self._get_memory_metadata(self.state))

    def procedure_values(self) -> Mapping[str, str]:
        """Values for the placeholders of procedures."""
        return self._get_procedure_values()

    def project(self, candidate: Candidate) -> StateT | None:
        """The predicted state after a candidate, or None without a forward model."""
        return self._project(candidate, self.state)

    def describe_predictions(self, evaluations: Sequence[Evaluation]) -> dict[str, str]:
        """The predicted states of surviving candidates as the domain tells them, by id."""
        return {
            judged.candidate_id: self._told(judged.projection)
            for judged in evaluations
            if judged.survived and judged.projection is not None
        }

    def _told(self, projection: Mapping[str, Any]) -> str:
        if type(self)._get_prediction_description is DomainHooks._get_prediction_description:  # pyright: ignore[reportUnknownMemberType] - of any state
            return json.dumps(projection, ensure_ascii=False)
        return self._get_prediction_description(
            load_state(self.perceptual_state_schema, projection)
        )

    def gain(self, projection: StateT) -> float | None:
        """How much nearer the goal the predicted state is, -1 to 1; None without a value."""
        before, after = self._value(self.state), self._value(projection)
        if before is None or after is None:
            return None
        return max(-1.0, min(1.0, round(after - before, 3)))

    @property
    def has_forward_model(self) -> bool:
        """Whether the domain predicts what candidates lead to; its prediction may fail."""
        return type(self)._project is not DomainHooks._project  # pyright: ignore[reportUnknownMemberType] - of any state

    def propose_grounded(self) -> Sequence[Candidate] | None:
        """The legal candidates now, or None where the domain does not list them."""
        return self._propose_grounded(self.state)

    def progress_key(self) -> str:
        """What must change for a failed action to be worth repeating."""
        return self._progress_key(self.state)
