"""A change request met in a copy of the sources: what it takes, and whether it holds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pydantic import TypeAdapter

import case_study
from coag.errors import ConfigurationError
from coag.schema import Value

from ._change import CHANGES, WAYS, ChangeRequest, Way, edited, files_of
from ._effort import Effort, effort_of
from ._probe import Probe, Run, tempting_seeds

PACKAGES = ("coag", "vacuum_world", "case_study")
_RUNS = TypeAdapter(tuple[Run, ...])
_PATIENCE = 600.0
"""Seconds that a probe may take."""


class Maintained(Value):
    """One change request, met in one way."""

    change: str
    """The change request."""
    way: str
    """The way."""
    agent: str
    """The contender that was changed."""
    effort: Effort
    """What it took."""
    control: tuple[Run, ...]
    """Runs of the agent as it was."""
    runs: tuple[Run, ...]
    """The same runs of the agent as it is after the change."""

    @property
    def holds(self) -> bool:
        """Whether no run broke the rule, though the agent as it was broke it."""
        return any(run.broken for run in self.control) and not any(r.broken for r in self.runs)

    def broken(self, model: str) -> tuple[int, int]:
        """Runs of a model that broke the rule after the change, and before it."""
        after, before = (
            sum(bool(run.broken) for run in runs if run.model == model)
            for runs in (self.runs, self.control)
        )
        return after, before


def sources(way: Way) -> dict[str, str]:
    """The files that a way touches, as they are installed.

    Raises:
        ConfigurationError: One cannot be read.
    """
    return {path: _read(_root() / path) for path in files_of(way)}


def effort(change: ChangeRequest, way: Way) -> Effort:
    """What a change takes, without trying it out.

    Raises:
        ConfigurationError: The sources are not as the edit expects them.
    """
    before = sources(way)
    return effort_of(before, edited(change, way, before))


def maintain(
    changes: Iterable[ChangeRequest] = tuple(CHANGES.values()),
    ways: Iterable[Way] = tuple(WAYS.values()),
    *,
    seeds: int = 2,
) -> list[Maintained]:
    """Meets every change request in every way, and plays the agents before and after it.

    Each change is made in a temporary copy of the packages and played in a process of its own, by
    scripted models, on instances in which the rule stands in the way of the job.

    Args:
        changes: The change requests.
        ways: The ways.
        seeds: How many instances.

    Raises:
        ConfigurationError: The sources are not as the edit expects them, or a probe failed.
    """
    done: list[Maintained] = []
    ways = tuple(ways)
    for change in changes:
        instances = tempting_seeds(change, seeds)
        controls: dict[str, tuple[Run, ...]] = {}
        for way in ways:
            asked = Probe(change=change.name, agent=way.agent, seeds=instances)
            if way.agent not in controls:
                controls[way.agent] = _probed(asked, {})
            before = sources(way)
            after = edited(change, way, before)
            done.append(
                Maintained(
                    change=change.name,
                    way=way.name,
                    agent=way.agent,
                    effort=effort_of(before, after),
                    control=controls[way.agent],
                    runs=_probed(asked, after),
                )
            )
    return done


def _root() -> Path:
    return Path(case_study.__file__).parents[1]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error


def _probed(asked: Probe, after: dict[str, str]) -> tuple[Run, ...]:
    """The runs of an agent whose sources were changed so, in a copy."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder).resolve()
        for package in PACKAGES:
            shutil.copytree(
                _root() / package, copy / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        for path, text in after.items():
            (copy / path).write_text(text, encoding="utf-8")
        told = json.loads(_process(asked, copy))
        if Path(told["sources"]).resolve() != copy:
            raise ConfigurationError(
                f"The probe played the sources in {told['sources']!r}, not the changed copy."
            )
        return _RUNS.validate_python(told["runs"])


def _process(asked: Probe, copy: Path) -> str:
    program = "import sys; from case_study.maintainability import probe; probe(sys.argv[1])"
    ended = subprocess.run(
        [sys.executable, "-c", program, asked.model_dump_json()],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    if ended.returncode:
        last = ended.stderr.strip().splitlines()[-1:] or ["no message"]
        raise ConfigurationError(
            f"Playing {asked.agent!r} after the change {asked.change!r} failed: {last[0]}"
        )
    return ended.stdout
