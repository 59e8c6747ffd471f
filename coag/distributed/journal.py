"""`TurnJournal`: what a worker records about an agent's turns, so that a replacement repeats none.

One line per event, flushed before the recorded work continues. It survives the death of the
process, not a power loss. It holds the answers of the last turns, word for word.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, TypeAdapter

from coag._util.files import replace_file
from coag._util.locks import lock_file
from coag.errors import TraceError
from coag.schema import Value

from .protocol import RemoteFailure, TurnItem

JOURNAL = "turns.jsonl"


class PlaceOpened(Value):
    """An agent took the place, fresh or reset; the dialogue begins."""

    line: Literal["opened"] = "opened"
    v: Literal[1] = 1
    instance: str
    past_runs: tuple[str, ...] = ()
    """Run folders that belong to what was before."""
    acted: bool = False
    """True once a turn was begun, so that there is a run to continue."""


class TurnBegun(Value):
    """A turn begins."""

    line: Literal["begun"] = "begun"
    turn: str
    turns_before: int | None = None
    """How many turns the agent had begun before, where it counts them."""


class TurnEnded(Value):
    """A turn ended."""

    line: Literal["ended"] = "ended"
    turn: str
    response: TurnItem | None = None
    failure: RemoteFailure | None = None


class StateUnknown(Value):
    """No run holds the agent's state: it was loaded, or the agent was closed."""

    line: Literal["unsettled"] = "unsettled"


Line = Annotated[PlaceOpened | TurnBegun | TurnEnded | StateUnknown, Field(discriminator="line")]
_LINES: TypeAdapter[Line] = TypeAdapter(Line)


class TurnJournal:
    """The journal of one hosted agent; reads what is there, then appends.

    Raises:
        LockHeldError: Another worker has it.
        TraceError: It is damaged, or cannot be read or written.
    """

    def __init__(self, path: Path, *, kept: int) -> None:
        self.opened: PlaceOpened | None = None
        self.open_turn: TurnBegun | None = None
        """The turn that had not ended."""
        self.settled = True
        """False where no run holds the state that the agent was in."""
        self.ended: dict[str, TurnEnded] = {}
        self._path = path
        self._kept = kept
        self._lines = 0
        self._file: IO[str] | None = None
        with self._errors("written"):
            self._lock = lock_file(path.with_name("turns.lock"), 0)
        try:
            self._read()
            self._compact()
        except TraceError:
            self.close()
            raise

    def write(self, line: Line) -> None:
        """Appends a line; when this returns, it survives the death of the process."""
        self._take(line)
        if self._lines >= 4 * self._kept + 10:
            self._compact()
            return
        self._lines += 1
        with self._errors("written"):
            if self._file is None:
                self._file = self._path.open("a", encoding="ascii")
            self._file.write(_text(line))
            self._file.flush()

    def close(self) -> None:
        """Releases the file."""
        self._let_go()
        self._lock.close()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> None:
        with self._errors("read"):
            lines = self._path.read_bytes().splitlines(True) if self._path.exists() else []
        for number, text in enumerate(lines, 1):
            if not text.endswith(b"\n"):
                return  # what was being written when the process ended; nothing followed from it
            try:
                self._take(_LINES.validate_python(json.loads(text)))
            except ValueError as error:
                raise TraceError(
                    self._path, f"line {number} is damaged. Move the file away to start a new one."
                ) from error

    def _take(self, line: Line) -> None:
        match line:
            case PlaceOpened():
                self.opened, self.open_turn, self.settled = line, None, True
            case TurnBegun():
                self.open_turn, self.settled = line, True
                if self.opened is not None:
                    self.opened = self.opened.model_copy(update={"acted": True})
            case TurnEnded():
                if self.open_turn is not None and self.open_turn.turn == line.turn:
                    self.open_turn = None
                self.ended[line.turn] = line
                while len(self.ended) > self._kept:
                    del self.ended[next(iter(self.ended))]
            case StateUnknown():
                self.settled = False

    def _compact(self) -> None:
        """Replaces the file by what is still needed, in one step."""
        self._let_go()
        lines: list[Line] = [*self.ended.values()]
        lines += [line for line in (self.opened, self.open_turn) if line is not None]
        lines += [] if self.settled else [StateUnknown()]
        with self._errors("written"):
            replace_file(self._path, "".join(map(_text, lines)), durable=False)
        self._lines = len(lines)

    @contextmanager
    def _errors(self, done: str) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise TraceError(self._path, f"cannot be {done}: {error.strerror}") from error


def _text(line: Line) -> str:
    return json.dumps(line.model_dump()) + "\n"
