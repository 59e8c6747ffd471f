"""Runs of the case study, of both agents, are replayed with no world and no model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from case_study.runner import CaseFolder, CaseRequest, run_case
from coag.cli import app
from coag.errors import ResumeError
from coag.proof import replay
from coag.tracing import RunFolder, list_runs, read_trace


async def runs_of(logs: Path, **asked: Any) -> list[RunFolder]:
    request = CaseRequest.model_validate({"model": "scripted:sound", "max_actions": 6, **asked})
    folder = CaseFolder.create(logs, request)
    await run_case(folder)
    return list(list_runs(folder.path))


async def check_same(run: RunFolder) -> tuple[str, ...]:
    report = await replay(run)
    assert report.divergence is None, str(report.divergence)
    assert report.records == sum(1 for _ in read_trace(run.trace_path))
    return report.remarks


@pytest.mark.parametrize("agent", ["coag", "baseline"])
async def test_a_change_of_requirements_comes_again(agent: str, tmp_path: Path) -> None:
    (run,) = await runs_of(tmp_path, scenario="evolution", agent=agent)
    told = " ".join(await check_same(run))
    assert ("put in force from outside" in told) is (agent == "coag")


async def test_a_change_by_procedures_comes_again(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"scenario": "evolution", "agent": "coag", "delivery": "procedure"}
    (run,) = await runs_of(tmp_path, depth="compact", **asked)
    assert "proposal@2 was written from outside, by developer" in " ".join(await check_same(run))


@pytest.mark.long
@pytest.mark.parametrize("agent", ["coag", "baseline"])
@pytest.mark.parametrize("scenario", ["energy-dilemma", "sudden-wall", "phantom-object"])
async def test_the_other_scenarios_are_replayed(scenario: str, agent: str, tmp_path: Path) -> None:
    for run in await runs_of(tmp_path, scenario=scenario, agent=agent):
        await check_same(run)


@pytest.mark.broken_trace("it changes what the baseline was answered")
async def test_another_answer_is_found_in_the_next_prompt(tmp_path: Path) -> None:
    (run,) = await runs_of(tmp_path, scenario="energy-dilemma", agent="baseline")
    lines = [json.loads(line) for line in run.trace_path.read_text().splitlines()]
    place = next(n for n, line in enumerate(lines) if line["body"]["record"] == "receipt")
    lines[place]["body"]["content"] = "The wall fell down."
    run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    report = await replay(run)
    assert report.divergence is not None
    assert report.divergence.seq > place


@pytest.mark.broken_trace("it edits run.json")
async def test_a_plain_run_without_a_recipe_is_refused(tmp_path: Path) -> None:
    (run,) = await runs_of(tmp_path, scenario="energy-dilemma", agent="baseline", max_actions=1)
    info = json.loads(run.info_path.read_text())
    run.info_path.write_text(json.dumps({**info, "recipe": None}))
    with pytest.raises(ResumeError, match="no recipe"):
        await replay(run)


def test_the_command_tells_of_each_run_in_a_line(tmp_path: Path) -> None:
    import asyncio

    asked: dict[str, Any] = {"scenario": "energy-dilemma", "max_actions": 2}
    for agent in ("coag", "baseline"):
        asyncio.run(runs_of(tmp_path, agent=agent, **asked))
    runs = [str(run.path) for run in list_runs(tmp_path)]
    result = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert result.exit_code == 0
    assert result.output.count("no divergence") == len(runs) + 1
    told = CliRunner().invoke(app, ["replay", "--json", *runs])
    assert all(json.loads(line)["same"] for line in told.output.splitlines())
