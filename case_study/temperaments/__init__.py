"""Scripted temperaments: models that are functions, one kind of fallibility each.

A temperament reads nothing but the messages it is sent: the latest `STATE {json}` line, the
task's wording, failures that tool results report, sentences that forbid cleaning a cell, and,
from a CoAG agent's prompts, what was recalled and rejected. From these `Facts` one pure function
ranks what it wants to do. Asked for a tool call it gives the first; asked for JSON it gives the
form that was asked for. So one and the same fallible model drives both kinds of agent.

They show what the code around a model does with its faults. They say nothing about how well a
language model does; wherever a result of theirs stands, it is named `scripted`.
"""

from ._answers import answer
from ._facts import Facts
from ._intentions import CLEAN, MOVE, NOTE, RESPOND, SENSE, WORLD_ACTIONS, Intend, Intention
from ._models import SCRIPTED, TEMPERAMENTS, open_temperament
from ._reading import facts_of

__all__ = [
    "TEMPERAMENTS",
    "SCRIPTED",
    "open_temperament",
    "answer",
    "Facts",
    "facts_of",
    "Intention",
    "Intend",
    "MOVE",
    "CLEAN",
    "SENSE",
    "NOTE",
    "RESPOND",
    "WORLD_ACTIONS",
]
