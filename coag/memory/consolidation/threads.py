"""Matters that continue across sessions: opened, changed and settled, each state a record.

A thread's new state supersedes the one before. So its history is kept, and revoking the sources of
a state brings the one before back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from coag.memory.facts import at_least, trust_of
from coag.memory.long_term import LongTermMemory
from coag.memory.procedural import ProceduralMemory
from coag.memory.recall import records_of_type
from coag.memory.write_policy import says_the_same, within_a_record
from coag.models import StructuredModel
from coag.schema import MemoryKind, Provenance, Record, Scalar, Value, folded

from .asking import ask_for, one_a_line
from .literals import invented
from .perspectives import ENTITIES, PROGRESS, SESSION, SETTLES, THREAD

NARRATIVE_THREAD = "narrative_thread"
"""The type of the records that keep threads."""
_STEP = 0.25
"""What an event adds to the progress of its thread, where it does not say how far that is."""
_OPEN = 0.9
"""The progress of an open thread is at most this, whatever a model states."""
_MOST = 12
"""Threads in one answer."""


class NarrativeThread(Value):
    """A matter that continues across sessions."""

    title: str = Field(min_length=1)
    summary: str
    """Its present state, in one sentence."""
    status: Literal["open", "settled"] = "open"
    progress: float = Field(default=0.0, ge=0.0, le=1.0)
    participants: tuple[str, ...] = ()
    opened: str = ""
    """The session in which it began."""
    session: str = ""
    """The session that touched it last."""
    record: str = ""
    """The id of the record that keeps this state; empty while it is not stored."""

    def describe(self) -> str:
        """The thread in one line."""
        settled = self.status == "settled"
        how_far = "settled" if settled else f"open, {self.progress:.0%}"
        return f"{self.title} ({how_far}, last in {self.session}): {self.summary}"


# ---- The form of a model's answer ----


class ThreadChange(Value):
    """How one matter stands after the session."""

    title: Annotated[str, Field(min_length=1, max_length=80)]
    summary: Annotated[str, Field(min_length=1, max_length=300)]
    progress: Annotated[float, Field(ge=0.0, le=1.0)]
    participants: Annotated[tuple[str, ...], Field(max_length=8)]
    settled: bool


class ThreadsAnswer(Value):
    """The matters that the events of the session touched."""

    threads: Annotated[tuple[ThreadChange, ...], Field(max_length=_MOST)]


# ---- Reading and writing threads ----


ThreadState = tuple[Record, "NarrativeThread"]
"""A thread as it was at some time, and the record of that."""


async def threads_of(
    world: LongTermMemory, *, settled: bool = False
) -> tuple[NarrativeThread, ...]:
    """The threads of a world as they stand; see `latest_threads`."""
    return latest_threads(await thread_states(world), settled=settled)


def latest_threads(
    states: Iterable[ThreadState], *, settled: bool = False
) -> tuple[NarrativeThread, ...]:
    """The threads as they stand by their states, the newest first; those touched last first.

    What is trusted less than an open state of a thread does not settle it.
    """
    latest: dict[str, ThreadState] = {}
    for record, thread in states:
        newer, state = latest.setdefault(folded(thread.title), (record, thread))
        reopens = (state.status, thread.status) == ("settled", "open")
        if reopens and not at_least(trust_of(newer), trust_of(record)):
            latest[folded(thread.title)] = record, thread
    return tuple(one for _, one in latest.values() if settled or one.status == "open")


async def thread_states(world: LongTermMemory) -> list[ThreadState]:
    """All states of a world's threads, the newest first."""
    kept = await records_of_type(
        world.store, world.scope, MemoryKind.SEMANTIC, NARRATIVE_THREAD, most=10_000
    )
    return [(one, _thread_of(one)) for one in kept]


def _thread_of(record: Record) -> NarrativeThread:
    kept = record.metadata
    participants = str(kept.get("participants", ""))
    return NarrativeThread(
        title=str(kept.get("title", record.text)),
        summary=str(kept.get("summary", record.text)),
        status="settled" if kept.get("status") == "settled" else "open",
        progress=min(1.0, max(0.0, float(kept.get("progress", 0.0)))),
        participants=tuple(filter(None, participants.split("; "))),
        opened=str(kept.get("opened", "")),
        session=str(kept.get(SESSION, "")),
        record=record.id,
    )


