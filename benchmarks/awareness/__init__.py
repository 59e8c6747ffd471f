"""What situational awareness costs, and how far it agrees with its paper and with people.

`python -m benchmarks.awareness` measures the cost, `python -m benchmarks.awareness.paper` computes
the paper's tables again, `python -m benchmarks.awareness.agreement` compares perceptions.
"""

from .checkpoints import installed, savers
from .steps import growth, stepping
from .talk import talked, turn, with_many

__all__ = ["growth", "installed", "savers", "stepping", "talked", "turn", "with_many"]
