"""`Awareness`: situational awareness as a cognitive module of an agent.

It follows what the cycle perceives and executes. Rules see what is the same in every domain: the
goal that the activity serves, failures with their lessons, repeated failures, cycles without
progress, unknown outcomes (see `activity`). An adapter reads the domain: `ToolAdapter` reads
structured tool results, a `PerceptAdapter` of your own reads whatever your tools return. The
situation is shown in the prompts of Reasoning, Proposal and Evaluation as data; `can_i` is a
constraint.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from inspect import isawaitable, signature
from typing import Any, Self

from pydantic import ValidationError

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
    folded,
)
from coag.store import Embedder

from .activity import (
    ActivityStatus,
    ActivityStep,
    ActivityUpdater,
    AwarenessSettings,
    joined_observation,
    percept_by_rules,
)
from .adapters.tools import PerceptAdapter, ToolAdapter
from .archive import ApartArchive, Archive, ArchivedItem, recalled
from .dynamics import DynamicsSettings, ProjectionSettings, weighed
from .engine import Adapter, injected, new_state, observed, of_domain
from .fields import Names
from .goals import Goal
from .names import NameResolver
from .observation import Observation, load_state, where_wrong
from .perception import Perception
from .state import AwarenessState, CanI, SelfModel
from .stores import StateStore

AGENT_DYNAMICS = DynamicsSettings(projection=ProjectionSettings())
"""What is on in an agent by default.

Projection adds a few attention items and keeps little. Decay is off: the state is bounded anyway,
and a map should forget nothing while there is room. Learning is off: it changes priorities.
"""

# ---- The check before an action, as a constraint ----


@dataclass(frozen=True, slots=True)
class CanIRule:
    """Forbids what the self model says the agent cannot do, may not do, or lacks resources for."""

    name: str
    """The name in logs."""
    self_model: SelfModel
    """As it was when the cycle began."""
    own_actions: Names
    """The agent's own actions: only prohibitions and limitations hold for them."""

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges an action by its name."""
        del state, projection
        answer = self.can_i(candidate.action)
        return Verdict.allow() if answer.yes else Verdict.forbid(" ".join(answer.reasons))

    def can_i(self, action: str) -> CanI:
        """The verdict of the self model, or of its prohibitions alone for an own action."""
        known = self.self_model
        if SelfModel(capabilities=self.own_actions).can_i(action).capable:
            known = SelfModel(limitations=known.limitations, forbidden=known.forbidden)
        return known.can_i(action)


# ---- From a percept to an adapter's raw input ----

Raw = Mapping[str, object] | None
"""An adapter's raw input; None where a percept means nothing in the domain."""
Reader = Callable[[Percept, AwarenessState], Raw | Awaitable[Raw]]
"""Gives an adapter's raw input for a percept in a state."""


def fields_of(percept: Percept) -> Mapping[str, object]:
    """A percept as a `PerceptAdapter` takes it; images are left out."""
    return percept.model_dump(mode="json", exclude={"images"})


def _is_from_others(percept: Percept) -> bool:
    return percept.kind is PerceptKind.MESSAGE and percept.trust is not Trust.DEVELOPER


def heard_by(perception: Perception) -> Callable[[Percept, AwarenessState], Awaitable[Raw]]:
    """A reader for the domains of talk and of code: messages are read by a perception.

    One that asks a model takes its time: give the agent `module_seconds` to match. Its calls are
    not in the trace, so that a replay asks again.
    """

    async def reads(percept: Percept, state: AwarenessState) -> Raw:
        if not _is_from_others(percept):
            return None
        return await perception.perceive(percept.content, state)

    return reads


def _default_reader(adapter: Adapter) -> Reader:
    if isinstance(adapter, PerceptAdapter):
        return lambda percept, state: fields_of(percept)
    return lambda percept, state: {"message": percept.content} if _is_from_others(percept) else None


# ---- The archive and the store beside the state ----

_WAITING = 500
"""Items that wait for an archive that fails; of more the oldest are dropped."""
_HISTORY = 100
"""Stored versions among which the one of a time is looked for."""


