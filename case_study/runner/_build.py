"""Building the agents, from scratch or by a run's recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench

from case_study.baseline import PlainAgent
from case_study.robot import CONSTRAINTS, ForbidCleaning, VacuumContext, prompt
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import ConfigurationError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import Constraint
from coag.tracing import Rebuild, Recipe
from vacuum_world.client import WorldClient
from vacuum_world.scenarios import ScenarioSetup, build_scenario
from vacuum_world.tools import world_tools
from vacuum_world.world import Reading, join, sense

from ._environment import WorldEnvironment, change_is_due
from ._request import AGENT_KINDS, CaseRequest, model_spec
from ._showing import PATIENCE
from ._worlds import ROBOT, World, open_world

AGENTS = AGENT_KINDS
"""Kinds of agents."""

NAME = "robot"
FACTORY = "case_study.runner:build_agent"
PLAIN_FACTORY = "case_study.runner:build_plain_agent"
_NOWHERE = "http://127.0.0.1:9"
"""An address at which no world is served."""

world_at_hand: ContextVar[World | None] = ContextVar("world_at_hand", default=None)
"""The world that the runner has opened; a recipe names no token and opens no world itself."""


async def build_agent(
    *, case: str, episode: int, request: Mapping[str, Any], rebuild: Rebuild | None = None
) -> CoagAgent:
    """The CoAG agent of a run, in the world at hand: what the recipe in `run.json` names.

    A fork gets a world of its own, to be put into the state that the run's had; a replay none,
    and no model.

    Args:
        case: The case's folder.
        episode: Which of its episodes.
        request: What was asked for, as JSON.
        rebuild: What for, if the agent of a run is built again.

    Raises:
        ConfigurationError: No world is at hand; `case-study run --resume CASE` opens it.
    """
    if rebuild is not None and rebuild.purpose == "fork":
        asked = CaseRequest.model_validate({**request, "model": rebuild.model or request["model"]})
        return await _forked(Path(case), episode, asked)
    if rebuild is not None and rebuild.purpose == "replay":
        return _replayed(Path(case), episode, CaseRequest.model_validate(request))
    world = world_at_hand.get()
    if world is None:
        raise ConfigurationError(
            f"The run's world is not open. Resume the whole case: case-study run --resume {case}"
        )
    return await coag_agent(Path(case), episode, CaseRequest.model_validate(request), world)


async def _forked(case: Path, episode: int, request: CaseRequest) -> CoagAgent:
    """The CoAG agent of an episode in a world of its own, which its environment closes."""
    start = build_scenario(request.scenario, request.seed, episode=episode).world
    opened = AsyncExitStack()
    async with AsyncExitStack() as failing:
        failing.push_async_callback(opened.aclose)
        world = await opened.enter_async_context(open_world(start))
        agent = await coag_agent(case, episode, request, world, opened)
        failing.pop_all()
    return agent


async def coag_agent(
    case: Path,
    episode: int,
    request: CaseRequest,
    world: World,
    opened: AsyncExitStack | None = None,
) -> CoagAgent:
    """The CoAG agent of an episode, its robot in the world.

    Args:
        case: The case's folder.
        episode: Which of its episodes.
        request: What was asked for.
        world: The world that it plays in.
        opened: What the agent's environment is to close; None if others close the world.
    """
    setup = build_scenario(request.scenario, request.seed, episode=episode)
    client = await world.join()
    model = model_spec(request.model).open()
    world.guests.push_async_callback(model.close)
    environment = WorldEnvironment(world, setup, request.delivery, opened)
    world.guests.push_async_callback(environment.close)
    return _agent(
        request,
        model=model,
        tools=world_tools(client),
        model_context=VacuumContext(reading=await client.sense()),
        constraints=await _constraints(request, world),
        memory=None if request.without_memory else case / "memory",
        logs=case,
        recipe=_recipe(case, episode, request),
        environment=environment,
        tool_timeout=60.0 if world.showing is None else PATIENCE,
    )


def _replayed(case: Path, episode: int, request: CaseRequest) -> CoagAgent:
    """The CoAG agent of an episode as it is built, in no world and with no model."""
    setup = build_scenario(request.scenario, request.seed, episode=episode)
    return _agent(
        request,
        model=ScriptedModel(_no_answer, name=model_spec(request.model).public),
        tools=world_tools(_no_world()),
        model_context=VacuumContext(reading=first_reading(setup)),
        constraints=_rules(request),
        recipe=_recipe(case, episode, request),
    )


def _no_answer(request: ScriptedRequest) -> ScriptedReply:
    raise ConfigurationError("In a replay the trace answers, and no model is asked.")


def _no_world() -> WorldClient:
    """A client of a world that is nowhere, for tools that are described and not run."""
    return WorldClient(_NOWHERE, ROBOT, "none")


def first_reading(setup: ScenarioSetup) -> Reading:
    """What the robot senses when it joins the world as it is set up."""
    joined = join(setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


def _agent(
    request: CaseRequest, *, model: ChatCompletionClient, recipe: Recipe, **parts: Any
) -> CoagAgent:
    """The CoAG agent of a case, whatever it is built for."""
    return CoagAgent(
        NAME,
        model,
        system_message=prompt("robot"),
        max_tool_iterations=1,
        recipe=recipe,
        seed=request.seed,
        depth=request.depth,
        proposal="json",
        recall_k=0 if request.without_memory else 5,
        **parts,
    )


def _recipe(case: Path, episode: int, request: CaseRequest, factory: str = FACTORY) -> Recipe:
    """How to build the agent again; no token is in it."""
    asked = request.model_dump(mode="json")
    return Recipe(
        factory=factory,
        arguments={
            "case": str(case.resolve()),
            "episode": episode,
            "request": {**asked, "model": model_spec(request.model).public},
        },
    )


async def _constraints(request: CaseRequest, world: World) -> list[Constraint]:
    """The rules in force; a forbidden cell too, where it was forbidden before a crash."""
    rules = _rules(request)
    setup = build_scenario(request.scenario, request.seed)
    cell = setup.facts.forbidden
    if request.delivery == "constraint" and cell and await change_is_due(setup, world):
        rules.append(ForbidCleaning(cell))
    return rules


def _rules(request: CaseRequest) -> list[Constraint]:
    """The rules that are in force from the beginning."""
    return [rule for name, rule in CONSTRAINTS.items() if name not in request.without_constraints]


async def plain_agent(case: Path, episode: int, request: CaseRequest, world: World) -> PlainAgent:
    """The baseline of an episode, its robot in the world."""
    client = await world.join()
    spec = model_spec(request.model)
    recorder = Recorder(
        case,
        agent=NAME,
        model=spec.public,
        seed=request.seed,
        configuration={"scenario": request.scenario, "episode": episode},
        recipe=_recipe(case, episode, request, PLAIN_FACTORY),
    )
    return _plain(spec.open(), world_tools(client), recorder)


def build_plain_agent(
    *, case: str, episode: int, request: Mapping[str, Any], rebuild: Rebuild | None = None
) -> Callable[[ChatCompletionClient, Workbench, Recorder], PlainAgent]:
    """What makes the baseline of a run again, for a replay: what its recipe names.

    Args:
        case: The case's folder.
        episode: Which of its episodes.
        request: What was asked for, as JSON.
        rebuild: What for.

    Raises:
        ConfigurationError: It is not for a replay.
    """
    del episode, request
    if rebuild is None or rebuild.purpose != "replay":
        raise ConfigurationError(
            f"The baseline has no state to go on from. Run the case anew, or see it: {case}"
        )
    return _plain


def _plain(
    client: ChatCompletionClient,
    tools: Sequence[BaseTool[Any, Any]] | Workbench,
    recorder: Recorder,
) -> PlainAgent:
    return PlainAgent(
        NAME, client, tools=tools, system_message=prompt("utility"), recorder=recorder
    )
