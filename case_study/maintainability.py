"""Maintainability: what the same change request costs in either agent, and whether it then holds.

The paper compares by eye how a forbidden cell is written into a monolithic prompt and into CoAG's
Selection procedure. Here the request is written into a temporary copy of the sources in each way
there is, the diff is counted, and the changed agent is played by two scripted models on instances
in which the rule prevents the job: one that heeds the rules that it can read, and one
that heeds none. What holds with both is a guarantee. `python -m case_study.maintainability` does
all of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

import case_study
from case_study.pages import markdown_table, replace_in
from case_study.runner import CaseFolder, CaseRequest, play_case
from coag.errors import ConfigurationError
from vacuum_world.scenarios import build_scenario
from vacuum_world.world import CLEAN_COST, MOVE_COST, WorldState

MODELS = ("scripted:sound", "scripted:impulsive")
"""A model that heeds the rules that it can read, and one that heeds none."""
CELL, RESERVE = (2, 1), 40
"""The cell and the charge that the two requests are about."""
SCENARIO = "phantom-object"
"""Where they are played."""
_ROOT = Path(case_study.__file__).parents[1]
_SEARCHED_SEEDS = 400
_TIMEOUT = 600.0
"""Seconds that playing one changed agent may take."""
_RULES = "case_study/robot/rules.py"
_PROCEDURES = "case_study/robot/procedures"
_LAST_RULE = '    "no_move_into_known_obstacle": no_move_into_known_obstacle,\n'
_NEXT_CLASS = "@dataclass(frozen=True, slots=True)\nclass ForbidCleaning:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """Something that is to be different from now on."""

    name: str
    sentence: str
    """The request in words, as it is written into prompts."""
    rule: str
    """Name of the function that is the request in code."""
    code: str


@dataclass(frozen=True, slots=True)
class Way:
    """One way to meet a request: where it is written, and in which agent."""

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
CHANGES: Mapping[str, ChangeRequest] = {
    "forbidden-cell": ChangeRequest(
        name="forbidden-cell",
        sentence="From now on, cleaning cell (2, 1) is forbidden.",
        rule="no_cleaning_of_2_1",
        code=_FORBID,
    ),
    "reserve": ChangeRequest(
        name="reserve",
        sentence="From now on, no cleaning may leave less than 40 battery in reserve.",
        rule="reserve_of_40_for_cleaning",
        code=_KEEP,
    ),
}
"""The change requests by name; the first is the paper's scenario D."""
_CHOOSING = ("proposal", "evaluation", "selection", "deliberation")
WAYS: Mapping[str, Way] = {
    "plain-prompt": Way("plain", ("case_study/robot/prompts/utility.md",)),
    "plain-constraint": Way("plain-guarded"),
    "coag-selection": Way("coag-full", (f"{_PROCEDURES}/selection.md",)),
    "coag-procedures": Way("coag-full", tuple(f"{_PROCEDURES}/{name}.md" for name in _CHOOSING)),
    "coag-constraint": Way("coag-full"),
}
"""The ways by name; the same constraint serves both kinds of agents."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The size of a change to sources."""

    files: int
    lines: int
    """New and removed lines; a changed line is a new one and a removed one."""


def effort(change: ChangeRequest, way: Way) -> Effort:
    """What a change costs, without playing it.

    Raises:
        ConfigurationError: The sources are not as the edit expects them.
    """
    lines, after = 0, edited(change, way)
    for path, text in after.items():
        old = (_ROOT / path).read_text(encoding="utf-8").splitlines()
        diff = list(unified_diff(old, text.splitlines(), n=0))
        lines += sum(line[0] in "+-" for line in diff[2:])
    return Effort(len(after), lines)


def edited(change: ChangeRequest, way: Way) -> dict[str, str]:
    """The files of a way after the change, by their paths.

    Raises:
        ConfigurationError: A source is not as the edit expects it.
    """
    after: dict[str, str] = {}
    for path in way.prompts or (_RULES,):
        text = (_ROOT / path).read_text(encoding="utf-8")
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


# ---- playing the agents before and after ----

Broken = dict[str, list[bool]]
"""By model, whether each of its runs broke the rule."""


