"""A case from its first episode to its result, also continued after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from case_study.contenders import CoagPlayer, Drive, Message, Player, Turn, drive
from case_study.grid import is_stranded
from case_study.measures import (
    CaseResult,
    EpisodeRecord,
    belief_error_of,
    result_of,
    tally_of,
    vacuum_episode,
)
from case_study.tasks import message_text, task_text
from case_study.temperaments import WORLD_ACTIONS
from coag.errors import ConfigurationError
from coag.evals import figures_of
from coag.schema import Intent, SystemClock
from coag.tracing import RunFolder, read_run
from vacuum_world.scenarios import ScenarioSetup, build_scenario, measure
from vacuum_world.world import Cell, WorldState

from .building import OpenEpisode, first_reading, open_player, resumed_player, world_at_hand
from .folder import CaseFolder, Remembering, lay_out, needed_memory, records_of, remembering
from .request import CaseRequest
from .worlds import Opening, Showing, open_world

STRANDED_TURNS = 2
"""Times that an agent perceives that it is stranded before its episode ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an episode is."""

    episode: int
    actions: int
    bound: int


OnProgress = Callable[[Progress], None]


def _unheard(progress: Progress) -> None:
    """Nobody listens."""


async def run_case(
    folder: CaseFolder, on_progress: OnProgress = _unheard, showing: Showing | None = None
) -> CaseResult:
    """As `play_case`, with the request that the case's folder holds."""
    return await play_case(folder.request(), folder, on_progress, showing)


async def play_case(
    request: CaseRequest,
    folder: CaseFolder,
    on_progress: OnProgress = _unheard,
    showing: Showing | None = None,
) -> CaseResult:
    """Plays what is left of a case and gives its result; a finished one is not played again.

    An interrupted run of a CoAG agent continues where it stopped. A plain agent has no state to
    continue from: its episode restarts in a fresh world, and the interrupted run is kept.
    A case whose world was in a process that has ended cannot be continued.

    Raises:
        CoagError: The model, the log or the memory failed; the case can be resumed.
        WorldError: The world failed; the case can be resumed.
    """
    records: list[EpisodeRecord] = []
    async with AsyncExitStack() as closing:
        shared = None if request.between else remembering(request, folder.path, closing, 1)
        case = _Case(request, folder, shared, on_progress, showing)
        for number in range(1, request.episode_count + 1):
            record = folder.episode(number)
            if record is None:
                record = await case.episode(number, records[0].truth.wall if records else None)
                folder.keep(f"episode-{number}.json", record)
            records.append(record)
    result = result_of(
        request.scenario,
        records,
        agent=request.agent,
        model=request.model_shown,
        seed=request.seed,
        run=str(folder.path),
        measures=_variant(request),
    )
    folder.keep("result.json", result)
    return result


def _variant(request: CaseRequest) -> dict[str, object]:
    """The settings of a CoAG agent's run that differ from the usual."""
    if request.contender.kind != "coag":
        return {}
    variant: dict[str, object] = {
        "depth": request.contender.depth,
        "delivery": request.delivered_by if request.scenario == "evolution" else None,
        "without_constraints": list(request.without_constraints),
        "without_memory": request.without_memory,
        "between": request.between,
    }
    return {name: value for name, value in variant.items() if value}


