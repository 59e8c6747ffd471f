"""The cognitive module of one activity: manuals, focus, waits and a plan, as actions and rules.

What an action does is checked when it runs and takes effect when its outcome is committed: after a
crash the same state follows from the same trace. What arrived is perceived at a cycle's start and
leaves the inbox when the trace that has it is flushed, with the cycle's next outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from coag._util.validation import module_state
from coag.errors import CoagError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Clock,
    Constraint,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    RetrievalOutcome,
    Section,
    Situation,
    SystemClock,
    Trust,
    Verdict,
    one_line,
)

from .activities import OnProperty, OnSignal, Wait, ends_wait
from .manual import Manual
from .module_actions import SPECS, ActivityActions, SituatedSettings, asked_wait
from .perception import ToolPerception
from .records import SignalRecord, is_flood, parts_of
from .sections import SituatedModuleState, catalogue_text, ranked, situation_text
from .store import ActivityStore

MANUAL_MOUNTED = "manual_mounted"
FRESH_SIGNALS = "fresh_signals"


class ManualMounted:
    """Forbids an operation of a tool whose manual is not mounted, or is in quarantine."""

    name = MANUAL_MOUNTED

    def __init__(self, perception: ToolPerception, mounted: Callable[[], tuple[str, ...]]) -> None:
        self._perception = perception
        self._mounted = mounted

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges an action by its name."""
        del state, projection
        named = parts_of(candidate.action)
        known = self._perception.known(named[0]) if named else None
        if named is None or known is None:
            return Verdict.allow()
        tool = named[0]
        if (what := self._perception.changed(tool)) is not None:
            return Verdict.forbid(f"the {what} of {tool!r} changed, and nobody has approved yet")
        if known.has_manual and tool not in self._mounted():
            return Verdict.forbid(
                f"the manual of {tool!r} is not mounted: mount_manual(tool={tool!r}) first"
            )
        return Verdict.allow()


