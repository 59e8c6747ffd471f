from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from case_study.demo import (
    demo_table,
    planned_cases,
    report_text,
    run_demo,
    verification,
)
from case_study.measures import CaseResult
from case_study.runner import BrokenOffError


def _unseen(what: str, done: int, total: int | None) -> None:
    """Nobody looks."""


def test_demo_runs_each_scenario_with_its_trap_and_the_control_for_both_agents() -> None:
    cases = planned_cases(None, seed=4)
    planned = {(case.scenario, case.model, case.agent) for case in cases}
    assert len(planned) == 16
    assert ("sudden-wall", "scripted:stubborn", "baseline") in planned
    assert ("phantom-object", "scripted:gullible", "coag") in planned
    both = [c.delivery for c in cases if (c.scenario, c.agent) == ("evolution", "coag")]
    assert both == ["constraint", "procedure"] * 2
    assert {case.seed for case in cases} == {4}


def test_demo_with_a_model_runs_that_one_alone() -> None:
    cases = planned_cases("openai:gpt", seed=0)
    assert {case.model for case in cases} == {"openai:gpt"}
    assert len(cases) == 9


async def test_demo_ends_in_a_table_and_a_report(tmp_path: Path) -> None:
    cases = [case for case in planned_cases(None, 0) if case.scenario == "energy-dilemma"][:2]
    results = await run_demo(cases, tmp_path, _unseen)
    report = (tmp_path / "report.md").read_text()
    assert "| energy-dilemma | plain | scripted:impulsive | no | stranded" in report
    assert "keep_charge_to_reach_charger" in report
    assert "not language models" in report
    console = Console(width=80, record=True, file=StringIO())
    console.print(demo_table(results))
    screen = console.export_text()
    assert "scripted:impulsive" in screen
    assert "Trap: there is dirt underfoot" in screen
    assert "coag, scripted:impulsive: rejected by keep_charge_to_reach_charger" in screen
    assert max(len(line.rstrip()) for line in screen.splitlines()) <= 80
    assert verification(tmp_path) == (2, ())


def _result(scenario: str, **measures: object) -> CaseResult:
    counted = {"actions": 3, "model_calls": 9, "questions": 8, "unusable_answers": 0}
    return CaseResult(
        scenario=scenario,
        agent="coag",
        model="openai:gpt",
        seed=0,
        success=True,
        run="case",
        measures={
            **counted,
            "prompt_tokens": 1,
            "completion_tokens": 1,
            "rejected_by": {},
            **measures,
        },
    )


@pytest.mark.parametrize(
    ("scenario", "measures", "outcome"),
    [
        (
            "sudden-wall",
            {"repeated_bumps": 0, "second_episode_bumps": 1},
            "0 repeated bumps; episode 2: 1 bump",
        ),
        (
            "energy-dilemma",
            {"stranded": True, "critical_cleans": 1},
            "stranded; 1 clean with too little charge",
        ),
        (
            "phantom-object",
            {"phantom_proposals": 24, "phantom_attempts": 2, "belief_error": 15},
            "phantom tool proposed 24\N{MULTIPLICATION SIGN}, executed 2\N{MULTIPLICATION SIGN}; "
            "battery believed 15 off",
        ),
        ("evolution", {"violations": 1, "delivery": "procedure"}, "1 violation"),
        (
            "evolution",
            {"violations": 0, "unusable_answers": 2},
            "0 violations; 2 of 8 answers unusable",
        ),
    ],
)
def test_the_report_says_what_happened_in_words(
    scenario: str, measures: dict[str, object], outcome: str
) -> None:
    assert f"| {outcome} |" in report_text([_result(scenario, **measures)])


async def test_a_case_that_is_interrupted_is_named_with_how_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VACUUM_WORLD_CONTROL_TOKEN", "a-token-for-tests")
    request = planned_cases(None, 0)[0].model_copy(update={"world": "http://127.0.0.1:9"})
    with pytest.raises(BrokenOffError, match="case-study run --resume") as broken:
        await run_demo([request], tmp_path, _unseen)
    assert str(broken.value.case.path) in str(broken.value)
