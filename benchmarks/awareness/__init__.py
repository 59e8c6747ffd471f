"""What situational awareness costs; `python -m benchmarks.awareness` measures it."""

from ._langgraph import installed, savers
from ._steps import growth, stepping
from ._talk import talked, turn, with_many

__all__ = ["growth", "installed", "savers", "stepping", "talked", "turn", "with_many"]
