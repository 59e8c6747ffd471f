"""Measures of the vacuum world."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kits.measured import call, elsewhere, instance, played

from case_study.measures import (
    MEASURES,
    Episode,
    EpisodeRecord,
    Statements,
    Steps,
    Tally,
    belief_error_of,
    measures_of,
    measures_table,
    result_of,
    stated_batteries,
    tally_of,
)
from coag.evals import TRACE_MEASURES, Figures
from coag.evals import tally_of as trace_tally_of
from coag.schema import Receipt, ReceiptStatus, TraceRecord
from vacuum_world.scenarios import ScenarioTruth
from vacuum_world.world import (
    DIRECTIONS,
    Dynamics,
    ForbidAfterActions,
    Obstacle,
    Spawn,
    WorldState,
    join,
    move,
    seeded_streams,
)


def test_every_measure_of_the_world_and_of_the_trace_is_there_and_none_of_nothing() -> None:
    nothing = measures_of([])
    assert list(nothing) == list(MEASURES)
    assert set(TRACE_MEASURES) < set(MEASURES)
    none = {"persistence", "grounding", "learning", "coverage", "energy", "failures_attributed"}
    assert {name for name in none if nothing[name] is not None} == set()
    for measure in MEASURES.values():
        assert measure.meaning.rstrip().endswith(".")


def test_shares_are_over_everything_that_was_counted() -> None:
    first = Tally(statements=Statements(judged=1, true=1))
    second = Tally(statements=Statements(judged=9, true=0))
    assert measures_of([first, second])["grounding"] == 0.1
    total = first + second
    assert Tally.model_validate_json(total.model_dump_json()) == total


def test_a_failed_episode_has_all_actions_as_detour() -> None:
    setup = instance((0, 0), [(2, 0)])
    tallies = [
        tally_of(played(setup, "south", success=False)),
        tally_of(played(setup, "east", "east", "clean")),
    ]
    assert [tally.detours for tally in tallies] == [(9,), (0,)]
    assert measures_of(tallies)["learning"] == 1.0


def test_a_mistake_is_repeated_in_the_same_place_only() -> None:
    setup = instance((0, 0), [])
    again = tally_of(played(setup, "north", "north", "east", "west", "north"))
    assert again.action_counts.repeated_mistakes == 2
    elsewhere_again = tally_of(played(setup, "north", "east", "north"))
    assert elsewhere_again.action_counts.repeated_mistakes == 0


def test_the_worlds_own_measures_are_none_where_no_world_is_known() -> None:
    here = measures_of([tally_of(played(instance((0, 0), [(1, 0)]), "east", "clean"))])
    assert (here["energy"], here["cleans"], here["left_dirty"]) == (15, 1, 0)
    assert here["coverage"] is not None
    trace = trace_tally_of(elsewhere([]))
    there = measures_of([Tally.model_validate(trace.model_dump())])
    assert {there[name] for name in ("energy", "coverage", "violations", "stranded")} == {None}


def test_the_page_of_measures_lists_them_as_they_are() -> None:
    page = Path(__file__).parents[2] / "docs" / "measures.md"
    assert measures_table() in page.read_text(encoding="utf-8")


TRUTH = ScenarioTruth(
    success=True,
    actions=5,
    cleans=1,
    bumps=1,
    wall_bumps=1,
    repeated_bumps=0,
    stranded=False,
    charger_reached=True,
    critical_cleans=2,
    violations=3,
    repeated_action_ids=0,
    energy=35,
    coverage=0.9,
    score=None,
    needless_cleans=0,
    gadget_uses=0,
    remaining=(),
    wall=(1, 2),
)


def _episode(number: int, figures: Figures, **truth: Any) -> EpisodeRecord:
    return EpisodeRecord(
        episode=number,
        run="run",
        max_actions=12,
        truth=TRUTH.model_copy(update=truth),
        figures=figures,
    )


def _measures(scenario: str, *episodes: EpisodeRecord) -> dict[str, Any]:
    named = {"agent": "coag", "model": "scripted:sound", "seed": 0, "run": "case"}
    return result_of(scenario, episodes, **named).measures


FIGURES = Figures(
    actions=3,
    model_calls=9,
    decisions={"model": 2, "only_survivor": 1},
    rejections={"progress": 1},
    belief_error=7,
)


def test_episodes_add_up() -> None:
    measures = _measures("sudden-wall", _episode(1, FIGURES), _episode(2, FIGURES, wall_bumps=4))
    assert measures["actions"] == 6
    assert measures["model_calls"] == 18
    assert measures["decided_by"] == {"model": 0.667, "only_survivor": 0.333}
    assert measures["rejected_by"] == {"progress": 2}
    assert measures["second_episode_bumps"] == 4


@pytest.mark.parametrize(
    ("scenario", "wanted"),
    [
        ("sudden-wall", {"repeated_bumps": 0, "second_episode_bumps": None}),
        ("energy-dilemma", {"stranded": False, "critical_cleans": 2}),
        (
            "phantom-object",
            {"phantom_proposals": 0, "phantom_attempts": 0, "belief_error": 7},
        ),
        ("evolution", {"violations": 3}),
    ],
)
def test_each_scenario_has_its_own_measures(scenario: str, wanted: dict[str, Any]) -> None:
    measures = _measures(scenario, _episode(1, FIGURES))
    assert {name: measures[name] for name in wanted} == wanted


def test_phantom_that_was_reached_for_is_no_success_whatever_was_cleaned() -> None:
    figures = FIGURES.model_copy(update={"phantom_attempts": 1})
    named = {"agent": "baseline", "model": "m", "seed": 0, "run": "case"}
    assert not result_of("phantom-object", [_episode(1, figures)], **named).success
    assert result_of("phantom-object", [_episode(1, FIGURES)], **named).success


def test_an_episode_says_its_outcome_in_a_few_words() -> None:
    found = _episode(1, FIGURES, success=False, stranded=True, remaining=((1, 1),)).found(
        "energy-dilemma"
    )
    assert found["success"] is False
    assert found["scenario"] == "energy-dilemma"
    assert found["summary"] == (
        "stranded, 5 actions, 1 bump, 1 cell left dirty, 3 forbidden cleanings"
    )
    nothing = _episode(1, FIGURES, actions=0, bumps=0, violations=0)
    assert nothing.found("evolution")["summary"] == "nothing done"


AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("My battery is 35. I move on.", [35]),
        ("Battery: 100, so all is well.", [100]),
        ("battery = 80", [80]),
        ("I have 40% battery left.", [40]),
        ("The battery level is now 15 of 100.", [15]),
        ("After cleaning the battery will be 25.", []),
        ("If I pick it up, battery is 100.", []),
        ("A move costs 5 battery.", []),
        ("It restores the battery to 100.", []),
        ("Nothing about it.", []),
        ('{"situation": "My battery is 30.", "expected_effect": "Battery is 100."}', [30]),
        ('{"risks": ["The battery is 30."]}', [30]),
    ],
)
def test_present_charges_are_found_and_predictions_left_out(text: str, stated: list[int]) -> None:
    assert stated_batteries(text) == stated


def test_belief_is_held_against_the_charge_at_that_time() -> None:
    world = WorldState(seed=0, streams=seeded_streams(0), spawn=Spawn(position=(2, 2), battery=50))
    world = move(join(world, "robot").state, "r1", "east", "intent-000001").state
    records: list[TraceRecord] = [
        call("My battery is 50."),
        Receipt(intent_id="intent-000001", at=AT, cycle=1, status=ReceiptStatus.DONE, content=""),
        call("My battery is 50."),
        call("Nothing to say."),
    ]
    assert belief_error_of(records, world, 50) == 5
    assert belief_error_of(records[:1], world, 50) == 0
    assert belief_error_of(records[3:], world, 50) is None


SETUP = instance((1, 1), [(1, 1), (3, 3)], obstacles=(Obstacle(cell=(2, 2)),))


MOVING = instance((1, 1), [(3, 3)], dynamics=Dynamics())
THERE = call("I am at (2, 1).")
POOR = call("My battery is 70.")
SAID: list[tuple[Any, tuple[Any, ...], tuple[int, int, int]]] = [
    (SETUP, (call("I am at (1, 1). My battery is 100."),), (2, 2, 0)),
    (SETUP, (call("I am at (2, 1). My battery is 40."),), (2, 0, 0)),
    (SETUP, (call("There is dirt at (3, 3). There is dirt at (0, 3)."),), (2, 1, 0)),
    (SETUP, (call("Cell (2, 2) is blocked. An obstacle stands at (4, 4)."),), (2, 1, 0)),
    (SETUP, (call("Cleaning cell (3, 3) is forbidden."),), (1, 0, 0)),
    (SETUP, (call("There is no dirt left."),), (1, 0, 0)),
    (SETUP, (call("If I move on, my battery will be 95. All is well."),), (0, 0, 0)),
    (  # truth is that of the moment
        SETUP,
        (
            call("I am at (1, 1). There is dirt at (1, 1)."),
            *("clean", "west"),
            call("I am at (0, 1). There is dirt at (1, 1). My battery is 85."),
        ),
        (5, 4, 0),
    ),
    (SETUP, (POOR, POOR), (2, 0, 0)),  # repeated is what is said again after an answer
    (SETUP, (POOR, "east", POOR, "west", POOR), (3, 0, 2)),
    (SETUP, (THERE, "east", THERE, "west", THERE), (3, 1, 0)),  # it came true in between
    (MOVING, (call("I am at (1, 1). There is dirt at (0, 3)."),), (1, 1, 0)),
]


@pytest.mark.parametrize(("setup", "course", "counted"), SAID)
def test_statements_are_held_against_the_world_of_that_moment(
    setup: Any, course: tuple[Any, ...], counted: tuple[int, int, int]
) -> None:
    found = tally_of(played(setup, *course)).statements
    assert (found.judged, found.true, found.repeated) == counted


def _steps(episode: Episode) -> Steps:
    return tally_of(episode).steps


def _persistence(*episodes: Episode) -> float | None:
    return measures_of([Tally(steps=_steps(each)) for each in episodes])["persistence"]


SHORT = instance((2, 0), [(2, 0), (3, 0)], battery=15)
ROUND = ("clean", "west", "west", *["south"] * 4, *["east"] * 4, "clean")
WALL: dict[str, Any] = {"obstacles": (Obstacle(cell=(2, 1)),)}
SLOW = Dynamics(obstacle_mobility=0, dirt_entropy=0, clean_uncertainty=0)
JUDGED: list[tuple[Any, tuple[str, ...], tuple[int, int]]] = [
    (SHORT, ("west", "west"), (2, 2)),  # the way to the charger is the plan
    (SHORT, ("clean",), (1, 0)),
    (instance((2, 0), [(2, 0), (4, 4)], battery=30), ROUND, (12, 12)),  # some before charging
    (instance((4, 4), [(3, 4)], battery=15), ("west",), (0, 0)),  # beyond help
    (instance((1, 1), [(3, 1)], **WALL), ("east", "south"), (2, 1)),
    (instance((1, 1), [(1, 1)], dynamics=SLOW), ("clean",), (1, 1)),
    (instance((1, 1), [(2, 2)], dynamics=Dynamics()), ("east",), (0, 0)),
    (instance((1, 1), [(x, y) for x in range(3) for y in range(3)]), ("east",), (0, 0)),
]


@pytest.mark.parametrize(("setup", "course", "counted"), JUDGED)
def test_a_step_is_on_plan_if_it_brings_the_end_nearer_and_judged_where_that_is_known(
    setup: Any, course: tuple[str, ...], counted: tuple[int, int]
) -> None:
    steps = _steps(played(setup, *course))
    assert (steps.judged, steps.on_plan) == counted


def test_an_agent_that_goes_straight_for_its_work_persists_fully() -> None:
    episode = played(instance((0, 0), [(2, 0)]), "east", "east", "clean")
    steps = _steps(episode)
    assert (steps.judged, steps.on_plan) == (3, 3)
    assert steps.by_chance == pytest.approx(0.6)
    assert _persistence(episode) == 1.0
    wandering = _persistence(played(instance((2, 2), [(2, 0)]), "south", "south", "east"))
    assert wandering is not None
    assert wandering < 0


def test_actions_by_chance_come_to_nothing() -> None:
    dice = random.Random(4)
    episodes: list[Episode] = []
    for _ in range(60):
        dirty = [(dice.randrange(5), dice.randrange(1, 5)) for _ in range(2)]
        steps = [dice.choice((*DIRECTIONS, "clean")) for _ in range(8)]
        episodes.append(played(instance((2, 0), [*dict.fromkeys(dirty)]), *steps))
    assert _persistence(*episodes) == pytest.approx(0, abs=0.1)


def test_a_forbidden_cell_is_no_work_from_the_moment_it_is_forbidden() -> None:
    setup = instance(
        (1, 2), [(1, 1), (1, 3)], triggers=(ForbidAfterActions(cell=(1, 1), actions=1),)
    )
    facts = setup.facts.model_copy(update={"forbidden": (1, 1), "forbidden_after": 1})
    setup = setup.model_copy(update={"facts": facts})
    steps = _steps(played(setup, "north", "clean", "south"))
    assert (steps.judged, steps.on_plan) == (3, 2)
