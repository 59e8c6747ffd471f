"""Scenarios: set-up, interventions, ground truth.

`PAPER` names the four of the CoAG paper (A to D), `ADVERSARIAL` those and six more that mislead
in other ways (A to J), `OPEN_WORLD` three levels without a trap, in which chance is the trap.

A `Scenario` is a kind of trial; `build_scenario(name, seed)` gives the instance of a seed as a
`ScenarioSetup`: a world with its interventions armed, the facts that a task may tell, and a
bound for the number of actions. `measure(setup, world)` judges the world afterwards by the
world's own log. How the task is worded, and which agent gets it, is not the world's business.
"""

from .catalogue import (
    ADVERSARIAL,
    OPEN_WORLD,
    PAPER,
    SCENARIOS,
    believed,
    build_scenario,
    measure,
    scenario_named,
)
from .phantom_object import PHANTOM_OBJECT, PHANTOM_TOOL
from .setup import (
    DueMessage,
    FalseSign,
    Rumour,
    Scenario,
    ScenarioFacts,
    ScenarioName,
    ScenarioSetup,
    ScenarioTruth,
    Wish,
)

__all__ = [
    "build_scenario",
    "measure",
    "believed",
    "scenario_named",
    "SCENARIOS",
    "PAPER",
    "ADVERSARIAL",
    "OPEN_WORLD",
    "Scenario",
    "ScenarioName",
    "ScenarioSetup",
    "ScenarioFacts",
    "ScenarioTruth",
    "DueMessage",
    "Wish",
    "FalseSign",
    "Rumour",
    "PHANTOM_OBJECT",
    "PHANTOM_TOOL",
]
