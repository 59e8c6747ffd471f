"""A case from its first episode to its result, and on from where it was broken off."""

from __future__ import annotations

from typing import Any

from case_study.measures import (
    CaseResult,
    EpisodeRecord,
    belief_error,
    figures_of,
    result_of,
)
from case_study.temperaments import WORLD_ACTIONS
from coag.agent import CoagAgent
from coag.errors import ConfigurationError
from coag.schema import Intent, SystemClock, TraceRecord
from coag.tracing import RunFolder, read_run, read_trace
from vacuum_world.scenarios import ScenarioSetup, build_scenario, measure
from vacuum_world.world import Cell, WorldState

from ._build import coag_agent, first_reading, plain_agent, world_at_hand
from ._episode import EpisodePlay, OnProgress, Progress
from ._folder import CaseFolder
from ._players import CoagPlayer, PlainPlayer, Player
from ._request import CaseRequest, model_spec
from ._showing import Showing
from ._worlds import World, open_world


def _unheard(progress: Progress) -> None:
    """Nobody listens."""


async def run_case(
    folder: CaseFolder,
    on_progress: OnProgress = _unheard,
    showing: Showing | None = None,
) -> CaseResult:
    """Plays what is left of a case and gives its result; a finished one is not played again.

    A CoAG agent whose run was broken off goes on where it stood. A plain agent has no state to
    go on from: its episode begins anew, in a fresh world, and the broken run stays to be read.

    Raises:
        CoagError: The model, the log or the memory failed; the case can be resumed.
        WorldError: The world failed; the case can be resumed.
    """
    request = folder.request()
    records: list[EpisodeRecord] = []
    for number in range(1, request.episode_count + 1):
        record = folder.episode(number)
        if record is None:
            wall = records[0].truth.wall if records else None
            record = await _episode(folder, request, number, wall, on_progress, showing)
            folder.keep_episode(record)
        records.append(record)
    result = result_of(
        request.scenario,
        records,
        agent=request.agent,
        model=model_spec(request.model).public,
        seed=request.seed,
        run=str(folder.path),
        measures=_variant(request),
    )
    folder.keep_result(result)
    return result


def _variant(request: CaseRequest) -> dict[str, object]:
    """In which way a CoAG agent was run, where that makes a difference."""
    if request.agent != "coag":
        return {}
    variant: dict[str, object] = {"depth": request.depth}
    if request.scenario == "evolution":
        variant["delivery"] = request.delivery
    if request.without_constraints:
        variant["without_constraints"] = list(request.without_constraints)
    if request.without_memory:
        variant["without_memory"] = True
    return variant


async def _episode(
    folder: CaseFolder,
    request: CaseRequest,
    number: int,
    wall: Cell | None,
    on_progress: OnProgress,
    showing: Showing | None,
) -> EpisodeRecord:
    """Plays an episode, or what is left of it, and measures it."""
    setup = build_scenario(request.scenario, request.seed, episode=number, wall=wall)
    begun = folder.run_of(number)
    goes_on = begun is not None and request.agent == "coag"
    play = EpisodePlay(
        setup=setup,
        reading=first_reading(setup),
        bound=request.max_actions or setup.max_actions,
        actions=_actions_of(begun) if goes_on and begun is not None else 0,
    )
    async with open_world(
        setup.world,
        url=request.world,
        kept=folder.world(number),
        fresh=not goes_on,
        showing=showing,
    ) as world:
        token = world_at_hand.set(world)
        try:
            player = await _player(folder, request, number, world)
            try:
                await play.play(player, world, on_progress)
            finally:
                await player.close()
            record = _measured(player.folder, setup, request, await world.state())
            _note(player.folder, record.found(request.scenario))
            return record
        finally:
            world_at_hand.reset(token)


async def _player(folder: CaseFolder, request: CaseRequest, number: int, world: World) -> Player:
    """The agent, new or as it was when its run was broken off."""
    if request.agent != "coag":
        return PlainPlayer(await plain_agent(folder.path, number, request, world))
    begun = folder.run_of(number)
    if begun is None:
        agent = await coag_agent(folder.path, number, request, world)
    else:
        agent = await CoagAgent.resume(begun.path)
    return CoagPlayer(agent, request.delivery, world.watcher())


def _actions_of(run: RunFolder) -> int:
    return sum(isinstance(record, Intent) for record in _records(run))


def _records(run: RunFolder) -> list[TraceRecord]:
    return [entry.body for entry in read_trace(run.trace_path, lambda problem: None)]


def _note(run: RunFolder | None, found: dict[str, Any]) -> None:
    """Notes in `run.json` what an ended run came to; the rest of it stays as it is."""
    if run is not None:
        ended = read_run(run.path).ended_at
        run.finish(at=ended or SystemClock().now(), result=found)


def _measured(
    run: RunFolder | None, setup: ScenarioSetup, request: CaseRequest, world: WorldState
) -> EpisodeRecord:
    if run is None:
        raise ConfigurationError("Nothing was played: the episode's bound leaves no turn.")
    records = _records(run)
    error = belief_error(records, world, setup.facts.battery)
    return EpisodeRecord(
        episode=setup.episode,
        run=run.path.name,
        max_actions=request.max_actions or setup.max_actions,
        truth=measure(setup, world),
        figures=figures_of(records, WORLD_ACTIONS, error),
    )
