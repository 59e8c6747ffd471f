"""Faults, and the vacuum world as a domain of diagnosis."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from case_study.faults import (
    STAGES,
    VARIANTS,
    Fault,
    Injection,
    Measured,
    StageName,
    Trial,
    VacuumDomain,
    inject,
    measure_both,
    play,
    stage_of,
    tables,
)
from case_study.pages import replace_in
from coag.proof import Cause, Circumstances, Claim

DOMAIN = VacuumDomain()
STATE = {
    "position": [1, 1],
    "battery": 50,
    "charger": [0, 0],
    "grid": [5, 5],
    "blocked": {"north": False, "east": True, "south": False, "west": False},
    "dirty": [[1, 2]],
    "clean": [[1, 1], [0, 1], [1, 0]],
    "obstacles": [[2, 1]],
}
GOAL = "Goal: clean all cells with dirt: (1, 2), (4, 4).\n"


def test_facts_are_what_the_sensors_say_now() -> None:
    facts = DOMAIN.facts(STATE)
    assert facts["position"] == [1, 1]
    assert facts["dirty (1, 2)"] is True
    assert facts["felt (2, 1)"] is True
    assert "dirty (4, 4)" not in facts


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I am at (2, 0). My battery is 90. Next: move_agent.", ["position", "battery"]),
        ("Obstacle: moving from (2, 0) failed, cell (2, 1) is blocked.", ["blocked (2, 1)"]),
        ("An obstacle stands at (3, 3).", ["blocked (3, 3)"]),
        ("Rule: cleaning cell (2, 1) is forbidden.", ["forbidden (2, 1)"]),
        ("I must not clean cell (2, 1).", ["forbidden (2, 1)"]),
        ("There is dirt at (3, 4).", ["dirty (3, 4)"]),
        ("Cell (3, 4) is still dirty.", ["dirty (3, 4)"]),
        ("Dirty cells: (1, 3), (2, 2).", ["dirty (1, 3)", "dirty (2, 2)"]),
        ("It is dirty in (3, 4), but clean in (2, 3).", ["dirty (3, 4)"]),
        ("The robot likes (0, 0), and dirty cells come first.", []),
        ("The goal is to clean all cells with dirt: (2, 1), (2, 2).", []),
        ("All cells are clean now.", ["any dirt"]),
    ],
)
def test_claims_are_read_where_the_words_stand_next_to_the_cells(
    text: str, facts: list[str]
) -> None:
    assert [claim.fact for claim in DOMAIN.claims(text)] == facts


@pytest.mark.parametrize(
    ("claim", "remembered", "holds"),
    [
        (Claim(fact="battery", value=50), False, True),
        (Claim(fact="position", value=[2, 2]), False, False),
        (Claim(fact="dirty (1, 2)"), True, True),
        (Claim(fact="dirty (1, 0)"), True, False),
        (Claim(fact="dirty (3, 3)"), True, False),
        (Claim(fact="dirty (4, 4)"), True, True),
        (Claim(fact="blocked (3, 3)"), True, None),
        (Claim(fact="blocked (1, 1)"), True, False),
        (Claim(fact="blocked (3, 3)"), False, False),
        (Claim(fact="blocked (2, 1)"), False, True),
        (Claim(fact="forbidden (1, 2)"), True, False),
        (Claim(fact="forbidden (4, 4)"), True, True),
        (Claim(fact="any dirt", value=False), False, False),
    ],
)
def test_claims_are_judged_by_state_goal_and_rules(
    claim: Claim, remembered: bool, holds: bool | None
) -> None:
    now = Circumstances(state=STATE, goal=GOAL, constraints=("forbid_cleaning_4_4",))
    assert DOMAIN.holds(claim, now, remembered=remembered) is holds


def test_the_way_to_the_goal_is_counted_in_actions_around_what_is_remembered_as_blocked() -> None:
    now = Circumstances(state=STATE, goal=GOAL, constraints=("forbid_cleaning_4_4",))
    assert DOMAIN.remaining(now) == 2
    walls = tuple(Claim(fact=f"blocked {cell}") for cell in ((1, 2), (0, 2), (2, 2), (1, 3)))
    assert DOMAIN.remaining(replace(now, recalled=walls)) == float("inf")


def test_dirt_comes_back_only_where_it_was_cleaned() -> None:
    assert DOMAIN.may_change("dirty (1, 1)", False, True, True)
    assert not DOMAIN.may_change("dirty (1, 1)", False, True, False)
    assert not DOMAIN.may_change("dirty (1, 1)", True, False, True)


async def test_without_a_fault_nothing_goes_wrong() -> None:
    for name in STAGES:
        trial = await play(stage_of(name, 5), None)
        assert set(+trial.ills) <= {"actions", "idle turns"}
        assert trial.struck == ()


async def test_the_same_fault_strikes_in_the_same_cycles() -> None:
    fault = Fault(cause=Cause.FAILED_EXECUTION, variant="raises", cycle=2, cycles=1, seed=7)
    trials = [await play(stage_of("phantom-object", 3), fault) for _ in range(2)]
    assert trials[0].struck == trials[1].struck == (2,)
    assert trials[0].ills == trials[1].ills


@pytest.mark.parametrize("cause", [Cause.MISPERCEPTION, Cause.MISSED_RETRIEVAL])
async def test_the_trace_does_not_name_the_fault(cause: Cause) -> None:
    sound = _text(await play(stage_of("sudden-wall", 3), None))
    for variant in VARIANTS[cause]:
        fault = Fault(cause=cause, variant=variant, cycle=1, cycles=9, seed=7)
        trial = await play(stage_of("sudden-wall", 3), fault)
        assert trial.struck
        text = _text(trial)
        assert variant not in text or variant in sound
        assert cause.value not in text


def _text(trial: Trial) -> str:
    return "".join(record.model_dump_json() for record in trial.records)


Broken = tuple[Cause, str, StageName, int, int, int, int]
"""Cause, variant, stage and its seed, first cycle, cycles, seed of the details."""

SOME: list[Broken] = [
    (Cause.MISPERCEPTION, "battery gauge off", "evolution", 7018, 4, 1, 873782488),
    (Cause.MISSED_RETRIEVAL, "needed record left out", "evolution", 7031, 5, 99, 769139800),
    (Cause.WRONG_FACT, "cell shifted", "evolution", 7035, 5, 4, 723689814),
    (Cause.FAULTY_REASONING, "wrong place", "evolution", 7007, 4, 1, 439887457),
    (Cause.INVALID_PROPOSAL, "unknown action", "phantom-object", 7002, 6, 1, 145641006),
    (Cause.FAULTY_EVALUATION, "upside down", "phantom-object", 7001, 4, 1, 784125293),
    (Cause.BAD_SELECTION, "the worst", "evolution", 7022, 1, 2, 573260072),
    (Cause.FAILED_EXECUTION, "raises", "evolution", 7024, 7, 2, 249667429),
    (Cause.CHANGED_ENVIRONMENT, "hidden wall in the way", "phantom-object", 7019, 2, 1, 1018536482),
    (Cause.UNUSABLE_ANSWER, "prose", "sudden-wall", 7033, 8, 1, 1063861948),
]
OTHERS: list[Broken] = [
    (Cause.MISPERCEPTION, "located next door", "sudden-wall", 7032, 5, 2, 327594236),
    (Cause.MISPERCEPTION, "proximity flipped", "sudden-wall", 7009, 1, 3, 432178152),
    (Cause.MISSED_RETRIEVAL, "memory out of reach", "evolution", 7015, 4, 99, 564430864),
    (Cause.WRONG_FACT, "walled in", "evolution", 7006, 3, 2, 343628278),
    (Cause.FAULTY_REASONING, "imagines a rule", "sudden-wall", 7031, 2, 1, 96329985),
    (Cause.FAULTY_REASONING, "gives up", "evolution", 7039, 7, 1, 1061278356),
    (Cause.INVALID_PROPOSAL, "into a wall", "sudden-wall", 7008, 2, 1, 713145875),
    (Cause.INVALID_PROPOSAL, "nothing proposed", "evolution", 7001, 6, 1, 135503059),
    (Cause.FAULTY_EVALUATION, "drawn by lot", "sudden-wall", 7001, 3, 2, 657131914),
    (Cause.BAD_SELECTION, "any but the best", "evolution", 7024, 4, 2, 763343090),
    (Cause.FAILED_EXECUTION, "does nothing", "evolution", 7007, 4, 1, 350577256),
    (Cause.FAILED_EXECUTION, "line lost", "evolution", 7003, 8, 1, 800053282),
    (Cause.CHANGED_ENVIRONMENT, "battery drained", "energy-dilemma", 7004, 6, 1, 892742816),
    (Cause.CHANGED_ENVIRONMENT, "somebody cleans", "sudden-wall", 7036, 1, 1, 69799811),
    (Cause.UNUSABLE_ANSWER, "cut off", "evolution", 7007, 6, 2, 681566484),
    (Cause.UNUSABLE_ANSWER, "no answer", "evolution", 7017, 10, 1, 362132974),
]


@pytest.mark.parametrize(
    "broken",
    [*SOME, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)],
    ids=lambda broken: f"{broken[0]}, {broken[1]}",
)
async def test_the_broken_component_is_named(broken: Broken) -> None:
    cause, variant, name, place, cycle, cycles, seed = broken
    fault = Fault(cause=cause, variant=variant, cycle=cycle, cycles=cycles, seed=seed)
    injection = await inject(fault, await play(stage_of(name, place), None))
    assert injection.struck
    assert injection.harm
    assert injection.right, injection.explanation


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_most_of_the_faults_of_a_fresh_seed_are_named() -> None:
    seen: list[str] = []

    def note(agent: str, done: int, total: int) -> None:
        seen.append(agent)

    coag, plain = await measure_both(20, 6, seed=77, on_progress=note)
    assert len(seen) == len(coag.injections) + len(plain.injections)
    assert {one.fault.cause for one in coag.injections} == set(Cause)
    assert sum(one.right for one in coag.injections) >= 0.9 * len(coag.injections)
    assert not {Cause.BAD_SELECTION, Cause.WRONG_FACT} & {
        one.fault.cause for one in plain.injections
    }


def test_the_tables_show_what_was_found_and_what_was_lost(tmp_path: Path) -> None:
    cause, variant = SOME[0][:2]
    fault = Fault(cause=cause, variant=variant, cycle=4, cycles=1, seed=1)
    found = Injection(fault=fault, struck=(4,), harm=("stranded",), found=cause, explanation="")
    text = tables([Measured(agent="coag", seed=3, injections=[found])])
    assert f"| {found.fault.cause} | 1 | 100.0 % |" in text
    assert "not always found" not in text
    lost = replace(found, found="none")
    text = tables([Measured(agent="coag", seed=3, injections=[found, lost])])
    of_all = f"{found.fault.cause}: {found.fault.variant} 1 of 2"
    assert f"Variants not always found: {of_all}." in text
    page = tmp_path / "page.md"
    page.write_text("Above.\n<!-- faults: begin -->\nold\n<!-- faults: end -->\nBelow.\n")
    replace_in(page, "new", "faults")
    assert page.read_text() == (
        "Above.\n<!-- faults: begin -->\n\nnew\n\n<!-- faults: end -->\nBelow.\n"
    )
    with pytest.raises(ValueError, match="to write between"):
        replace_in(page, "new", "else")
