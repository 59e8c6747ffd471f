"""`CoagAgent`: the deliberating agent behind AutoGen's API, and the one place of wiring."""

from ._coag_agent import CoagAgent
from ._mind import Mind
from ._settings import Deliberation, MemoryArgument

__all__ = ["CoagAgent", "Mind", "Deliberation", "MemoryArgument"]
