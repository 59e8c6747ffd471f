"""One episode: the loop that drives either kind of agent in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from case_study.contenders import Drive, Message, Player, Turn, drive
from case_study.tasks import message_text
from vacuum_world.scenarios import ScenarioSetup
from vacuum_world.world import last_state_line

from ._environment import change_is_due, forbidding
from ._worlds import World

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
