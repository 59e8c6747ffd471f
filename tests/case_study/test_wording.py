from __future__ import annotations

import pytest

from case_study.tasks import task_text, wordings
from vacuum_world.scenarios import PHANTOM_TOOL, SCENARIOS, build_scenario
from vacuum_world.world import join, last_state_line, sense


def task_of(scenario: str, seed: int) -> str:
    """The task of a scenario, as a robot gets it that has just joined."""
    setup = build_scenario(scenario, seed)
    return task_text(setup, sense(join(setup.world, "robot").state, "r1"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_task_holds_the_first_reading_and_every_dirty_cell_in_words_that_the_seed_varies(
    scenario: str,
) -> None:
    openings = set[str]()
    for seed in range(20):
        setup, text = build_scenario(scenario, seed), task_of(scenario, seed)
        assert last_state_line(text) == sense(join(setup.world, "robot").state, "r1")
        assert all(f"({x}, {y})" in text for x, y in setup.facts.dirty)
        assert "{" not in text.replace("STATE {", "").replace('":{', "")
        assert text == task_of(scenario, seed)
        openings.add(text.split()[0])
    assert len(openings) == len(wordings("rules")) == 3


def test_the_task_names_the_phantom_but_no_hidden_wall_and_no_coming_rule() -> None:
    for seed in range(10):
        assert f"`{PHANTOM_TOOL}`" in task_of("phantom-object", seed)
        text = task_of("sudden-wall", seed).lower()
        assert "wall" not in text
        assert "obstacle" not in text
        assert "forbidden" not in task_of("evolution", seed)
