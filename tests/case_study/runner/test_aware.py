"""Contenders with situational awareness: told where they stand, resumed, replayed, paid for."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from case_study.measures import CaseResult
from case_study.runner import CaseFolder, CaseRequest, Progress, checked, run_case
from coag.awareness import load_state
from coag.errors import CoagError
from coag.proof import replay, verify
from coag.schema import ModelCall, Snapshot, TraceRecord, estimate_tokens
from coag.tracing import list_runs, read_trace

Play = Callable[..., Awaitable[CaseResult]]
_SECTION = re.compile(r'^## Where you stand\n<data source="awareness".*?</data>', re.M | re.S)


class _PowerCutError(CoagError):
    """What breaks a case off in these tests."""


def _records(case: str | Path) -> list[TraceRecord]:
    (run,) = list_runs(Path(case))
    return [entry.body for entry in read_trace(run.trace_path, lambda problem: None)]


def _told(case: str | Path) -> list[str]:
    """What the awareness section of each request says; empty where there is none."""
    asked = [each for each in _records(case) if isinstance(each, ModelCall)]
    texts = ["\n".join(str(one["content"]) for one in each.messages) for each in asked]
    return ["".join(_SECTION.findall(text)) for text in texts]


@pytest.mark.parametrize("depth", ["compact", "full"])
async def test_only_the_aware_contender_is_told_where_it_stands(play: Play, depth: str) -> None:
    plain, aware = [
        await play("distraction", name, "sound", seed=1, place="local", max_actions=4)
        for name in (f"coag-{depth}", f"coag-{depth}-aware")
    ]
    assert not any(_told(plain.run))
    sections = [text for text in _told(aware.run) if text]
    assert sections
    assert all("RESOURCES: energy" in text for text in sections[1:])
    grown = int(aware.measures["prompt_tokens"]) - int(plain.measures["prompt_tokens"])
    assert grown >= 0.9 * sum(estimate_tokens(text) for text in sections)


@pytest.mark.parametrize("agent", ["coag-compact-aware", "coag-full-aware"])
async def test_runs_of_aware_contenders_hold_and_are_replayed(play: Play, agent: str) -> None:
    result = await play("contradiction", agent, "fallible", seed=1, place="local")
    (run,) = list_runs(Path(result.run))
    assert verify(run) == []
    report = await replay(run)
    assert report.divergence is None


async def test_every_snapshot_holds_where_the_robot_stands(play: Play) -> None:
    result = await play("open-world-easy", "coag-compact-aware", "sound", max_actions=6)
    snapshots = [each for each in _records(result.run) if isinstance(each, Snapshot)]
    states = [load_state(each.modules["awareness"]["state"]) for each in snapshots]
    assert {state.domain for state in states} == {"vacuum"}
    assert states[-1].world.get("the robot") is not None


async def test_aware_contender_that_was_broken_off_goes_on_where_it_stood(tmp_path: Path) -> None:
    request = checked(
        CaseRequest(
            scenario="distraction", agent="coag-compact-aware", model="scripted:sound", seed=1
        )
    )
    whole = CaseFolder.create(tmp_path / "whole", request)
    result = await run_case(whole)
    broken = CaseFolder.create(tmp_path / "broken", request)

    def power_cut(progress: Progress) -> None:
        if progress.actions == 4:
            raise _PowerCutError("The power was cut.")

    with pytest.raises(_PowerCutError):
        await run_case(broken, power_cut)
    again = await run_case(broken)
    assert again.measures["actions"] == result.measures["actions"]
    assert _told(broken.path) == _told(whole.path)


async def test_tokens_of_the_section_count_towards_the_budget(play: Play) -> None:
    plain, aware = [
        await play("distraction", name, "sound", seed=1, place="local", token_budget=8_000)
        for name in ("coag-compact", "coag-compact-aware")
    ]
    assert int(aware.measures["actions"]) < int(plain.measures["actions"])
