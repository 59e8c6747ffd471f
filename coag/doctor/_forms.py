"""Answers of a form: schema, JSON mode, and the ladder that agents go by."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ValidationError

from coag.errors import ModelAnswerError, ModelCallError
from coag.models import Asker, AskSettings, CallContext
from coag.schema import ModelCall, PromptMessage, Rung

from ._findings import Finding, Found, Grade, Probe
from ._patient import AGAIN, Patient, Reply
from ._said import shown, user

SAID = '{"fruit": "banana"}'
"""What the prompt asks for where the schema asks for something else."""

_REASON = 300
"""Characters of an error that are shown."""


class Tint(BaseModel):
    """A tint for a door."""

    tint: Literal["teal", "ochre"]


async def schema(patient: Patient) -> tuple[Finding, ...]:
    """Asks for one object in the prompt and for another in the schema, and sees which one comes."""
    question = f"Answer with exactly this JSON object and nothing else: {SAID}"
    reply = await patient.ask([user(question)], rung=Rung.JSON_SCHEMA, form=Tint)
    return (_judged_schema(reply),)


def _judged_schema(reply: Reply) -> Finding:
    probe = Probe.SCHEMA
    if reply.error is not None:
        return reply.unanswered(probe, "A JSON schema", 'Set "structured_output": False.')
    try:
        Tint.model_validate_json(reply.text)
    except ValidationError:
        pass
    else:
        text = "The server enforces a JSON schema, against the prompt."
        return Finding(probe=probe, found=Found.ENFORCED, grade=Grade.GOOD, text=text)
    if not reply.text.strip():
        text = f"With a schema the answer was empty (finish reason {reply.finish!r})."
        advice = 'Set "structured_output": False, or raise --max-tokens if the model thinks first.'
        return Finding(probe=probe, found=Found.NO, grade=Grade.POOR, text=text, advice=advice)
    text = f"The server takes a JSON schema and ignores it; it answered {shown(reply.text)}."
    advice = 'Set "structured_output": False: each schema would be tried in vain once an agent.'
    return Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=advice)


async def json_mode(patient: Patient) -> tuple[Finding, ...]:
    """Asks for prose before a JSON object, in JSON mode."""
    question = (
        f"First greet me in one sentence of prose. Then give this JSON object: {SAID}\n"
        "Begin with the greeting."
    )
    reply = await patient.ask([user(question)], rung=Rung.JSON_MODE, form=Tint)
    return (_judged_json(reply),)


def _judged_json(reply: Reply) -> Finding:
    probe = Probe.JSON_MODE
    if reply.error is not None:
        return reply.unanswered(probe, "JSON mode", 'Set "json_output": False.')
    if _is_json(reply.text):
        text = "In JSON mode the server gives JSON, against the prompt."
        return Finding(probe=probe, found=Found.ENFORCED, grade=Grade.GOOD, text=text)
    if reply.finish == "length" and reply.text.lstrip().startswith("{"):
        text = "In JSON mode the answer began as JSON and was cut off at its limit."
        return Finding(probe=probe, found=Found.UNCLEAR, grade=Grade.UNKNOWN, text=text)
    text = f"JSON mode is taken and ignored; the server answered {shown(reply.text)}."
    advice = 'Set "json_output": False.'
    return Finding(probe=probe, found=Found.IGNORED, grade=Grade.POOR, text=text, advice=advice)


async def typed(patient: Patient) -> tuple[Finding, ...]:
    """Asks for a typed answer by the ladder, from the strictest rung that was seen to hold."""
    calls: list[ModelCall] = []
    settings = AskSettings(
        max_tokens=patient.limits.max_tokens,
        timeout=patient.limits.seconds,
        rung=strictest_rung(patient.found(Probe.SCHEMA), patient.found(Probe.JSON_MODE)),
    )
    question = 'Choose a tint for a door: "teal" or "ochre"? Answer as JSON: {"tint": ...}'
    prompt = (PromptMessage(role="user", content=question),)
    try:
        answer = await Asker(patient.client).ask(
            prompt, Tint, context=CallContext(on_call=calls.append), settings=settings
        )
    except (ModelAnswerError, ModelCallError) as error:
        text = f"No typed answer came by the ladder: {' '.join(str(error).split())[:_REASON]}"
        if isinstance(error.__cause__, TimeoutError):
            return (_typed(Found.LATE, Grade.BAD, text, AGAIN),)
        advice = "Agents cannot work with this model: take a larger one, or another server."
        return (_typed(Found.NO, Grade.BAD, text, advice),)
    finally:
        for call in calls:
            patient.usage += call.usage
    rung = answer.calls[-1].rung
    how = ", repaired" if answer.repaired else ""
    text = f"A typed answer came on the rung {rung.value!r} after {len(calls)} call(s){how}."
    sound = len(calls) == 1 and not answer.repaired
    return (_typed(Found.YES, Grade.GOOD if sound else Grade.POOR, text),)


def strictest_rung(schema: Found, json_mode: Found) -> Rung:
    """The strictest rung that holds, by what two probes found."""
    if schema is Found.ENFORCED:
        return Rung.JSON_SCHEMA
    return Rung.JSON_MODE if json_mode is Found.ENFORCED else Rung.PROMPT


def _typed(found: Found, grade: Grade, text: str, advice: str = "") -> Finding:
    return Finding(probe=Probe.TYPED, found=found, grade=grade, text=text, advice=advice)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
