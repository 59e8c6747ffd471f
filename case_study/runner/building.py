"""The contenders of an episode: their parts, from scratch or by the recipe of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench
from pydantic import ValidationError

from case_study.baseline import PlainAgent, open_recall
from case_study.contenders import (
    Change,
    CoagPlayer,
    Parts,
    Player,
    build_player,
    coag_agent,
    plain_agent,
    used_tokens,
)
from case_study.policies import Oracle, RuleRobot, random_action
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

from .folder import NAME, Remembering, remembering
from .request import CaseRequest, model_spec, sampled_by
from .worlds import PATIENCE, ROBOT, Opening, World, open_world

_NOWHERE = "http://127.0.0.1:9"
"""An address at which no world is served."""

world_at_hand: ContextVar[World | None] = ContextVar("world_at_hand", default=None)
"""The world that the runner has opened; a recipe names no token and opens no world itself."""


@dataclass(frozen=True, slots=True)
class OpenEpisode:
    """An episode that can be played: its world is open."""

    request: CaseRequest
    setup: ScenarioSetup
    world: World
    case: Path
    """The case's folder."""
    shared: Remembering

    @property
    def chance(self) -> int:
        """What is drawn by chance is drawn by this."""
        return self.request.chance(self.setup.episode)

    async def changes_due(self) -> tuple[Change, ...]:
        """The changes of requirements that have come by now."""
        after = self.setup.facts.forbidden_after
        due = after is not None and (await self.world.state()).counters.actions >= after
        return changes_of(self.setup) if due else ()

    def model(self) -> ChatCompletionClient:
        """The model, closed with the world; in a sequence its sampling is drawn by the episode."""
        model = model_spec(self.request.model, self.chance).open()
        if self.request.between is not None:
            model = sampled_by(model, self.chance)
        self.world.guests.push_async_callback(model.close)
        return model

    async def parts(self, environment: Environment | None = None) -> Parts:
        """The parts of its contender, whose robot joins the world."""
        client, request = await self.world.join(), self.request
        return vacuum_parts(
            request,
            self.setup,
            client,
            await client.sense(),
            oracle_action=Oracle(self.setup, self.world.state, ROBOT).act,
            memory=self.shared.memory,
            procedures={**procedures(), **self.shared.procedures},
            recall=self.shared.recall,
            recipe=recipe_of(self.case, self.setup.episode, request),
            environment=environment,
            configuration={"scenario": request.scenario, "episode": self.setup.episode},
            tool_timeout=60.0 if self.world.showing is None else PATIENCE,
        )


class WorldEnvironment:
    """Saves and restores the whole world, without its log."""

    def __init__(self, episode: OpenEpisode, opened: AsyncExitStack | None = None) -> None:
        self._episode = episode
        self._opened = opened or AsyncExitStack()
        self.is_copy = opened is not None

    async def snapshot(self) -> Any:
        """The whole world now, hidden things included, but not its log.

        With it traces would grow quadratically.
        """
        return (await self._episode.world.state()).model_dump(mode="json", exclude={"log"})

    async def restore(self, state: Any) -> None:
        """Puts the world into a state; the robot's token stays in force.

        Raises:
            ConfigurationError: It is no state of a world, or the world cannot be reached.
        """
        try:
            await self._episode.world.restore(WorldState.model_validate(state))
        except (ValidationError, WorldError) as error:
            raise ConfigurationError(f"The world cannot be put back: {error}") from error

    async def close(self) -> None:
        """Lets go of the world if it was opened for this."""
        await self._opened.aclose()

    def describe(self, state: Any) -> str:
        """Where the robot is, what charge it has, and what is dirty."""
        world = WorldState.model_validate(state)
        dirt = f"dirty: {', '.join(map(str, world.dirty))}" if world.dirty else "no cell is dirty"
        robot = next((robot for robot in world.robots if robot.name == ROBOT), None)
        if robot is None:
            return f"The robot has not joined; {dirt}."
        how = "stranded at" if robot.stranded else "at"
        return f"The robot is {how} {robot.position}, battery {robot.battery}; {dirt}."

    async def before_turn(self, agent: CoagAgent) -> None:
        """Gives the agent the change of requirements where it is due, as the runner does."""
        for change in await self._episode.changes_due():
            await CoagPlayer(agent, self._episode.request.delivered_by).change(change)


def changes_of(setup: ScenarioSetup) -> tuple[Change, ...]:
    """The changes of requirements that will come: that of `evolution`."""
    cell = setup.facts.forbidden
    if cell is None:
        return ()
    return (Change(sentence=change_sentence(cell), constraint=ForbidCleaning(cell)),)


