"""What is done with memory outside of writes and recalls: observation, perspectives, sessions.

The *observer* takes notes of what was said and done; the *compressor* merges them; the *reflector*
concludes what holds beyond one conversation. *Witnesses* remember one event differently.
docs/design/memory-dynamics.md is its design.
"""

from .asking import consolidation_procedures
from .compressor import Compressed, Triage, compress, related, triage_of
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
from .reflector import Reflected, Reflection, ReflectionKind, reflect, reflections_of
from .scope_index import ScopeEntry, ScopeIndex, note_scope, scope_index
from .session_module import SessionModule
from .sessions import SessionEnd, SessionStart, end_session, events_of, start_session
from .threads import NarrativeThread, threads_of

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
    "Triage",
    "triage_of",
    "Compressed",
    "compress",
    "related",
    "Reflected",
    "Reflection",
    "ReflectionKind",
    "reflect",
    "reflections_of",
    "PerspectiveObserver",
    "PerspectiveReport",
    "Perspective",
    "EventWitness",
    "WitnessedEvent",
    "character_of",
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
]
