"""What is done with memory outside of writes and recalls: observation, sessions, sleep.

The *observer* takes notes of what was said and done; the *compressor* merges them; the *reflector*
concludes what holds beyond one conversation. *Witnesses* remember one event differently.
`sleep` does the rest: what faded goes into the archive, old wording becomes a gist, and so on.
docs/design/memory-dynamics.md is its design.
"""

from .asking import consolidation_procedures
from .commitments import intend, time_in
from .compressor import Compressed, Triage, compress, related, triage_of
from .intention_module import CANCEL_ACTION, REMIND_ACTION, IntentionModule
from .intentions import (
    REMINDERS,
    AtEvent,
    AtTime,
    InContext,
    Intention,
    Intentions,
    Trigger,
)
from .journal import SleepJournal, SleepPosition
from .notes import HeardMessage, NoteType, ObservationNote, note_type_of, notes_of, priority_of
from .observer import MemoryObserver, Observed
from .perspectives import (
    EventWitness,
    Perspective,
    PerspectiveObserver,
    PerspectiveReport,
    WitnessedEvent,
    character_of,
)
from .reflector import Reflected, Reflection, ReflectionKind, ReflectStep, reflect, reflections_of
from .scope_index import ScopeEntry, ScopeIndex, note_scope, scope_index
from .session_module import SessionModule
from .sessions import SessionEnd, SessionStart, end_session, events_of, start_session
from .sleep import SLEEP_STEPS, SleepReport, SleepSchedule, StepReport, sleep
from .steps import EncodeStep, FadeStep, GistStep, SleepStep, SleepWork, StepBatch
from .threads import NarrativeThread, threads_of
from .upkeep import (
    ArchiveStep,
    GraduateStep,
    LinkStep,
    PersonaStep,
    RegulateStep,
    SchemaStep,
    vectors_of,
)

__all__ = [
    "consolidation_procedures",
    "MemoryObserver",
    "Observed",
    "HeardMessage",
    "ObservationNote",
    "NoteType",
    "notes_of",
    "note_type_of",
    "priority_of",
    "intend",
    "time_in",
    "Triage",
    "triage_of",
    "Compressed",
    "compress",
    "related",
    "Reflected",
    "Reflection",
    "ReflectionKind",
    "ReflectStep",
    "reflect",
    "reflections_of",
    "PerspectiveObserver",
    "PerspectiveReport",
    "Perspective",
    "EventWitness",
    "WitnessedEvent",
    "character_of",
    "Intentions",
    "Intention",
    "Trigger",
    "AtTime",
    "AtEvent",
    "InContext",
    "IntentionModule",
    "REMINDERS",
    "REMIND_ACTION",
    "CANCEL_ACTION",
    "SessionEnd",
    "SessionStart",
    "end_session",
    "start_session",
    "events_of",
    "SessionModule",
    "NarrativeThread",
    "threads_of",
    "ScopeIndex",
    "ScopeEntry",
    "scope_index",
    "note_scope",
    "sleep",
    "SleepSchedule",
    "SleepReport",
    "StepReport",
    "SLEEP_STEPS",
    "SleepStep",
    "SleepWork",
    "StepBatch",
    "SleepJournal",
    "SleepPosition",
    "EncodeStep",
    "FadeStep",
    "GistStep",
    "RegulateStep",
    "PersonaStep",
    "LinkStep",
    "SchemaStep",
    "GraduateStep",
    "ArchiveStep",
    "vectors_of",
]
