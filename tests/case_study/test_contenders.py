"""Contenders: who they are, how they are driven, and those that ask no model."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.contenders import (
    CONTENDERS,
    Act,
    Change,
    Drive,
    Message,
    Observation,
    Player,
    Turn,
    drive,
)
from case_study.measures import CaseResult
from case_study.policies import RuleRobot, random_action
from case_study.rounds import Ground, best_round
from case_study.runner import CaseFolder
from vacuum_world.scenarios import ADVERSARIAL, build_scenario
from vacuum_world.world import (
    CLEAN_COST,
    FULL_BATTERY,
    MOVE_COST,
    Cell,
    distances_from,
    join,
    sense,
)


def test_there_are_twenty_five_contenders_in_the_order_in_which_they_are_shown() -> None:
    assert list(CONTENDERS)[:3] == ["random", "rules", "oracle"]
    assert len(CONTENDERS) == 25
    assert all(name == each.name for name, each in CONTENDERS.items())
    assert [c.name for c in CONTENDERS.values() if not c.asks_model] == list(CONTENDERS)[:3]


def test_those_with_dynamics_differ_from_the_others_by_their_memory_alone() -> None:
    for depth in ("coag-compact", "coag-full"):
        changing = CONTENDERS[f"{depth}-dynamics"]
        assert changing.dynamics
        same = {"name", "summary", "dynamics"}
        assert changing.model_dump(exclude=same) == CONTENDERS[depth].model_dump(exclude=same)


def test_each_ablation_is_the_full_agent_but_for_one_part() -> None:
    full = CONTENDERS["coag-full"]
    for name, contender in CONTENDERS.items():
        if not name.startswith("coag-without-"):
            continue
        part = name.removeprefix("coag-without-")
        fields = full.model_dump(exclude={"name", "summary"})
        other = contender.model_dump(exclude={"name", "summary"})
        differs = {field for field in fields if fields[field] != other[field]}
        switches = {
            "constraints": "constrained",
            "conduct": "conduct",
            "value": "valued",
            "enumeration": "enumerated",
            "masking": "enumerated",
        }
        assert differs == {switches.get(part, "without")}
        assert contender.without == (() if part in switches else (part,))


@pytest.mark.parametrize("name", ["coag-compact", "coag-full"])
def test_aware_contender_is_the_same_agent_but_for_awareness(name: str) -> None:
    fields = CONTENDERS[name].model_dump(exclude={"name", "summary"})
    aware = CONTENDERS[f"{name}-aware"].model_dump(exclude={"name", "summary"})
    assert {field for field in fields if fields[field] != aware[field]} == {"aware"}


class Puppet(Player):
    """A player whose turns are given in advance; the last one comes again and again."""

    def __init__(self, *turns: Turn, tokens: int = 0) -> None:
        super().__init__(lambda: tokens * self.turns)
        self._coming = list(turns)
        self.heard: list[str] = []
        self.allowed: list[int | None] = []

    @property
    def turns(self) -> int:
        return len(self.allowed)

    @property
    def folder(self) -> None:
        return None

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        self.heard += [*(each.text for each in messages), text]
        self.allowed.append(allowance)
        return self._coming.pop(0) if len(self._coming) > 1 else self._coming[0]

    async def change(self, change: Change) -> None: ...

    async def close(self) -> None: ...


ACTED = Turn(results=("done",))
IDLE = Turn()
REFUSED = Turn(refused=1)


async def test_task_comes_first_and_then_continue() -> None:
    player = Puppet(ACTED)
    assert await drive(player, "Do it.", Drive(bound=3)) == 3
    assert player.heard == ["Do it.", "Continue.", "Continue."]
    assert player.allowed == [3, 2, 1]


async def test_two_idle_turns_in_a_row_end_it() -> None:
    player = Puppet(IDLE, ACTED, IDLE, IDLE, ACTED)
    assert await drive(player, "Do it.", Drive(bound=9)) == 1
    assert player.turns == 4


async def test_refused_calls_are_no_actions_and_end_it_as_impasses_would() -> None:
    player = Puppet(REFUSED)
    assert await drive(player, "Do it.", Drive(bound=9)) == 0
    assert player.turns == 6


async def test_it_ends_when_the_tokens_are_used_up() -> None:
    player = Puppet(ACTED, tokens=40)
    assert await drive(player, "Do it.", Drive(bound=9, token_budget=100)) == 3


async def test_what_others_say_comes_before_what_the_user_says() -> None:
    async def said(actions: int) -> Sequence[Message]:
        return [Message(source="dock", text="Stop!")] if actions == 1 else []

    player = Puppet(ACTED)
    await drive(player, "Do it.", Drive(bound=3, before_turn=said))
    assert player.heard == ["Do it.", "Stop!", "Continue.", "Continue."]


Play = Callable[..., Awaitable[CaseResult]]
TOOLS = ["move_agent", "clean_current_cell", "sense", "quick_charge"]


def test_every_legal_call_is_as_likely_as_the_others() -> None:
    dice = random.Random(1)
    acts = Counter(repr(random_action(dice, TOOLS)) for _ in range(7_000))
    assert len(acts) == 7
    assert all(800 < count < 1200 for count in acts.values())


@pytest.mark.parametrize("scenario", ADVERSARIAL)
@pytest.mark.parametrize("policy", ["rules", "oracle"])
async def test_rules_and_oracle_succeed_where_it_can_be_done(
    play: Play, scenario: str, policy: str
) -> None:
    for seed in range(4):
        result = await play(scenario, policy, "sound", seed=seed, place="local")
        assert result.success, seed


async def test_where_the_world_changes_the_oracle_knows_what_will_come(play: Play) -> None:
    rules, oracle = [
        CaseFolder(Path(result.run)).episodes()[0].truth
        for policy in ("rules", "oracle")
        for result in [await play("open-world-easy", policy, "sound", seed=1, place="local")]
    ]
    assert not rules.stranded
    assert rules.score is not None
    assert oracle.score is not None
    assert oracle.score > rules.score


def test_rules_look_again_where_an_outcome_is_unknown() -> None:
    setup = build_scenario("phantom-object", 1)
    robot = RuleRobot(setup.facts, sense(join(setup.world, "robot").state, "r1"))
    assert robot.act(Observation(task="")) is not None
    unknown = "it may or may not have happened: sense before you repeat it"
    again = robot.act(Observation(task="", results=(unknown,)))
    assert again == Act(action="sense")


GRID: Cell = (5, 5)
CELLS = st.tuples(st.integers(0, 4), st.integers(0, 4))
PLACE = Ground(grid=GRID, charger=(0, 0))


def test_round_goes_to_the_nearest_first_and_home_is_never_out_of_reach() -> None:
    assert best_round(PLACE, (1, 0), 100, [(4, 0), (2, 0)]) == (2, 0)
    assert best_round(PLACE, (2, 0), 15, [(2, 0)]) == (0, 0)
    assert best_round(PLACE, (2, 0), 20, [(2, 0)]) == (2, 0)


def test_nothing_is_begun_where_nothing_can_be_cleaned() -> None:
    assert best_round(PLACE, (4, 4), 10, [(4, 4)]) is None
    assert best_round(PLACE, (1, 1), 100, []) is None
    walled = Ground(grid=GRID, charger=(0, 0), blocked=frozenset({(3, 4), (4, 3)}))
    assert best_round(walled, (1, 1), 100, [(4, 4)]) is None


@given(
    start=CELLS,
    battery=st.integers(1, FULL_BATTERY),
    work=st.sets(CELLS, max_size=4),
    blocked=st.sets(CELLS, max_size=5),
)
def test_a_robot_that_follows_its_rounds_is_never_stranded(
    start: Cell, battery: int, work: set[Cell], blocked: set[Cell]
) -> None:
    ground = Ground(grid=GRID, charger=(0, 0), blocked=frozenset(blocked - {start, (0, 0)}))
    here, left = start, set(work)
    for _ in range(80):
        goal = best_round(ground, here, battery, sorted(left))
        if goal is None:
            return
        if goal == here and goal in left:
            battery -= CLEAN_COST
            left.discard(goal)
        else:
            assert ground.first_step(here, goal) is not None
            away = distances_from(here, ground.grid, ground.blocked - {here, goal})
            steps = away.get(goal)
            assert steps is not None
            battery -= steps * MOVE_COST
            here = goal
        assert battery > 0 or here == ground.charger
        if here == ground.charger:
            battery = FULL_BATTERY
    raise AssertionError("it went round for ever")
