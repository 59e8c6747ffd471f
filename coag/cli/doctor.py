"""`coag doctor`: what is installed, and what a model server can do."""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from coag.doctor import (
    Fit,
    Grade,
    PackageCheck,
    Probe,
    ProbeFinding,
    ProbeLimits,
    ProbeOutcome,
    Report,
    VersionReport,
    check_versions,
    examine,
)
from coag.models import ModelSpec
from coag.schema import cleaned, escaped_json, one_line

_SOUND = 0
_UNSOUND = 1
"""Exit code where the model or what is installed is of no use; 2 is the user's error."""
_STYLES: Mapping[Grade, tuple[str, str]] = {
    Grade.GOOD: ("ok", "green"),
    Grade.POOR: ("poor", "yellow"),
    Grade.BAD: ("BAD", "bold red"),
    Grade.UNKNOWN: ("-", "dim"),
}
_TEXT = 500
"""Characters of a finding that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """What the user asked for."""

    model: str | None = None
    """A model spec; None to look at versions only."""
    context: int = 4_096
    max_tokens: int = 256
    seconds: float = 60.0
    as_json: bool = False


def doctor(options: DoctorOptions) -> int:
    """Examines and prints; returns the exit code: 0 usable, 1 not usable.

    Raises:
        ConfigurationError: The spec fits no form, or the model cannot be opened.
    """
    versions = check_versions()
    if options.model is None:
        if not options.as_json:
            _print_versions(versions)
        return _end(options, versions, None)
    out = Console(highlight=False, markup=False, emoji=False)
    spec = ModelSpec.parse(options.model)
    if not options.as_json:
        _print_faults(versions, out)
    report = asyncio.run(_examined(spec, options, out))
    if not options.as_json:
        _print_conclusion(report, out)
    return _end(options, versions, report)


async def _examined(spec: ModelSpec, options: DoctorOptions, out: Console) -> Report:
    limits = ProbeLimits(
        context=options.context, max_tokens=options.max_tokens, seconds=options.seconds
    )
    client = spec.open()
    if not options.as_json:
        out.print(Text(spec.public, style="bold"), soft_wrap=True)
    with Console(stderr=True).status("") as status, warnings.catch_warnings():
        # AutoGen's remarks on servers that differ from OpenAI's: the findings say it better.
        warnings.simplefilter("ignore", UserWarning)
        try:
            return await examine(
                client,
                limits=limits,
                on_probe=lambda probe: _tell(status, probe),
                on_finding=lambda finding: None if options.as_json else _print(finding, out),
            )
        finally:
            await client.close()


def _tell(status: Status, probe: Probe) -> None:
    status.update(f"asking: {probe.value} …")


def _print(finding: ProbeFinding, out: Console) -> None:
    if finding.found is ProbeOutcome.SKIPPED and finding.probe is not Probe.LISTED:
        return
    word, style = _STYLES[finding.grade]
    text = Text(one_line(finding.text, _TEXT))
    if finding.advice and finding.grade is not Grade.GOOD:
        text.append(f"\n→ {one_line(finding.advice, _TEXT)}", style="dim")
    out.print(_row(Text(word, style=style), finding.probe.value, text))


def _row(word: Text, name: str, text: Text) -> Table:
    row = Table.grid(padding=(0, 1))
    row.add_column(width=4)
    row.add_column(width=17, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(word, Text(name), text)
    return row


def _print_conclusion(report: Report, out: Console) -> None:
    out.print()
    if not report.usable:
        out.print(Text("Not usable. Mend what is BAD above, then ask again.", style="bold red"))
        return
    advised = report.recommendation
    out.print(Text(f"Usable on the rung {advised.rung.value!r}. Use it so:", style="bold green"))
    for line in _code(report):
        out.print(Text(f"  {line}"), soft_wrap=True)
    usage = report.usage
    cost = (
        f"The examination took {usage.calls} requests, {usage.prompt_tokens:,} prompt tokens "
        f"and {usage.completion_tokens:,} completion tokens."
    )
    out.print(Text(cost, style="dim"), soft_wrap=True)


def _code(report: Report) -> list[str]:
    """What to write, in Python."""
    advised = report.recommendation
    wrong = {
        key: told for key, told in advised.model_info.items() if report.claimed.get(key) != told
    }
    agent = f'agent = CoagAgent("assistant", client, proposal="{advised.proposal}")'
    if not wrong:
        return [agent]
    lines = [
        f"    {json.dumps(key)}: {cleaned(_literal(told))},"
        + (f"  # the client claims {report.claimed.get(key)}" if key in wrong else "")
        for key, told in advised.model_info.items()
    ]
    return ["model_info = {", *lines, "}  # give it to the client", agent]


def _literal(value: bool | str) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _print_versions(versions: VersionReport) -> None:
    out = Console(highlight=False, markup=False, emoji=False)
    for check in versions.packages:
        _print_check(check, out)
    word = Text("ok" if versions.telemetry_off else "-", style="dim")
    out.print(_row(word, "telemetry", Text(versions.telemetry)))
    out.print()
    if versions.sound:
        out.print(Text("What is installed works together.", style="bold green"))
        hint = "To examine a model: coag doctor SPEC, e.g. ollama:NAME or URL#NAME"
        out.print(Text(hint, style="dim"), soft_wrap=True)
    else:
        out.print(Text("Install what is BAD above in a version that works.", style="bold red"))


def _print_faults(versions: VersionReport, out: Console) -> None:
    """The packages that may be why an examination goes wrong."""
    for check in versions.packages:
        if check.fit in (Fit.UNFIT, Fit.MISSING):
            _print_check(check, out)


def _print_check(check: PackageCheck, out: Console) -> None:
    word, style = _STYLES[check.grade]
    bounds = f" ({check.asked_by}: {check.bounds})" if check.bounds else ""
    text = Text(f"{check.installed or 'not installed'}{bounds}")
    if check.advice:
        text.append(f"\n→ {check.advice}", style="dim")
    out.print(_row(Text(word, style=style), check.name, text))


def _end(options: DoctorOptions, versions: VersionReport, report: Report | None) -> int:
    usable = versions.sound if report is None else report.usable
    if options.as_json:
        told = {
            "usable": usable,
            "versions": {"sound": versions.sound, **versions.model_dump(mode="json")},
            "model": None if report is None else report.model_dump(mode="json"),
        }
        sys.stdout.write(escaped_json(json.dumps(told, ensure_ascii=False)) + "\n")
    return _SOUND if usable else _UNSOUND