async def keep_threads(
    world: LongTermMemory,
    threads: Iterable[NarrativeThread],
    *,
    provenance: Provenance,
    derived_from: Sequence[str],
) -> None:
    """Stores new states of threads, each in the place of the one before.

    Raises:
        ValueError: A record to derive from is not there.
    """
    before = {folded(one.title): one for one in await threads_of(world, settled=True)}
    for one in threads:
        metadata: dict[str, Scalar] = {
            "title": one.title,
            "summary": one.summary,
            "status": one.status,
            "progress": one.progress,
            "participants": "; ".join(one.participants),
            "opened": one.opened,
            SESSION: one.session,
        }
        old = before.get(folded(one.title))
        if old is not None and old.describe() == one.describe():
            continue
        await world.remember(
            MemoryKind.SEMANTIC,
            within_a_record(one.describe()),
            provenance=provenance,
            type=NARRATIVE_THREAD,
            metadata=metadata,
            derived_from=derived_from,
            supersedes=None if old is None else old.record,
        )


# ---- How a session moves them on ----


def moved_on(
    threads: Sequence[NarrativeThread], events: Sequence[Record], session: str
) -> tuple[NarrativeThread, ...]:
    """The threads that these events name, as they stand after them.

    The first event of a thread opens it; each moves it on, to the progress that the event states
    or by a quarter of the whole, short of its end; one that settles it ends it. A settled thread
    that an event names is open again.
    """
    known = {folded(one.title): one for one in threads}
    touched: dict[str, NarrativeThread] = {}
    for event in events:
        title = str(event.metadata.get(THREAD, ""))
        if not title:
            continue
        name = folded(title)
        old = touched.get(name) or known.get(name)
        begun = old or NarrativeThread(title=title, summary=event.text, opened=session)
        settled = event.metadata.get(SETTLES) is True
        stated = event.metadata.get(PROGRESS)
        further = min(_OPEN, begun.progress + _STEP)
        who = tuple(filter(None, str(event.metadata.get(ENTITIES, "")).split("; ")))
        touched[name] = begun.model_copy(
            update={
                "summary": event.text,
                "status": "settled" if settled else "open",
                "progress": 1.0 if settled else float(further if stated is None else stated),
                "participants": tuple(dict.fromkeys((*begun.participants, *who))),
                "session": session,
            }
        )
    return tuple(touched.values())


async def moved_on_by_model(
    model: StructuredModel,
    threads: Sequence[NarrativeThread],
    events: Sequence[Record],
    session: str,
    procedures: ProceduralMemory | None,
) -> tuple[tuple[NarrativeThread, ...], tuple[str, ...]]:
    """The threads that a model says these events touch, and why some of its answer was left out.

    Raises:
        ModelAnswerError: No usable answer came.
        ModelCallError: The model could not be asked.
    """
    open_now = [f"Open matter: {one.title}: {one.summary}" for one in threads]
    lines = [*open_now, *one_a_line(one.text for one in events)]
    answer = await ask_for(model, procedures, "session_threads", {}, lines, ThreadsAnswer)
    known = {folded(one.title): one for one in threads}
    sources = [*(one.text for one in events), *(f"{one.title} {one.summary}" for one in threads)]
    moved: dict[str, NarrativeThread] = {}
    problems: list[str] = []
    for one in answer.threads:
        if any(says_the_same(one.title, event.text) for event in events):
            problems.append(f"The thread {one.title!r} was left out: that is an event.")
            continue
        if strange := invented(one.summary, sources):
            problems.append(
                f"The thread {one.title!r} was left out, since nothing names {strange[0]!r}."
            )
            continue
        name = folded(one.title)
        old = known.get(name)
        moved[name] = NarrativeThread(
            title=old.title if old else " ".join(one.title.split()),
            summary=" ".join(one.summary.split()),
            status="settled" if one.settled else "open",
            progress=1.0 if one.settled else min(_OPEN, one.progress),
            participants=tuple(
                dict.fromkeys((*(old.participants if old else ()), *one.participants))
            ),
            opened=old.opened if old else session,
            session=session,
        )
    return tuple(moved.values()), tuple(problems)
