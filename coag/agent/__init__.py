"""`CoagAgent`: the deliberating agent behind AutoGen's API, and the one place of wiring."""

from .agent import SYSTEM_MESSAGE, CoagAgent
from .events import PHASE_LISTENER
from .mind import Mind
from .rebuild import Answered, AnswerSource, Doubles, build_again, rebuild, staged, take_up, twin
from .recipes import load_factory, takes_rebuild
from .resume import Remains, read_remains, taking_up
from .serialize import CoagAgentConfig
from .settings import Deliberation, MemoryArgument

__all__ = [
    "CoagAgent",
    "CoagAgentConfig",
    "PHASE_LISTENER",
    "SYSTEM_MESSAGE",
    "Mind",
    "build_again",
    "load_factory",
    "takes_rebuild",
    "rebuild",
    "twin",
    "staged",
    "Doubles",
    "AnswerSource",
    "Answered",
    "take_up",
    "Remains",
    "taking_up",
    "read_remains",
    "Deliberation",
    "MemoryArgument",
]
