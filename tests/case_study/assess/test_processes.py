from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kits.ponds import Noted

from case_study.assess import How, Workers, sweep


@pytest.mark.slow
def test_workers_play_what_one_process_would_and_replace_those_that_die(
    pond: Callable[..., Path], at_once: How, noted: Noted
) -> None:
    folder = pond("fisher", "mortal", "unlucky", seeds=(0, 2), fewer_seeds={"unlucky": 1})
    found = sweep(folder, Workers(2, jobs_a_worker=3), at_once, noted)
    told = {(each.job.contender, each.outcome, each.attempts) for each in found.trials}
    assert told == {
        ("fisher", "success", 1),
        ("mortal", "success", 2),
        ("unlucky", "broken", 3),
    }
    assert len(found.trials) == 5
    problem = next(each.problem for each in found.trials if each.job.contender == "unlucky")
    assert problem == "The process that played it died with exit code -9."
