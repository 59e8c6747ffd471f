"""What is done with memory outside of writes and recalls: observation, sessions, sleep.

The *observer* takes notes of what was said and done; the *compressor* merges them; the *reflector*
concludes what holds beyond one conversation. *Witnesses* remember one event differently.
`sleep` does the rest: what faded goes into the archive, old wording becomes a gist, and so on.
docs/design/memory-dynamics.md is its design.
"""

from .asking import consolidation_procedures
from .commitments import intend
from .intention_module import IntentionModule
from .intentions import AtEvent, AtTime, InContext, Intention, Intentions, Trigger
from .notes import HeardMessage
from .observer import MemoryObserver
from .perspectives import (
    EventWitness,
    Perspective,
    PerspectiveObserver,
    PerspectiveReport,
    WitnessedEvent,
)
from .reflector import reflect
from .scope_index import ScopeEntry, scope_index
from .session_module import SessionModule
from .sessions import SessionEnd, SessionStart, end_session, start_session
from .sleep import SLEEP_STEPS, SleepReport, SleepSchedule, sleep
from .steps import SleepStep, SleepWork, StepBatch

__all__ = [
    "consolidation_procedures",
    "MemoryObserver",
    "HeardMessage",
    "intend",
    "reflect",
    "PerspectiveObserver",
    "PerspectiveReport",
    "Perspective",
    "EventWitness",
    "WitnessedEvent",
    "Intentions",
    "Intention",
    "Trigger",
    "AtTime",
    "AtEvent",
    "InContext",
    "IntentionModule",
    "SessionEnd",
    "SessionStart",
    "end_session",
    "start_session",
    "SessionModule",
    "ScopeEntry",
    "scope_index",
    "sleep",
    "SleepSchedule",
    "SleepReport",
    "SLEEP_STEPS",
    "SleepStep",
    "SleepWork",
    "StepBatch",
]
