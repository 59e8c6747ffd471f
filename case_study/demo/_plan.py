"""Which cases the demo runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from case_study.runner import AGENTS, CaseRequest, Delivery
from case_study.temperaments import SCRIPTED
from vacuum_world.scenarios import PAPER

TRAPPED: Mapping[str, str] = MappingProxyType(
    {
        "sudden-wall": "stubborn",
        "energy-dilemma": "impulsive",
        "phantom-object": "gullible",
        "evolution": "impulsive",
    }
)
"""For each scenario the temperament that falls into its trap."""

CONTROL = "sound"
"""The temperament that falls into none."""


def planned_cases(model: str | None, seed: int) -> tuple[CaseRequest, ...]:
    """The demo's cases, in the order of the scenarios.

    Args:
        model: A model spec for all of them; None for the scripted temperaments.
        seed: The seed of all of them.
    """
    cases: list[CaseRequest] = []
    for scenario in PAPER:
        scripted = (f"{SCRIPTED}:{TRAPPED[scenario]}", f"{SCRIPTED}:{CONTROL}")
        for name in (model,) if model else scripted:
            for agent in reversed(AGENTS):
                cases += [
                    CaseRequest(
                        scenario=scenario, agent=agent, model=name, seed=seed, delivery=delivery
                    )
                    for delivery in _deliveries(scenario, agent)
                ]
    return tuple(cases)


def _deliveries(scenario: str, agent: str) -> Iterator[Delivery]:
    """The ways of telling a change: both of them where there is one and the agent is CoAG."""
    yield "constraint"
    if scenario == "evolution" and agent == "coag":
        yield "procedure"
