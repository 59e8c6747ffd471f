"""`coag diagnose`: names the cause of every failure of a run, with the records that show it."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from coag.errors import TraceError
from coag.proof import Diagnosis, Domain, Evidence, diagnoses
from coag.schema import cleaned, escaped_json, one_line
from coag.tracing import RunFolder, list_runs, read_trace

from .runs import Damage, domain_of, found_run, runs_below

_FAILED = 1
"""Exit code where there is a failure."""
_SENTENCE = 1_000
"""Characters that no sentence has: a diagnosis cuts its own."""
_BLOCKS = 200
"""Failures that are printed; of neighbouring ones that are the same, one."""
_NUMBER = re.compile(r"\d+")
_UNTOLD = "not attributable"


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
    domain = domain_of(options.domain)
    holder = runs_below(options.run, options.logs)
    runs = [found_run(options.run, options.logs)] if holder is None else list(list_runs(holder))
    failed = 0
    for run in runs:
        try:
            failed += bool(_show(run, domain, as_json=options.as_json))
        except TraceError as error:
            if len(runs) == 1:
                raise
            failed += 1
            Console(stderr=True).print(Text(one_line(str(error), 1_000)), soft_wrap=True)
    if len(runs) > 1 and not options.as_json:
        told = f"{failed} of {len(runs)} runs with a failure"
        Console(highlight=False).print(Text(told, style="bold"))
    return _FAILED if failed else 0


def _show(run: RunFolder, domain: Domain | None, *, as_json: bool) -> int:
    """Prints the failures of a run, what they come to first; how many there are."""
    damage = Damage(run)
    found = diagnoses(read_trace(run.trace_path, damage.take), domain=domain)
    if as_json:
        count = _write(run, found)
        damage.warn()
        return count
    told = _Told()
    for diagnosis in found:
        told.take(diagnosis)
    damage.warn()
    console = Console(highlight=False, markup=False, emoji=False)
    summary = f"{one_line(run.path.name)}: {told.summary()}"
    console.print(Text(summary, style="bold"), soft_wrap=True)
    for line in told.lines():
        console.print(line, soft_wrap=True)
    if told.count:
        console.print()
    return told.count


def _write(run: RunFolder, found: Iterator[Diagnosis]) -> int:
    """Writes the failures as JSON one by one, as they are found; how many there are."""
    count = 0
    for diagnosis in found:
        count += 1
        sys.stdout.write(escaped_json(json.dumps(_as_json(run, diagnosis))) + "\n")
    return count


@dataclass(slots=True)
class _Block:
    """Failures of neighbouring cycles that are the same but for numbers."""

    first: Diagnosis
    last: int
    """The cycle of the last of them."""
    count: int = 1

    def takes(self, other: Diagnosis) -> bool:
        """Whether another failure belongs here."""
        near = self.last <= other.cycle <= self.last + 1
        return near and _shape(self.first) == _shape(other)

    def lines(self) -> Iterator[Text]:
        """It in words; of several failures those of the first."""
        first = self.first
        to = f" to {self.last}" if self.last > first.cycle else ""
        head = Text(f"cycle{'s' if to else ''} {first.cycle}{to}: ")
        head.append(first.cause or _UNTOLD, style="bold red" if first.cause else "bold yellow")
        yield head.append(f", {self.count} times; the first:" if self.count > 1 else "")
        yield Text(f"  {one_line(first.failure, _SENTENCE)}")
        yield Text(f"  {one_line(first.reason, _SENTENCE)}")
        for evidence in first.evidence:
            said = evidence.text in (first.failure, first.reason)
            text = "" if said else f": {one_line(evidence.text, _SENTENCE)}"
            yield Text(f"    {_place(evidence)}{text}", style="bright_black")


class _Told:
    """The failures of one run, folded; what is too much to print is only counted."""

    def __init__(self) -> None:
        self.count = 0
        self._causes: Counter[str] = Counter()
        self._blocks: list[_Block] = []
        self._untold = 0

    def take(self, diagnosis: Diagnosis) -> None:
        self.count += 1
        self._causes[diagnosis.cause or _UNTOLD] += 1
        if self._blocks and self._blocks[-1].takes(diagnosis):
            self._blocks[-1].last = diagnosis.cycle
            self._blocks[-1].count += 1
        elif len(self._blocks) < _BLOCKS:
            self._blocks.append(_Block(diagnosis, diagnosis.cycle))
        else:
            self._untold += 1

    def summary(self) -> str:
        told = ", ".join(f"{number} {cause}" for cause, number in sorted(self._causes.items()))
        counted = f"{self.count} failure{'' if self.count == 1 else 's'}"
        return f"{counted}: {told}" if self.count else "no failure"

    def lines(self) -> Iterator[Text]:
        for block in self._blocks:
            yield from block.lines()
        if self._untold:
            yield Text(f"… and {self._untold} more: --json tells all", style="yellow")


def _shape(diagnosis: Diagnosis) -> tuple[str | None, str, str]:
    """What a failure is like, whatever numbers it tells."""
    failure, reason = (_NUMBER.sub("#", text) for text in (diagnosis.failure, diagnosis.reason))
    return diagnosis.cause, failure, reason


def _place(evidence: Evidence) -> str:
    phase = f", {evidence.phase}" if evidence.phase else ""
    return f"record {evidence.seq}, cycle {evidence.cycle}{phase}"


def _as_json(run: RunFolder, diagnosis: Diagnosis) -> dict[str, Any]:
    return {"run": cleaned(run.path.name), **asdict(diagnosis)}
