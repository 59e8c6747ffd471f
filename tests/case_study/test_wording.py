from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from case_study.tasks import task_text, wordings
from vacuum_world.scenarios import PHANTOM_TOOL, SCENARIOS
from vacuum_world.world import last_state_line

Begin = Callable[[str, int], Any]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_task_holds_the_first_reading_and_every_dirty_cell(start: Begin, scenario: str) -> None:
    for seed in range(20):
        setup, _, reading = start(scenario, seed)
        text = task_text(setup, reading)
        assert last_state_line(text) == reading
        assert all(f"({x}, {y})" in text for x, y in setup.facts.dirty)
        assert "{" not in text.replace("STATE {", "").replace('":{', "")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_wording_is_varied_by_the_seed_and_by_nothing_else(start: Begin, scenario: str) -> None:
    openings = set[str]()
    for seed in range(20):
        setup, _, reading = start(scenario, seed)
        assert task_text(setup, reading) == task_text(setup, reading)
        openings.add(task_text(setup, reading).split()[0])
    assert len(openings) == len(wordings("rules")) == 3


def test_task_of_the_phantom_names_a_tool_that_does_not_exist(start: Begin) -> None:
    for seed in range(10):
        setup, _, reading = start("phantom-object", seed)
        assert f"`{PHANTOM_TOOL}`" in task_text(setup, reading)


def test_the_task_names_no_hidden_wall_and_no_coming_rule(start: Begin) -> None:
    for seed in range(10):
        setup, _, reading = start("sudden-wall", seed)
        text = task_text(setup, reading).lower()
        assert "wall" not in text
        assert "obstacle" not in text
        setup, _, reading = start("evolution", seed)
        assert "forbidden" not in task_text(setup, reading)
