"""The actions of an activity beside operations: manuals, focus, waits, the plan, giving up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, ValidationError

from coag._util.json_schemas import value_fault
from coag._util.validation import first_error
from coag.errors import CoagError, ConfigurationError, UnknownNameError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Clock,
    Failure,
    Percept,
    PerceptKind,
    Value,
    one_line,
)

from .activities import Comparison, OnProperty, OnSignal, Wait
from .connection import ToolConnectionError
from .perception import ToolPerception
from .percepts import epoch_of, number_of, shown_value, shown_values
from .records import SignalRecord, ToolDescription
from .sections import SituatedModuleState, catalogue_text, ranked

WAIT_FOR_SIGNAL = "wait_for_signal"
WAIT_FOR_PROPERTY = "wait_for_property"


class SignalWait(Value):
    """Waits until a tool emits a signal. It costs nothing; you are woken when it has come."""

    tool: str
    signal: str
    where: dict[str, Any] | None = None
    """Fields that the payload must have, with these values."""
    timeout_seconds: float | None = Field(default=None, gt=0)
    """Left out, it follows from the tool's manual."""

    def condition(self) -> OnSignal:
        """What is waited for."""
        return OnSignal(tool=self.tool, name=self.signal, where=self.where or {})


class PropertyWait(Value):
    """Waits until a property of a tool has a value. It costs nothing; you are woken then."""

    tool: str
    property: str
    comparison: Comparison = "=="
    value: Any
    timeout_seconds: float | None = Field(default=None, gt=0)
    """Left out, it follows from the tool's manual."""

    def condition(self) -> OnProperty:
        """What is waited for."""
        return OnProperty(
            tool=self.tool, name=self.property, comparison=self.comparison, value=self.value
        )


AskedWait = SignalWait | PropertyWait


def asked_wait(action: str, arguments: Mapping[str, Any]) -> AskedWait | None:
    """The wait that an action asks for; None for another action."""
    kinds = {WAIT_FOR_SIGNAL: SignalWait, WAIT_FOR_PROPERTY: PropertyWait}
    if action not in kinds:
        return None
    try:
        return kinds[action].model_validate(dict(arguments))
    except ValidationError as error:
        raise ConfigurationError(f"{action}: {first_error(error)}") from error


def check_wait(asked: AskedWait, known: ToolDescription) -> None:
    """Refuses a wait for what the tool does not declare, or a value that a property never has."""
    tool = known.id
    if isinstance(asked, SignalWait):
        signals = {one.name: one.payload for one in known.signals}
        if asked.signal not in signals:
            raise UnknownNameError(f"signal of tool {tool!r}", asked.signal, signals)
        payload = signals[asked.signal]
        fields = payload.get("properties", {})
        for field in asked.where or ():
            if field not in fields and not payload.get("additionalProperties"):
                raise UnknownNameError(f"field of signal {asked.signal!r}", field, fields)
        return
    properties = {one.name: one.value_schema for one in known.properties}
    if asked.property not in properties:
        raise UnknownNameError(f"property of tool {tool!r}", asked.property, properties)
    schema = json.dumps({"properties": {"value": properties[asked.property]}})
    fault = value_fault({"value": asked.value}, schema) if asked.comparison == "==" else None
    if fault is not None:
        raise ConfigurationError(
            f"Property {asked.property!r} of tool {tool!r} never has this value: {fault}."
        )


def _latency(asked: AskedWait, known: ToolDescription) -> float | None:
    """The longest latency of the operations that lead to what is waited for."""
    name = asked.signal if isinstance(asked, SignalWait) else f"`{asked.property}`"
    found = [
        one.latency
        for one in known.operations
        if one.latency is not None and (one.completed_by == name or name in one.effects)
    ]
    return max(found, default=None)


class SituatedSettings(Value):
    """How an activity waits, and what its prompts show."""

    explicit_focus: bool = False
    """Whether tools come into focus by `focus` only, not by mounting a manual or by waiting."""
    wait_seconds: float | None = Field(default=300.0, gt=0)
    """The deadline of a wait for which neither the model nor the manual says one; None for none."""
    latency_factor: float = Field(default=3.0, ge=1)
    """By how much the latency in a manual is multiplied for a deadline."""
    longest_wait: float = Field(default=30 * 86_400.0, gt=0)
    """The longest wait that the agent may ask for, in seconds."""
    preemptions: int = Field(default=3, ge=0)
    """Cycles in a row that newly arrived signals may end."""
    budget: int = Field(default=4_000, gt=0)
    """Tokens of the section at most; the agent's own limit for modules holds, too."""


