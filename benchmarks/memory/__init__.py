"""How well and how fast long-term memory finds what is asked for, beside what else there is.

`python -m benchmarks.memory` measures; `locomo_store` and `locomo_store_assistant` are for measures
of your own.
"""

from ._contender import Contender, Correctable, Findable, Item
from ._contenders import chosen, finders, keepers, open_keeper
from ._dialogues import Dialogue, Question, read_dialogues
from ._locomo import LocomoStore, locomo_store, locomo_store_assistant
from ._metrics import (
    Answer,
    all_at,
    interval,
    mean,
    percentile,
    recall_at,
    reciprocal_rank,
)
from ._stream import Verdict, item_of, judged, tell
from ._world import Saying, Statement, Topic, World

__all__ = [
    "LocomoStore",
    "locomo_store",
    "locomo_store_assistant",
    "Contender",
    "Correctable",
    "Findable",
    "Item",
    "chosen",
    "finders",
    "keepers",
    "open_keeper",
    "Dialogue",
    "Question",
    "read_dialogues",
    "Answer",
    "all_at",
    "interval",
    "mean",
    "percentile",
    "recall_at",
    "reciprocal_rank",
    "Verdict",
    "item_of",
    "judged",
    "tell",
    "Saying",
    "Statement",
    "Topic",
    "World",
]