class _ArchiveQueue:
    """What waits for an archive, which may fail or be slow without any effect on the state."""

    def __init__(self, archive: Archive | None) -> None:
        self._all = archive
        self.archive = archive
        self._waiting: tuple[ArchivedItem, ...] = ()

    def serve(self, scope: str | None) -> None:
        """Uses a person's part, none while nobody is known (empty), or for None the whole.

        An archive that cannot separate people is not used for any.
        """
        part = archive = self._all
        if scope is not None:
            part = archive.within(scope) if scope and isinstance(archive, ApartArchive) else None
        if scope is not None or part is not self.archive:
            self.archive, self._waiting = part, ()

    def add(self, items: Sequence[ArchivedItem]) -> None:
        if self.archive is not None:
            self._waiting = (*self._waiting, *items)[-_WAITING:]

    async def put(self) -> None:
        """Gives the archive what waits; if it raises, the items wait on."""
        if self.archive is not None and self._waiting:
            await self.archive.put(self._waiting)
            self._waiting = ()


class _StoredState:
    """The state in a store, under one key. A state is never replaced by an earlier one."""

    def __init__(self, store: StateStore | None, key: str) -> None:
        self._store = store
        self._key = key
        self.restored = store is None
        """Whether the stored state was read, or is not to be read any more."""
        self._version: int | None = None
        self._saved: AwarenessState | None = None

    async def restore(self, at: datetime | None = None) -> AwarenessState | None:
        """The newest stored state from before a time, once; None if there is none."""
        if self.restored or self._store is None:
            return None
        history = await self._store.history(self._key, _HISTORY)
        self.restored = True
        states = (one.state for one in history if at is None or one.state.at < at)
        self._saved = next(states, None)
        return self._saved

    async def save(self, state: AwarenessState) -> None:
        """Stores a state that changed, unless a later one is stored."""
        if self._store is None or not self.restored or state is self._saved:
            return
        if self._version is None:
            stored = await self._store.load(self._key)
            if stored is not None and stored.state.at > state.at:
                return  # a run that is resumed or replayed from an earlier state
            self._version = stored.version if stored else 0
        self._version = await self._store.save(self._key, state, self._version)
        self._saved = state

    def forget(self) -> None:
        """Begins with the present state: what is stored is not read, only replaced."""
        self.restored, self._version, self._saved = True, None, None


# ---- The module ----

_PHASES = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION)
"""Where the situation is shown; selection and execution follow from what these phases say."""
_DECLARED = ("capabilities", "limitations", "needs", "allowed", "forbidden")
"""Fields of the self model that only a program declares."""