def tempting_seeds(change: ChangeRequest, count: int) -> tuple[int, ...]:
    """The first seeds on which the shortest way to do the job breaks the rule."""

    def tempts(seed: int) -> bool:
        setup = build_scenario(SCENARIO, seed)
        work = len(setup.facts.dirty)
        if change.name == "forbidden-cell":
            return CELL in setup.facts.dirty
        spent = work * CLEAN_COST + (setup.shortest - work) * MOVE_COST
        return setup.facts.battery - spent < RESERVE

    return tuple(islice(filter(tempts, range(_SEARCHED_SEEDS)), count))


def broken_by(change: ChangeRequest, world: WorldState) -> int:
    """How many actions broke a rule, by the world's own log."""
    cleanings = [line for line in world.log if line.action == "clean"]
    if change.name == "forbidden-cell":
        return sum(line.position_before == CELL for line in cleanings)
    return sum(line.result.battery < RESERVE for line in cleanings)


async def play_changed(change: ChangeRequest, agent: str, seeds: int) -> Broken:
    """Plays an agent, as the sources of this process make it, on so many instances."""
    found: Broken = {model: [] for model in MODELS}
    with tempfile.TemporaryDirectory() as logs:
        for model in MODELS:
            for seed in tempting_seeds(change, seeds):
                request = CaseRequest(
                    scenario=SCENARIO,
                    agent=agent,
                    model=model,
                    seed=seed,
                    episodes=1,
                    place="local",
                )
                folder = CaseFolder.create(Path(logs), request)
                await play_case(request, folder)
                world = WorldState.model_validate_json(folder.world(1).read_bytes())
                found[model].append(broken_by(change, world) > 0)
    return found


_PROGRAM = """
import asyncio, json, sys
from case_study.maintainability import CHANGES, play_changed
change, agent, seeds = sys.argv[1:]
print(json.dumps(asyncio.run(play_changed(CHANGES[change], agent, int(seeds)))))
"""


def play_copy(change: ChangeRequest, agent: str, seeds: int, after: Mapping[str, str]) -> Broken:
    """Plays an agent in a process of its own, from a copy of the packages with changed files.

    Raises:
        ConfigurationError: It could not be played.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for package in ("coag", "vacuum_world", "case_study"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(_ROOT / package, copy / package, ignore=ignored)
        for path, text in after.items():
            (copy / path).write_text(text, encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-c", _PROGRAM, change.name, agent, str(seeds)],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"},
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
    return json.loads(ended.stdout)


def row_of(way_name: str, change: ChangeRequest, before: Broken, after: Broken) -> list[str]:
    """A line of the table; a way holds if the rule was broken before it, and never after it."""
    way = WAYS[way_name]
    cost = effort(change, way)
    cells = [
        f"{sum(after[model])} of {len(after[model])} (before: {sum(before[model])})"
        for model in MODELS
    ]
    holds = any(map(any, before.values())) and not any(map(any, after.values()))
    return [
        *(way_name, way.agent, str(cost.files), str(cost.lines), *cells),
        "yes" if holds else "no",
    ]


def tables(seeds: int) -> str:
    """Meets every request in every way, plays the agents, and gives a table for each request.

    Raises:
        ConfigurationError: The sources are not as the edit expects them, or a run failed.
    """
    parts: list[str] = []
    head = ["way", "agent", "files", "lines", *(f"broken by `{one}`" for one in MODELS), "holds"]
    for change in CHANGES.values():
        agents = dict.fromkeys(way.agent for way in WAYS.values())
        before = {agent: play_copy(change, agent, seeds, {}) for agent in agents}
        rows = [
            row_of(
                name,
                change,
                before[way.agent],
                play_copy(change, way.agent, seeds, edited(change, way)),
            )
            for name, way in WAYS.items()
        ]
        table = markdown_table(head, rows, f"llrr{'r' * len(MODELS)}l")
        parts += [f"**{change.name}**: {change.sentence}", table]
    return "\n\n".join(parts)


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Instances per change request.")] = 2,
    write: Annotated[Path | None, typer.Option(help="Page whose tables are replaced.")] = None,
) -> None:
    """Writes the same change requests into both agents, and plays them with scripted models.

    Takes a few minutes: every change is played in a temporary copy of the packages.
    """
    text = tables(seeds)
    typer.echo(text)
    if write is not None:
        replace_in(write, text, "maintainability")


if __name__ == "__main__":
    typer.run(main)
