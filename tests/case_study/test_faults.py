"""Faults, and the vacuum world as a domain of diagnosis."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from case_study.faults import (
    PLAIN_CAUSES,
    STAGES,
    VARIANTS,
    Fault,
    Ground,
    Injection,
    Measured,
    StageName,
    Tally,
    Trial,
    VacuumDomain,
    inject,
    injections,
    measure_faults,
    open_ground,
    play,
    stage_of,
    tables,
)
from case_study.pages import replace_in
from coag.proof import Cause, Circumstances, Claim


@pytest.fixture
async def ground() -> AsyncGenerator[Ground]:
    """A served world."""
    async with open_ground() as opened:
        yield opened


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


async def test_without_a_fault_nothing_goes_wrong(ground: Ground) -> None:
    for name in STAGES:
        trial = await play(stage_of(name, 5), None, ground)
        assert trial.tally.harm(Tally(actions=99, idle_turns=2)) == ()
        assert trial.struck == ()


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_every_component_breaks_and_its_breaking_does_harm(ground: Ground) -> None:
    found = [one async for one in injections(ground, 3, "coag", 1, {})]
    assert {one.fault.cause for one in found if one.harm} == set(Cause)
    assert all(one.struck for one in found if one.harm)


@pytest.mark.long
async def test_a_plain_agent_has_fewer_components(ground: Ground) -> None:
    found = [one async for one in injections(ground, 1, "baseline", 1, {})]
    assert {one.fault.cause for one in found} == set(PLAIN_CAUSES)


async def test_the_same_fault_strikes_in_the_same_cycles(ground: Ground) -> None:
    fault = Fault(cause=Cause.FAILED_EXECUTION, variant="raises", cycle=2, cycles=1, seed=7)
    trials = [await play(stage_of("phantom-object", 3), fault, ground) for _ in range(2)]
    assert trials[0].struck == trials[1].struck == (2,)
    assert trials[0].tally == trials[1].tally


@pytest.mark.parametrize("cause", [Cause.MISPERCEPTION, Cause.MISSED_RETRIEVAL])
async def test_the_trace_does_not_name_the_fault(ground: Ground, cause: Cause) -> None:
    for variant in VARIANTS[cause][:3]:
        fault = Fault(cause=cause, variant=variant, cycle=1, cycles=9, seed=7)
        trial = await play(stage_of("sudden-wall", 3), fault, ground)
        assert trial.struck
        text, sound = _text(trial), _text(await play(stage_of("sudden-wall", 3), None, ground))
        assert variant not in text or variant in sound
        assert cause.value not in text


def _text(trial: Trial) -> str:
    return "".join(record.model_dump_json() for record in trial.records)


Broken = tuple[Cause, str, StageName, int, int, int, int]
"""Cause, variant, stage and its seed, first cycle, cycles, seed of the details."""

FOREIGN = "missing or foreign arguments"
SOME: list[Broken] = [
    (Cause.MISSED_RETRIEVAL, "needed record left out", "sudden-wall", 2034, 1, 1, 757537476),
    (Cause.WRONG_FACT, "cell shifted", "sudden-wall", 2017, 2, 2, 428534940),
    (Cause.FAULTY_REASONING, "wrong place", "evolution", 2024, 2, 2, 190448084),
    (Cause.FAULTY_EVALUATION, "upside down", "sudden-wall", 2000, 1, 2, 443910485),
    (Cause.BAD_SELECTION, "the worst", "sudden-wall", 2006, 5, 1, 394402699),
    (Cause.FAILED_EXECUTION, "raises", "phantom-object", 2003, 4, 1, 134750134),
    (Cause.BAD_SELECTION, "the second", "phantom-object", 2039, 3, 1, 339020179),
    (Cause.CHANGED_ENVIRONMENT, "hidden wall in the way", "phantom-object", 2031, 5, 1, 571392055),
    (Cause.UNUSABLE_ANSWER, "prose", "energy-dilemma", 2021, 7, 1, 908115656),
    (Cause.MISPERCEPTION, "stale reading", "evolution", 2006, 4, 2, 753151004),
    (Cause.MISSED_RETRIEVAL, "episodes not asked", "evolution", 2028, 5, 99, 410734158),
    (Cause.FAULTY_REASONING, "overlooks dirt", "energy-dilemma", 2002, 7, 1, 372361853),
    (Cause.INVALID_PROPOSAL, "wrong value", "evolution", 2025, 4, 2, 407864550),
    (Cause.MISPERCEPTION, "dirt underfoot flipped", "phantom-object", 2016, 2, 1, 335711958),
    (Cause.WRONG_FACT, "false rule", "evolution", 2017, 2, 4, 538941583),
    (Cause.FAULTY_EVALUATION, "drawn by lot", "phantom-object", 2008, 1, 1, 516945930),
    (Cause.INVALID_PROPOSAL, "into a wall", "energy-dilemma", 2002, 2, 1, 249616888),
    (Cause.FAILED_EXECUTION, "does nothing", "evolution", 2001, 2, 2, 64768184),
    (Cause.CHANGED_ENVIRONMENT, "dirt returns", "phantom-object", 2028, 2, 1, 616047865),
    (Cause.UNUSABLE_ANSWER, "no answer", "sudden-wall", 2038, 4, 1, 38281066),
]
OTHERS: list[Broken] = [
    (Cause.MISPERCEPTION, "battery gauge off", "energy-dilemma", 2023, 1, 3, 386505100),
    (Cause.INVALID_PROPOSAL, "unknown action", "sudden-wall", 2038, 2, 1, 327677037),
    (Cause.CHANGED_ENVIRONMENT, "wall in the way", "sudden-wall", 2007, 2, 2, 1047276130),
    (Cause.UNUSABLE_ANSWER, "empty", "phantom-object", 2015, 1, 1, 1057754269),
    (Cause.MISPERCEPTION, "located next door", "evolution", 2020, 6, 2, 423439955),
    (Cause.MISSED_RETRIEVAL, "nothing comes", "evolution", 2023, 7, 2, 212988484),
    (Cause.WRONG_FACT, "negated", "evolution", 2010, 8, 2, 609313439),
    (Cause.FAULTY_REASONING, "wrong charge", "phantom-object", 2017, 3, 1, 658906401),
    (Cause.INVALID_PROPOSAL, FOREIGN, "phantom-object", 2017, 4, 2, 634108559),
    (Cause.FAULTY_EVALUATION, "in reverse", "evolution", 2002, 6, 1, 993147928),
    (Cause.FAILED_EXECUTION, "hangs", "energy-dilemma", 2027, 8, 1, 395502063),
    (Cause.FAULTY_EVALUATION, "best gets nothing", "sudden-wall", 2012, 5, 2, 1036430355),
    (Cause.BAD_SELECTION, "the last", "evolution", 2001, 1, 1, 682639813),
    (Cause.FAILED_EXECUTION, "fails without a reason", "phantom-object", 2008, 2, 1, 1058978222),
    (Cause.CHANGED_ENVIRONMENT, "battery drained", "sudden-wall", 2020, 2, 1, 792225441),
    (Cause.UNUSABLE_ANSWER, "cut off", "evolution", 2010, 5, 1, 75121689),
    (Cause.MISSED_RETRIEVAL, "memory out of reach", "evolution", 2001, 3, 99, 958797203),
    (Cause.FAULTY_REASONING, "imagines dirt", "sudden-wall", 2006, 6, 1, 14253209),
    (Cause.INVALID_PROPOSAL, "torn arguments", "phantom-object", 2033, 5, 1, 159834018),
    (Cause.FAULTY_EVALUATION, "favours the last", "evolution", 2014, 1, 2, 402934444),
    (Cause.BAD_SELECTION, "any but the best", "sudden-wall", 2024, 2, 2, 672078901),
    (Cause.FAILED_EXECUTION, "world out of reach", "phantom-object", 2028, 2, 2, 891886583),
    (Cause.CHANGED_ENVIRONMENT, "carried off", "sudden-wall", 2019, 5, 2, 131627491),
    (Cause.UNUSABLE_ANSWER, "another form", "sudden-wall", 2039, 3, 1, 1015708681),
    (Cause.MISPERCEPTION, "dirt next door flipped", "phantom-object", 2029, 2, 3, 34198354),
    (Cause.FAULTY_REASONING, "imagines a wall", "evolution", 2027, 1, 2, 336297986),
    (Cause.INVALID_PROPOSAL, "nothing proposed", "energy-dilemma", 2020, 1, 1, 1059768632),
    (Cause.FAILED_EXECUTION, "line lost", "phantom-object", 2027, 2, 2, 888021357),
    (Cause.CHANGED_ENVIRONMENT, "somebody cleans", "energy-dilemma", 2020, 1, 1, 139149509),
    (Cause.UNUSABLE_ANSWER, "noise", "energy-dilemma", 2030, 6, 1, 310441104),
    (Cause.MISPERCEPTION, "blind to dirt", "evolution", 2031, 3, 3, 1021370682),
    (Cause.WRONG_FACT, "walled in", "evolution", 2001, 1, 99, 719367508),
    (Cause.FAULTY_REASONING, "imagines a rule", "sudden-wall", 2015, 3, 1, 580334817),
    (Cause.MISPERCEPTION, "proximity flipped", "phantom-object", 2032, 3, 1, 628739149),
    (Cause.FAULTY_REASONING, "thinks it is done", "evolution", 2018, 1, 2, 566833194),
    (Cause.FAILED_EXECUTION, "worn brush", "sudden-wall", 2029, 5, 1, 527215428),
    (Cause.MISPERCEPTION, "no reading", "evolution", 2033, 2, 1, 745884081),
    (Cause.FAULTY_REASONING, "gives up", "sudden-wall", 2010, 5, 2, 574167565),
]


async def _injected(broken: Broken, ground: Ground) -> Injection:
    cause, variant, name, place, cycle, cycles, seed = broken
    fault = Fault(cause=cause, variant=variant, cycle=cycle, cycles=cycles, seed=seed)
    stage = stage_of(name, place)
    return await inject(fault, await play(stage, None, ground), ground)


async def test_a_rejection_beside_a_sound_action_is_neither_harm_nor_a_failure(
    ground: Ground,
) -> None:
    broken = (Cause.INVALID_PROPOSAL, "into a wall", "evolution", 2024, 2, 1, 306141549)
    injection = await _injected(broken, ground)
    assert injection.struck
    assert injection.harm == ()
    assert injection.found == "none"


@pytest.mark.parametrize(
    "broken",
    [*SOME, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)],
    ids=lambda broken: f"{broken[0]}, {broken[1]}",
)
async def test_the_broken_component_is_named(broken: Broken, ground: Ground) -> None:
    injection = await _injected(broken, ground)
    assert injection.harm
    assert injection.right, injection.explanation


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_most_of_the_faults_of_a_fresh_seed_are_named(ground: Ground) -> None:
    seen: list[tuple[int, int]] = []
    measured = await measure_faults(
        ground, seed=77, each=2, agent="coag", on_progress=lambda done, of: seen.append((done, of))
    )
    assert seen[-1][1] == 2 * len(Cause)
    assert measured.false_alarms == 0
    assert measured.right >= 0.9 * len(measured.injections)


async def test_the_tables_show_what_was_found_and_what_was_lost(
    ground: Ground, tmp_path: Path
) -> None:
    found = await _injected(SOME[0], ground)
    text = tables([Measured(agent="coag", seed=3, injections=(found,), twins=1)])
    assert f"| {found.fault.cause} | 1 | 100.0 % |" in text
    assert "not always found" not in text
    lost = replace(found, found="none")
    text = tables([Measured(agent="coag", seed=3, injections=(found, lost), twins=1)])
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
