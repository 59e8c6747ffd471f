"""`Awareness`: situational awareness as a cognitive module."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from inspect import isawaitable, signature
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import ValidationError

from coag.awareness.dynamics import Archive, DynamicsSettings, weighed
from coag.awareness.engine import Adapter, injected, new_state, observed, of_domain
from coag.awareness.observation import Observation, ObservedEvent, load_state, where_wrong
from coag.awareness.resolving import NameResolver
from coag.awareness.state import (
    AwarenessState,
    CanI,
    Goal,
    Names,
    SelfModel,
    TransitionType,
    folded,
)
from coag.errors import AwarenessError, ConfigurationError
from coag.schema import (
    Candidate,
    Clock,
    Constraint,
    Declarable,
    ExecutionOutcome,
    Imported,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    RetrievalOutcome,
    Section,
    Situation,
    SystemClock,
    Trust,
    Value,
    Verdict,
)
from coag.store import Embedder

from .keeper import Keeper, Kept, Moved, Resting
from .rules import Standing, by_rules, with_return
from .settings import AGENT_DYNAMICS, AwarenessSettings
from .tool_adapter import PerceptAdapter, ToolAdapter

if TYPE_CHECKING:
    from coag.awareness.perception import Perception


# ---- The check before an action, as a constraint ----


@dataclass(frozen=True, slots=True)
class CanIRule:
    """Forbids what the self model says the agent cannot do, may not do, or has no means for."""

    name: str
    """How logs call it."""
    self_model: SelfModel
    """As it stood when the cycle began."""
    own_actions: Names
    """Actions of the agent's own: only what is forbidden, or a limitation, holds for them."""

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges an action by its name."""
        del state, projection
        answer = self.can_i(candidate.action)
        return Verdict.allow() if answer.yes else Verdict.forbid(" ".join(answer.reasons))

    def can_i(self, action: str) -> CanI:
        """The verdict of the self model, or of its prohibitions alone for an own action."""
        if SelfModel(capabilities=self.own_actions).can_i(action).capable:
            known = self.self_model
            rules = SelfModel(limitations=known.limitations, forbidden=known.forbidden)
            return rules.can_i(action)
        return self.self_model.can_i(action)


# ---- What the program declares of the agent, in a state that knows more of it ----


_DECLARED = ("capabilities", "limitations", "needs", "allowed", "forbidden")
"""Fields of the self model that only a program says."""


def with_declared(state: AwarenessState, declared: SelfModel | None) -> AwarenessState:
    """The state with what is declared; what was found out since stays, as resources and failures.

    A resource that is declared and known stays as it was last read.
    """
    if declared is None:
        return state
    known = state.self_model
    names = {folded(one.name) for one in known.resources}
    new = tuple(one for one in declared.resources if folded(one.name) not in names)
    self_model = known.model_copy(
        update={
            **{name: getattr(declared, name) for name in _DECLARED},
            "resources": (*known.resources, *new),
            "failures": known.failures or declared.failures,
        }
    )
    return state.model_copy(update={"self_model": self_model})


# ---- What the rules and the domain saw in one percept, as one observation ----


_SINGLE = frozenset({"event", "failure"})


def joined(rules: Observation, domain: Observation) -> Observation:
    """Both; where each has an event, the domain's, unless it only says that things go on."""
    together: dict[str, object] = {
        name: (*getattr(rules, name), *getattr(domain, name))
        for name in Observation.model_fields
        if name not in _SINGLE
    }
    together["event"] = _event(rules.event, domain.event)
    together["failure"] = domain.failure or rules.failure
    return rules.model_copy(update=together)


def _event(rules: ObservedEvent | None, domain: ObservedEvent | None) -> ObservedEvent | None:
    if rules is None or domain is None:
        return domain or rules
    return rules if domain.type is TransitionType.PROGRESS else domain


# ---- From a percept to what an adapter takes ----


Raw = Mapping[str, object] | None
"""An adapter's raw input; None where a percept says nothing to the domain."""
Reader = Callable[[Percept, AwarenessState], Raw | Awaitable[Raw]]
"""Gives an adapter's raw input for a percept, where things stand so."""


def fields_of(percept: Percept) -> Mapping[str, object]:
    """A percept as a `PerceptAdapter` takes it; images are left out."""
    return percept.model_dump(mode="json", exclude={"images"})


def is_heard(percept: Percept) -> bool:
    """Whether a percept is a message of somebody else."""
    return percept.kind is PerceptKind.MESSAGE and percept.trust is not Trust.DEVELOPER


def heard_by(perception: Perception) -> Callable[[Percept, AwarenessState], Awaitable[Raw]]:
    """A reader for the domains of talk and of code: messages are read by a perception.

    One that asks a model takes its time: give the agent `module_seconds` to match. Its calls are
    not in the trace, so that a replay asks again.
    """

    async def reads(percept: Percept, state: AwarenessState) -> Raw:
        return await perception.perceive(percept.content, state) if is_heard(percept) else None

    return reads


def reader_for(adapter: Adapter) -> Reader:
    """The reader that serves where none is given."""
    if isinstance(adapter, PerceptAdapter):
        return lambda percept, state: fields_of(percept)
    return lambda percept, state: {"message": percept.content} if is_heard(percept) else None


# ---- What an `Awareness` was made from, as JSON, and back ----


_VALUES: Mapping[str, type[Value]] = {
    "self_model": SelfModel,
    "settings": AwarenessSettings,
    "dynamics": DynamicsSettings,
}
_PARTS = ("adapter", "embedder", "clock", "archive", "reads")
"""What goes by import name, and by its fields."""


def arguments_of(given: Mapping[str, object]) -> dict[str, Any]:
    """The arguments that were given, as JSON; those that are None are left out.

    Raises:
        ConfigurationError: One of them cannot be had again; names it and says what to do.
    """
    return {name: _told(name, value) for name, value in given.items() if value is not None}


def arguments_from(told: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that `arguments_of` was given.

    Raises:
        ConfigurationError: Something that they name does not exist any more.
        ValidationError: They are none.
    """
    return {name: _given(name, value) for name, value in told.items()}


def _told(name: str, value: object) -> Any:
    if name in _PARTS:
        return _part(name, value)
    if isinstance(value, Value):
        return _plain(value.model_dump(exclude_defaults=True))
    return value


def _given(name: str, told: Any) -> Any:
    if name in _VALUES:
        return _VALUES[name].model_validate(told)
    if name not in _PARTS:
        return told
    found = Imported.model_validate(told).get()
    return found() if name == "adapter" and isinstance(found, type) else found


def _part(name: str, value: object) -> dict[str, Any]:
    """An import name, with fields; an adapter without arguments by its class: it keeps nothing."""
    kind = type(value)
    by_class = name == "adapter" and not (
        is_dataclass(kind) or isinstance(value, Declarable) or signature(kind).parameters
    )
    try:
        return Imported.of(kind if by_class else value).model_dump(mode="json", exclude_none=True)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{name}= of Awareness: {error} Or build the agent by a recipe, which is code."
        ) from error


def _plain(value: object) -> Any:
    """As JSON; a set in its order, so that equal values give equal JSON."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: _plain(one) for key, one in items}
    if isinstance(value, frozenset):
        return sorted(_plain(one) for one in cast("frozenset[object]", value))
    if isinstance(value, tuple | list):
        return [_plain(one) for one in cast("tuple[object, ...]", value)]
    return value.value if isinstance(value, Enum) else value


# ---- Situational awareness as a module of an agent's mind ----


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
