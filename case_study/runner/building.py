"""The contenders of an episode: their parts, from scratch or by the recipe of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench
from pydantic import ValidationError

from case_study.baseline import PlainAgent, open_recall
from case_study.contenders import (
    Change,
    CoagPlayer,
    Delivery,
    Parts,
    Player,
    build_player,
    coag_agent,
    plain_agent,
    used_tokens,
)
from case_study.policies import Oracle, RuleRobot, random_action, task_facts
from case_study.robot import (
    CONDUCT,
    CONSTRAINTS,
    ForbidCleaning,
    VacuumContext,
    change_sentence,
    procedures,
    prompt,
    vacuum_awareness,
)
from case_study.tasks import task_text
from case_study.temperaments import reads_states
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import ConfigurationError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.schema import Environment
from coag.tracing import Rebuild, Recipe
from vacuum_world.client import WorldClient
from vacuum_world.errors import WorldError
from vacuum_world.scenarios import ScenarioSetup, build_scenario
from vacuum_world.tools import world_tools
from vacuum_world.world import Reading, WorldState, join, manuals, sense

from .memory import NAME, Remembering, remembering
from .request import CaseRequest, model_spec, sampled_by
from .showing import PATIENCE
from .worlds import ROBOT, Opening, World, open_world

FACTORY = "case_study.runner:build_agent"
PLAIN_FACTORY = "case_study.runner:build_plain_agent"
_NOWHERE = "http://127.0.0.1:9"
"""An address at which no world is served."""

world_at_hand: ContextVar[World | None] = ContextVar("world_at_hand", default=None)
"""The world that the runner has opened; a recipe names no token and opens no world itself."""


# ---- the world as an agent's environment, and changes of requirements ----


class WorldEnvironment:
    """Saves and restores the whole world, without its log."""

    def __init__(
        self,
        world: World,
        setup: ScenarioSetup,
        delivery: Delivery,
        opened: AsyncExitStack | None = None,
    ) -> None:
        self._world = world
        self._setup = setup
        self._delivery: Delivery = delivery
        self._opened = opened or AsyncExitStack()
        self.is_copy = opened is not None

    async def snapshot(self) -> Any:
        """The whole world now, hidden things included, but not its log.

        With it traces would grow quadratically.
        """
        return (await self._world.state()).model_dump(mode="json", exclude={"log"})

    async def restore(self, state: Any) -> None:
        """Puts the world into a state; the robot's token stays in force.

        Raises:
            ConfigurationError: It is no state of a world, or the world cannot be reached.
        """
        try:
            await self._world.restore(WorldState.model_validate(state))
        except (ValidationError, WorldError) as error:
            raise ConfigurationError(f"The world cannot be put back: {error}") from error

    async def close(self) -> None:
        """Lets go of the world if it was opened for this."""
        await self._opened.aclose()

    def describe(self, state: Any) -> str:
        """Where the robot is, what charge it has, and what is dirty."""
        world = WorldState.model_validate(state)
        cells = ", ".join(map(str, world.dirty))
        dirt = f"dirty: {cells}" if cells else "no cell is dirty"
        robot = next((robot for robot in world.robots if robot.name == ROBOT), None)
        if robot is None:
            return f"The robot has not joined; {dirt}."
        how = "stranded at" if robot.stranded else "at"
        return f"The robot is {how} {robot.position}, battery {robot.battery}; {dirt}."

    async def before_turn(self, agent: CoagAgent) -> None:
        """Gives the agent the change of requirements where it is due, as the runner does."""
        for change in await changes_due(self._setup, self._world):
            await CoagPlayer(agent, self._delivery).change(change)


def changes_of(setup: ScenarioSetup) -> tuple[Change, ...]:
    """The changes of requirements that will come: that of `evolution`."""
    cell = setup.facts.forbidden
    if cell is None:
        return ()
    return (Change(sentence=change_sentence(cell), constraint=ForbidCleaning(cell)),)


async def changes_due(setup: ScenarioSetup, world: World) -> tuple[Change, ...]:
    """Those that have come by now."""
    after = setup.facts.forbidden_after
    due = after is not None and (await world.state()).counters.actions >= after
    return changes_of(setup) if due else ()


# ---- parts ----


def first_reading(setup: ScenarioSetup) -> Reading:
    """What the robot senses when it joins the world as it is set up."""
    joined = join(setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


def context_of(request: CaseRequest, setup: ScenarioSetup, reading: Reading) -> VacuumContext:
    """The working memory of a CoAG robot.

    What it is to clean is given as cells but where the task forbids some of them: then it is the
    model that has to read it. With one model call a phase, prompts grow within a cycle. Scripted
    minds read readings; language models get the state in words alone.
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


def vacuum_parts(
    request: CaseRequest,
    setup: ScenarioSetup,
    client: WorldClient,
    reading: Reading,
    **further: Any,
) -> Parts:
    """The parts of an episode."""
    further.setdefault("procedures", procedures())
    rules = {**CONSTRAINTS, **(CONDUCT if request.contender.conduct else {})}
    robot = RuleRobot(task_facts(setup.facts), reading)
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
        constraints=[r for name, r in rules.items() if name not in request.without_constraints],
        recalled=0 if request.without_memory else 5,
        changes=changes_of(setup),
        enforces_schemas=not reads_states(request.model),
        **further,
    )


