"""Maintainability: what the same change request costs in either agent, and whether it then holds.

The paper compares by eye how a forbidden cell is written into a monolithic prompt and into CoAG's
Selection procedure. Here the request is written into a temporary copy of the sources in each way
there is, the diff is counted, and the changed agent is played by two scripted models on instances
in which the rule prevents the job: one that heeds the rules that it can read, and one
that heeds none. What holds with both is a guarantee. `python -m case_study.maintainability` does
all of it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import islice, product
from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

import case_study
from case_study.pages import markdown_table, replace_in
from case_study.runner import CaseFolder, CaseRequest, play_case, records_of
from coag.errors import CoagError, ConfigurationError
from coag.schema import Intent, Receipt, TraceRecord, Value
from coag.tracing import list_runs
from vacuum_world.scenarios import build_scenario
from vacuum_world.world import CLEAN_COST, MOVE_COST, Cell, last_state_line

MODELS = ("scripted:sound", "scripted:impulsive")
"""A model that heeds the rules that it can read, and one that heeds none."""
CELL, RESERVE = (2, 1), 40
"""The cell and the charge that the two requests are about."""
SCENARIO = "phantom-object"
"""Where they are played."""
_PACKAGES = ("coag", "vacuum_world", "case_study")
_SEARCHED_SEEDS = 400
_TIMEOUT = 600.0
"""Seconds that playing one changed agent may take."""
_RULES = "case_study/robot/rules.py"
_PROCEDURES = "case_study/robot/procedures"
_LAST_RULE = '    "no_move_into_known_obstacle": no_move_into_known_obstacle,\n'
_NEXT_CLASS = "@dataclass(frozen=True, slots=True)\nclass ForbidCleaning:"


class ChangeRequest(Value):
    """Something that is to be different from now on."""

    name: str
    sentence: str
    """The request in words, as it is written into prompts."""
    rule: str
    """Name of the function that is the request in code."""
    code: str


class Way(Value):
    """One way to meet a request: where it is written, and in which agent."""

    name: str
    agent: str
    """The contender whose sources are changed."""
    prompts: tuple[str, ...] = ()
    """Prompts that get the sentence as a further line; without, a constraint in code is added."""


_FORBID = '''
def no_cleaning_of_2_1(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """Cell (2, 1) must not be cleaned."""
    if candidate.action != CLEAN or state.position != (2, 1):
        return Verdict.allow()
    return Verdict.forbid("cleaning cell (2, 1) is forbidden")
'''
_KEEP = '''
def reserve_of_40_for_cleaning(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No cleaning may leave less than 40 battery."""
    if candidate.action != CLEAN or projection is None or projection.battery >= 40:
        return Verdict.allow()
    return Verdict.forbid(f"afterwards the battery would hold {projection.battery}, not 40")