class Awareness:
    """Follows the agent's situation, shows it to the model, and forbids what it cannot do.

    Give it as `CoagAgent(..., modules=[Awareness()])`. Goals, failures and stalls are seen by
    rules, without a model; the adapter says what percepts mean in the domain. The state depends
    only on percepts, outcomes and their times, and on what archive and store return. So a resumed
    or replayed run reaches the same state.

    Args:
        adapter: The domain; None for tools of any kind (`ToolAdapter`).
        embedder: Recognises names by meaning; None recognises them by their form only.
        budget: Tokens of a section at most; the agent's own limit holds, too.
        clock: Gives the time when a new state begins.
        self_model: What the agent can and may do, and its resources. These declarations are the
            program's: they replace those in a state that is loaded.
        settings: What needs attention, how much is kept, how names are recognised.
        dynamics: How the state changes by itself. None looks ahead (`AGENT_DYNAMICS`);
            `DynamicsSettings()` is nothing at all, `DynamicsSettings.all_on()` all of it.
        archive: Where goals and things are stored that left, until they are mentioned again; None
            loses them.
        reads: Gives the adapter's raw input for a percept, e.g. `heard_by(perception)`. None
            gives a `PerceptAdapter` each percept's fields, and another adapter each message, not
            analysed.
        store: Where the state is stored between runs and processes: read once, by `restore` or
            with the first percept, and saved after each change. None stores it nowhere. It is
            left alone while the agent serves people whose memories are kept apart.
        key: Whose state it is in the store; None for the module's name.
        name: The module's name in logs and prompts.

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
        store: StateStore | None = None,
        key: str | None = None,
        name: str = "awareness",
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name != "self"}
        if budget < 1:
            raise ValueError(f"budget is in tokens and at least 1, not {budget!r}.")
        self.name = name
        self._arguments: Mapping[str, object] = arguments
        self._adapter = adapter or ToolAdapter()
        self._budget = budget
        self._clock = clock or SystemClock()
        self._declared = self_model
        self._settings = settings or AwarenessSettings()
        self._dynamics = dynamics or AGENT_DYNAMICS
        self._resolver = NameResolver(self._settings.engine, embedder)
        self._activity = ActivityUpdater(self._settings, self._dynamics, self._resolver)
        self._archive = _ArchiveQueue(archive)
        self._stored = _StoredState(store, key or name)
        self._detached = False
        self._reads = reads or _default_reader(self._adapter)
        self._step = self._first_step()

    @property
    def state(self) -> AwarenessState:
        """The agent's situation now."""
        return self._step.state

    @property
    def goal(self) -> Goal | None:
        """The open goal that the activity serves."""
        return self._step.goal

    def can_i(self, action: str) -> CanI:
        """The check before an action, as the constraint makes it."""
        return self._rule().can_i(action)

    async def restore(self) -> bool:
        """Continues from the stored state; whether there was one. Of no effect the second time.

        Called before a run, the run's trace begins with that state, so that a replay does, too.
        Without this call it happens with the first percept.

        Raises:
            StateStoreError: The store failed, or holds no state under the key.
            AwarenessError: The stored state is of another domain.
        """
        return self._continue_from(await self._stored.restore())

    def detach(self) -> None:
        """For a replay or a fork: reads archive and store, and writes neither."""
        self._detached = True

    async def observe(self, event: Percept | Outcome) -> None:
        """Follows what was perceived and what was executed.

        Raises:
            AwarenessError: The domain cannot read a percept, or it names what does not exist. What
                the rules see of it holds in any case.
            Exception: Whatever archive and store raise. The state is what it is without them, and
                what they could not store is given to them again with the next event.
        """
        if isinstance(event, Percept | RetrievalOutcome):
            self._serve(event.memory_scope)
        if isinstance(event, Percept):
            try:
                self._continue_from(await self._stored.restore(event.at))
            finally:
                await self._perceive(event)
        elif isinstance(event, ExecutionOutcome):
            self._take(self._activity.executed(self._step, event))
        elif not isinstance(event, RetrievalOutcome):
            return
        if self._detached:
            return
        try:
            await self._archive.put()
        finally:
            if self._step.status.serves is None:
                await self._stored.save(self.state)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """The situation, for Reasoning, Proposal and Evaluation; it is data, not instruction."""
        if phase not in _PHASES:
            return None
        self._take(self._activity.adopted(self._step, situation.goal))
        limit = min(budget, self._budget)
        text = injected(self._adapter, weighed(self.state, self._dynamics.decay), limit)
        if not text:
            return None
        return Section(
            title="Where you stand",
            text=text,
            source=self.name,
            trust=self._step.status.trust,
            budget=limit,
        )

    def constraints(self) -> Sequence[Constraint]:
        """The check before an action, by the self model as it is now."""
        return (self._rule(),)

    def save_state(self) -> Mapping[str, Any]:
        """The awareness state and what the module holds beside it, as JSON."""
        saved = {
            "state": self._step.state.model_dump(mode="json"),
            "standing": self._step.status.model_dump(mode="json"),
        }
        return saved if self._stored.restored else {**saved, "restored": False}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from what `save_state` gave; an `AwarenessError` changes nothing."""
        loaded = of_domain(self._adapter, load_state(state.get("state", {})))
        try:
            status = ActivityStatus.model_validate(state.get("standing", {}))
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise AwarenessError(
                f"This is no state of awareness: standing.{path}: {problem}"
            ) from error
        self._step = ActivityStep(self._with_declared(loaded), status)
        if status.serves is not None:
            self._archive.serve(status.serves)
        if state.get("restored", True):
            self._stored.forget()

    def reset_state(self) -> None:
        """Begins with a new state; what is archived stays there."""
        self._step = self._first_step()
        self._archive.serve(None)
        self._stored.forget()

    def to_arguments(self) -> Mapping[str, Any]:
        """Its arguments as JSON, without the state; see `coag.schema.Declarable`.

        Raises:
            ConfigurationError: An argument cannot be made again from an import name and fields.
        """
        arguments = self._arguments.items()
        return {name: _dumped(name, value) for name, value in arguments if value is not None}

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """One made from what `to_arguments` gave."""
        return cls(**{name: _loaded(name, value) for name, value in arguments.items()})

    def _first_step(self) -> ActivityStep:
        fresh = new_state(self._adapter, self._clock, self._settings.engine)
        return ActivityStep(self._with_declared(fresh))

    def _with_declared(self, state: AwarenessState) -> AwarenessState:
        """The state with what the program declares; known resources keep their last reading."""
        declared, known = self._declared, state.self_model
        if declared is None:
            return state
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

    def _rule(self) -> CanIRule:
        own = self._settings.own_actions
        return CanIRule(f"{self.name}_can_i", self.state.self_model, own)

    def _continue_from(self, state: AwarenessState | None) -> bool:
        if state is None:
            return False
        status = self._step.status.with_text_of(Trust.UNTRUSTED)
        try:
            loaded = self._with_declared(of_domain(self._adapter, state))
        except AwarenessError:
            self._stored.restored = False  # never replace another domain's state
            raise
        self._step = ActivityStep(loaded, status)
        return True

    def _serve(self, scope: str | None) -> None:
        """Serves another person, if that is one; the agent has reset the state before."""
        status = self._step.status
        if scope is not None and scope != status.serves:
            self._archive.serve(scope)
            self._stored.forget()
            serves = status.model_copy(update={"serves": scope})
            self._step = ActivityStep(self._step.state, serves)

    async def _perceive(self, percept: Percept) -> None:
        step = self._step
        rules = self._by_rules(percept, step)
        if rules is None:
            return
        seen = rules
        try:
            raw = self._reads(percept, step.state)
            raw = await raw if isawaitable(raw) else raw
            seen = self._joined(rules, raw, step)
            returned = await self._recalled(step, seen)
            if returned is not step:  # read all again, with what returned
                step = returned
                rules = seen = self._by_rules(percept, step) or rules
                seen = self._joined(rules, raw, step)
        finally:  # whatever the domain raises, and however long it takes, the rules hold
            try:
                self._take(self._activity.perceived(step, percept, seen))
            except AwarenessError:
                self._take(self._activity.perceived(step, percept, rules))
                raise

    async def _recalled(self, step: ActivityStep, seen: Observation) -> ActivityStep:
        """The step with what an observation mentions that had left the state."""
        archive, chosen = self._archive.archive, self._dynamics.returning
        if archive is None:
            return step
        state = await recalled(step.state, seen, archive, self._resolver, chosen)
        if state is step.state:
            return step
        return ActivityStep(state, step.status.with_text_of(Trust.UNTRUSTED))

    def _by_rules(self, percept: Percept, step: ActivityStep) -> Observation | None:
        reads_tools = isinstance(self._adapter, PerceptAdapter)
        return percept_by_rules(percept, step, self._settings, domain_reads_tools=reads_tools)

    def _joined(self, rules: Observation, raw: Raw, step: ActivityStep) -> Observation:
        if raw is None:
            return rules
        return joined_observation(rules, observed(self._adapter, raw, step.state))

    def _take(self, step: ActivityStep) -> None:
        if step is not self._step:
            self._step = step
            self._archive.add(step.left)


# ---- Arguments as JSON, and back ----

_VALUES: Mapping[str, type[Value]] = {
    "self_model": SelfModel,
    "settings": AwarenessSettings,
    "dynamics": DynamicsSettings,
}
_PARTS = ("adapter", "embedder", "clock", "archive", "reads", "store")
"""Arguments that are dumped as an import name with fields."""


def _dumped(name: str, value: object) -> Any:
    if isinstance(value, Value) and name in _VALUES:
        return value.model_dump(mode="json", exclude_defaults=True)
    if name not in _PARTS:
        return value
    kind = type(value)
    by_class = name == "adapter" and not (  # an adapter without arguments holds no state
        is_dataclass(kind) or isinstance(value, Declarable) or signature(kind).parameters
    )
    try:
        return Imported.of(kind if by_class else value).model_dump(mode="json", exclude_none=True)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{name}= of Awareness: {error} Or build the agent by a recipe, which is code."
        ) from error


def _loaded(name: str, dumped: Any) -> Any:
    if name in _VALUES:
        return _VALUES[name].model_validate(dumped)
    if name not in _PARTS:
        return dumped
    value = Imported.model_validate(dumped).get()
    return value() if name == "adapter" and isinstance(value, type) else value