class FreshSignals:
    """Forbids everything while something fresh is unperceived, so that it is perceived first.

    `fresh` says what that is. It is not in force where it has ended too many cycles in a row.
    """

    name = FRESH_SIGNALS

    def __init__(self, fresh: Callable[[], str], in_force: bool) -> None:
        self._fresh = fresh
        self._in_force = in_force

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges every action alike."""
        del candidate, state, projection
        fresh = self._fresh() if self._in_force else ""
        if not fresh:
            return Verdict.allow()
        return Verdict.forbid(f"{fresh} has arrived since this cycle began: perceive it first")


class SituatedModule:
    """What one activity knows of its tools, and what it can do about that.

    Args:
        activity_id: The activity.
        perception: The tools, shared by all activities of the agent.
        store: The activity's inbox.
        clock: Gives the time in results; states go by the times in the trace.
        settings: How it waits and what it shows.
    """

    name = "situated"

    def __init__(
        self,
        activity_id: str,
        perception: ToolPerception,
        store: ActivityStore,
        *,
        clock: Clock | None = None,
        settings: SituatedSettings | None = None,
    ) -> None:
        self.pending: Wait | None = None
        """The wait by which the last turn was suspended."""
        self.abandoned: str | None = None
        """Why the goal was given up, if it was."""
        self.activity_id = activity_id
        self._perception = perception
        self._store = store
        self._settings = settings or SituatedSettings()
        self._state = SituatedModuleState()
        self._in_inbox: list[str] = []
        self._now: datetime | None = None
        self._goal = ""
        self._preempted = False
        self._actions = ActivityActions(
            activity_id, perception, clock or SystemClock(), self._settings
        )

    @property
    def state(self) -> SituatedModuleState:
        """What it remembers."""
        return self._state

    @property
    def was_preempted(self) -> bool:
        """Whether fresh signals kept the last cycle from acting."""
        return self._state.preempted > 0

    # ---- What arrives ----

    async def take_percepts(self) -> Sequence[Percept]:
        """What is in the inbox and not perceived; properties come first, signals behind them."""
        perceived = set(self._state.perceived)
        entries = [one.percept for one in self._store.inbox(self.activity_id)]
        self._in_inbox += [one.id for one in entries if one.id in perceived]
        fresh = [one for one in entries if one.id not in perceived]
        return sorted(fresh, key=lambda one: one.kind is not PerceptKind.PROPERTY_CHANGE)

    async def observe(self, event: Percept | Outcome) -> None:
        """Follows what is perceived and committed."""
        if isinstance(event, Percept):
            self._perceive(event)
            return
        if self._in_inbox:  # the outcome was flushed, and what was perceived before it, too
            self._store.forget(self.activity_id, self._in_inbox)
            self._in_inbox = []
            self._state = self._state.without_old()
        if isinstance(event, RetrievalOutcome):
            self._now, self.pending, self.abandoned, self._preempted = event.at, None, None, False
        elif isinstance(event, EvaluationOutcome):
            rejected = (one.rejected_by for one in event.evaluations)
            self._preempted = any(one and one.constraint == FRESH_SIGNALS for one in rejected)
        elif isinstance(event, ExecutionOutcome):
            self._executed(event)

    def _perceive(self, percept: Percept) -> None:
        if percept.kind is PerceptKind.TOOL_RETURN:
            named = parts_of(percept.source)
            if named is not None and not percept.is_error:
                # what was perceived of the tool came before the operation: waits count from here
                self._state = self._state.behind(named[0], None)
            return
        wait = self._state.waiting
        if percept.kind not in (PerceptKind.IMPASSE, PerceptKind.UNKNOWN_OUTCOME):
            self._in_inbox.append(percept.id)
            self._state = self._state.perceive(percept)
        if wait is not None and ends_wait(wait, percept):
            self._state = self._state.model_copy(update={"waiting": None})
            if percept.kind is PerceptKind.SIGNAL and isinstance(wait.condition, OnSignal):
                cursor = SignalRecord.model_validate(percept.data).cursor
                self._state = self._state.behind(percept.source, cursor)

    def _executed(self, outcome: ExecutionOutcome) -> None:
        refused = outcome.status in (ExecutionStatus.NONE, ExecutionStatus.REFUSED)
        preempted = refused and (self._preempted or FRESH_SIGNALS in outcome.result)
        count = self._state.preempted + 1 if preempted else 0
        self._state = self._state.model_copy(update={"preempted": count})
        for done in outcome.executed:
            if done.internal and done.status is ExecutionStatus.DONE:
                self._take_effect(done, outcome)

    def _take_effect(self, done: Executed, outcome: ExecutionOutcome) -> None:
        """What an action of this module has changed."""
        given, state = done.arguments or {}, self._state
        tool = given.get("tool", "")
        changes: dict[str, Any] = {}
        match done.action:
            case "mount_manual":
                changes["mounted"] = (*(one for one in state.mounted if one != tool), tool)
            case "unmount_manual":
                changes["mounted"] = tuple(one for one in state.mounted if one != tool)
            case "unfocus":
                changes["signals"] = tuple(one for one in state.signals if one.tool != tool)
            case "set_plan":
                changes["plan"] = given.get("plan", "")[:4_000]
            case "abandon":
                self.abandoned = given.get("reason", "")
            case _:
                self._waited(done, outcome)
                return
        self._state = state.model_copy(update=changes)

    def _waited(self, done: Executed, outcome: ExecutionOutcome) -> None:
        """The activity waits, or what it waited for had come."""
        asked = asked_wait(done.action, done.arguments or {})
        if asked is None:
            return
        wait = self._actions.wait_of(asked, outcome.at)
        if outcome.suspended:
            self.pending = wait
        elif (met := self._state.meeting(wait.condition)) is not None:
            self._state = self._state.behind(met.tool, met.record.cursor)
            return
        elif isinstance(wait.condition, OnProperty):
            return
        # What has come but is not perceived ends the wait when it is.
        self._state = self._state.model_copy(update={"waiting": wait})

    # ---- Actions ----

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions of the module; all are internal."""
        return SPECS

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Checks and runs one; what is wrong is in its result."""
        return await self._actions.run(call, self._state, self._goal, self._fresh())

    def _focused(self) -> Mapping[str, frozenset[str] | None]:
        return self._perception.focused(self.activity_id)

    # ---- Rules ----

    def constraints(self) -> Sequence[Constraint]:
        """No operation without its manual; what is fresh is perceived first."""
        in_force = self._state.preempted < self._settings.preemptions
        return (
            ManualMounted(self._perception, lambda: self._state.mounted),
            FreshSignals(self._fresh_text, in_force),
        )

    def _fresh(self) -> list[Percept]:
        """Signals and gaps of tools in focus that are not perceived."""
        perceived, focused = set(self._state.perceived), self._focused()
        inbox = (one.percept for one in self._store.inbox(self.activity_id))
        return [
            one
            for one in inbox
            if one.id not in perceived
            and one.source in focused
            and not one.is_error
            and one.kind in (PerceptKind.SIGNAL, PerceptKind.GAP)
            and not is_flood(one)
        ]

    def _fresh_text(self) -> str:
        first = next(iter(self._fresh()), None)
        return "" if first is None else one_line(first.content, 200)

    # ---- Prompts ----

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """Plan, signals, properties, waits, manuals and the catalogue; data, not instruction."""
        if phase not in (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION):
            return None
        self._goal = situation.goal
        limit = min(budget, self._settings.budget)
        catalogue = ""
        if phase is not Phase.EVALUATION:
            tools = (await self._perception.catalogue()).values()
            catalogue = catalogue_text(ranked(tools, situation.goal), self._state)
        text = situation_text(
            self._state,
            self._now,
            {tool: self._perception.known(tool) for tool in self._focused()},
            catalogue,
            {tool: await self._manual(tool) for tool in self._state.mounted},
            limit,
        )
        if not text:
            return None
        return Section(
            title="Tools and what they tell",
            text=text,
            source=self.name,
            trust=Trust.UNTRUSTED,
            budget=limit,
        )

    async def _manual(self, tool: str) -> Manual | str:
        """A mounted manual; why not, where it is in quarantine or cannot be read now."""
        if (read := self._perception.manual_read(tool)) is not None:
            return read
        try:
            return await self._perception.manual(tool)
        except CoagError as error:  # the section says so, and the rule holds without it
            return str(error)

    # ---- State ----

    def save_state(self) -> Mapping[str, Any]:
        """Its state as JSON."""
        return self._state.model_dump(mode="json")

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state; `StateError` where it is none."""
        self._state = module_state(SituatedModuleState, state, self.name)

    def reset_state(self) -> None:
        """Forgets the activity, but what was perceived."""
        self._state = SituatedModuleState(perceived=self._state.perceived)
        self.pending = self.abandoned = None