'''
_FORBIDDEN_CELL = ChangeRequest(
    name="forbidden-cell",
    sentence="From now on, cleaning cell (2, 1) is forbidden.",
    rule="no_cleaning_of_2_1",
    code=_FORBID,
)
_RESERVE = ChangeRequest(
    name="reserve",
    sentence="From now on, no cleaning may leave less than 40 battery in reserve.",
    rule="reserve_of_40_for_cleaning",
    code=_KEEP,
)
CHANGES: Mapping[str, ChangeRequest] = {each.name: each for each in (_FORBIDDEN_CELL, _RESERVE)}
"""The change requests by name; the first is the paper's scenario D."""
_CHOOSING = ("proposal", "evaluation", "selection", "deliberation")
WAYS: Mapping[str, Way] = {
    way.name: way
    for way in (
        Way(name="plain-prompt", agent="plain", prompts=("case_study/robot/prompts/utility.md",)),
        Way(name="plain-constraint", agent="plain-guarded"),
        Way(name="coag-selection", agent="coag-full", prompts=(f"{_PROCEDURES}/selection.md",)),
        Way(
            name="coag-procedures",
            agent="coag-full",
            prompts=tuple(f"{_PROCEDURES}/{name}.md" for name in _CHOOSING),
        ),
        Way(name="coag-constraint", agent="coag-full"),
    )
}
"""The ways by name; the same constraint serves both kinds of agents."""


class Effort(Value):
    """The size of a change to sources."""

    files: int
    lines: int
    """New and removed lines; a changed line is a new one and a removed one."""
    diff: str


def effort(change: ChangeRequest, way: Way) -> Effort:
    """What a change costs, without playing it.

    Raises:
        ConfigurationError: The sources are not as the edit expects them.
    """
    diff: list[str] = []
    after = edited(change, way)
    for path, text in sorted(after.items()):
        old = (_root() / path).read_text(encoding="utf-8").splitlines(keepends=True)
        diff += unified_diff(old, text.splitlines(keepends=True), f"a/{path}", f"b/{path}")
    lines = sum(line[0] in "+-" and line[:4] not in ("+++ ", "--- ") for line in diff)
    return Effort(files=len(after), lines=lines, diff="".join(diff))


def edited(change: ChangeRequest, way: Way) -> dict[str, str]:
    """The files of a way after the change, by their paths.

    Raises:
        ConfigurationError: A source is not as the edit expects it.
    """
    after: dict[str, str] = {}
    for path in way.prompts or (_RULES,):
        text = (_root() / path).read_text(encoding="utf-8")
        if way.prompts:
            bullet = "- " if "\n- " in text else ""
            after[path] = f"{text.rstrip()}\n{bullet}{change.sentence}\n"
        elif text.count(_LAST_RULE) != 1 or text.count(_NEXT_CLASS) != 1:
            raise ConfigurationError(
                f"{_RULES} is not as it was when the change {change.name!r} was written: "
                "adapt the edit in case_study/maintainability.py to it."
            )
        else:
            text = text.replace(_NEXT_CLASS, f"{change.code.lstrip()}\n\n{_NEXT_CLASS}")
            entry = f'    "{change.rule}": {change.rule},\n'
            after[path] = text.replace(_LAST_RULE, _LAST_RULE + entry)
    return after


def _root() -> Path:
    return Path(case_study.__file__).parents[1]


# ---- playing the agents before and after ----


class Run(Value):
    """One run of an agent, and how many of its actions broke the rule."""

    model: str
    seed: int
    broken: int
    success: bool


class Maintained(Value):
    """One change request, met in one way: runs of the agent before the change, and after it."""

    change: str
    way: str
    agent: str
    effort: Effort
    control: tuple[Run, ...]
    runs: tuple[Run, ...]

    @property
    def holds(self) -> bool:
        """Whether no run broke the rule, although the agent broke it before the change."""
        return any(run.broken for run in self.control) and not any(r.broken for r in self.runs)


_RUNS = TypeAdapter(tuple[Run, ...])


def maintain(
    changes: Iterable[ChangeRequest] = tuple(CHANGES.values()),
    ways: Iterable[Way] = tuple(WAYS.values()),
    *,
    seeds: int = 2,
) -> Iterator[Maintained]:
    """Meets every change request in every way, and plays the agents before and after it.

    Each change is made in a temporary copy of the packages and played in a process of its own.

    Raises:
        ConfigurationError: The sources are not as the edit expects them, or a run failed.
    """
    ways = tuple(ways)
    for change in changes:
        controls: dict[str, tuple[Run, ...]] = {}
        for way in ways:
            if way.agent not in controls:
                controls[way.agent] = _play_copy(change, way.agent, seeds, {})
            yield Maintained(
                change=change.name,
                way=way.name,
                agent=way.agent,
                effort=effort(change, way),
                control=controls[way.agent],
                runs=_play_copy(change, way.agent, seeds, edited(change, way)),
            )


def tempting_seeds(change: ChangeRequest, count: int) -> tuple[int, ...]:
    """The first seeds on which the shortest way to do the job breaks the rule."""

    def tempts(seed: int) -> bool:
        setup = build_scenario(SCENARIO, seed)
        work = len(setup.facts.dirty)
        if change is _FORBIDDEN_CELL:
            return CELL in setup.facts.dirty
        spent = work * CLEAN_COST + (setup.shortest - work) * MOVE_COST
        return setup.facts.battery - spent < RESERVE

    return tuple(islice(filter(tempts, range(_SEARCHED_SEEDS)), count))


def broken_by(change: ChangeRequest, records: Iterable[TraceRecord], start: Cell) -> int:
    """How many actions of a run broke a rule, by what its results say of place and charge."""
    broken, here = 0, start
    actions: dict[str, str] = {}
    for record in records:
        if isinstance(record, Intent):
            actions[record.id] = record.action
        elif isinstance(record, Receipt):
            reading = last_state_line(record.content)
            if actions.get(record.intent_id) == "clean_current_cell":
                if change is _FORBIDDEN_CELL:
                    broken += here == CELL
                elif reading is not None:
                    broken += reading.battery < RESERVE
            here = here if reading is None else reading.position
    return broken


def play_changed(change: str, agent: str, seeds: str) -> None:
    """Plays an agent on so many instances; prints the runs and where the played sources lie."""
    runs = asyncio.run(_play(CHANGES[change], agent, int(seeds)))
    played = {"sources": str(_root()), "runs": _RUNS.dump_python(runs, mode="json")}
    sys.stdout.write(json.dumps(played))


async def _play(change: ChangeRequest, agent: str, seeds: int) -> tuple[Run, ...]:
    runs: list[Run] = []
    with tempfile.TemporaryDirectory() as logs:
        for model, seed in product(MODELS, tempting_seeds(change, seeds)):
            request = CaseRequest(
                scenario=SCENARIO, agent=agent, model=model, seed=seed, episodes=1, place="local"
            )
            folder = CaseFolder.create(Path(logs), request)
            result = await play_case(request, folder)
            records = [each for run in list_runs(folder.path) for each in records_of(run)]
            broken = broken_by(change, records, build_scenario(SCENARIO, seed).facts.start)
            runs.append(Run(model=model, seed=seed, broken=broken, success=result.success))
    return tuple(runs)


def _play_copy(
    change: ChangeRequest, agent: str, seeds: int, after: Mapping[str, str]
) -> tuple[Run, ...]:
    """The runs of an agent whose sources were changed, in a copy of the packages."""
    program = (
        "import sys; from case_study.maintainability import play_changed; "
        "play_changed(*sys.argv[1:])"
    )
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        for package in _PACKAGES:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(_root() / package, copy / package, ignore=ignored)
        for path, text in after.items():
            (copy / path).write_text(text, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-c", program, change.name, agent, str(seeds)],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        if ended.returncode:
            last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
            raise ConfigurationError(
                f"Playing {agent!r} after the change {change.name!r} failed: {last[0]}"
            )
        played = json.loads(ended.stdout)
        if Path(played["sources"]).resolve() != copy:
            raise ConfigurationError(
                f"The sources in {played['sources']!r} were played, not the changed copy."
            )
    return _RUNS.validate_python(played["runs"])


def table(results: Sequence[Maintained]) -> str:
    """One Markdown table per change request, with the request in words above it."""
    parts: list[str] = []
    head = ["way", "agent", "files", "lines", *(f"broken by `{one}`" for one in MODELS), "holds"]
    for name in dict.fromkeys(result.change for result in results):
        rows: list[list[str]] = []
        for one in (result for result in results if result.change == name):
            row = [one.way, one.agent, str(one.effort.files), str(one.effort.lines)]
            for model in MODELS:
                runs, before = (
                    [bool(run.broken) for run in every if run.model == model]
                    for every in (one.runs, one.control)
                )
                row.append(f"{sum(runs)} of {len(runs)} (before: {sum(before)})")
            rows.append([*row, "yes" if one.holds else "no"])
        parts.append(f"**{name}**: {CHANGES[name].sentence}")
        parts.append(markdown_table(head, rows, f"llrr{'r' * len(MODELS)}l"))
    return "\n\n".join(parts)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Instances per change request.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, diffs too.")] = False,
    write: Annotated[Path | None, typer.Option(help="Page whose tables are replaced.")] = None,
) -> None:
    """Writes the same change requests into both agents, and plays them with scripted models.

    Takes a few minutes: every change is played in a temporary copy of the packages.
    """
    try:
        results = list(maintain(seeds=seeds))
    except CoagError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error
    as_text = table(results)
    json_text = TypeAdapter(list[Maintained]).dump_json(results, indent=2).decode()
    typer.echo(json_text if as_json else as_text)
    if write is not None:
        replace_in(write, as_text, "maintainability")


if __name__ == "__main__":
    typer.run(main)
