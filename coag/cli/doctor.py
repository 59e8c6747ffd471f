"""`coag doctor`: what is installed, and what a model server can do."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coag._util.text import cleaned, one_line
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

from .options import AsJson
from .output import screen, write_json

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


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="SPEC",
            help="`openai:NAME`, `ollama:NAME`, `anthropic:NAME`, `URL#NAME`, or an AutoGen "
            "component file; without one, what is installed is checked.",
        ),
    ] = None,
    context: Annotated[
        int, typer.Option(min=256, metavar="N", help="Longest prompt to try, in tokens.")
    ] = 4_096,
    max_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Longest answer; more for models that think.")
    ] = 256,
    seconds: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="Time for each request.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Examines a model server, or without SPEC what is installed; says what to do.

    Exit code 0: usable; 1: not usable; 2: wrongly called.
    """
    versions, report, out = check_versions(), None, screen()
    if model is not None:
        spec = ModelSpec.parse(model)
        limits = ProbeLimits(context=context, max_tokens=max_tokens, seconds=seconds)
        if not as_json:
            for check in versions.packages:  # those that may be why an examination goes wrong
                if check.fit in (Fit.UNFIT, Fit.MISSING):
                    _print_check(check, out)
        report = asyncio.run(_examined(spec, limits, None if as_json else out))
        if not as_json:
            _print_conclusion(report, out)
    elif not as_json:
        _print_versions(versions, out)
    usable = versions.sound if report is None else report.usable
    if as_json:
        write_json(
            {
                "usable": usable,
                "versions": {"sound": versions.sound, **versions.model_dump(mode="json")},
                "model": None if report is None else report.model_dump(mode="json"),
            }
        )
    raise typer.Exit(_SOUND if usable else _UNSOUND)


async def _examined(spec: ModelSpec, limits: ProbeLimits, out: Console | None) -> Report:
    client = spec.open()
    if out is not None:
        out.print(Text(spec.public, style="bold"), soft_wrap=True)
    with Console(stderr=True).status("") as status, warnings.catch_warnings():
        # AutoGen's remarks on servers that differ from OpenAI's: the findings say it better.
        warnings.simplefilter("ignore", UserWarning)
        try:
            return await examine(
                client,
                limits=limits,
                on_probe=lambda probe: status.update(f"asking: {probe.value} …"),
                on_finding=lambda finding: None if out is None else _print(finding, out),
            )
        finally:
            await client.close()


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
        out.print(Text("Not usable. Fix what is BAD above, then ask again.", style="bold red"))
        return
    advised = report.recommendation
    out.print(Text(f"Usable in output mode {advised.rung.value!r}. Use it so:", style="bold green"))
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
        key: value for key, value in advised.model_info.items() if report.claimed.get(key) != value
    }
    agent = f'agent = CoagAgent("assistant", client, proposal="{advised.proposal}")'
    if not wrong:
        return [agent]
    lines = [
        f"    {json.dumps(key)}: {cleaned(_literal(value))},"
        + (f"  # the client claims {report.claimed.get(key)}" if key in wrong else "")
        for key, value in advised.model_info.items()
    ]
    return ["model_info = {", *lines, "}  # give it to the client", agent]


def _literal(value: bool | str) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _print_versions(versions: VersionReport, out: Console) -> None:
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


def _print_check(check: PackageCheck, out: Console) -> None:
    word, style = _STYLES[check.grade]
    bounds = f" ({check.asked_by}: {check.bounds})" if check.bounds else ""
    text = Text(f"{check.installed or 'not installed'}{bounds}")
    if check.advice:
        text.append(f"\n→ {check.advice}", style="dim")
    out.print(_row(Text(word, style=style), check.name, text))