@dataclass(frozen=True, slots=True)
class _Case:
    request: CaseRequest
    folder: CaseFolder
    shared: Remembering | None
    """What all episodes share; None in a sequence, where each has a memory of its own."""
    on_progress: OnProgress
    showing: Showing | None

    async def episode(self, number: int, wall: Cell | None) -> EpisodeRecord:
        request, folder = self.request, self.folder
        setup = build_scenario(request.scenario, request.seed, episode=number, wall=wall)
        bound = request.max_actions or setup.max_actions
        begun = self._interrupted(number)
        opening = Opening(
            local=request.place == "local",
            url=request.world,
            kept=folder.world(number),
            fresh=begun is None,
            showing=self.showing,
        )
        async with AsyncExitStack() as leaving, open_world(setup.world, opening) as world:
            shared = self._remembered(number, leaving, continues=begun is not None)
            episode = OpenEpisode(request, setup, world, folder.path, shared)
            token = world_at_hand.set(world)
            try:
                if begun is not None:
                    player = await resumed_player(request, begun.path, world)
                else:
                    player = await open_player(episode)
                try:
                    await self._play(player, episode, bound, begun)
                    if isinstance(player, CoagPlayer):
                        shared.keep_procedures(player.agent)
                finally:
                    await player.close()
                end = await world.state()
            finally:
                world_at_hand.reset(token)
        if player.folder is None:
            raise ConfigurationError("Nothing was played: the episode's bound leaves no turn.")
        record = _measured(player.folder, setup, bound, end)
        ended = read_run(player.folder.path).ended_at
        player.folder.finish(at=ended or SystemClock().now(), result=record.found(request.scenario))
        if request.world is None:
            folder.keep(folder.world(number).name, end)
        return record

    def _interrupted(self, number: int) -> RunFolder | None:
        """The run that an episode continues; None where it starts again.

        Raises:
            ConfigurationError: Its world was in a process that has ended.
        """
        begun = self.folder.run_of(number)
        if begun is None or self.request.contender.kind != "coag":
            return None
        if not self.request.resumes:
            raise ConfigurationError(
                f"{self.folder.path} was played in a process that has ended, with its world: play "
                "it again."
            )
        return begun if self.request.place == "served" else None

    def _remembered(self, number: int, leaving: AsyncExitStack, *, continues: bool) -> Remembering:
        """What an episode begins with."""
        if self.shared is not None:
            return self.shared
        if continues:
            needed_memory(self.folder.path, number, filled=False)
        else:
            lay_out(self.request, self.folder.path, number)
        return remembering(self.request, self.folder.path, leaving, number)

    async def _play(
        self, player: Player, episode: OpenEpisode, bound: int, begun: RunFolder | None
    ) -> None:
        """Drives the agent until a bound, two idle turns, or until it knows it is stranded."""
        setup = episode.setup
        budget, due = self.request.token_budget, setup.facts.message
        before = [one for one in records_of(begun) if isinstance(one, Intent)] if begun else []
        spoken = due is not None and len(before) > due.after
        stranded = 0

        async def before_turn(actions: int) -> Sequence[Message]:
            nonlocal spoken
            for change in await episode.changes_due():
                await player.change(change)
            if due is None or spoken or actions < due.after:
                return ()
            spoken = True
            return (Message(source=due.sender, text=message_text(setup)),)

        def after_turn(turn: Turn, actions: int) -> bool:
            nonlocal stranded
            stranded += any(map(is_stranded, turn.results))
            self.on_progress(Progress(episode=setup.episode, actions=actions, bound=bound))
            return stranded >= STRANDED_TURNS

        how = Drive(
            bound=bound,
            done=len(before),
            token_budget=None if budget is None else budget // self.request.episode_count,
            before_turn=before_turn,
            after_turn=after_turn,
        )
        await drive(player, task_text(setup, first_reading(setup)), how)


def _measured(run: RunFolder, setup: ScenarioSetup, bound: int, world: WorldState) -> EpisodeRecord:
    records = records_of(run)
    gadgets = [gadget.name for gadget in setup.world.gadgets]
    error = belief_error_of(records, world, setup.facts.battery)
    record = EpisodeRecord(
        episode=setup.episode,
        run=run.path.name,
        max_actions=bound,
        truth=measure(setup, world),
        figures=figures_of(records, (*WORLD_ACTIONS, *gadgets), error),
    )
    success = record.succeeded(setup.name)
    played = vacuum_episode(records, setup, world, success=success, bound=bound)
    return record.model_copy(update={"tally": tally_of(played)})
