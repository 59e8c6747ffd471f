"""Runs of every sort in one folder of logs, to look at pages of them.

They are made by real agents with scripted models, but for the hostile one and the long one, which
are written by hand. Nothing here needs a network or a real model.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from case_study.runner import CaseFolder, CaseRequest, run_case
from coag.proof import Changes, fork
from coag.tracing import RunFolder, list_runs, read_run

from .hostile import hostile_run
from .lies import LIES
from .porters import scholar
from .tampering import bodies_of, forge, honest_run
from .tracked import cycles_of, written_run

T = TypeVar("T")
LEFT_OUT = "keep_charge_to_reach_charger"
"""The rule without which the robot is stranded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """The folder of logs, and the key of each run."""

    logs: Path
    stranded: str
    """A robot that cleans until it is stranded: truth is recorded, and `diagnose` finds a cause."""
    fork: str
    """A fork of the stranded one from its first cycle, with another model."""
    plain: str
    """A plain agent at the same task."""
    walled: str
    """The second of two episodes; it recalls what the first one wrote."""
    butler: str
    """Every sort of cycle: a veto, an impasse, a refusal, a fact and a rule that are written."""
    forged: str
    """The same, with records that were changed: `verify` finds violations."""
    scholar: str
    """Rewrites a procedure."""
    hostile: str
    """Every text of it is hostile."""
    long: str
    """More cycles than one page has room for."""

    @property
    def keys(self) -> tuple[str, ...]:
        """All of them."""
        return (
            self.stranded,
            self.fork,
            self.plain,
            self.walled,
            self.butler,
            self.forged,
            self.scholar,
            self.hostile,
            self.long,
        )


def in_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in a thread of its own: a test of pages has a loop in its thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def gallery(logs: Path) -> Gallery:
    """Makes all of them; it takes some seconds."""
    logs.mkdir(parents=True, exist_ok=True)
    hostile_run(logs, name="hostile")
    written_run(logs, cycles_of(*(["clean", "look", "move"] * 20)), name="long")
    forged = in_a_loop(honest_run(logs / "forged"))
    _forge(forged)
    return in_a_loop(_made(logs, forged.name))


async def _made(logs: Path, forged: str) -> Gallery:
    stranded = await _case(logs, "coag", without_constraints=(LEFT_OUT,))
    other = await fork(stranded, "1.reasoning", Changes(model="scripted:sound"), logs=logs)
    walled = await _case(logs, "coag", scenario="sudden-wall", model="scripted:sound")
    return Gallery(
        logs=logs,
        stranded=stranded.path.name,
        fork=other.run.name,
        plain=(await _case(logs, "baseline")).path.name,
        walled=walled.path.name,
        butler=(await honest_run(logs)).name,
        forged=forged,
        scholar=(await _taught(logs)).path.name,
        hostile="hostile",
        long="long",
    )


async def _case(
    logs: Path,
    agent: str,
    *,
    scenario: str = "energy-dilemma",
    model: str = "scripted:impulsive",
    without_constraints: tuple[str, ...] = (),
) -> RunFolder:
    """The last run of a case."""
    request = CaseRequest(
        scenario=scenario, agent=agent, model=model, without_constraints=without_constraints
    )
    case = CaseFolder.create(logs, request)
    await run_case(case)
    return max(list_runs(case.path), key=lambda run: read_run(run.path).started_at)


async def _taught(logs: Path) -> RunFolder:
    agent = scholar(logs=str(logs))
    message = TextMessage(content="Learn what there is to know.", source="user")
    await agent.on_messages([message], CancellationToken())
    folder = agent.run_folder
    await agent.close()
    assert folder is not None
    return folder


def _forge(run: Path) -> None:
    """Records of two things which cannot have happened, sealed again."""
    bodies = bodies_of(run)
    for one in LIES:
        if one.name in ("executed_arguments_changed", "a_dead_candidate_selected"):
            one.tell(bodies)
    forge(run, bodies)
    assert json.loads((run / "run.json").read_text())["seal"] is not None
