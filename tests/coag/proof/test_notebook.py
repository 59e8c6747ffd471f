from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kits.hostile import FORBIDDEN, HARM, hostile_run

from case_study.measures import CaseResult
from coag.proof import (
    Boundary,
    Cause,
    Considered,
    CycleResult,
    Diagnosis,
    Evidence,
    Examination,
    Explanation,
    ForkReport,
    ReplayReport,
    Rule,
    TraceRemark,
    Violation,
    examine,
    verify,
)
from coag.proof.boundary import Choice
from coag.proof.tape import Divergence
from coag.schema import Phase, Verdict
from coag.tracing import Trace

AT = datetime(2026, 11, 21, tzinfo=UTC)
CHOICE = Choice(action=HARM, arguments=HARM)


DIVERGED = Divergence(
    seq=1, cycle=1, phase=None, record=HARM, field=HARM, recorded=HARM, replayed=HARM, meaning=HARM
)
DIED = Verdict(allowed=False, constraint=HARM, reason=HARM)
RESULTS: list[Any] = [
    Examination(
        records=9, head=HARM,
        violations=(Violation(rule=Rule.LINE, seq=1, cycle=1, text=HARM),) * 500,
        remarks=(TraceRemark(seq=1, text=HARM),) * 500,
    ),
    ReplayReport(run=HARM, records=3, divergence=DIVERGED, remarks=(HARM,)),
    ForkReport(
        run=Path("fork"), parent=Path("parent"), at=Boundary(cycle=1, phase=Phase.EVALUATION),
        changes=(HARM,), notices=(HARM,), parent_end=HARM, fork_end=None, stopped=HARM,
        parent_cycles=(CycleResult(cycle=1, chosen=(CHOICE,), status="done"), CycleResult(cycle=2)),
        fork_cycles=(CycleResult(cycle=1, chosen=()),),
    ),
    Explanation(
        run=HARM, kind="coag", cycle=1, goal=HARM, notes=(HARM,),
        considered=(Considered(id="c", choice=CHOICE, because=HARM, rejected_by=DIED),) * 100,
    ),
    Diagnosis(
        cycle=1, failure=HARM, cause=Cause.MISPERCEPTION, reason=HARM,
        evidence=(Evidence(seq=1, cycle=1, phase=None, text=HARM),),
    ),
    CaseResult(
        scenario=HARM, agent=HARM, model=HARM, seed=1, success=True, run=HARM,
        measures={HARM: HARM, "nothing": None},
    ),
]  # fmt: skip


@pytest.mark.parametrize("result", RESULTS, ids=lambda one: type(one).__name__)
def test_results_show_themselves_small_and_harmless(result: Any) -> None:
    page: str = result._repr_html_()
    assert page.startswith("<div")
    assert len(page) < 60_000
    assert not FORBIDDEN & set(page)
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.broken_trace("the run's texts are hostile, its state is none")
def test_a_trace_of_a_folder_is_verified_as_its_folder_is(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path)
    assert examine(Trace(folder)) == examine(folder)
    assert examine(Trace(folder)).head
    assert verify(Trace(list(Trace(folder)))) == verify(list(Trace(folder)))
