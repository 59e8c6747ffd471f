"""The paper's four-turn scenarios and its tables 3, 5 and 12, made again.

`CONVERSATION` and `CODING` are what each turn says, in the schemas of the adapters; what the
tables count is read off the states that engine and adapters make of them. `python -m
coag.awareness.paper` prints the tables beside the paper's numbers, and exits with 1 where one
differs.
"""

from ._printed import TABLE_3, TABLE_5, TABLE_12
from ._runs import checkpointed, states_of
from ._scenarios import CODING, CONVERSATION, CONVERSATION_RESTORED
from ._tables import Table, coding_table, conversation_table, restored_table, tables
from ._writing import report

__all__ = [
    "CONVERSATION",
    "CONVERSATION_RESTORED",
    "CODING",
    "states_of",
    "checkpointed",
    "Table",
    "TABLE_3",
    "TABLE_5",
    "TABLE_12",
    "coding_table",
    "conversation_table",
    "restored_table",
    "tables",
    "report",
]
