"""Scripted policies of benchmarks: faults by seed, and what follows a refusal; pass^k."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.bench.report import reliability
from case_study.bench.scripts import Plan, Policy, Step, Task, Temper, careful, faulty
from coag.evals import Job, Trial

A, B, LOOK, ODD, END = Step("a"), Step("b"), Step("look"), Step("odd"), Step("end")
TASKS = [Task(A, (LOOK,), (ODD,)), Task(B)]


def played(
    plan: Plan, temper: Temper, refused: set[str] | None = None, most: int = 20
) -> list[str]:
    """What a policy does where calls of these names are refused; a refused one ends in `!`."""
    policy, done, made = Policy(plan, temper), list[str](), True
    for _ in range(most):
        step = policy.next_step(made)
        name = step if isinstance(step, str) else step.name
        made = name not in (refused or set())
        done.append(name if made else f"{name}!")
        if isinstance(step, str) and made:
            break
    return done


def plan_with(fault: str) -> Plan:
    """The first plan, by seed, whose only fault is this one."""
    for seed in range(2_000):
        plan = faulty(TASKS, random.Random(seed), 0.5, [END], "Done.")
        if plan.faults == (fault,) and (fault == "early" or plan.steps[-1].step == B):
            return plan
    raise AssertionError(f"no plan has {fault}")


def test_a_careful_plan_checks_acts_looks_again_and_answers() -> None:
    assert played(careful(TASKS, [END]), "heeds") == ["look", "a", "b", "end", "Done."]


@pytest.mark.parametrize(
    ("fault", "done"),
    [
        ("skip", ["b", "end", "Done."]),
        ("repeat", ["look", "a", "a", "b", "end", "Done."]),
        ("wrong", ["look", "odd", "b", "end", "Done."]),
        ("unchecked", ["a", "b", "end", "Done."]),
        ("early", ["b", "look", "a", "end", "Done."]),
    ],
)
def test_each_fault_is_one_departure_from_the_careful_plan(fault: str, done: list[str]) -> None:
    assert played(plan_with(fault), "heeds") == done


def test_who_heeds_does_what_is_right_after_a_refusal() -> None:
    assert played(plan_with("wrong"), "heeds", {"odd"}) == [
        *("look", "odd!", "a", "b", "end", "Done."),
    ]
    early = played(plan_with("early"), "heeds", {"b"})
    assert early[:4] == ["b!", "look", "a", "b!"]


def test_a_script_that_continues_takes_the_next_step_and_one_that_insists_tries_thrice() -> None:
    wrong = plan_with("wrong")
    assert played(wrong, "goes-on", {"odd"}) == ["look", "odd!", "b", "end", "Done."]
    assert played(wrong, "insists", {"odd"}) == ["look", *["odd!"] * 3, "b", "end", "Done."]


def test_who_heeds_a_refused_answer_makes_up_once_for_what_was_left_out() -> None:
    assert played(plan_with("skip"), "heeds", {"Done."}, most=8) == [
        *("b", "end", "Done.!", "look", "a", "end", "Done.!", "Done.!"),
    ]
    assert played(plan_with("skip"), "goes-on", {"Done."}, most=4)[2:] == ["Done.!", "Done.!"]


@given(seed=st.integers(0, 10_000), rate=st.floats(0, 1))
def test_a_seed_draws_the_same_faults_again(seed: int, rate: float) -> None:
    plans = [faulty(TASKS, random.Random(seed), rate, [END]) for _ in range(2)]
    assert plans[0] == plans[1]
    assert len(plans[0].faults) <= len(TASKS)


# ---- pass^k ----


def results(trials: list[list[bool]]) -> list[Trial]:
    return [
        Trial(
            job=Job(scenario=f"case {number}", contender="stock", seed=seed),
            outcome="success" if success else "failure",
            measures={"reward": float(success)},
        )
        for number, one in enumerate(trials)
        for seed, success in enumerate(one)
    ]


@given(
    st.integers(2, 5).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=6)
    )
)
def test_pass_k_is_the_share_of_draws_of_k_trials_that_all_succeed(
    trials: list[list[bool]],
) -> None:
    found = reliability(results(trials), "reward")
    for k in range(1, len(trials[0]) + 1):
        draws = [[all(draw) for draw in combinations(one, k)] for one in trials]
        by_hand = sum(sum(one) / len(one) for one in draws) / len(draws)
        assert found[k] == pytest.approx(by_hand)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_pass_k_needs_more_than_one_trial() -> None:
    assert reliability(results([[True], [False]]), "reward") == {}
