"""The world as a Gymnasium environment: importing this registers `coag/VacuumWorld-v0`.

`gymnasium.make("vacuum_world.gym:coag/VacuumWorld-v0", scenario="sudden-wall", seed=4)` makes one;
each scenario has an id of its own too, such as `coag/SuddenWall-v0` (`IDS`). Gymnasium is imported
here and nowhere else in this package.
"""

from ._env import VacuumWorldEnv
from ._ids import IDS, register_worlds

__all__ = ["VacuumWorldEnv", "IDS", "register_worlds"]

register_worlds()
