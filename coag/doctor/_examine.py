"""The examination: probe after probe, each bounded, until the report."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from autogen_core.models import ChatCompletionClient

from coag.models import model_name_of

from ._context import context
from ._findings import Finding, Found, Grade, Probe, Report
from ._forms import json_mode, schema, typed
from ._limits import Limits
from ._listing import listed
from ._patient import Patient
from ._recommend import is_usable, recommend
from ._talk import answer, speed, stream, system, systems
from ._tools import none, parallel, required, tools, tools_with_schema

_Ask: TypeAlias = Callable[[Patient], Awaitable[tuple[Finding, ...]]]


@dataclass(frozen=True, slots=True)
class _Step:
    """Requests that answer some probes."""

    probes: tuple[Probe, ...]
    ask: _Ask
    needs: tuple[Probe, ...] = (Probe.LISTED, Probe.ANSWER)
    """Probes that must not have found anything bad."""


_CALLABLE = (Found.YES, Found.AS_TEXT, Found.INVALID, Found.IGNORED)
"""What may have been found of tools for it to be worth asking more about them."""

_STEPS = (
    _Step((Probe.LISTED,), listed, needs=()),
    _Step((Probe.ANSWER,), answer, needs=(Probe.LISTED,)),
    _Step((Probe.SYSTEM,), system),
    _Step((Probe.SYSTEMS,), systems),
    _Step((Probe.STREAM, Probe.STREAM_USAGE, Probe.LIMIT), stream),
    _Step((Probe.SCHEMA,), schema),
    _Step((Probe.JSON_MODE,), json_mode),
    _Step((Probe.TYPED,), typed),
    _Step((Probe.TOOLS,), tools),
    _Step((Probe.PARALLEL,), parallel),
    _Step((Probe.REQUIRED,), required),
    _Step((Probe.NONE,), none),
    _Step((Probe.TOOLS_WITH_SCHEMA,), tools_with_schema),
    _Step((Probe.CONTEXT, Probe.CACHE), context),
)
_OF_TOOLS = frozenset({Probe.PARALLEL, Probe.REQUIRED, Probe.NONE, Probe.TOOLS_WITH_SCHEMA})


def _unwatched(_: Probe) -> None:
    """Nobody watches."""


def _unheard(_: Finding) -> None:
    """Nobody listens."""


async def examine(
    client: ChatCompletionClient,
    *,
    limits: Limits | None = None,
    on_probe: Callable[[Probe], None] = _unwatched,
    on_finding: Callable[[Finding], None] = _unheard,
) -> Report:
    """Finds out what the server behind a client can do; 16 requests with the default limits.

    Whatever the server does ends in a finding; a server that gives no plain answer is asked
    nothing more.

    Args:
        client: The client that agents would use, e.g. from `coag.models.open_model`; stays open.
        limits: The bounds of each request.
        on_probe: Is told of each group of probes as it begins, by the first of the group.
        on_finding: Is told of each finding as soon as there is one.
    """
    patient = Patient(client, limits or Limits())
    for step in _STEPS:
        on_probe(step.probes[0])
        begun = time.monotonic()
        findings = await _found(step, patient)
        seconds = time.monotonic() - begun
        for finding in findings:
            timed = finding.model_copy(update={"seconds": seconds})
            patient.findings[finding.probe] = timed
            on_finding(timed)
    patient.findings[Probe.SPEED] = speed(patient)
    on_finding(patient.findings[Probe.SPEED])
    return Report(
        model=model_name_of(client),
        usable=is_usable(patient.findings),
        findings=tuple(patient.findings[probe] for probe in Probe),
        claimed={**client.model_info},
        recommendation=recommend(patient.findings, client.model_info),
        usage=patient.usage,
    )


async def _found(step: _Step, patient: Patient) -> tuple[Finding, ...]:
    for needed in step.needs:
        if patient.findings[needed].grade is Grade.BAD:
            return _skipped(step, f"Not asked: see {needed.value!r}.")
    if _OF_TOOLS.issuperset(step.probes) and patient.found(Probe.TOOLS) not in _CALLABLE:
        return _skipped(step, f"Not asked: see {Probe.TOOLS.value!r}.")
    if step.probes == (Probe.PARALLEL,) and patient.found(Probe.TOOLS) is not Found.YES:
        return _skipped(step, f"Not asked: see {Probe.TOOLS.value!r}.")
    return await step.ask(patient)


def _skipped(step: _Step, text: str) -> tuple[Finding, ...]:
    return tuple(
        Finding(probe=probe, found=Found.SKIPPED, grade=Grade.UNKNOWN, text=text)
        for probe in step.probes
    )