async def _played_parts(
    request: CaseRequest,
    setup: ScenarioSetup,
    world: World,
    case: Path,
    shared: Remembering,
    environment: Environment | None = None,
) -> Parts:
    """The parts of an episode that is played in a world, which the robot joins."""
    client = await world.join()
    factory = FACTORY if request.contender.kind == "coag" else PLAIN_FACTORY
    return vacuum_parts(
        request,
        setup,
        client,
        await client.sense(),
        oracle_action=Oracle(setup, world.state, ROBOT).act,
        memory=shared.memory,
        procedures={**procedures(), **shared.procedures},
        recall=shared.recall,
        recipe=recipe_of(case, setup.episode, request, factory),
        environment=environment,
        configuration={"scenario": request.scenario, "episode": setup.episode},
        tool_timeout=60.0 if world.showing is None else PATIENCE,
    )


def recipe_of(case: Path, episode: int, request: CaseRequest, factory: str) -> Recipe:
    """How to build the agent again; no token is in it."""
    fields: Mapping[str, Any] = request.model_dump(mode="json")
    model = model_spec(request.model).public if request.contender.asks_model else request.model
    return Recipe(
        factory=factory,
        arguments={
            "case": str(case.resolve()),
            "episode": episode,
            "request": {**fields, "model": model},
        },
    )


# ---- players ----


async def open_player(
    request: CaseRequest, setup: ScenarioSetup, world: World, case: Path, shared: Remembering
) -> Player:
    """The contender of an episode, its robot in the world."""
    contender, chance = request.contender, request.chance(setup.episode)
    if contender.kind == "coag":
        agent, model = await _coag(request, setup, world, case, shared)
        watcher = world.watcher()
        saw = None if watcher is None else watcher.saw
        return CoagPlayer(agent, request.delivered_by, lambda: used_tokens(model), saw)
    parts = await _played_parts(request, setup, world, case, shared)
    model = _opened(request, world, chance) if contender.asks_model else None
    return build_player(contender, parts, model, case, chance, model_name=request.model_shown)


async def resumed_player(request: CaseRequest, run: Path, world: World) -> Player:
    """The CoAG agent of an interrupted run, as it was then."""
    agent = await CoagAgent.resume(run)
    watcher = world.watcher()
    return CoagPlayer(
        agent, request.delivered_by, on_event=None if watcher is None else watcher.saw
    )


async def _coag(
    request: CaseRequest,
    setup: ScenarioSetup,
    world: World,
    case: Path,
    shared: Remembering,
    opened: AsyncExitStack | None = None,
) -> tuple[CoagAgent, ChatCompletionClient]:
    """The CoAG agent of an episode, and its model; `opened` is what its environment closes.

    Rules that came into force before a crash are in force from the beginning.
    """
    environment = WorldEnvironment(world, setup, request.delivered_by, opened)
    world.guests.push_async_callback(environment.close)
    parts = await _played_parts(request, setup, world, case, shared, environment)
    chance = request.chance(setup.episode)
    model = _opened(request, world, chance)
    later = await changes_due(setup, world) if request.delivered_by == "constraint" else ()
    rules = [*parts.constraints, *(change.constraint for change in later)]
    agent = coag_agent(request.contender, parts, model, logs=case, seed=chance, rules=rules)
    return agent, model


def _opened(request: CaseRequest, world: World, chance: int) -> ChatCompletionClient:
    """The model, closed with the world; in a sequence its sampling is drawn by the episode."""
    model = model_spec(request.model, chance).open()
    if request.between is not None:
        model = sampled_by(model, chance)
    world.guests.push_async_callback(model.close)
    return model


# ---- what recipes name ----


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
    purpose, model = (rebuild.purpose, rebuild.model) if rebuild else ("resume", None)
    if purpose == "fork":
        wanted = CaseRequest.model_validate({**request, "model": model or request["model"]})
        if model is None and model_spec(wanted.model).scheme == "file":
            # A component file names code, and this run may be a stranger's.
            raise ConfigurationError(
                f"The run's model is the component file {wanted.model!r}, which is not loaded "
                f"unasked: add --model {wanted.model} if you trust it."
            )
        return await _forked(Path(case), episode, wanted)
    wanted = CaseRequest.model_validate(request)
    setup = build_scenario(wanted.scenario, wanted.seed, episode=episode)
    if purpose == "replay":
        parts = _replayed_parts(
            wanted, setup, recipe=recipe_of(Path(case), setup.episode, wanted, FACTORY)
        )
        silent = ScriptedModel(_no_answer, name=model_spec(wanted.model).public)
        return coag_agent(wanted.contender, parts, silent, seed=wanted.chance(setup.episode))
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


def _replayed_parts(request: CaseRequest, setup: ScenarioSetup, **further: Any) -> Parts:
    """The parts of an agent in no world: its tools are described and not run."""
    nowhere = WorldClient(_NOWHERE, ROBOT, "none")
    return vacuum_parts(request, setup, nowhere, first_reading(setup), **further)


def _no_answer(request: ScriptedRequest) -> ScriptedReply:
    raise ConfigurationError("In a replay the trace answers, and no model is asked.")


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
            f"The baseline has no state to continue from. Run the case again, or see it: {case}"
        )
    wanted = CaseRequest.model_validate(request)
    contender = wanted.contender
    if contender.remembers and episode > 1:
        raise ConfigurationError(
            f"What AutoGen's memory held when episode {episode} began is not kept, so it cannot "
            "be replayed. Replay episode 1, or read the trace."
        )
    setup = build_scenario(wanted.scenario, wanted.seed, episode=episode)
    parts = _replayed_parts(wanted, setup, recall=open_recall() if contender.remembers else None)
    return lambda client, tools, recorder: plain_agent(contender, parts, client, recorder, tools)
