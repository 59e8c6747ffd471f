"""An examination of a model, and what follows from it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from autogen_core.models import ChatCompletionClient, ModelInfo

from coag.models import model_name_of

from .findings import Finding, Found, Grade, Limits, Probe, Recommendation, Report
from .probe_client import Patient, listed
from .probes import (
    answer,
    context,
    json_mode,
    none,
    parallel,
    required,
    schema,
    speed,
    stream,
    strictest_rung,
    system,
    systems,
    tools,
    tools_with_schema,
    typed,
)

# ---- What follows from the findings; plain functions over values ----


_NEEDED = (Probe.LISTED, Probe.ANSWER, Probe.TYPED)
"""Where a bad finding, or none, makes a model unusable."""


def is_usable(findings: Mapping[Probe, Finding]) -> bool:
    """True if an agent can work with the model."""
    graded = {findings[probe].grade for probe in _NEEDED}
    return Grade.BAD not in graded and findings[Probe.TYPED].found is Found.YES


def recommend(findings: Mapping[Probe, Finding], claimed: ModelInfo) -> Recommendation:
    """What to set.

    Args:
        findings: One for each probe.
        claimed: What the client claims now; it stays in force for what is not probed, or was
            answered late.
    """
    found = {probe: finding.found for probe, finding in findings.items()}
    native = found[Probe.TOOLS] is Found.YES

    def holds(probe: Probe, word: Found, ability: str) -> bool:
        late = found[probe] is Found.LATE
        return bool(claimed.get(ability, False)) if late else found[probe] is word

    claims: dict[str, bool | str] = {
        "vision": bool(claimed.get("vision", False)),
        "function_calling": holds(Probe.TOOLS, Found.YES, "function_calling"),
        "json_output": holds(Probe.JSON_MODE, Found.ENFORCED, "json_output"),
        "family": str(claimed.get("family", "unknown")),
        "structured_output": holds(Probe.SCHEMA, Found.ENFORCED, "structured_output"),
        "multiple_system_messages": found[Probe.SYSTEMS] is Found.YES,
    }
    return Recommendation(
        rung=strictest_rung(found[Probe.SCHEMA], found[Probe.JSON_MODE]),
        proposal="native" if native else "json",
        parallel=native and found[Probe.PARALLEL] is Found.YES,
        model_info=claims,
        context_tokens=int(findings[Probe.CONTEXT].figures.get("counted_tokens", 0)),
    )


# ---- The examination: probe after probe, each bounded, until the report ----


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
