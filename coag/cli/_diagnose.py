"""`coag diagnose`: names the cause of every failure of a run, with the records that show it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from coag.errors import ConfigurationError, TraceError
from coag.proof import Diagnosis, Domain, Evidence, diagnoses
from coag.schema import Imported
from coag.tracing import RunFolder, list_runs

from ._runs import found_run, runs_below
from ._text import cleaned, escaped_json, one_line

_FAILED = 1
"""Exit code where there is a failure."""
_SENTENCE = 600
"""Characters of one sentence that are printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseOptions:
    """What the user asked for."""

    run: str
    logs: Path
    domain: str | None
    as_json: bool


def diagnose_runs(options: DiagnoseOptions) -> int:
    """Prints the failures of one run, or of all runs in a folder, each with its cause.

    Returns:
        The exit code: 0 if nothing failed, 1 otherwise.

    Raises:
        UnknownNameError: If there is no such run.
        ConfigurationError: If several runs may be meant, or the domain is none.
        TraceError: If the run's trace cannot be read.
    """
    domain = _domain(options.domain)
    holder = runs_below(options.run, options.logs)
    runs = [found_run(options.run, options.logs)] if holder is None else list(list_runs(holder))
    failures = 0
    for run in runs:
        try:
            failures += _show(run, domain, as_json=options.as_json)
        except TraceError as error:
            if len(runs) == 1:
                raise
            failures += 1
            Console(stderr=True).print(Text(one_line(str(error), 1_000)), soft_wrap=True)
    return _FAILED if failures else 0


def _show(run: RunFolder, domain: Domain | None, *, as_json: bool) -> int:
    """Prints the failures of a run one by one, as they are found; how many there are."""
    count = 0
    if as_json:
        for diagnosis in diagnoses(run, domain=domain):
            count += 1
            sys.stdout.write(escaped_json(json.dumps(_as_json(run, diagnosis))) + "\n")
        return count
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(Text(one_line(run.path.name), style="bold"), soft_wrap=True)
    causes: dict[str, int] = {}
    for diagnosis in diagnoses(run, domain=domain):
        count += 1
        cause = diagnosis.cause or "not attributable"
        causes[cause] = causes.get(cause, 0) + 1
        for line in _paragraph(diagnosis):
            console.print(line, soft_wrap=True)
    told = ", ".join(f"{number} {cause}" for cause, number in sorted(causes.items()))
    counted = f"{count} failure{'' if count == 1 else 's'}"
    console.print(Text(f"{counted}: {told}" if count else "no failure", style="bold"))
    return count


def _paragraph(diagnosis: Diagnosis) -> Iterator[Text]:
    cause = diagnosis.cause or "not attributable"
    head = Text(f"\ncycle {diagnosis.cycle}: ")
    head.append(cause, style="bold red" if diagnosis.cause else "bold yellow")
    yield head
    yield Text(f"  {one_line(diagnosis.failure, _SENTENCE)}")
    yield Text(f"  {one_line(diagnosis.reason, _SENTENCE)}")
    for evidence in diagnosis.evidence:
        yield Text(f"    {_place(evidence)}: {one_line(evidence.text)}", style="bright_black")


def _place(evidence: Evidence) -> str:
    phase = f", {evidence.phase}" if evidence.phase else ""
    return f"record {evidence.seq}, cycle {evidence.cycle}{phase}"


def _as_json(run: RunFolder, diagnosis: Diagnosis) -> dict[str, Any]:
    return {"run": cleaned(run.path.name), **asdict(diagnosis)}


def _domain(name: str | None) -> Domain | None:
    """The domain under an import name.

    Raises:
        ConfigurationError: There is none.
    """
    if name is None:
        return None
    if ":" not in name:
        raise ConfigurationError(
            f"--domain takes an import name, module:Class, not {name!r}; "
            "e.g. case_study.faults:VacuumDomain."
        )
    found: object = Imported(name=name).get()
    if isinstance(found, type) and issubclass(found, Domain):
        return found()
    if not isinstance(found, Domain):
        raise ConfigurationError(f"{name!r} is no coag.proof.Domain.")
    return found
