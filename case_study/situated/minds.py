"""Scripted minds for the demonstrators: functions of the messages alone, for every kind of agent.

`careful` works by the manuals: it reads them first, acts on what it has read of the tools' state,
and waits - by what its agent has for that: an action that suspends, a bounded wait, or by reading
again and again. `hasty` does the same and never waits. They show what agents make of one and the
same mind; they say nothing about language models.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence

from autogen_core import FunctionCall

from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.situated import call_name

from .even_odd import BOUND, Parity
from .water_hammer import ACCESS_CODE

Decision = tuple[str, Mapping[str, object]] | str
"""A tool and its arguments, or the answer."""
Decide = Callable[["View"], Decision]
MINDS = ("careful", "hasty")
_EXAMPLE = re.compile(r'`\{"value": 3\}`')
"""What the counter's manual gives as an example of a value."""


class View:
    """What a mind sees: the text of its messages, and the names of the tools it is offered."""

    def __init__(self, request: ScriptedRequest) -> None:
        self.text = _EXAMPLE.sub("", request.text)
        self.offered = frozenset(tool["name"] for tool in request.tools)

    def furthest(self, name: str, order: Sequence[str]) -> str:
        """The value of a property that comes last in the order of its life; else the first."""
        values = set(re.findall(rf'\b{name}"?[=:] ?"(\w+)"', self.text))
        return max((one for one in order if one in values), key=order.index, default=order[0])

    def highest(self, name: str) -> int:
        """The largest number that a property was seen to have, or a refusal says; 0 if none."""
        found = re.findall(rf"""\b{name}(?:"?[=:]|' is) ?(\d+)""", self.text)
        return max(map(int, found), default=0)

    def has_read(self, tool: str) -> bool:
        """Whether the manual of a tool can be read in the messages."""
        return f"**Tool ID:** `{tool}`" in self.text

    def learn(self, tool: str) -> Decision:
        """Reads the manual of a tool."""
        return "mount_manual" if "mount_manual" in self.offered else "read_manual", {"tool": tool}

    def wait(self, tool: str, signal: str) -> Decision:
        """Waits for a signal; an agent that cannot wait reads the properties once more."""
        if "wait_for_signal" in self.offered:
            return "wait_for_signal", {"tool": tool, "signal": signal}
        return "read_properties", {"tool": tool}

    def look(self, tool: str) -> Decision:
        """Looks at the properties of a tool."""
        if "mount_manual" in self.offered:
            return "focus", {"tool": tool}
        return "read_properties", {"tool": tool}


def operate_plant(view: View, *, hasty: bool = False) -> Decision:
    """What to do next in Water Hammer."""
    unread = [tool for tool in _MANUALS if not view.has_read(tool)]
    if unread:
        return view.learn(unread[0])
    if "locked out" in view.text and "CRITICAL FAILURE" in view.text:
        return "The system is locked out; the core cannot be saved."
    if "Access granted" not in view.text and view.furthest("access_level", _ACCESS) == "NONE":
        return call_name("security_terminal", "login"), {"access_code": ACCESS_CODE}
    return _flush(view, hasty=hasty)


def _flush(view: View, *, hasty: bool) -> Decision:
    hydraulics, core = "hydraulic_control", "reactor_core"
    pump = view.furthest("pump_status", _PUMP)
    if pump == "OFF" and "The pump has started" not in view.text:
        return call_name(hydraulics, "power_on_pump"), {}
    if pump != "NOMINAL" and "pump.pressure_nominal" not in _signals(view.text) and not hasty:
        return view.wait(hydraulics, "pump.pressure_nominal")
    status = view.furthest("core_status", _CORE)
    opened = "The valve is open" in view.text or view.furthest("valve_status", _VALVE) == "OPEN"
    if not opened:
        return call_name(hydraulics, "open_valve"), {}
    if status == "CRITICAL" and "The flush has started" not in view.text:
        return call_name(core, "button_1"), {}
    if status != "STABLE" and "core.stabilized" not in _signals(view.text):
        return view.wait(core, "core.stabilized")
    return "The flush is done: the core is STABLE, below 500 °C."


_MANUALS = ("employee_handbook", "security_terminal", "hydraulic_control", "reactor_core")
_ACCESS = ("NONE", "ADMIN")
_PUMP = ("OFF", "RAMPING", "NOMINAL")
_VALVE = ("CLOSED", "OPEN")
_CORE = ("CRITICAL", "FLUSHING", "STABLE")


def _signals(text: str) -> set[str]:
    """The names of signals that have arrived, as records or as percepts say it."""
    return {name for pair in re.findall(_ARRIVED, text) for name in pair if name}


_ARRIVED = r'"name":"([\w.]+)","timestamp"|Signal ([\w.]+) of'


def count_in_turn(view: View, parity: Parity, *, hasty: bool = False) -> Decision:
    """What to do next in Even/Odd."""
    tool = "shared_counter"
    if not view.has_read(tool):
        return view.learn(tool)
    value = view.highest("value")
    if value == 0:
        return view.look(tool)
    if value > BOUND:
        return f"The counter is at {value}."
    mine = (value % 2 == 1) is (parity == "ODD")
    if not mine and not hasty:
        return view.wait(tool, "counter.change")
    return call_name(tool, "increment"), {"by": parity, "if_value": {"value": value}}


def scripted_mind(decide: Decide, *, seconds: float = 0.0) -> ScriptedModel:
    """A model that decides like this, and takes its time for it."""

    async def think(request: ScriptedRequest) -> ScriptedReply:
        await asyncio.sleep(seconds)
        decision = decide(View(request))
        if isinstance(decision, str):
            return decision
        name, arguments = decision
        return [
            FunctionCall(id=f"call-{request.number}", name=name, arguments=json.dumps(arguments))
        ]

    return ScriptedModel(think)
