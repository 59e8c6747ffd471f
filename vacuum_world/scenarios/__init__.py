"""The four adversarial scenarios of the paper: set-up, interventions, ground truth.

A `Scenario` is a kind of trial; `build_scenario(name, seed)` gives the instance of a seed as a
`ScenarioSetup`: a world with its interventions armed, the facts that a task may tell, and a
bound for the number of actions. `measure(setup, world)` judges the world afterwards by the
world's own log. How the task is worded, and which agent gets it, is not the world's business.
"""

from ._catalogue import SCENARIOS, build_scenario, measure, scenario_named
from ._evolution import FORBIDDEN
from ._phantom_object import PHANTOM_OBJECT, PHANTOM_TOOL
from ._setup import Scenario, ScenarioFacts, ScenarioName, ScenarioSetup, ScenarioTruth

__all__ = [
    "build_scenario",
    "measure",
    "scenario_named",
    "SCENARIOS",
    "Scenario",
    "ScenarioName",
    "ScenarioSetup",
    "ScenarioFacts",
    "ScenarioTruth",
    "FORBIDDEN",
    "PHANTOM_OBJECT",
    "PHANTOM_TOOL",
]
