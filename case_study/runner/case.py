"""A case from its first episode to its result, and on from where it was broken off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from case_study.contenders import CoagPlayer, Drive, Message, Player, Turn, drive
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
from coag.schema import Intent, SystemClock, TraceRecord
from coag.tracing import RunFolder, read_run, read_trace
from vacuum_world.scenarios import ScenarioSetup, build_scenario, measure
from vacuum_world.world import Cell, WorldState, last_state_line

from .building import (
    change_is_due,
    first_reading,
    forbidding,
    open_player,
    resumed_player,
    world_at_hand,
)
from .folder import CaseFolder
from .memory import Remembering, laid_out, needed_memory, remembering
from .request import CaseRequest
from .showing import Showing
from .worlds import Opening, World, open_world

STRANDED_TURNS = 2
"""Times that an agent perceives that it is stranded before its episode ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an episode is."""

    episode: int
    actions: int
    bound: int


OnProgress = Callable[[Progress], None]


@dataclass(slots=True, kw_only=True)
class EpisodePlay:
    """An episode on its way."""

    setup: ScenarioSetup
    task: str
    """What the agent is asked to do."""
    bound: int
    """External actions that it may take."""
    actions: int = 0
    """Those that it took, before a crash too."""
    token_budget: int | None = None
    """Tokens after which it ends."""
    stranded: int = 0
    """How often the agent has perceived that it is stranded."""
    spoken: bool = False
    """Whether the message of another agent was delivered."""

    async def play(self, player: Player, world: World, on_progress: OnProgress) -> None:
        """Drives the agent until a bound, two idle turns, or until it knows it is stranded."""
        due = self.setup.facts.message
        self.spoken = due is not None and self.actions > due.after

        async def before_turn(actions: int) -> Sequence[Message]:
            await self._change(player, world)
            return self._messages(actions)

        def after_turn(turn: Turn, actions: int) -> bool:
            self.actions = actions
            self.stranded += any(_is_stranded(result) for result in turn.results)
            progress = Progress(episode=self.setup.episode, actions=actions, bound=self.bound)
            on_progress(progress)
            return self.stranded >= STRANDED_TURNS

        how = Drive(
            bound=self.bound,
            done=self.actions,
            token_budget=self.token_budget,
            before_turn=before_turn,
            after_turn=after_turn,
        )
        await drive(player, self.task, how)

    async def _change(self, player: Player, world: World) -> None:
        cell = self.setup.facts.forbidden
        if cell is not None and await change_is_due(self.setup, world):
            await player.change(forbidding(cell))

    def _messages(self, actions: int) -> Sequence[Message]:
        """What another agent says now, once."""
        due = self.setup.facts.message
        if due is None or self.spoken or actions < due.after:
            return ()
        self.spoken = True
        return (Message(source=due.sender, text=message_text(self.setup)),)


def _is_stranded(result: str) -> bool:
    reading = last_state_line(result)
    return reading is not None and reading.stranded


def _unheard(progress: Progress) -> None:
    """Nobody listens."""


async def run_case(
    folder: CaseFolder,
    on_progress: OnProgress = _unheard,
    showing: Showing | None = None,
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

    A CoAG agent whose run was broken off goes on where it stood. A plain agent has no state to
    go on from: its episode begins anew, in a fresh world, and the broken run stays to be read.
    Nor can a case be gone on with whose world was in a process that has ended.

    Args:
        request: What is asked for.
        folder: The case's folder, made for this request.
        on_progress: Told how far it is, turn by turn.
        showing: How it is shown to people; None where nobody looks.

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
                wall = records[0].truth.wall if records else None
                record = await _episode(case, number, wall)
                folder.keep_episode(record)
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
    folder.keep_result(result)
    return result


def _variant(request: CaseRequest) -> dict[str, object]:
    """In which way a CoAG agent was run, where that makes a difference."""
    contender = request.contender
    if contender.kind != "coag":
        return {}
    variant: dict[str, object] = {"depth": contender.depth}
    if request.scenario == "evolution":
        variant["delivery"] = request.told_by
    if request.without_constraints:
        variant["without_constraints"] = list(request.without_constraints)
    if request.without_memory:
        variant["without_memory"] = True
    if request.between is not None:
        variant["between"] = request.between
    return variant


@dataclass(frozen=True, slots=True)
class _Case:
    """A case on its way."""

    request: CaseRequest
    folder: CaseFolder
    shared: Remembering | None
    """What all episodes share; None in a sequence, where each has a memory of its own."""
    on_progress: OnProgress
    showing: Showing | None

    def opening(self, number: int, fresh: bool) -> Opening:
        """Where and how the world of an episode is opened."""
        return Opening(
            local=self.request.place == "local",
            url=self.request.world,
            kept=self.folder.world(number),
            fresh=fresh,
            showing=self.showing,
        )

    def remembered(self, number: int, leaving: AsyncExitStack, *, goes_on: bool) -> Remembering:
        """What an episode begins with."""
        if self.shared is not None:
            return self.shared
        if goes_on:
            needed_memory(self.folder.path, number)
        else:
            laid_out(self.request, self.folder.path, number)
        return remembering(self.request, self.folder.path, leaving, number)

    def goes_on(self, begun: RunFolder | None) -> bool:
        """Whether an episode goes on in a run that was broken off, and does not begin anew.

        Raises:
            ConfigurationError: Its world went with a process that has ended.
        """
        request = self.request
        if begun is None or request.contender.kind != "coag":
            return False
        if not request.resumes:
            raise ConfigurationError(
                f"{self.folder.path} was played in a process that has ended, with its world: play "
                "it anew."
            )
        return request.place == "served"


async def _episode(case: _Case, number: int, wall: Cell | None) -> EpisodeRecord:
    """Plays an episode, or what is left of it, and measures it."""
    request, folder = case.request, case.folder
    setup = build_scenario(request.scenario, request.seed, episode=number, wall=wall)
    begun = folder.run_of(number)
    goes_on = case.goes_on(begun)
    budget = request.token_budget
    play = EpisodePlay(
        setup=setup,
        task=task_text(setup, first_reading(setup)),
        bound=request.max_actions or setup.max_actions,
        actions=_actions_of(begun) if goes_on and begun is not None else 0,
        token_budget=None if budget is None else budget // request.episode_count,
    )
    async with (
        AsyncExitStack() as leaving,
        open_world(setup.world, case.opening(number, not goes_on)) as world,
    ):
        shared = case.remembered(number, leaving, goes_on=goes_on)
        token = world_at_hand.set(world)
        try:
            player = await _player(case, setup, world, shared, begun if goes_on else None)
            try:
                await play.play(player, world, case.on_progress)
                if isinstance(player, CoagPlayer):
                    shared.keep_procedures(player.agent)
            finally:
                await player.close()
            end = await world.state()
        finally:
            world_at_hand.reset(token)
    record = _measured(player.folder, setup, play.bound, end)
    _note(player.folder, record.found(request.scenario))
    if request.world is None:
        folder.keep_world(number, end)
    return record


async def _player(
    case: _Case,
    setup: ScenarioSetup,
    world: World,
    shared: Remembering,
    begun: RunFolder | None,
) -> Player:
    """The agent, new or as it was when its run was broken off."""
    if begun is not None:
        return await resumed_player(case.request, begun.path, world)
    return await open_player(case.request, setup, world, case.folder.path, shared)


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
    run: RunFolder | None, setup: ScenarioSetup, bound: int, world: WorldState
) -> EpisodeRecord:
    if run is None:
        raise ConfigurationError("Nothing was played: the episode's bound leaves no turn.")
    records = _records(run)
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
