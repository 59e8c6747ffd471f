"""Contenders: the agents that are compared, and how each is built from the parts of a domain.

A `Contender` is a name and its differences: whether it deliberates, what it is without, what
guards it. `Parts` are what a domain brings: tools, prompts, a structured context, constraints,
memory, and ways to act by chance, by rule and by search. `build_player(contender, parts, ...)`
gives a `Player`, which is always driven in the same way: a task first, then "Continue."
turn by turn, up to a bound of external actions; `drive` does that. Every player leaves a trace,
so that the same measures are computed for all.
"""

from .contender import (
    CONTENDERS,
    Act,
    Change,
    Contender,
    Delivery,
    Message,
    Observation,
    Parts,
    contender_named,
)
from .players import (
    NO_MODEL,
    CoagPlayer,
    Drive,
    Player,
    Turn,
    build_player,
    coag_agent,
    drive,
    plain_agent,
    used_tokens,
)

__all__ = [
    "CONTENDERS",
    "Contender",
    "contender_named",
    "Parts",
    "Act",
    "Observation",
    "Change",
    "Message",
    "Delivery",
    "Player",
    "Turn",
    "build_player",
    "used_tokens",
    "NO_MODEL",
    "drive",
    "Drive",
    "CoagPlayer",
    "coag_agent",
    "plain_agent",
]