def first_reading(setup: ScenarioSetup) -> Reading:
    """What the robot senses when it joins the world as it is set up."""
    joined = join(setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


def vacuum_parts(
    request: CaseRequest,
    setup: ScenarioSetup,
    client: WorldClient,
    reading: Reading,
    **further: Any,
) -> Parts:
    """The parts of an episode.

    What a CoAG robot is to clean is given as cells but where the task forbids some of them: then it
    is the model that has to read it.
    Scripted minds read readings; language models get the state in words alone.
    """
    further.setdefault("procedures", procedures())
    contender, facts = request.contender, setup.facts
    rules = {**CONSTRAINTS, **(CONDUCT if contender.conduct else {})}
    tools = world_tools(client, manuals(setup.world))
    scripted = reads_states(request.model)
    return Parts(
        name=NAME,
        task=task_text(setup, first_reading(setup)),
        tools=tools,
        system_prompt=prompt("robot"),
        utility_prompt=prompt("utility"),
        context=lambda: VacuumContext(
            reading=reading,
            work=None if facts.off_limits else facts.dirty,
            patrol=facts.horizon is not None,
            valued=contender.valued,
            readings=scripted,
            rendering=request.rendering if contender.depth == "full" else "isolated",
        ),
        random_action=lambda dice: random_action(dice, [tool.name for tool in tools]),
        rule_action=RuleRobot(facts, reading).act,
        awareness=vacuum_awareness,
        constraints=[r for name, r in rules.items() if name not in request.without_constraints],
        recalled=0 if request.without_memory else 5,
        changes=changes_of(setup),
        enforces_schemas=not scripted,
        **further,
    )


def recipe_of(case: Path, episode: int, request: CaseRequest) -> Recipe:
    """How to build the agent again; no token is in it."""
    contender = request.contender
    model = model_spec(request.model).public if contender.asks_model else request.model
    factory = "build_agent" if contender.kind == "coag" else "build_plain_agent"
    return Recipe(
        factory=f"case_study.runner:{factory}",
        arguments={
            "case": str(case.resolve()),
            "episode": episode,
            "request": {**request.model_dump(mode="json"), "model": model},
        },
    )


# ---- players ----


async def open_player(episode: OpenEpisode) -> Player:
    """The contender of an episode, its robot in the world."""
    request, world = episode.request, episode.world
    contender = request.contender
    if contender.kind == "coag":
        agent, model = await _coag(episode)
        return CoagPlayer(agent, request.delivered_by, lambda: used_tokens(model), world.watch())
    parts = await episode.parts()
    model = episode.model() if contender.asks_model else None
    return build_player(
        contender, parts, model, episode.case, episode.chance, model_name=request.model_shown
    )


async def resumed_player(request: CaseRequest, run: Path, world: World) -> Player:
    """The CoAG agent of an interrupted run, as it was then."""
    agent = await CoagAgent.resume(run)
    return CoagPlayer(agent, request.delivered_by, on_event=world.watch())


async def _coag(
    episode: OpenEpisode, opened: AsyncExitStack | None = None
) -> tuple[CoagAgent, ChatCompletionClient]:
    """The CoAG agent of an episode, and its model; `opened` is what its environment closes.

    Rules that came into force before a crash are in force from the beginning.
    """
    request = episode.request
    environment = WorldEnvironment(episode, opened)
    episode.world.guests.push_async_callback(environment.close)
    parts = await episode.parts(environment)
    model = episode.model()
    later = await episode.changes_due() if request.delivered_by == "constraint" else ()
    rules = [*parts.constraints, *(change.constraint for change in later)]
    agent = coag_agent(
        request.contender, parts, model, logs=episode.case, seed=episode.chance, rules=rules
    )
    return agent, model


# ---- what recipes name ----


async def build_agent(
    *, case: str, episode: int, request: Mapping[str, Any], rebuild: Rebuild | None = None
) -> CoagAgent:
    """The CoAG agent of a run, in the world at hand: what the recipe in `run.json` names.

    A fork gets a world of its own, to be put into the state that the run's had; a replay none,
    and no model.

    Raises:
        ConfigurationError: No world is at hand; `case-study run --resume CASE` opens it.
    """
    purpose, model = (rebuild.purpose, rebuild.model) if rebuild else ("resume", None)
    earlier = {"rendering": "growing", **request}  # so it was where recipes do not say
    asked = {**earlier, "model": model} if model and purpose == "fork" else earlier
    wanted, folder = CaseRequest.model_validate(asked), Path(case)
    setup = build_scenario(wanted.scenario, wanted.seed, episode=episode)
    if purpose == "replay":
        recipe = recipe_of(folder, episode, wanted)
        parts = _replayed_parts(wanted, setup, recipe=recipe)
        silent = ScriptedModel(_no_answer, name=model_spec(wanted.model).public)
        return coag_agent(wanted.contender, parts, silent, seed=wanted.chance(episode))
    if purpose == "fork":
        if model is None and model_spec(wanted.model).scheme == "file":
            # A component file names code, and this run may be a stranger's.
            raise ConfigurationError(
                f"The run's model is the component file {wanted.model!r}, which is not loaded "
                f"unasked: add --model {wanted.model} if you trust it."
            )
        return await _forked(folder, setup, wanted)
    world = world_at_hand.get()
    if world is None:
        raise ConfigurationError(
            f"The run's world is not open. Resume the whole case: case-study run --resume {case}"
        )
    shared = remembering(wanted, folder, world.guests, episode)
    agent, _ = await _coag(OpenEpisode(wanted, setup, world, folder, shared))
    return agent


async def _forked(case: Path, setup: ScenarioSetup, request: CaseRequest) -> CoagAgent:
    """The CoAG agent of an episode in a world of its own, which its environment closes."""
    opened = AsyncExitStack()
    async with AsyncExitStack() as failing:
        failing.push_async_callback(opened.aclose)
        how = Opening(local=request.place == "local")
        world = await opened.enter_async_context(open_world(setup.world, how))
        shared = remembering(request, case, opened, setup.episode)
        agent, _ = await _coag(OpenEpisode(request, setup, world, case, shared), opened)
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
