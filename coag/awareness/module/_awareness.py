"""Situational awareness as a module of an agent's mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Any, Self

from pydantic import ValidationError

from coag.awareness._adapter import Adapter
from coag.awareness._domain import injected, new_state, observed, of_domain
from coag.awareness._loading import load_state
from coag.awareness._observation import Observation
from coag.awareness._problems import where_wrong
from coag.awareness._resolving import NameResolver
from coag.awareness.dynamics import Archive, DynamicsSettings, weighed
from coag.awareness.state import AwarenessState, CanI, Goal, SelfModel
from coag.errors import AwarenessError
from coag.schema import (
    Clock,
    Constraint,
    ExecutionOutcome,
    Outcome,
    Percept,
    Phase,
    RetrievalOutcome,
    Section,
    Situation,
    SystemClock,
)
from coag.store import Embedder

from ._arguments import arguments_from, arguments_of
from ._can_i_rule import CanIRule
from ._declared import with_declared
from ._joining import joined
from ._keeper import Keeper, Kept, Moved
from ._percept_adapter import PerceptAdapter
from ._percept_rules import by_rules, with_return
from ._reading import Reader, reader_for
from ._resting import Resting
from ._settings import AGENT_DYNAMICS, AwarenessSettings
from ._standing import Standing
from ._tool_adapter import ToolAdapter

_PHASES = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION)
"""Where the situation counts; what is chosen and run follows from what these phases say."""


class Awareness:
    """Keeps where the agent stands, shows it to the model, and forbids what it cannot do.

    Give it as `CoagAgent(..., modules=[Awareness()])`. Goals, failures and stalls are seen by
    rules, without a model; what percepts mean in the domain is the adapter's to say. The state
    follows from percepts and outcomes and their times alone, and from what the archive gives back,
    so that a run that is resumed or replayed comes to the same state.

    Args:
        adapter: The domain; None for tools whatever they do (`ToolAdapter`).
        embedder: Recognises names by meaning; None recognises them by their form only.
        budget: Tokens of a section at most; the agent's own limit holds, too.
        clock: Tells when a new state begins.
        self_model: What the agent can and may do, and its resources. These declarations are the
            program's: they take the place of those in a state that is loaded.
        settings: What needs attention, how much is kept, how names are recognised.
        dynamics: How the state changes by itself. None looks ahead (`AGENT_DYNAMICS`);
            `DynamicsSettings()` is nothing at all, `DynamicsSettings.all_on()` all of it.
        archive: Where goals and things rest that left, until they are mentioned again; None loses
            them.
        reads: Gives the adapter's raw input for a percept, e.g. `heard_by(perception)`. None
            gives a `PerceptAdapter` each percept's fields, and another adapter each message, not
            analysed.
        name: How logs and prompts call the module.

    Raises:
        ValueError: The budget is less than 1.
    """

    def __init__(  # noqa: PLR0913 - what a domain needs, and how it is kept
        self,
        adapter: Adapter | None = None,
        *,
        embedder: Embedder | None = None,
        budget: int = 500,
        clock: Clock | None = None,
        self_model: SelfModel | None = None,
        settings: AwarenessSettings | None = None,
        dynamics: DynamicsSettings | None = None,
        archive: Archive | None = None,
        reads: Reader | None = None,
        name: str = "awareness",
    ) -> None:
        if budget < 1:
            raise ValueError(f"budget is in tokens and at least 1, not {budget!r}.")
        self.name = name
        self._given: Mapping[str, object] = {
            "adapter": adapter,
            "embedder": embedder,
            "budget": budget,
            "clock": clock,
            "self_model": self_model,
            "settings": settings,
            "dynamics": dynamics,
            "archive": archive,
            "reads": reads,
            "name": name,
        }
        self._adapter = adapter or ToolAdapter()
        self._budget = budget
        self._clock = clock or SystemClock()
        self._declared = self_model
        self._settings = settings or AwarenessSettings()
        self._dynamics = dynamics or AGENT_DYNAMICS
        resolver = NameResolver(self._settings.engine, embedder)
        self._keeper = Keeper(self._settings, self._dynamics, resolver)
        self._resting = Resting(archive, resolver, self._dynamics.returning)
        self._reads = reads or reader_for(self._adapter)
        self._kept = self._begun()

    @property
    def state(self) -> AwarenessState:
        """Where the agent stands now."""
        return self._kept.state

    @property
    def goal(self) -> Goal | None:
        """The open goal that the activity serves."""
        return self._kept.goal

    def can_i(self, action: str) -> CanI:
        """The check before an action, as the constraint makes it."""
        return self._rule().can_i(action)

    async def observe(self, event: Percept | Outcome) -> None:
        """Takes in what was perceived and what was executed.

        Raises:
            AwarenessError: The domain cannot read a percept, or it names what does not exist. What
                the rules say of it holds all the same.
            Exception: Whatever the archive raises. The state is what it is without that, and what
                left is given to the archive again with what leaves next.
        """
        if isinstance(event, Percept):
            self._serve(event.memory_scope)
            await self._perceive(event)
        elif isinstance(event, ExecutionOutcome):
            self._take(self._keeper.executed(self._kept, event))
        elif isinstance(event, RetrievalOutcome):
            self._serve(event.memory_scope)
        else:
            return
        await self._resting.put()

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """The situation, for Reasoning, Proposal and Evaluation; it is data, not instruction."""
        if phase not in _PHASES:
            return None
        self._take(self._keeper.adopted(self._kept, situation.goal))
        limit, decay = min(budget, self._budget), self._dynamics.decay
        shown = self.state if decay is None else weighed(self.state, decay)
        text = injected(self._adapter, shown, limit)
        if not text:
            return None
        return Section(
            title="Where you stand",
            text=text,
            source=self.name,
            trust=self._kept.standing.trust,
            budget=limit,
        )

    def constraints(self) -> Sequence[Constraint]:
        """The check before an action, by the self model as it stands now."""
        return (self._rule(),)

    def save_state(self) -> Mapping[str, Any]:
        """The awareness state and what the module keeps beside it, as JSON."""
        return {
            "state": self._kept.state.model_dump(mode="json"),
            "standing": self._kept.standing.model_dump(mode="json"),
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
        self._kept = Kept(with_declared(loaded, self._declared), standing)
        self._resting.serve(standing.serves)

    def reset_state(self) -> None:
        """Begins anew, as it was made; what rests in the archive stays there."""
        self._kept = self._begun()
        self._resting.begin()

    def to_arguments(self) -> Mapping[str, Any]:
        """What it was made from, as JSON; see `coag.schema.Declarable`. No state is in it.

        Raises:
            ConfigurationError: Something of it cannot be had again by an import name and fields.
        """
        return arguments_of(self._given)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """One made from what `to_arguments` gave.

        Raises:
            ConfigurationError: Something that it names does not exist any more.
        """
        return cls(**arguments_from(arguments))

    def _begun(self) -> Kept:
        fresh = new_state(self._adapter, self._clock, self._settings.engine)
        return Kept(with_declared(fresh, self._declared))

    def _rule(self) -> CanIRule:
        own = self._settings.own_actions
        return CanIRule(f"{self.name}_can_i", self.state.self_model, own)

    def _serve(self, scope: str | None) -> None:
        """Goes on for another person, where that is one; the agent has reset what is kept."""
        standing = self._kept.standing
        if scope is not None and scope != standing.serves:
            self._resting.serve(scope)
            serves = standing.model_copy(update={"serves": scope})
            self._kept = Kept(self._kept.state, serves)

    async def _perceive(self, percept: Percept) -> None:
        kept = self._kept
        rules = self._rules(percept, kept)
        if rules is None:
            return
        seen = rules
        try:
            raw = self._reads(percept, kept.state)
            raw = await raw if isawaitable(raw) else raw
            seen = self._joined(rules, raw, kept)
            returned = await self._resting.returned(kept, seen)
            if returned is not kept:  # all is read again in the light of what returned
                kept = returned
                rules = seen = self._rules(percept, kept) or rules
                seen = self._joined(rules, raw, kept)
        finally:  # whatever the domain raises, and however long it takes, the rules hold
            self._settle_at_least(kept, percept, seen, rules)

    def _rules(self, percept: Percept, kept: Kept) -> Observation | None:
        """What the rules see in a percept; None where there is nothing to see."""
        rules = by_rules(percept, kept.state, kept.goal, self._settings)
        if rules is None or isinstance(self._adapter, PerceptAdapter):
            return rules
        return with_return(rules, percept)

    def _joined(
        self, rules: Observation, raw: Mapping[str, object] | None, kept: Kept
    ) -> Observation:
        if raw is None:
            return rules
        return joined(rules, observed(self._adapter, raw, kept.state))

    def _settle_at_least(
        self, kept: Kept, percept: Percept, seen: Observation, rules: Observation
    ) -> None:
        """Takes in all that was seen, or the rules alone where the state refuses the rest."""
        try:
            self._take(self._keeper.perceived(kept, percept, seen))
        except AwarenessError:
            self._take(self._keeper.perceived(kept, percept, rules))
            raise

    def _take(self, moved: Moved) -> None:
        self._kept = moved.kept
        self._resting.add(moved.left)
