"""What a worker writes down about an agent's turns, so that its replacement repeats none.

One line per event, flushed before what it tells of goes on. It survives the death of the process,
not a power loss. It holds the answers of the last turns, word for word.
"""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from pathlib import Path
from typing import IO, Annotated, Literal

from pydantic import Field, TypeAdapter

from coag.errors import TraceError
from coag.schema import Value

from ._wire import Item, RemoteFailure

JOURNAL = "turns.jsonl"


class Opened(Value):
    """An agent took the place, fresh or reset; the dialogue begins."""

    line: Literal["opened"] = "opened"
    v: Literal[1] = 1
    instance: str
    past_runs: tuple[str, ...] = ()
    """Run folders that belong to what was before."""
    acted: bool = False
    """True once a turn was begun, so that there is a run to go on with."""


class Begun(Value):
    """A turn begins."""

    line: Literal["begun"] = "begun"
    turn: str
    turns_before: int | None = None
    """How many turns the agent had begun before, where it counts them."""


class Ended(Value):
    """A turn ended."""

    line: Literal["ended"] = "ended"
    turn: str
    response: Item | None = None
    failure: RemoteFailure | None = None


class Unsettled(Value):
    """The agent's state is one that no run tells of: it was loaded, or the agent closed."""

    line: Literal["unsettled"] = "unsettled"


Line = Annotated[Opened | Begun | Ended | Unsettled, Field(discriminator="line")]
_LINES: TypeAdapter[Line] = TypeAdapter(Line)


class Journal:
    """The journal of one hosted agent; reads what is there, then appends.

    Args:
        path: The file; made with its folder if it is missing.
        kept: Ended turns whose result is kept.

    Raises:
        TraceError: It cannot be read or written.
    """

    def __init__(self, path: Path, *, kept: int) -> None:
        self.opened: Opened | None = None
        self.begun: Begun | None = None
        """The turn that was going on."""
        self.settled = True
        """False where no run tells the state that the agent was in."""
        self.ended: OrderedDict[str, Ended] = OrderedDict()
        self._path = path
        self._kept = kept
        self._lines = 0
        self._file: IO[str] | None = None
        self._read()
        self._compact()

    def write(self, line: Line) -> None:
        """Appends a line; when this returns, it survives the death of the process.

        Raises:
            TraceError: It cannot be written.
        """
        self._take(line)
        if self._lines >= 4 * self._kept + 10:
            self._compact()
            return
        self._lines += 1
        self._append(line)

    def close(self) -> None:
        """Lets go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, line: Line) -> None:
        try:
            if self._file is None:
                self._file = self._path.open("a", encoding="ascii")
            self._file.write(_text(line))
            self._file.flush()
        except OSError as error:
            raise TraceError(self._path, f"cannot be written: {error.strerror}") from error

    def _read(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            lines = self._path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise TraceError(self._path, f"cannot be read: {error.strerror}") from error
        for number, text in enumerate(lines, 1):
            if not text.endswith(b"\n"):
                return  # what was being written when the process died; nothing followed from it
            try:
                self._take(_LINES.validate_python(json.loads(text)))
            except ValueError as error:
                raise TraceError(
                    self._path, f"line {number} is damaged. Move the file away to begin anew."
                ) from error

    def _take(self, line: Line) -> None:
        match line:
            case Opened():
                self.opened, self.begun = line, None
                self.settled = True
            case Begun():
                self.begun, self.settled = line, True
                if self.opened is not None:
                    self.opened = self.opened.model_copy(update={"acted": True})
            case Ended():
                if self.begun is not None and self.begun.turn == line.turn:
                    self.begun = None
                self.ended[line.turn] = line
                while len(self.ended) > self._kept:
                    self.ended.popitem(last=False)
            case Unsettled():
                self.settled = False

    def _compact(self) -> None:
        """Writes anew what is still needed, in one step."""
        self.close()
        kept = self._needed()
        draft = self._path.with_suffix(".tmp")
        try:
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.writelines(_text(line) for line in kept)
            os.replace(draft, self._path)
        except OSError as error:
            raise TraceError(self._path, f"cannot be written: {error.strerror}") from error
        self._lines = len(kept)

    def _needed(self) -> list[Line]:
        kept: list[Line] = [*self.ended.values()]
        if self.opened is not None:
            kept.append(self.opened)
        if self.begun is not None:
            kept.append(self.begun)
        if not self.settled:
            kept.append(Unsettled())
        return kept


def _text(line: Line) -> str:
    return json.dumps(line.model_dump()) + "\n"
