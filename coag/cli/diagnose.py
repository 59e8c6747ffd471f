"""`coag diagnose`: names the cause of every failure of a run, with the records that show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from coag._util.text import cleaned, counted, one_line
from coag.errors import ConfigurationError
from coag.proof import Diagnosis, DomainKnowledge, diagnoses
from coag.schema import from_users_name
from coag.tracing import RunFolder, read_trace

from .options import Domain, Logs, RunOrRuns
from .output import DIM, say, show, write_json
from .runs import Damage, failing, runs_named

_FAILED = 1
"""Exit code where there is a failure."""
_SENTENCE = 1_000
"""Characters that no sentence has: a diagnosis cuts its own."""
_BLOCKS = 200
"""Failures that are printed; of neighbouring ones that are the same, one."""
_NUMBER = re.compile(r"\d+")
_UNATTRIBUTED = "not attributable"


def diagnose(
    run: RunOrRuns = "latest",
    domain: Domain = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="One JSON object a failure, for programs.")
    ] = False,
    logs: Logs = Path("logs"),
) -> None:
    """Names the cause of every failure of a run, with the records that show it.

    Exit code 0: nothing failed; 1: there are failures; 2: wrongly called.
    """
    known = domain_of(domain)
    runs = runs_named(run, logs)
    failed = failing(
        runs,
        lambda one: not _print_failures(one, known, json_lines=json_lines),
        lambda _, error: say(one_line(str(error), 1_000)),
    )
    if len(runs) > 1 and not json_lines:
        show([Text(f"{failed} of {len(runs)} runs with a failure", style="bold")])
    raise typer.Exit(_FAILED if failed else 0)


def domain_of(name: str | None) -> DomainKnowledge | None:
    """The domain under an import name."""
    if name is None:
        return None
    if re.fullmatch(r"[^:\s]+:[^:\s]+", name) is None:
        raise ConfigurationError(
            f"--domain takes an import name, module:Class, not {name!r}; "
            "e.g. case_study.faults:VacuumDomain."
        )
    value: object = from_users_name(name)
    if isinstance(value, type) and issubclass(value, DomainKnowledge):
        return value()
    if not isinstance(value, DomainKnowledge):
        raise ConfigurationError(f"{name!r} is no coag.proof.DomainKnowledge.")
    return value


def _print_failures(run: RunFolder, domain: DomainKnowledge | None, *, json_lines: bool) -> int:
    """Prints the failures of a run, a summary first; returns how many there are."""
    damage = Damage(run)
    failures = diagnoses(read_trace(run.trace_path, damage.take), domain=domain)
    if json_lines:
        number = 0
        for number, diagnosis in enumerate(failures, start=1):  # noqa: B007 - counted
            write_json({"run": cleaned(run.path.name), **asdict(diagnosis)})
        damage.warn()
        return number
    causes, blocks, rest = Counter[str](), list[_Block](), 0
    for one in failures:
        causes[one.cause or _UNATTRIBUTED] += 1
        if blocks and blocks[-1].takes(one):
            blocks[-1].last = one.cycle
            blocks[-1].count += 1
        elif len(blocks) < _BLOCKS:
            blocks.append(_Block(one, one.cycle))
        else:
            rest += 1
    damage.warn()
    named = ", ".join(f"{number} {cause}" for cause, number in sorted(causes.items()))
    summary = f"{counted(causes.total(), 'failure')}: {named}" if causes else "no failure"
    show([Text(f"{one_line(run.path.name)}: {summary}", style="bold")])
    show(line for block in blocks for line in block.lines())
    if rest:
        show([Text(f"… and {rest} more: --json shows all", style="yellow")])
    if causes:
        show([""])
    return causes.total()


@dataclass(slots=True)
class _Block:
    """Failures of neighbouring cycles that differ in numbers only."""

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
        head.append(
            first.cause or _UNATTRIBUTED, style="bold red" if first.cause else "bold yellow"
        )
        yield head.append(f", {self.count} times; the first:" if self.count > 1 else "")
        yield Text(f"  {one_line(first.failure, _SENTENCE)}")
        yield Text(f"  {one_line(first.reason, _SENTENCE)}")
        for evidence in first.evidence:
            repeats = evidence.text in (first.failure, first.reason)
            text = "" if repeats else f": {one_line(evidence.text, _SENTENCE)}"
            phase = f", {evidence.phase}" if evidence.phase else ""
            place = f"record {evidence.seq}, cycle {evidence.cycle}{phase}"
            yield Text(f"    {place}{text}", style=DIM)


def _shape(diagnosis: Diagnosis) -> tuple[str | None, str, str]:
    """What a failure is like, apart from the numbers in its text."""
    failure, reason = (_NUMBER.sub("#", text) for text in (diagnosis.failure, diagnosis.reason))
    return diagnosis.cause, failure, reason
