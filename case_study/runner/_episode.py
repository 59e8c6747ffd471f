"""One episode: the loop that drives either kind of agent in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from case_study.tasks import CONTINUE, task_text
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import Reading, last_state_line

from ._environment import change_is_due
from ._players import Player
from ._worlds import World

IDLE_TURNS = 2
"""Turns in a row without an action after which an agent has finished."""
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
    reading: Reading
    """What the robot's sensors said when the episode began."""
    bound: int
    """External actions that it may take."""
    actions: int = 0
    """Those that it took, before a crash too."""

    async def play(self, player: Player, world: World, on_progress: OnProgress) -> None:
        """Drives the agent until a bound, two idle turns, or until it knows it is stranded."""
        idle = stranded = 0
        while self.actions < self.bound and idle < IDLE_TURNS and stranded < STRANDED_TURNS:
            await self._change(player, world)
            text = CONTINUE if player.turns else task_text(self.setup, self.reading)
            results = await player.say(text)
            self.actions += len(results)
            idle = 0 if results else idle + 1
            stranded += any(_is_stranded(result) for result in results)
            progress = Progress(episode=self.setup.episode, actions=self.actions, bound=self.bound)
            on_progress(progress)

    async def _change(self, player: Player, world: World) -> None:
        cell = self.setup.facts.forbidden
        if cell is not None and await change_is_due(self.setup, world):
            await player.change(cell)


def _is_stranded(result: str) -> bool:
    reading = last_state_line(result)
    return reading is not None and reading.stranded
