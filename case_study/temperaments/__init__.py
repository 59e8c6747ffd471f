"""Scripted temperaments: models that are functions, one kind of fallibility each.

A temperament reads nothing but the messages it is sent: the `STATE {json}` lines, the task's
wording, what tool results report, sentences that forbid cleaning a cell, words of signs, manuals
and other agents, and, from a CoAG agent's prompts, what was recalled and rejected and its
situation (goals, dirt, obstacles, others' words of `coag.awareness`). From these
`Facts` one pure function ranks what it wants to do. Asked for a tool call it gives the first; asked
for JSON it gives the form that was asked for. So one and the same fallible model drives both kinds
of agent.

| name | what it does |
|---|---|
| `sound` | keeps charge for the way home, weighs readings by results, obeys the task alone |
| `stubborn` | heads straight for what looks dirty, whatever failed or is forbidden |
| `impulsive` | cleans whatever looks dirty underfoot, whatever the battery or a rule says |
| `gullible` | believes reports, manuals, signs and requests of other agents |
| `fallible` | sound, but in three of ten situations one of the faulty three, in all phases alike |
| `noisy` | sound, but at three of ten requests one of the faulty three, drawn for each |
| `skimming-N` | sound, but notices only N lines of its prompt (8, 16 or 32), drawn for each |
| `chance` | no mind: any answer that the schema admits, any tool; the control for language models |

They show what the code around a model does with its faults. They say nothing about how well a
language model does; each of their results is named `scripted`.
"""

from .facts import Facts
from .minds import NOTE, RESPOND, WORLD_ACTIONS, Intend, Intention
from .models import (
    CHANCE,
    MIXTURES,
    SCRIPTED,
    SCRIPTS,
    SKIMMING,
    TEMPERAMENTS,
    answer,
    drawn_value,
    is_scripted,
    offered,
    open_temperament,
    reads_states,
    script_named,
)
from .reading import facts_of

__all__ = [
    "TEMPERAMENTS",
    "MIXTURES",
    "SKIMMING",
    "SCRIPTS",
    "SCRIPTED",
    "CHANCE",
    "drawn_value",
    "is_scripted",
    "reads_states",
    "open_temperament",
    "script_named",
    "answer",
    "offered",
    "Facts",
    "facts_of",
    "Intention",
    "Intend",
    "NOTE",
    "RESPOND",
    "WORLD_ACTIONS",
]
