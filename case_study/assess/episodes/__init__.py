"""Sequences of episodes in one world, with a memory that lasts and with one that is emptied."""

from ._arms import ARMS, Arm, arm_named, arms_of
from ._measures import EPISODE_MEASURES, in_episode, is_of_episode
from ._sequences import DOMAIN, EPISODES_USUAL, SequenceTrials

__all__ = [
    "DOMAIN",
    "SequenceTrials",
    "EPISODES_USUAL",
    "ARMS",
    "Arm",
    "arm_named",
    "arms_of",
    "EPISODE_MEASURES",
    "in_episode",
    "is_of_episode",
]
