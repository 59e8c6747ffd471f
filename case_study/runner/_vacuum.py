"""The vacuum robot's world as a domain: the parts from which its contenders are built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from case_study.contenders import Change, Parts
from case_study.contenders.vacuum import Oracle, RuleRobot, random_action, told_of
from case_study.robot import (
    CONDUCT,
    CONSTRAINTS,
    VacuumContext,
    procedures,
    prompt,
    vacuum_awareness,
)
from case_study.tasks import task_text
from case_study.temperaments import reads_states
from coag.schema import Constraint, Environment
from coag.tracing import Recipe
from vacuum_world.client import WorldClient
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.tools import world_tools
from vacuum_world.world import Reading, join, manuals, sense

from ._environment import forbidding
from ._remembering import NAME, Remembering
from ._request import CaseRequest, model_spec
from ._showing import PATIENCE
from ._worlds import ROBOT, World

FACTORY = "case_study.runner:build_agent"
PLAIN_FACTORY = "case_study.runner:build_plain_agent"


def first_reading(setup: ScenarioSetup) -> Reading:
    """What the robot senses when it joins the world as it is set up."""
    joined = join(setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


def rules_of(request: CaseRequest) -> list[Constraint]:
    """The rules that are in force from the beginning."""
    rules = {**CONSTRAINTS, **(CONDUCT if request.contender.conduct else {})}
    return [rule for name, rule in rules.items() if name not in request.without_constraints]


def context_of(request: CaseRequest, setup: ScenarioSetup, reading: Reading) -> VacuumContext:
    """The working memory of a CoAG robot.

    What it is to clean is given as cells but where the task forbids some of them: then it is the
    model that has to read it. With one model call a phase, prompts grow within a cycle. Scripted
    minds read readings; language models are told the state in words alone.
    """
    facts = setup.facts
    return VacuumContext(
        reading=reading,
        work=None if facts.off_limits else facts.dirty,
        patrol=facts.horizon is not None,
        valued=request.contender.valued,
        readings=reads_states(request.model),
        rendering="growing" if request.contender.depth == "full" else "isolated",
    )


def changes_of(setup: ScenarioSetup) -> tuple[Change, ...]:
    """The changes of requirements that will come."""
    cell = setup.facts.forbidden
    return () if cell is None else (forbidding(cell),)


def vacuum_parts(
    request: CaseRequest,
    setup: ScenarioSetup,
    client: WorldClient,
    reading: Reading,
    **further: Any,
) -> Parts:
    """The parts of an episode.

    Args:
        request: What was asked for.
        setup: The scenario's instance.
        client: Drives the robot.
        reading: What its sensors say now.
        **further: Fields of `Parts` that depend on what the agent is built for.
    """
    further.setdefault("procedures", procedures())
    robot = RuleRobot(told_of(setup.facts), reading)
    tools = world_tools(client, manuals(setup.world))
    return Parts(
        name=NAME,
        task=task_text(setup, first_reading(setup)),
        tools=tools,
        system_prompt=prompt("robot"),
        utility_prompt=prompt("utility"),
        context=lambda: context_of(request, setup, reading),
        random_action=lambda dice: random_action(dice, [tool.name for tool in tools]),
        rule_action=robot.act,
        awareness=vacuum_awareness,
        constraints=rules_of(request),
        recalled=0 if request.without_memory else 5,
        changes=changes_of(setup),
        enforces_schemas=not reads_states(request.model),
        **further,
    )


def played_parts(
    request: CaseRequest,
    setup: ScenarioSetup,
    world: World,
    client: WorldClient,
    reading: Reading,
    *,
    case: Path,
    remembering: Remembering,
    environment: Environment | None = None,
) -> Parts:
    """The parts of an episode that is played in a world.

    Args:
        request: What was asked for.
        setup: The scenario's instance.
        world: The world.
        client: Drives the robot in it.
        reading: What its sensors say now.
        case: The case's folder.
        remembering: What the episodes share.
        environment: For snapshots.
    """
    factory = FACTORY if request.contender.kind == "coag" else PLAIN_FACTORY
    return vacuum_parts(
        request,
        setup,
        client,
        reading,
        oracle_action=Oracle(setup, world.state, ROBOT).act,
        memory=remembering.memory,
        procedures={**procedures(), **remembering.procedures},
        recall=remembering.recall,
        recipe=recipe_of(case, setup.episode, request, factory),
        environment=environment,
        configuration={"scenario": request.scenario, "episode": setup.episode},
        tool_timeout=60.0 if world.showing is None else PATIENCE,
    )


def recipe_of(case: Path, episode: int, request: CaseRequest, factory: str) -> Recipe:
    """How to build the agent again; no token is in it."""
    asked: Mapping[str, Any] = request.model_dump(mode="json")
    model = model_spec(request.model).public if request.contender.asks_model else request.model
    return Recipe(
        factory=factory,
        arguments={
            "case": str(case.resolve()),
            "episode": episode,
            "request": {**asked, "model": model},
        },
    )
