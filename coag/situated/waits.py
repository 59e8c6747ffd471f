"""Waits as a model asks for them: checked by what the tool declares, with a deadline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field, ValidationError

from coag._util.json_schemas import value_fault
from coag._util.validation import first_error
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Value

from .activities import Comparison, OnProperty, OnSignal, Wait
from .records import ToolDescription

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
    """The wait that an action asks for; None for another action.

    Raises:
        ConfigurationError: The arguments are wrong.
    """
    kinds = {WAIT_FOR_SIGNAL: SignalWait, WAIT_FOR_PROPERTY: PropertyWait}
    if action not in kinds:
        return None
    try:
        return kinds[action].model_validate(dict(arguments))
    except ValidationError as error:
        raise ConfigurationError(f"{action}: {first_error(error)}") from error


def check_wait(asked: AskedWait, known: ToolDescription) -> None:
    """Refuses a wait for what the tool does not declare, and so never shows.

    Raises:
        UnknownNameError: There is no such signal, property or field; lists what there is.
        ConfigurationError: The property never has this value.
    """
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


def wait_of(
    asked: AskedWait,
    known: ToolDescription | None,
    since: datetime,
    *,
    factor: float,
    seconds: float | None,
    longest: float,
) -> Wait:
    """The wait with its deadline.

    Args:
        asked: What is asked for.
        known: What the tool declares.
        since: When the wait begins.
        factor: By how much the latency that the tool declares is multiplied.
        seconds: The time where it declares none; None for no deadline.
        longest: The longest time that may be asked for.
    """
    latency = None if known is None else _latency(asked, known)
    allowed = asked.timeout_seconds or (seconds if latency is None else factor * latency)
    deadline = None if allowed is None else since + timedelta(seconds=min(allowed, longest))
    return Wait(condition=asked.condition(), since=since, deadline=deadline)


def _latency(asked: AskedWait, known: ToolDescription) -> float | None:
    """The longest latency of the operations that lead to what is waited for."""
    name = asked.signal if isinstance(asked, SignalWait) else f"`{asked.property}`"
    found = [
        one.latency
        for one in known.operations
        if one.latency is not None and (one.completed_by == name or name in one.effects)
    ]
    return max(found, default=None)
