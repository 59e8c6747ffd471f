"""`CoagAgent`: the deliberating agent behind AutoGen's API, and the one place of wiring."""

from ._coag_agent import SYSTEM_MESSAGE, CoagAgent
from ._component import CoagAgentConfig
from ._events import PHASE_LISTENER
from ._mind import Mind
from ._rebuild import Doubles, build_again, rebuild, staged, take_up, twin
from ._recipes import load_factory, takes_rebuild
from ._recorded import taking_up
from ._resume import Remains, read_remains
from ._settings import Deliberation, MemoryArgument
from ._stand_in import Answered, AnswerSource

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
