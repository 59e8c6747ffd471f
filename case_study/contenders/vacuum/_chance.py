"""Acting by chance."""

from __future__ import annotations

import random
from collections.abc import Sequence

from case_study.contenders import Act
from vacuum_world.world import DIRECTIONS

MOVE, CLEAN, SENSE = "move_agent", "clean_current_cell", "sense"


def random_action(dice: random.Random, tools: Sequence[str]) -> Act:
    """Any legal call, each as likely as the others; a move in each direction is one of them.

    Args:
        dice: Chance.
        tools: Names of the tools that exist; all but `move_agent` take no arguments.
    """
    legal = [Act(action=MOVE, arguments={"direction": way}) for way in DIRECTIONS]
    legal += [Act(action=name) for name in tools if name != MOVE]
    return dice.choice(legal)
