"""The game: its story from a file, and how its sessions are played and remembered."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from coag.memory import LongTermMemory, said_by_person, team_scope
from coag.memory.consolidation import (
    EventWitness,
    PerspectiveObserver,
    PerspectiveReport,
    ScopeEntry,
    SessionEnd,
    SessionStart,
    WitnessedEvent,
    end_session,
    start_session,
)
from coag.memory.dynamics import Traits
from coag.models import StructuredModel
from coag.schema import Value
from coag.store import RecordStore


class StoryWitness(Value):
    """A character."""

    name: str
    role: str
    traits: Traits
    feelings: dict[str, float] = Field(default_factory=dict)


class StorySession(Value):
    """What happens in one session."""

    name: str
    event: tuple[WitnessedEvent, ...]


class Story(Value):
    """The whole game."""

    witness: tuple[StoryWitness, ...]
    exists: tuple[ScopeEntry, ...] = ()
    session: tuple[StorySession, ...]


def load_story() -> Story:
    """The story that comes with the example."""
    text = Path(__file__).with_name("story.toml").read_text("utf-8")
    return Story.model_validate(tomllib.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedSession:
    """A session, from its beginning to its end."""

    name: str
    start: SessionStart
    """What it began with."""
    report: PerspectiveReport
    end: SessionEnd


async def play(
    story: Story, store: RecordStore, model: StructuredModel | None = None, *, ends: bool = True
) -> AsyncGenerator[PlayedSession]:
    """Plays the sessions of a story one after the other.

    Args:
        story: What happens, and who is there.
        store: Where all of it is remembered: the world's events, and each character's own memory.
        model: Who writes; None for rules.
        ends: Whether sessions are ended; without it only perspectives are written.
    """
    world = LongTermMemory(store, scope=team_scope("millhaven"))
    witnesses = [
        EventWitness(
            name=one.name,
            memory=LongTermMemory(store, scope=one.name),
            traits=one.traits,
            feelings=one.feelings,
        )
        for one in story.witness
    ]
    observer = PerspectiveObserver(world, model=model)
    narrator = said_by_person("narrator")
    for session in story.session:
        start = await start_session(world, witnesses)
        report = await observer.observe(
            session.event, witnesses, provenance=narrator, session=session.name
        )
        end = SessionEnd(session=session.name)
        if ends:
            end = await end_session(
                world, session.name, witnesses, model=model, exists=story.exists
            )
        yield PlayedSession(name=session.name, start=start, report=report, end=end)
