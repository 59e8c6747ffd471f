"""The vacuum robot by chance, by rule and by search.

`random_action` is any legal call. `RuleRobot` is a hand-written program that knows what the task
tells (`told_of`) and what its sensors say. `Oracle` sees the whole world and plans by search.
"""

from ._chance import random_action
from ._oracle import Oracle
from ._rules import RuleRobot
from ._told import Told, told_of

__all__ = ["random_action", "RuleRobot", "Oracle", "Told", "told_of"]
