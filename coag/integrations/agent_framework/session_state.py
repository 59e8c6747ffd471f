"""What a session keeps of its agent, and what a folder of logs knows of the session."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, cast

from agent_framework import AgentSession
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag._util.files import replace_file
from coag._util.validation import first_error
from coag.errors import StateError, TraceError
from coag.schema import Percept, PerceptKind, TurnEnd, TurnStart
from coag.tracing import RunFolder, read_trace

from .approval_desk import PendingCall

STATE = "coag"
"""Where a session keeps what its agents of ours know, by their names."""
FORMAT = 1
HEARD = 1_000
"""Messages of which a session remembers that they were taken in."""
_RUNS, _TURNS = 8, 1_000
"""Runs of a session, and turns of each, of which it is remembered what they were given."""
_BROKEN = ("cancelled", "error")


class SavedSession(BaseModel):
    """An agent's part of a session, as JSON."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = FORMAT
    run: str | None = None
    """Name of the run's folder; None where there are no logs."""
    turn: int = Field(default=0, ge=0)
    """The last turn that `state` knows of."""
    state: dict[str, Any] | None = None
    """What `CoagAgent.save_state` gave after it; None before the first."""
    heard: list[str] = []
    """Messages that were taken in, the last ones."""
    pending: dict[str, PendingCall] = {}
    """Requests for approval that the turn after `turn` waits for."""

    @classmethod
    def of(cls, session: AgentSession, agent: str) -> Self:
        """What a session keeps of an agent; a new one where it keeps nothing.

        Raises:
            StateError: It is no such state, or one of another version.
        """
        kept: object = session.state.get(STATE)
        if kept is None:
            return cls()
        where = f"session.state[{STATE!r}][{agent!r}] of session {session.session_id!r}"
        entry = cast("Mapping[str, Any]", kept).get(agent) if isinstance(kept, Mapping) else kept
        if entry is None:
            return cls()
        found = (
            cast("Mapping[str, Any]", entry).get("format") if isinstance(entry, Mapping) else None
        )
        if isinstance(found, int) and found != FORMAT:
            raise StateError(
                f"{where} is of format {found}; this coag reads format {FORMAT}. Use the coag that "
                "wrote it, or begin a new session. Nothing was run."
            )
        try:
            return cls.model_validate(entry)
        except ValidationError as error:
            raise StateError(
                f"{where} is no state of an agent: {first_error(error, 'the whole')}. Restore it, "
                "or begin a new session. Nothing was run."
            ) from error

    def keep(self, session: AgentSession, agent: str) -> dict[str, Any]:
        """Puts it into the session, and returns it as it is there."""
        kept = self.model_dump(mode="json", exclude={"state"}) | {"state": self.state}
        others = cast("Mapping[str, Any]", session.state.get(STATE) or {})
        session.state[STATE] = {**others, agent: kept}
        return kept


class SessionFile(BaseModel):
    """Which runs a session has, and what each of their turns was given.

    It is written before a turn begins, so that after a crash the turn is found, also where the
    session was stored before it.
    """

    session: str
    runs: dict[str, dict[int, list[str]]] = {}
    """By run and turn, hashes of messages and answers; the latest run is the last one."""

    @classmethod
    def read(cls, logs: Path, agent: str, session: str) -> Self:
        """What is known of a session; nothing where it is new.

        Raises:
            TraceError: The file cannot be read.
        """
        path = _path(logs, agent, session)
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return cls(session=session)
        except (OSError, ValidationError) as error:
            raise TraceError(path, f"cannot be read: {error}") from error

    def note(self, logs: Path, agent: str, run: str, turn: int, keys: Sequence[str]) -> None:
        """Writes what a turn is given, before it begins.

        Raises:
            TraceError: The file cannot be written.
        """
        turns = self.runs.pop(run, {})
        turns[turn] = list(keys)
        self.runs[run] = dict(list(turns.items())[-_TURNS:])
        self.runs = dict(list(self.runs.items())[-_RUNS:])
        path = _path(logs, agent, self.session)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, self.model_dump_json(), durable=False)
        except OSError as error:
            raise TraceError(path, f"cannot be written: {error}") from error


def _path(logs: Path, agent: str, session: str) -> Path:
    named = hashlib.sha256(f"{agent}\n{session}".encode()).hexdigest()[:32]
    return logs / "sessions" / f"{named}.json"


class PastTurn(BaseModel):
    """A turn of a run."""

    said: int = 0
    """Messages that it has taken in."""
    answer: str = ""
    state: Literal["open", "broken", "ended"] = "open"
    """`broken`: it was cancelled or failed, so that it may be tried again."""


def past_turns(folder: RunFolder) -> dict[int, PastTurn]:
    """The turns of a run, by their numbers; none where it has no trace yet.

    Raises:
        TraceError: The trace cannot be read.
    """
    turns: dict[int, PastTurn] = {}
    if not folder.trace_path.exists():
        return turns
    for entry in read_trace(folder.trace_path, on_problem=lambda problem: None):
        match entry.body:
            case TurnStart(turn=number):
                turns[number] = PastTurn()
            case TurnEnd(turn=number, reason=reason, response=response):
                past = turns.setdefault(number, PastTurn())
                past.state = "broken" if reason in _BROKEN else "ended"
                past.answer = response
            case Percept(kind=PerceptKind.MESSAGE) if turns:
                turns[max(turns)].said += 1
            case _:
                pass
    return turns
