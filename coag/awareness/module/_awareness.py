"""Situational awareness as a module of an agent's mind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from inspect import isawaitable
from typing import Any

from pydantic import ValidationError

from coag.awareness._adapter import Adapter
from coag.awareness._domain import injected, new_state, observed, of_domain
from coag.awareness._loading import load_state
from coag.awareness._observation import GoalChange, Observation
from coag.awareness._problems import where_wrong
from coag.awareness._resolving import NameResolver
from coag.awareness._updating import updated
from coag.awareness.state import AwarenessState, CanI, Goal, SelfModel, TransitionType, folded
from coag.errors import AwarenessError
from coag.schema import (
    Clock,
    Constraint,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Section,
    Situation,
    SystemClock,
    Trust,
)
from coag.store import Embedder

from ._bounds import bounded
from ._can_i_rule import CanIRule
from ._declared import with_declared
from ._joining import joined
from ._noticing import id_of_repeated, id_of_stalled, without
from ._outcome_rules import observations_of, standing_after
from ._percept_adapter import PerceptAdapter
from ._percept_rules import by_rules, goal_text, open_goal, pursued, with_return
from ._reading import Reader, reader_for
from ._settings import AwarenessSettings
from ._standing import Standing
from ._tool_adapter import ToolAdapter

_PHASES = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION)
"""Where the situation counts; what is chosen and run follows from what these phases say."""
_ONWARD = (TransitionType.PROGRESS, TransitionType.DISCOVERY)


class Awareness:
    """Keeps where the agent stands, shows it to the model, and forbids what it cannot do.

    Give it as `CoagAgent(..., modules=[Awareness()])`. Goals, failures and stalls are seen by
    rules, without a model; what percepts mean in the domain is the adapter's to say. The state
    follows from percepts and outcomes and their times alone, so that a run that is resumed or
    replayed comes to the same state.

    Args:
        adapter: The domain; None for tools whatever they do (`ToolAdapter`).
        embedder: Recognises names by meaning; None recognises them by their form only.
        budget: Tokens of a section at most; the agent's own limit holds, too.
        clock: Tells when a new state begins.
        self_model: What the agent can and may do, and its resources. These declarations are the
            program's: they take the place of those in a state that is loaded.
        settings: What needs attention, how much is kept, how names are recognised.
        reads: Gives the adapter's raw input for a percept, e.g. `heard_by(perception)`. None
            gives a `PerceptAdapter` each percept's fields, and another adapter each message, not
            analysed.
        name: How logs and prompts call the module.

    Raises:
        ValueError: The budget is less than 1.
    """

    def __init__(
        self,
        adapter: Adapter | None = None,
        *,
        embedder: Embedder | None = None,
        budget: int = 500,
        clock: Clock | None = None,
        self_model: SelfModel | None = None,
        settings: AwarenessSettings | None = None,
        reads: Reader | None = None,
        name: str = "awareness",
    ) -> None:
        if budget < 1:
            raise ValueError(f"budget is in tokens and at least 1, not {budget!r}.")
        self.name = name
        self._adapter = adapter or ToolAdapter()
        self._budget = budget
        self._declared = self_model
        self._settings = settings or AwarenessSettings()
        self._resolver = NameResolver(self._settings.engine, embedder)
        self._reads = reads or reader_for(self._adapter)
        fresh = new_state(self._adapter, clock or SystemClock(), self._settings.engine)
        self._state = with_declared(fresh, self_model)
        self._standing = Standing()

    @property
    def state(self) -> AwarenessState:
        """Where the agent stands now."""
        return self._state

    @property
    def goal(self) -> Goal | None:
        """The open goal that the activity serves."""
        goals = self._state.goals.goals
        wanted = self._standing.goal
        return next((one for one in goals if one.id == wanted and one.is_open), None)

    def can_i(self, action: str) -> CanI:
        """The check before an action, as the constraint makes it."""
        return self._rule().can_i(action)

    async def observe(self, event: Percept | Outcome) -> None:
        """Takes in what was perceived and what was executed.

        Raises:
            AwarenessError: The domain cannot read a percept, or it names what does not exist. What
                the rules say of it holds all the same.
        """
        if isinstance(event, Percept):
            await self._perceive(event)
        elif isinstance(event, ExecutionOutcome):
            self._execute(event)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """The situation, for Reasoning, Proposal and Evaluation; it is data, not instruction."""
        if phase not in _PHASES:
            return None
        self._adopt(situation.goal)
        limit = min(budget, self._budget)
        text = injected(self._adapter, self._state, limit)
        if not text:
            return None
        return Section(
            title="Where you stand",
            text=text,
            source=self.name,
            trust=self._standing.trust,
            budget=limit,
        )

    def constraints(self) -> Sequence[Constraint]:
        """The check before an action, by the self model as it stands now."""
        return (self._rule(),)

    def save_state(self) -> Mapping[str, Any]:
        """The awareness state and what the module keeps beside it, as JSON."""
        return {
            "state": self._state.model_dump(mode="json"),
            "standing": self._standing.model_dump(mode="json"),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `save_state` gave; where it cannot, nothing changes.

        Raises:
            AwarenessError: It is no such state, or one of another domain or version.
        """
        loaded = of_domain(self._adapter, load_state(state.get("state", {})))
        try:
            standing = Standing.model_validate(state.get("standing", {}))
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise AwarenessError(
                f"This is no state of awareness: standing.{path}: {problem}"
            ) from error
        self._state, self._standing = with_declared(loaded, self._declared), standing

    def _rule(self) -> CanIRule:
        own = self._settings.own_actions
        return CanIRule(f"{self.name}_can_i", self._state.self_model, own)

    async def _perceive(self, percept: Percept) -> None:
        rules = by_rules(percept, self._state, self.goal, self._settings)
        if rules is None:
            return
        if not isinstance(self._adapter, PerceptAdapter):
            rules = with_return(rules, percept)
        seen = rules
        try:
            raw = self._reads(percept, self._state)
            raw = await raw if isawaitable(raw) else raw
            if raw is not None:
                seen = joined(rules, observed(self._adapter, raw, self._state))
        finally:  # whatever the domain raises, and however long it takes, the rules hold
            self._settle_at_least(percept, seen, rules)

    def _settle_at_least(self, percept: Percept, seen: Observation, rules: Observation) -> None:
        """Takes in all that was seen, or the rules alone where the state refuses the rest."""
        try:
            self._settle(percept, seen)
        except AwarenessError:
            self._settle(percept, rules)
            raise

    def _settle(self, percept: Percept, seen: Observation) -> None:
        """Takes in what a percept says."""
        goal, settled = self.goal, set[str]()
        standing = self._standing.with_text_of(percept.trust)
        if percept.kind is not PerceptKind.MESSAGE and seen.event and seen.event.type in _ONWARD:
            standing = standing.model_copy(update={"idle": 0})
            if goal is not None:
                settled.add(id_of_stalled(goal))
                change = GoalChange(goal=goal.id, succeeded=True)
                seen = seen.model_copy(update={"goal_changes": (*seen.goal_changes, change)})
        state = self._updated(self._state, seen, percept.at)
        if percept.kind is PerceptKind.MESSAGE and percept.sets_goal:
            standing = _serving(percept.content, state, standing, self._settings)
            settled |= {id_of_stalled(goal)} if goal is not None else set()
        self._keep(state, standing, settled)

    def _execute(self, outcome: ExecutionOutcome) -> None:
        goal, state = self.goal, self._state
        standing = standing_after(self._standing, outcome)
        for seen in observations_of(outcome, state, standing, goal, self._settings):
            state = self._updated(state, seen, outcome.at)
        statuses = {done.status for done in outcome.executed}
        if ExecutionStatus.FAILED in statuses:
            standing = standing.with_text_of(Trust.UNTRUSTED)
        settled = {
            id_of_repeated(done.action)
            for done in outcome.executed
            if not standing.times(done.action)
        }
        if goal is not None and outcome.response is not None:
            settled.add(id_of_stalled(goal))
        self._keep(state, standing, settled)

    def _adopt(self, request: str) -> None:
        """Serves the activity's goal where no percept has told of it: a module that came later."""
        if not request.strip():
            return
        known = {one.id: one for one in self._state.goals.goals}.get(self._standing.goal or "")
        description = goal_text(request, self._settings)
        if known is not None and folded(known.description) == folded(description):
            return
        state = self._updated(self._state, pursued(description, self._state), self._state.at)
        standing = _serving(request, state, self._standing, self._settings)
        self._keep(state, standing.with_text_of(Trust.UNTRUSTED), ())

    def _updated(self, state: AwarenessState, seen: Observation, at: datetime) -> AwarenessState:
        return updated(state, seen, at, resolver=self._resolver)

    def _keep(self, state: AwarenessState, standing: Standing, settled: Collection[str]) -> None:
        """Makes this the state, without the attention items that are settled, within its bounds."""
        attention = without(state.attention, settled)
        if attention is not state.attention:
            state = state.model_copy(update={"attention": attention})
        self._state = bounded(state, self._settings, standing.goal)
        self._standing = standing


def _serving(
    request: str, state: AwarenessState, standing: Standing, settings: AwarenessSettings
) -> Standing:
    """That the activity serves this request from now on."""
    goal = open_goal(state, goal_text(request, settings))
    return standing.model_copy(update={"goal": goal.id if goal else None, "idle": 0})