_TOOL: Mapping[str, Any] = {"type": "string", "description": "The tool's id."}


def _spec(
    name: str, description: str, required: Sequence[str] = (), **properties: Mapping[str, Any]
) -> ActionSpec:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return _internal(name, description, schema)


def _wait_spec(name: str, kind: type[AskedWait]) -> ActionSpec:
    schema = kind.model_json_schema()
    return _internal(name, schema.pop("description"), schema)


def _internal(name: str, description: str, parameters: dict[str, Any]) -> ActionSpec:
    return ActionSpec(
        name=name, description=description, parameters=parameters, internal=True, repeatable=True
    )


_SIGNALS: Mapping[str, Any] = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The signals that are wanted; all if left out.",
}
SPECS: tuple[ActionSpec, ...] = (
    _spec("list_tools", "Lists the tools that there are, those that fit the goal best first."),
    _spec("mount_manual", "Mounts a tool's manual: needed to use the tool.", ["tool"], tool=_TOOL),
    _spec("unmount_manual", "Unmounts a manual that is not needed now.", ["tool"], tool=_TOOL),
    _spec("focus", "Perceives a tool from now on.", ["tool"], tool=_TOOL, signals=dict(_SIGNALS)),
    _spec("unfocus", "Perceives a tool no longer.", ["tool"], tool=_TOOL),
    _wait_spec(WAIT_FOR_SIGNAL, SignalWait),
    _wait_spec(WAIT_FOR_PROPERTY, PropertyWait),
    _spec("set_plan", "Replaces the plan.", ["plan"], plan={"type": "string"}),
    _spec(
        "abandon", "Gives the goal up: it cannot be reached.", ["reason"], reason={"type": "string"}
    ),
)
"""The actions of the module."""


