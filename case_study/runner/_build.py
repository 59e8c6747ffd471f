"""Building the agents, from scratch or by a run's recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from case_study.baseline import PlainAgent, open_recall
from case_study.contenders import (
    CoagPlayer,
    Player,
    build_player,
    coag_agent,
    plain_agent,
    used_tokens,
)
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import ConfigurationError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import Constraint
from coag.tracing import Rebuild
from vacuum_world.client import WorldClient
from vacuum_world.scenarios import ScenarioSetup, build_scenario

from ._environment import WorldEnvironment, change_is_due
from ._remembering import Remembering, remembering
from ._request import AGENT_KINDS, CaseRequest, model_spec
from ._sampling import sampled_by
from ._vacuum import FACTORY, changes_of, first_reading, played_parts, recipe_of, vacuum_parts
from ._worlds import ROBOT, Opening, World, open_world

AGENTS = AGENT_KINDS
"""Kinds of agents."""

_NOWHERE = "http://127.0.0.1:9"
"""An address at which no world is served."""

world_at_hand: ContextVar[World | None] = ContextVar("world_at_hand", default=None)
"""The world that the runner has opened; a recipe names no token and opens no world itself."""


async def open_player(
    request: CaseRequest, setup: ScenarioSetup, world: World, case: Path, shared: Remembering
) -> Player:
    """The contender of an episode, its robot in the world.

    Args:
        request: What was asked for.
        setup: The scenario's instance.
        world: The world that it plays in.
        case: The case's folder.
        shared: What the episodes share.
    """
    contender = request.contender
    if contender.kind == "coag":
        agent, model = await _coag(request, setup, world, case, shared)
        watcher = world.watcher()
        saw = None if watcher is None else watcher.saw
        return CoagPlayer(agent, request.told_by, lambda: used_tokens(model), saw)
    client = await world.join()
    parts = played_parts(
        request, setup, world, client, await client.sense(), case=case, remembering=shared
    )
    chance = request.chance(setup.episode)
    model = _opened(request, world, chance) if contender.asks_model else None
    return build_player(contender, parts, model, case, chance, model_name=request.model_shown)


async def resumed_player(request: CaseRequest, run: Path, world: World) -> Player:
    """The CoAG agent of a run that was broken off, as it was then."""
    agent = await CoagAgent.resume(run)
    watcher = world.watcher()
    return CoagPlayer(agent, request.told_by, on_event=None if watcher is None else watcher.saw)


async def _coag(
    request: CaseRequest,
    setup: ScenarioSetup,
    world: World,
    case: Path,
    shared: Remembering,
    opened: AsyncExitStack | None = None,
) -> tuple[CoagAgent, ChatCompletionClient]:
    """The CoAG agent of an episode, and its model; `opened` is what its environment closes."""
    client = await world.join()
    environment = WorldEnvironment(world, setup, request.told_by, opened)
    world.guests.push_async_callback(environment.close)
    parts = played_parts(
        request,
        setup,
        world,
        client,
        await client.sense(),
        case=case,
        remembering=shared,
        environment=environment,
    )
    chance = request.chance(setup.episode)
    model = _opened(request, world, chance)
    rules = [*parts.constraints, *await _later_rules(request, setup, world)]
    agent = coag_agent(request.contender, parts, model, logs=case, seed=chance, rules=rules)
    return agent, model


def _opened(request: CaseRequest, world: World, chance: int) -> ChatCompletionClient:
    """The model, closed with the world; in a sequence its sampling is drawn by the episode."""
    model = model_spec(request.model, chance).open()
    if request.between is not None:
        model = sampled_by(model, chance)
    world.guests.push_async_callback(model.close)
    return model


async def _later_rules(
    request: CaseRequest, setup: ScenarioSetup, world: World
) -> list[Constraint]:
    """Rules that came into force before a crash."""
    if request.told_by != "constraint" or not await change_is_due(setup, world):
        return []
    return [change.constraint for change in changes_of(setup)]


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
        if rebuild.model is None and model_spec(asked.model).scheme == "file":
            # A component file names code, and this run may be a stranger's.
            raise ConfigurationError(
                f"The run's model is the component file {asked.model!r}, which is not loaded "
                f"unasked: add --model {asked.model} if you trust it."
            )
        return await _forked(Path(case), episode, asked)
    wanted = CaseRequest.model_validate(request)
    setup = build_scenario(wanted.scenario, wanted.seed, episode=episode)
    if rebuild is not None and rebuild.purpose == "replay":
        return _replayed(Path(case), setup, wanted)
    world = world_at_hand.get()
    if world is None:
        raise ConfigurationError(
            f"The run's world is not open. Resume the whole case: case-study run --resume {case}"
        )
    shared = remembering(wanted, Path(case), world.guests, episode)
    agent, _ = await _coag(wanted, setup, world, Path(case), shared)
    return agent


async def _forked(case: Path, episode: int, request: CaseRequest) -> CoagAgent:
    """The CoAG agent of an episode in a world of its own, which its environment closes."""
    setup = build_scenario(request.scenario, request.seed, episode=episode)
    opened = AsyncExitStack()
    async with AsyncExitStack() as failing:
        failing.push_async_callback(opened.aclose)
        how = Opening(local=request.place == "local")
        world = await opened.enter_async_context(open_world(setup.world, how))
        shared = remembering(request, case, opened, episode)
        agent, _ = await _coag(request, setup, world, case, shared, opened)
        failing.pop_all()
    return agent


def _replayed(case: Path, setup: ScenarioSetup, request: CaseRequest) -> CoagAgent:
    """The CoAG agent of an episode as it is built, in no world and with no model."""
    parts = vacuum_parts(
        request,
        setup,
        _no_world(),
        first_reading(setup),
        recipe=recipe_of(case, setup.episode, request, FACTORY),
    )
    model = ScriptedModel(_no_answer, name=model_spec(request.model).public)
    return coag_agent(request.contender, parts, model, seed=request.chance(setup.episode))


def _no_answer(request: ScriptedRequest) -> ScriptedReply:
    raise ConfigurationError("In a replay the trace answers, and no model is asked.")


def _no_world() -> WorldClient:
    """A client of a world that is nowhere, for tools that are described and not run."""
    return WorldClient(_NOWHERE, ROBOT, "none")


def build_plain_agent(
    *, case: str, episode: int, request: Mapping[str, Any], rebuild: Rebuild | None = None
) -> Callable[[ChatCompletionClient, Workbench, Recorder], PlainAgent]:
    """What makes a plain agent of a run again, for a replay: what its recipe names.

    Args:
        case: The case's folder.
        episode: Which of its episodes.
        request: What was asked for, as JSON.
        rebuild: What for.

    Raises:
        ConfigurationError: It is not for a replay; or the agent had a memory from an earlier
            episode, which is not kept as it was then.
    """
    if rebuild is None or rebuild.purpose != "replay":
        raise ConfigurationError(
            f"The baseline has no state to go on from. Run the case anew, or see it: {case}"
        )
    wanted = CaseRequest.model_validate(request)
    contender = wanted.contender
    if contender.remembers and episode > 1:
        raise ConfigurationError(
            f"What AutoGen's memory held when episode {episode} began is not kept, so it cannot "
            "be replayed. Replay episode 1, or read the trace."
        )
    setup = build_scenario(wanted.scenario, wanted.seed, episode=episode)
    recall = open_recall() if contender.remembers else None
    parts = vacuum_parts(wanted, setup, _no_world(), first_reading(setup), recall=recall)

    def build(client: ChatCompletionClient, tools: Workbench, recorder: Recorder) -> PlainAgent:
        return plain_agent(contender, parts, client, recorder, tools)

    return build
