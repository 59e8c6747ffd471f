"""What a case is asked for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from case_study.robot import constraint_named
from case_study.temperaments import SCRIPTED, open_temperament
from coag.errors import UnknownNameError
from coag.models import ModelSpec
from coag.schema import Value
from vacuum_world.scenarios import scenario_named

Delivery = Literal["constraint", "procedure"]
AGENT_KINDS = ("coag", "baseline")


class CaseRequest(Value):
    """One agent, one scenario, one seed, and how."""

    scenario: str
    """One of the world's scenarios."""
    agent: str
    """`coag` or `baseline`."""
    model: str
    """A model spec, such as `scripted:sound`."""
    seed: int = 0
    """What places, distances, dirt and wording are varied by."""
    episodes: int | None = Field(default=None, ge=1)
    """How many episodes; None for as many as belong to the scenario."""
    max_actions: int | None = Field(default=None, ge=1)
    """Bound of external actions per episode; None for the scenario's own."""
    without_constraints: tuple[str, ...] = ()
    """Rules of the CoAG agent that are left out, for control runs."""
    without_memory: bool = False
    """CoAG only: nothing is recalled, and nothing outlasts an episode."""
    delivery: Delivery = "constraint"
    """CoAG only, `evolution`: how the change of requirements is told."""
    depth: Literal["full", "compact"] = "full"
    """CoAG only: one model call a phase, or one a cycle."""
    world: str | None = None
    """Where a world is served; None to serve one here."""

    @property
    def episode_count(self) -> int:
        """How many episodes it has."""
        return self.episodes or scenario_named(self.scenario).episodes


def model_spec(text: str) -> ModelSpec:
    """The model that a spec names; `scripted:NAME` are the temperaments.

    Raises:
        UnknownNameError: No form of spec fits; the message lists all.
        ConfigurationError: The spec is incomplete.
    """
    return ModelSpec.parse(text, schemes={SCRIPTED: open_temperament})


def checked(request: CaseRequest) -> CaseRequest:
    """The request, after making sure that everything it names exists.

    Raises:
        UnknownScenarioError: There is no such scenario.
        UnknownNameError: There is no such agent, model or constraint.
        ConfigurationError: The model cannot be opened.
    """
    scenario_named(request.scenario)
    if request.agent not in AGENT_KINDS:
        raise UnknownNameError("agent", request.agent, AGENT_KINDS)
    for name in request.without_constraints:
        constraint_named(name)
    model_spec(request.model).open()
    return request