class ActivityActions:
    """Checks and runs the actions of one activity; what they change the module takes over later."""

    def __init__(
        self,
        activity_id: str,
        perception: ToolPerception,
        clock: Clock,
        settings: SituatedSettings,
    ) -> None:
        self._activity = activity_id
        self._perception = perception
        self._clock = clock
        self._settings = settings

    async def run(
        self, call: ActionCall, state: SituatedModuleState, goal: str, fresh: Sequence[Percept]
    ) -> ActionResult:
        """Runs one; what is wrong is in its result. `fresh` has arrived and is not perceived."""
        try:
            asked = asked_wait(call.action, call.arguments)
            if asked is not None:
                return await self._wait(asked, state, fresh)
            text = await self._done(call.action, call.arguments, state, goal)
            return ActionResult(content=text, ends_turn=call.action == "abandon")
        except CoagError as error:
            lost = isinstance(error, ToolConnectionError)
            failure = Failure.TRANSIENT if lost else Failure.DETERMINISTIC
            return ActionResult(content=str(error), is_error=True, failure=failure)

    async def _done(
        self, action: str, given: Mapping[str, Any], state: SituatedModuleState, goal: str
    ) -> str:
        """What came of an action but a wait."""
        tool = str(given.get("tool", ""))
        match action:
            case "list_tools":
                tools = (await self._perception.catalogue()).values()
                listed = catalogue_text(ranked(tools, goal), state) or "There are no tools."
                return "\n".join([listed, *self._perception.problems])
            case "mount_manual":
                return await self._mount(tool)
            case "unmount_manual":
                return await self._unmount(tool, state)
            case "focus":
                return await self._focus(tool, given.get("signals"), tool)
            case "unfocus":
                if tool not in self._focused():
                    raise UnknownNameError("tool in focus", tool, self._focused())
                await self._perception.unfocus(self._activity, tool)
                return f"{tool} is no longer in focus."
            case "set_plan":
                planned = str(given.get("plan", "")).strip()
                return "The plan is replaced." if planned else "There is no plan now."
            case "abandon":
                if not (reason := str(given.get("reason", "")).strip()):
                    raise ConfigurationError(
                        "abandon needs a reason: say why the goal cannot be reached."
                    )
                return reason
            case _:
                raise UnknownNameError("action", action, [one.name for one in SPECS])

    async def _mount(self, tool: str) -> str:
        await self._perception.manual(tool)
        text = f"The manual of {tool} is mounted."
        if self._settings.explicit_focus or tool in self._focused():
            return text
        return f"{text} {await self._focus(tool, None, 'It')}"

    async def _unmount(self, tool: str, state: SituatedModuleState) -> str:
        if tool not in state.mounted:
            raise UnknownNameError("mounted manual", tool, state.mounted)
        if not self._settings.explicit_focus:
            await self._perception.unfocus(self._activity, tool)
        return f"The manual of {tool} is unmounted."

    async def _focus(self, tool: str, signals: Sequence[str] | None, named: str) -> str:
        if signals is not None:
            known = await self._perception.described(tool)
            declared = [one.name for one in known.signals]
            for name in signals:
                if name not in declared:
                    raise UnknownNameError(f"signal of tool {tool!r}", str(name), declared)
        reading = await self._perception.focus(self._activity, tool, signals)
        return f"{named} is in focus. Now: {shown_values(reading.properties)}."

    async def _wait(
        self, asked: AskedWait, state: SituatedModuleState, fresh: Sequence[Percept]
    ) -> ActionResult:
        tool = asked.tool
        check_wait(asked, await self._perception.described(tool))
        await self._perceive_for(asked)
        if (there := self._already(asked, state, fresh)) is not None:
            return ActionResult(content=there)
        wait = self.wait_of(asked, self._clock.now())
        self._perception.expect(tool)
        until = f" until {wait.deadline:%Y-%m-%d %H:%M:%S}" if wait.deadline else ""
        return ActionResult(
            content=f"Waiting for {one_line(str(wait.condition))}{until}.", suspends=True
        )

    async def _perceive_for(self, asked: AskedWait) -> None:
        """Has the tool in focus, with the signal that is waited for."""
        focused = self._focused()
        if asked.tool not in focused and self._settings.explicit_focus:
            raise ConfigurationError(
                f"Tool {asked.tool!r} is not in focus, so nothing of it would be perceived: "
                f"focus(tool={asked.tool!r}) first."
            )
        wanted = focused.get(asked.tool)
        missing = (
            isinstance(asked, SignalWait) and wanted is not None and asked.signal not in wanted
        )
        unread = self._perception.reading(asked.tool) is None  # e.g. another worker had it before
        if asked.tool not in focused or missing or unread:
            more = {asked.signal} if isinstance(asked, SignalWait) else set[str]()
            signals = None if wanted is None else wanted | more
            await self._perception.focus(self._activity, asked.tool, signals)

    def _already(
        self, asked: AskedWait, state: SituatedModuleState, fresh: Sequence[Percept]
    ) -> str | None:
        """That what is waited for is there, in words; None if it is not."""
        if isinstance(asked, PropertyWait):
            reading = self._perception.reading(asked.tool)
            if reading is None or not asked.condition().met_by(reading.properties):
                return None
            value = shown_value(reading.properties[asked.property])
            return f"Property {asked.property} of {asked.tool} is {value} already."
        met = state.meeting(asked.condition())
        record = met.record if met is not None else self._unperceived(asked, fresh)
        if record is None:
            return None
        data = f": {shown_values(record.data)}" if record.data else ""
        return f"Signal {asked.signal} of {asked.tool} has come already{data}."

    def _unperceived(self, asked: SignalWait, fresh: Sequence[Percept]) -> SignalRecord | None:
        """A signal in the inbox that ends the wait, emitted since the last operation."""
        since = self._perception.acknowledged(self._activity, asked.tool)
        for percept in fresh:
            if percept.kind is not PerceptKind.SIGNAL or percept.source != asked.tool:
                continue
            record = SignalRecord.model_validate(percept.data)
            before = since is not None and epoch_of(record.cursor) == epoch_of(since)
            if before and number_of(record.cursor) <= number_of(since or ""):
                continue
            if asked.condition().met_by(record):
                return record
        return None

    def wait_of(self, asked: AskedWait, since: datetime) -> Wait:
        """The wait that is asked for; its deadline follows from the manual if nobody says one."""
        settings, known = self._settings, self._perception.known(asked.tool)
        latency = None if known is None else _latency(asked, known)
        usual = settings.wait_seconds if latency is None else settings.latency_factor * latency
        seconds = asked.timeout_seconds or usual
        longest = None if seconds is None else min(seconds, settings.longest_wait)
        deadline = None if longest is None else since + timedelta(seconds=longest)
        return Wait(condition=asked.condition(), since=since, deadline=deadline)

    def _focused(self) -> Mapping[str, frozenset[str] | None]:
        return self._perception.focused(self._activity)
