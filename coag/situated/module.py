"""The cognitive module of one activity: its manuals, its focus, its plan, and what it waits for.

It brings what has arrived (`take_percepts`), the actions by which an activity situates itself and
waits, and two rules: an operation needs its manual, and fresh signals come before the next action.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from coag._util.text import clip, cut_to_tokens, estimate_tokens
from coag.errors import CoagError, UnknownNameError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
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
    Value,
    Verdict,
)

from .activities import Comparison, OnProperty, OnSignal, Wait
from .manual import Manual
from .perception import ToolPerception
from .percepts import shown_values
from .records import Cursor, SignalRecord, ToolDescription, parts_of
from .store import ActivityStore

_RECENT = 20
"""Signals that are remembered, so that a wait sees that one has come already."""
_SHOWN_SIGNALS = 5
_PLAN_CHARACTERS = 2_000
_SECTIONS = frozenset({Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION})


class SituatedSettings(Value):
    """How an activity waits, and what its prompts show."""

    wait_seconds: float = Field(default=300.0, gt=0)
    """How long a wait may take where neither the manual nor the agent says it."""
    latency_factor: float = Field(default=3.0, ge=1)
    """How many times the latency that a manual declares is waited for."""
    longest_wait: float = Field(default=30 * 86_400.0, gt=0)
    """The longest wait that the agent may ask for, in seconds."""
    explicit_focus: bool = False
    """True if mounting a manual does not focus its tool: that is a decision of its own then."""
    preemptions: int = Field(default=3, ge=0)
    """How many times in a row fresh signals may keep an action back."""


# ---- What the actions take ----


class _Given(BaseModel):
    model_config = {"extra": "forbid"}


class _ByTool(_Given):
    tool: str = Field(description="The tool's id.")


class _Focus(_ByTool):
    signals: list[str] | None = Field(
        default=None, description="The signals to perceive; leave out for all."
    )


class _WaitForSignal(_ByTool):
    signal: str = Field(description="The signal's name.")
    where: dict[str, Any] = Field(default={}, description="Values that its payload must have.")
    timeout_seconds: float | None = Field(default=None, gt=0, description="The longest wait.")


class _WaitForProperty(_ByTool):
    property: str = Field(description="The property's name.")
    comparison: Comparison = "=="
    value: Any = Field(description="What it is compared with.")
    timeout_seconds: float | None = Field(default=None, gt=0, description="The longest wait.")


class _Plan(_Given):
    plan: str = Field(description="The steps that are left, in order.", max_length=_PLAN_CHARACTERS)


class _Reason(_Given):
    reason: str = Field(description="Why the goal cannot be reached.", min_length=1)


_LIST = "list_tools"
_MOUNT, _UNMOUNT = "mount_manual", "unmount_manual"
_FOCUS, _UNFOCUS = "focus", "unfocus"
WAIT_FOR_SIGNAL, WAIT_FOR_PROPERTY = "wait_for_signal", "wait_for_property"
_PLAN, ABANDON = "set_plan", "abandon"
_ACTIONS: Mapping[str, tuple[str, type[_Given]]] = {
    _LIST: ("Lists the tools that there are, and what each is for.", _Given),
    _MOUNT: (
        "Reads a tool's manual into your working memory; needed before you use the tool.",
        _ByTool,
    ),
    _UNMOUNT: ("Puts a manual away that is not needed any more.", _ByTool),
    _FOCUS: ("Perceives a tool's properties and signals from now on.", _Focus),
    _UNFOCUS: ("Stops perceiving a tool.", _ByTool),
    WAIT_FOR_SIGNAL: (
        "Waits until a tool emits a signal; signals since your last operation of it count. "
        "Waiting costs nothing.",
        _WaitForSignal,
    ),
    WAIT_FOR_PROPERTY: (
        "Waits until a property of a tool has a value. Waiting costs nothing.",
        _WaitForProperty,
    ),
    _PLAN: ("Notes your plan, so that it outlives waiting.", _Plan),
    ABANDON: ("Gives the goal up, because it cannot be reached.", _Reason),
}
_SPECS = tuple(
    ActionSpec(
        name=name,
        description=text,
        parameters=kind.model_json_schema(),
        internal=True,
        repeatable=True,
    )
    for name, (text, kind) in _ACTIONS.items()
)


class _Seen(Value):
    """A signal that was perceived."""

    tool: str
    record: SignalRecord


class SituatedModuleState(Value):
    """What the module knows, as it is saved."""

    mounted: tuple[str, ...] = ()
    plan: str = ""
    recent: tuple[_Seen, ...] = ()
    acknowledged: dict[str, str] = Field(default_factory=dict)
    """The cursor of the last accepted operation, by tool."""
    waited: dict[str, str] = Field(default_factory=dict)
    """The cursor of the signal that ended the last wait, by tool."""
    waiting: Wait | None = None
    preempted: int = 0
    """Cycles in a row that fresh signals kept from acting."""


# ---- The rules ----


class ManualMounted:
    """Forbids operations of a tool whose manual is not mounted."""

    name = "manual_mounted"

    def __init__(self, module: SituatedModule) -> None:
        self._module = module

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges by the action's name alone."""
        del state, projection
        reason = self._module.manual_missing(candidate.action)
        return Verdict.allow() if reason is None else Verdict.forbid(reason)


