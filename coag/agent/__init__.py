"""`CoagAgent`: the deliberating agent behind AutoGen's API, and the one place of wiring."""

from ._coag_agent import SYSTEM_MESSAGE, CoagAgent
from ._component import CoagAgentConfig
from ._mind import Mind
from ._settings import Deliberation, MemoryArgument
from ._talking import Remark, talk

__all__ = [
    "CoagAgent",
    "CoagAgentConfig",
    "SYSTEM_MESSAGE",
    "Mind",
    "Deliberation",
    "MemoryArgument",
    "talk",
    "Remark",
]
