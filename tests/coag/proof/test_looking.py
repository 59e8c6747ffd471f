"""Looking at a run changes nothing: no live environment is put back, asked, or acted in."""

from __future__ import annotations

from pathlib import Path

import pytest
from kits.tills import refunded, touched

from coag.errors import ResumeError
from coag.proof import counterfactuals, fork, replay, verify, why
from coag.schema import PHASES

ALL = ["7", "8", "9"]


@pytest.mark.parametrize("copies", ["no", "yes"])
async def test_looking_at_a_run_leaves_the_live_environment_alone(
    copies: str, tmp_path: Path
) -> None:
    run, till = await refunded(tmp_path, copies)
    verify(run.path)
    assert (await replay(run)).same
    for cycle in (1, 2, 3):
        why(run, cycle)
        (again,) = await counterfactuals(run, cycle)
        assert not again.changed
    assert (till.refunds(), touched(till)) == (ALL, [])


@pytest.mark.parametrize("phase", PHASES)
async def test_a_fork_does_not_act_where_the_environment_does_not_say_that_it_is_a_copy(
    phase: str, tmp_path: Path
) -> None:
    run, till = await refunded(tmp_path)
    report = await fork(run, f"2.{phase}")
    assert "refund" in str(report.stopped)
    assert "does not say that it is a copy" in str(report.stopped)
    assert "is_copy = True" in str(report.stopped)
    assert (till.refunds(), touched(till)) == (ALL, [])


async def test_a_fork_acts_in_a_copy_that_was_put_back(tmp_path: Path) -> None:
    run, till = await refunded(tmp_path, "yes")
    report = await fork(run, "2")
    assert report.stopped is None
    assert report.fork_end == "Refunded: 7, 8."
    assert (till.refunds(), touched(till)) == (ALL, [])


async def test_a_fork_that_may_act_for_real_puts_nothing_back(tmp_path: Path) -> None:
    run, till = await refunded(tmp_path)
    report = await fork(run, "2", live=True)
    assert report.stopped is None
    assert till.refunds() == [*ALL, "8"]
    assert "restore" not in touched(till)


@pytest.mark.parametrize(
    ("copies", "said"),
    [
        ("broken", "its restore raised KeyError: 'no table'"),
        ("raises", "'kits.tills:desk' raised OSError: the database is locked"),
    ],
)
async def test_a_factory_and_a_restore_that_raise_are_told_of_in_a_sentence(
    copies: str, said: str, tmp_path: Path
) -> None:
    run, _ = await refunded(tmp_path, copies)
    with pytest.raises(ResumeError) as refused:
        await fork(run, "2")
    assert said in str(refused.value)
