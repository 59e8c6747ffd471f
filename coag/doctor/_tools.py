"""Tool calls: as such or as text, several, required, forbidden, beside a schema."""

from __future__ import annotations

import json
from typing import Literal

from autogen_core import FunctionCall
from autogen_core.tools import ToolSchema
from pydantic import BaseModel, ConfigDict, ValidationError

from coag.schema import Rung

from ._findings import Finding, Found, Grade, Probe
from ._forms import Tint
from ._patient import Patient, Reply
from ._said import shown, user

TOOL = "note_weather"
_ONE = "Note the weather: it is 21 degrees Celsius and sunny in Lisbon."
_TWO = (
    "Note the weather of both cities, in one answer with two tool calls: it is 21 degrees "
    "Celsius and sunny in Lisbon, and 9 degrees Celsius and rainy in Oslo."
)
_JSON_ONLY = 'Set "function_calling": False and proposal="json".'
_UNREAD = "Agents take it for the answer and run nothing: a text may quote a call. "


class Weather(BaseModel):
    """The arguments of the tool."""

    model_config = ConfigDict(extra="forbid", strict=True)

    city: str
    celsius: int
    sky: Literal["sunny", "rainy"]


def weather_tool() -> ToolSchema:
    """The tool that is offered."""
    return {
        "name": TOOL,
        "description": "Writes the weather of a city into the notebook.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "celsius": {"type": "integer"},
                "sky": {"type": "string", "enum": ["sunny", "rainy"]},
            },
            "required": ["city", "celsius", "sky"],
            "additionalProperties": False,
        },
        "strict": False,
    }


async def tools(patient: Patient) -> tuple[Finding, ...]:
    """Offers a tool and asks for what only the tool can do."""
    return (_judged_tools(await patient.ask([user(_ONE)], tools=[weather_tool()])),)


def _judged_tools(reply: Reply) -> Finding:
    probe = Probe.TOOLS
    if reply.error is not None:
        return reply.unanswered(probe, "A request with tools", _JSON_ONLY)
    wrong = [problem for call in reply.calls if (problem := _problem(call))]
    if wrong:
        text = f"A tool call came whose arguments do not fit its schema: {wrong[0]}."
        return _finding(probe, Found.INVALID, Grade.POOR, text, _JSON_ONLY)
    if reply.calls:
        text = "A tool call comes back as a tool call, with arguments that fit."
        return _finding(probe, Found.YES, Grade.GOOD, text)
    if TOOL in reply.text:
        text = f"A tool call comes back as text: {shown(reply.text)}."
        advice = f"{_UNREAD}{_JSON_ONLY}"
        return _finding(probe, Found.AS_TEXT, Grade.POOR, text, advice)
    text = f"The tool was not called; the answer was {shown(reply.text)}."
    return _finding(probe, Found.IGNORED, Grade.POOR, text, _JSON_ONLY)


def _problem(call: FunctionCall) -> str:
    """What is wrong with a call; empty if nothing is."""
    if call.name != TOOL:
        return f"there is no tool {call.name!r}"
    try:
        Weather.model_validate_json(call.arguments)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole"
        return f"{place}: {first['msg']} in {shown(call.arguments)}"
    return ""


async def parallel(patient: Patient) -> tuple[Finding, ...]:
    """Asks for two calls in one answer."""
    reply = await patient.ask([user(_TWO)], tools=[weather_tool()])
    return (_judged_parallel(reply),)


def _judged_parallel(reply: Reply) -> Finding:
    probe, one = Probe.PARALLEL, "Nothing to do: two actions take two cycles."
    if reply.error is not None:
        return reply.unanswered(probe, "A request for two calls", one)
    if len(reply.calls) < 2:
        text = f"Asked for two calls, the model made {len(reply.calls)}."
        return _finding(probe, Found.NO, Grade.POOR, text, one)
    if len({call.id for call in reply.calls}) < len(reply.calls):
        text = "Two calls come in one answer, but they share an id."
        advice = "A stock AssistantAgent mixes up their results: allow it one call at a time."
        return _finding(probe, Found.INVALID, Grade.POOR, text, advice)
    text = f"{len(reply.calls)} calls come in one answer, each with its id."
    return _finding(probe, Found.YES, Grade.GOOD, text)


async def required(patient: Patient) -> tuple[Finding, ...]:
    """Greets, but demands a tool call."""
    greeting = [user("Hello! How are you today?")]
    reply = await patient.ask(greeting, tools=[weather_tool()], tool_choice="required")
    probe = Probe.REQUIRED
    advice = "Nothing in coag relies on it; do not rely on it in agents of your own."
    if reply.error is not None:
        return (reply.unanswered(probe, 'tool_choice="required"', advice),)
    if reply.calls:
        text = 'tool_choice="required" is honoured.'
        return (_finding(probe, Found.ENFORCED, Grade.GOOD, text),)
    text = f'tool_choice="required" is ignored; the answer was {shown(reply.text)}.'
    return (_finding(probe, Found.IGNORED, Grade.POOR, text, advice),)


async def none(patient: Patient) -> tuple[Finding, ...]:
    """Asks for what the tool does, but forbids tool calls."""
    reply = await patient.ask([user(_ONE)], tools=[weather_tool()], tool_choice="none")
    probe = Probe.NONE
    if reply.error is not None:
        return (reply.unanswered(probe, 'tool_choice="none"', "Send no tools instead."),)
    if reply.calls:
        text = 'tool_choice="none" is ignored: a tool call came.'
        advice = "Send no tools where none may be called; coag does so."
        return (_finding(probe, Found.IGNORED, Grade.POOR, text, advice),)
    text = 'tool_choice="none" is honoured.'
    return (_finding(probe, Found.ENFORCED, Grade.GOOD, text),)


async def tools_with_schema(patient: Patient) -> tuple[Finding, ...]:
    """Offers a tool and asks for a schema in one request."""
    reply = await patient.ask(
        [user(_ONE)], tools=[weather_tool()], rung=Rung.JSON_SCHEMA, form=Tint
    )
    probe = Probe.TOOLS_WITH_SCHEMA
    advice = "coag never sends both; where you do, ask in two requests."
    if reply.error is not None:
        return (reply.unanswered(probe, "A request with tools and a schema", advice),)
    if reply.calls:
        text = "Tools and a schema may stand in one request; the model called the tool."
        return (_finding(probe, Found.YES, Grade.GOOD, text),)
    if _is_tint(reply.text):
        text = "Beside a schema the tools are lost: the schema always wins."
        return (_finding(probe, Found.NO, Grade.POOR, text, advice),)
    text = f"Of tools and a schema neither came; the answer was {shown(reply.text)}."
    return (_finding(probe, Found.IGNORED, Grade.POOR, text, advice),)


def _is_tint(text: str) -> bool:
    try:
        return set(json.loads(text)) == {"tint"}
    except (ValueError, TypeError):
        return False


def _finding(probe: Probe, found: Found, grade: Grade, text: str, advice: str = "") -> Finding:
    return Finding(probe=probe, found=found, grade=grade, text=text, advice=advice)
