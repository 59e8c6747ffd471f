"""The loop that drives every player in the same way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from case_study.tasks import CONTINUE

from ._parts import Message
from ._player import Player, Turn

IDLE_TURNS = 2
"""Turns in a row without an action, nor the attempt at one, after which a player has finished."""
REFUSED_TURNS = 6
"""Refused turns in a row after which it is at its end: as many impasses as end a CoAG agent's."""


async def _silence(actions: int) -> Sequence[Message]:
    """Nobody says anything."""
    del actions
    return ()


def _unseen(turn: Turn, actions: int) -> bool:
    """Nobody looks, and nothing ends it."""
    del turn, actions
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """How an episode is driven."""

    bound: int
    """External actions that it may have."""
    done: int = 0
    """Those that were taken before, where a broken run is gone on with."""
    token_budget: int | None = None
    """Tokens after which it ends; None for the bound alone."""
    before_turn: Callable[[int], Awaitable[Sequence[Message]]] = _silence
    """Called before each turn with the number of actions so far; gives what others say now."""
    after_turn: Callable[[Turn, int], bool] = _unseen
    """Called after each turn with the number of actions so far; True ends the episode."""


async def drive(player: Player, task: str, how: Drive) -> int:
    """Drives a player until a bound, its last word, or what `after_turn` says.

    Returns:
        How many external actions were taken, those before included.
    """
    actions, idle, refused = how.done, 0, 0
    while actions < how.bound and idle < IDLE_TURNS and refused < REFUSED_TURNS:
        if how.token_budget is not None and player.tokens >= how.token_budget:
            break
        messages = await how.before_turn(actions)
        text = CONTINUE if player.turns else task
        turn = await player.say(text, messages, allowance=how.bound - actions)
        actions += len(turn.results)
        refused = refused + 1 if turn.refused and not turn.results else 0
        idle = 0 if turn.results or turn.refused else idle + 1
        if how.after_turn(turn, actions):
            break
    return actions
