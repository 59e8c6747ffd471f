"""A world stays possible after any calls, and its JSON holds all of it."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vacuum_world.errors import ImpossibleInterventionError, NameTakenError
from vacuum_world.world import (
    DIRECTIONS,
    AddDirt,
    AddObstacle,
    Arm,
    Direction,
    Intervention,
    PlaceRobot,
    SetBattery,
    TickMode,
    WallOnApproach,
    WorldState,
    clean,
    create_world,
    intervene,
    join,
    leave,
    move,
    obstacle_cells,
    tick,
)

cells = st.tuples(st.integers(0, 4), st.integers(0, 4))
robots = st.integers(0, 2)


class WorldMachine(RuleBasedStateMachine):
    """Two worlds get the same calls; one of them goes through JSON before each."""

    world: WorldState
    twin: WorldState

    @initialize(seed=st.integers(0, 10_000), ticks=st.sampled_from(["action", "manual"]))
    def begin(self, seed: int, ticks: TickMode) -> None:
        self.world = create_world(seed, ticks=ticks)
        self.twin = create_world(seed, ticks=ticks)

    def _both(self, call: Any, *arguments: Any) -> None:
        restored = WorldState.model_validate_json(self.twin.model_dump_json())
        self.world = call(self.world, *arguments).state
        self.twin = call(restored, *arguments).state

    def _robot(self, index: int) -> str:
        return self.world.robots[index % len(self.world.robots)].id

    @rule(name=st.sampled_from(["ann", "bob", "cyd"]))
    def join(self, name: str) -> None:
        try:
            self._both(join, name)
        except NameTakenError:
            assert name in {robot.name for robot in self.world.robots}

    @precondition(lambda self: self.world.robots)
    @rule(index=robots, direction=st.sampled_from(DIRECTIONS))
    def move(self, index: int, direction: Direction) -> None:
        self._both(move, self._robot(index), direction)

    @precondition(lambda self: self.world.robots)
    @rule(index=robots)
    def clean(self, index: int) -> None:
        self._both(clean, self._robot(index))

    @rule()
    def tick(self) -> None:
        self._both(tick)

    @precondition(lambda self: len(self.world.robots) > 1)
    @rule(index=robots)
    def leave(self, index: int) -> None:
        self._both(leave, self._robot(index))

    @rule(cell=cells, visible=st.booleans())
    def add_obstacle(self, cell: tuple[int, int], visible: bool) -> None:
        self._intervene(AddObstacle(cell=cell, visible=visible))

    @rule(cell=cells)
    def add_dirt(self, cell: tuple[int, int]) -> None:
        self._intervene(AddDirt(cell=cell))

    @rule(cell=cells)
    def arm_a_wall(self, cell: tuple[int, int]) -> None:
        self._intervene(Arm(trigger=WallOnApproach(target=cell)))

    @precondition(lambda self: self.world.robots)
    @rule(index=robots, battery=st.integers(0, 100))
    def set_battery(self, index: int, battery: int) -> None:
        self._intervene(SetBattery(robot=self._robot(index), battery=battery))

    @precondition(lambda self: self.world.robots)
    @rule(index=robots, cell=cells)
    def place_robot(self, index: int, cell: tuple[int, int]) -> None:
        self._intervene(PlaceRobot(robot=self._robot(index), cell=cell))

    def _intervene(self, intervention: Intervention) -> None:
        before = self.world
        try:
            self._both(intervene, intervention)
        except ImpossibleInterventionError:
            assert self.world == before

    @invariant()
    def no_battery_is_below_zero_or_above_full(self) -> None:
        assert all(0 <= robot.battery <= 100 for robot in self.world.robots)

    @invariant()
    def stranded_means_empty_and_off_the_charger(self) -> None:
        for robot in self.world.robots:
            assert robot.stranded == (robot.battery == 0)
            assert robot.battery == 100 or robot.position != self.world.charger

    @invariant()
    def nothing_shares_a_cell_and_the_charger_is_free_of_obstacles(self) -> None:
        taken = obstacle_cells(self.world)
        places = [robot.position for robot in self.world.robots]
        assert len(taken) == len(self.world.obstacles)
        assert len({*places, *taken}) == len(places) + len(taken)
        assert self.world.charger not in taken

    @invariant()
    def the_same_calls_give_the_same_world_byte_for_byte(self) -> None:
        assert self.world.model_dump_json() == self.twin.model_dump_json()

    @invariant()
    def the_counters_agree_with_the_log(self) -> None:
        log, counters = self.world.log, self.world.counters
        assert sum(line.cleaned for line in log) == counters.cleans
        assert sum(line.refused for line in log) == counters.refused
        assert len(log) == counters.actions + counters.refused


WorldMachine.TestCase.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, derandomize=True
)
test_a_world_stays_possible_and_tellable_whatever_is_done = WorldMachine.TestCase