class FreshSignals:
    """Forbids acting on an outdated picture: signals that have arrived are perceived first."""

    name = "fresh_signals"

    def __init__(self, module: SituatedModule) -> None:
        self._module = module

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges by the inbox, a bounded number of times in a row."""
        del candidate, state, projection
        names = self._module.preempting()
        if not names:
            return Verdict.allow()
        return Verdict.forbid(f"{', '.join(names)} arrived meanwhile and is perceived first")


# ---- The module ----


class SituatedModule:
    """The module of one activity: a `CognitiveModule` that brings actions, rules and percepts.

    Args:
        activity_id: Whose module it is.
        perception: The agent's tools.
        store: Where the inbox is.
        clock: Gives the time of deadlines.
        settings: How it waits.
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
        self.activity_id = activity_id
        self.pending: Wait | None = None
        """What the activity waits for from now on; set by a waiting action, read by the agent."""
        self.abandoned: str | None = None
        """Why the goal was given up; set by `abandon`, read by the agent."""
        self._perception = perception
        self._store = store
        self._clock = clock or SystemClock()
        self._settings = settings or SituatedSettings()
        self._state = SituatedModuleState()
        self._manuals: dict[str, Manual] = {}
        self._perceived: dict[str, None] = {}
        """Percepts that are in the trace, perhaps not on the disk yet: they are in the inbox."""
        self._kept_back = False
        self._run: Mapping[str, Callable[[Any], Awaitable[ActionResult]]] = {
            _LIST: self._list_tools,
            _MOUNT: self._mount,
            _UNMOUNT: self._unmount,
            _FOCUS: self._focus,
            _UNFOCUS: self._unfocus,
            WAIT_FOR_SIGNAL: self._wait_for_signal,
            WAIT_FOR_PROPERTY: self._wait_for_property,
            _PLAN: self._set_plan,
            ABANDON: self._abandon,
        }

    # ---- What arrives ----

    async def take_percepts(self) -> Sequence[Percept]:
        """What is in the inbox and not perceived."""
        await self._read_manuals()
        entries = self._store.inbox(self.activity_id)
        return [one.percept for one in entries if one.percept.id not in self._perceived]

    async def observe(self, event: Percept | Outcome) -> None:
        """Follows signals and acknowledgements; with an outcome, percepts before it are on disk."""
        if isinstance(event, Percept):
            self._perceived[event.id] = None
            self._take(event)
            return
        if self._perceived:
            self._store.forget(self.activity_id, list(self._perceived))
            self._perceived.clear()
        if isinstance(event, ExecutionOutcome):
            self._after_execution(event)

    def _take(self, percept: Percept) -> None:
        waiting = self._state.waiting
        if percept.kind is PerceptKind.TIME_OUT:
            self._change(waiting=None)
        if percept.kind is not PerceptKind.SIGNAL or percept.is_error:
            return
        record = SignalRecord.model_validate(percept.data)
        seen = (*self._state.recent, _Seen(tool=percept.source, record=record))[-_RECENT:]
        self._change(recent=seen)
        condition = None if waiting is None else waiting.condition
        if not isinstance(condition, OnSignal) or condition.tool != percept.source:
            return
        if condition.met_by(record):
            waited = {**self._state.waited, condition.tool: record.cursor}
            self._change(waiting=None, waited=waited)

    def _after_execution(self, outcome: ExecutionOutcome) -> None:
        kept_back = self._kept_back and outcome.status in _NOTHING_RUN
        self._kept_back = False
        acknowledged = dict(self._state.acknowledged)
        for tool in self._perception.focused(self.activity_id):
            if cursor := self._perception.acknowledged(self.activity_id, tool):
                acknowledged[tool] = cursor
        preempted = self._state.preempted + 1 if kept_back else 0
        self._change(preempted=preempted, acknowledged=acknowledged)

    @property
    def was_preempted(self) -> bool:
        """Whether fresh signals kept the last cycle from acting."""
        return self._state.preempted > 0

    # ---- Rules ----

    def constraints(self) -> Sequence[Constraint]:
        """An operation needs its manual; fresh signals come first."""
        return [ManualMounted(self), FreshSignals(self)]

    def manual_missing(self, action: str) -> str | None:
        """Why an action may not be run for lack of a manual; None if it may."""
        tool, _ = parts_of(action) or ("", "")
        known = self._perception.known(tool)
        if known is None or not known.has_manual:
            return None
        if what := self._perception.changed(tool):
            return f"the {what} of {tool!r} has changed; a person has to approve of it"
        if tool in self._state.mounted:
            return None
        return f"the manual of {tool!r} is not mounted: {_MOUNT} with tool={tool!r} first"

    def preempting(self) -> tuple[str, ...]:
        """Signals that have arrived and come before the next action; none after too many times."""
        if self._state.preempted >= self._settings.preemptions:
            return ()
        names = {
            f"{one.percept.source}'s signal {one.percept.data['name']}": None
            for one in self._store.inbox(self.activity_id)
            if one.percept.kind is PerceptKind.SIGNAL
            and not one.percept.is_error
            and one.percept.id not in self._perceived
        }
        self._kept_back = self._kept_back or bool(names)
        return tuple(names)

    # ---- Actions ----

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions by which an activity situates itself, waits and ends."""
        return _SPECS

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs one of them; what is wrong with it is in the result."""
        try:
            arguments = _ACTIONS[call.action][1].model_validate(call.arguments)
            return await self._run[call.action](arguments)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            text = f"{call.action}: {where}: {first['msg']}"
        except CoagError as error:  # no such tool, in quarantine, or its server does not answer
            text = str(error)
        return ActionResult(content=text, is_error=True)

    async def _list_tools(self, given: _Given) -> ActionResult:
        del given
        tools = await self._perception.catalogue()
        lines = [_catalogue_line(one, one.id in self._state.mounted) for one in tools.values()]
        return ActionResult(content="\n".join(lines) or "There are no tools.")

    async def _mount(self, given: _ByTool) -> ActionResult:
        self._manuals[given.tool] = await self._perception.manual(given.tool)
        mounted = dict.fromkeys((*self._state.mounted, given.tool))
        already = given.tool in self._state.mounted
        self._change(mounted=tuple(mounted))
        text = f"The manual of {given.tool} {'was' if already else 'is'} mounted."
        if not self._settings.explicit_focus:
            reading = await self._perception.focus(self.activity_id, given.tool)
            text += _now(given.tool, reading.properties)
        return ActionResult(content=text)

    async def _unmount(self, given: _ByTool) -> ActionResult:
        if given.tool not in self._state.mounted:
            raise UnknownNameError("mounted manual", given.tool, self._state.mounted)
        self._change(mounted=tuple(one for one in self._state.mounted if one != given.tool))
        self._manuals.pop(given.tool, None)
        if not self._settings.explicit_focus:
            await self._perception.unfocus(self.activity_id, given.tool)
        return ActionResult(content=f"The manual of {given.tool} is put away.")

    async def _focus(self, given: _Focus) -> ActionResult:
        declared = await self._declared(given.tool)
        for name in given.signals or ():
            _check_name("signal", name, given.tool, [one.name for one in declared.signals])
        reading = await self._perception.focus(self.activity_id, given.tool, given.signals)
        return ActionResult(
            content=f"{given.tool} is perceived." + _now(given.tool, reading.properties)
        )

    async def _unfocus(self, given: _ByTool) -> ActionResult:
        if given.tool not in self._perception.focused(self.activity_id):
            known = self._perception.focused(self.activity_id)
            raise UnknownNameError("tool in focus", given.tool, known)
        await self._perception.unfocus(self.activity_id, given.tool)
        return ActionResult(content=f"{given.tool} is not perceived any more.")

    async def _set_plan(self, given: _Plan) -> ActionResult:
        self._change(plan=given.plan)
        return ActionResult(content="The plan is noted.")

    async def _abandon(self, given: _Reason) -> ActionResult:
        self.abandoned = given.reason
        return ActionResult(content=given.reason, ends_turn=True)

    # ---- Waiting ----

    async def _wait_for_signal(self, given: _WaitForSignal) -> ActionResult:
        declared = await self._declared(given.tool)
        _check_name("signal", given.signal, given.tool, [one.name for one in declared.signals])
        condition = OnSignal(tool=given.tool, name=given.signal, where=given.where)
        wanted = self._perception.focused(self.activity_id).get(given.tool, frozenset[str]())
        if wanted is not None and given.signal not in wanted:
            await self._perception.focus(self.activity_id, given.tool, {*wanted, given.signal})
        if (record := self._already(condition)) is not None:
            self._change(waited={**self._state.waited, given.tool: record.cursor})
            shown = shown_values(record.data)
            return ActionResult(
                content=f"Signal {record.name} of {given.tool} has arrived already: {shown}"
            )
        return self._suspend(condition, self._seconds(given.timeout_seconds, declared, condition))

    def _already(self, condition: OnSignal) -> SignalRecord | None:
        """A perceived signal that counts: since the last operation, or the last wait's signal."""
        after = (self._state.acknowledged, self._state.waited)
        now = self._perception.acknowledged(self.activity_id, condition.tool)
        texts = [one.get(condition.tool) for one in after] + [now]
        places = [Cursor.read(text) for text in texts if text]
        for seen in self._state.recent:
            if seen.tool != condition.tool or not condition.met_by(seen.record):
                continue
            place = Cursor.read(seen.record.cursor)
            since = [one.number for one in places if one.epoch == place.epoch]
            if since and place.number > max(since):
                return seen.record
        return None

    async def _wait_for_property(self, given: _WaitForProperty) -> ActionResult:
        declared = await self._declared(given.tool)
        names = [one.name for one in declared.properties]
        _check_name("property", given.property, given.tool, names)
        condition = OnProperty(
            tool=given.tool, name=given.property, comparison=given.comparison, value=given.value
        )
        if given.tool not in self._perception.focused(self.activity_id):
            await self._perception.focus(self.activity_id, given.tool)
        reading = self._perception.reading(given.tool)
        if reading is not None and condition.met_by(reading.properties):
            return ActionResult(content=f"It is so already: {condition}.")
        return self._suspend(condition, self._seconds(given.timeout_seconds, declared, condition))

    def _seconds(
        self, given: float | None, declared: ToolDescription, condition: OnSignal | OnProperty
    ) -> float:
        """How long is waited: as the agent says, as the manual suggests, or as is usual."""
        if given is not None:
            return min(given, self._settings.longest_wait)
        latencies = [
            one.latency
            for one in declared.operations
            if one.latency
            and (not isinstance(condition, OnSignal) or one.completed_by == condition.name)
        ]
        if latencies:
            return max(latencies) * self._settings.latency_factor
        return self._settings.wait_seconds

    def _suspend(self, condition: OnSignal | OnProperty, seconds: float) -> ActionResult:
        now = self._clock.now()
        self.pending = Wait(
            condition=condition, since=now, deadline=now + timedelta(seconds=seconds)
        )
        self._change(waiting=self.pending)
        self._perception.expect(condition.tool)
        return ActionResult(
            content=f"Waiting for {condition}, for at most {seconds:g} s.", suspends=True
        )

    async def _declared(self, tool: str) -> ToolDescription:
        tools = await self._perception.catalogue()
        if tool not in tools:
            raise UnknownNameError("tool", tool, tools)
        return tools[tool]

    # ---- What prompts show ----

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """Tools, mounted manuals, what happened last and the plan, as data from outside."""
        if phase not in _SECTIONS:
            return None
        tools = await self._perception.catalogue()
        parts = [
            "Tools:\n"
            + "\n".join(
                _catalogue_line(one, one.id in self._state.mounted)
                for one in _ranked(tools, f"{situation.goal} {self._state.plan}")
            )
        ]
        if self._state.plan:
            parts.append(f"Your plan:\n{self._state.plan}")
        if self._state.recent:
            lines = [_signal_line(one) for one in self._state.recent[-_SHOWN_SIGNALS:]]
            parts.append("Last signals:\n" + "\n".join(lines))
        room = budget - estimate_tokens("\n\n".join(parts))
        parts += self._manual_texts(room)
        text = cut_to_tokens("\n\n".join(parts), budget)
        return Section(
            title="Your tools and their manuals",
            text=text,
            source=self.name,
            trust=Trust.UNTRUSTED,
            budget=budget,
        )

    def _manual_texts(self, room: int) -> list[str]:
        """The mounted manuals, the last ones first and each whole, as far as there is room."""
        texts: list[str] = []
        left_out: list[str] = []
        for tool in reversed(self._state.mounted):
            manual = self._manuals.get(tool)
            text = "" if manual is None else f"Manual of {tool}:\n{manual.body}"
            room -= estimate_tokens(text)
            if not text or room < 0:
                left_out.append(tool)
            else:
                texts.append(text)
        if left_out:
            texts.append(f"Mounted, but there is no room for the manual of: {', '.join(left_out)}.")
        return texts

    async def _read_manuals(self) -> None:
        """Reads the mounted manuals again after the activity was rebuilt."""
        for tool in self._state.mounted:
            if tool not in self._manuals:
                try:
                    self._manuals[tool] = await self._perception.manual(tool)
                except CoagError:  # shown as missing in the prompt, and tried again
                    continue

    # ---- State ----

    def save_state(self) -> Mapping[str, Any]:
        """What the module knows, as JSON."""
        return self._state.model_dump(mode="json")

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state."""
        self._state = SituatedModuleState.model_validate(state)

    def reset_state(self) -> None:
        """Forgets manuals, plan and waits."""
        self._state = SituatedModuleState()

    def _change(self, **changes: Any) -> None:
        self._state = self._state.model_copy(update=changes)


_NOTHING_RUN = (ExecutionStatus.NONE, ExecutionStatus.REFUSED)
_What = Literal["signal", "property"]


def _check_name(what: _What, name: str, tool: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UnknownNameError(f"{what} of tool {tool!r}", name, known)


def _now(tool: str, properties: Mapping[str, Any]) -> str:
    return f" Properties of {tool} now: {shown_values(properties)}." if properties else ""


def _catalogue_line(tool: ToolDescription, mounted: bool) -> str:
    state = "manual mounted" if mounted else "" if tool.has_manual else "needs no manual"
    return f"- {tool.id}: {tool.description}" + (f" ({state})" if state else "")


def _signal_line(seen: _Seen) -> str:
    record = seen.record
    values = clip(json.dumps(record.data, ensure_ascii=False), 200)
    return f"- {record.timestamp:%H:%M:%S} {seen.tool}: {record.name} {values}"


def _ranked(tools: Mapping[str, ToolDescription], words: str) -> list[ToolDescription]:
    """The tools that have most words in common with the goal and the plan come first."""
    wanted = set(words.lower().split())

    def common(tool: ToolDescription) -> int:
        named = f"{tool.id.replace('_', ' ')} {tool.description} {tool.category}"
        return -len(wanted & set(named.lower().split()))

    return sorted(tools.values(), key=common)
