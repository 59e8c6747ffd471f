"""The state of a judgment: one JSON file that several processes share.

Who changes it holds the file's lock, reads what is there, changes that and puts the new file in
the old one's place in one step, so that two writers lose nothing and a killed writer leaves the
file as it was. Once a change is stored it is copied beside the file. Where the file cannot be read
any more, because a disk or a hand spoiled it, that copy is used, and `problem` says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from coag._util.files import replace_file
from coag._util.locks import LockHeldError, lock_file
from coag.errors import JudgmentError

from .shape import check_shape

STATE_VERSION = 1
"""Version of the file's format; a higher one is refused."""
_PATIENCE = 10.0
"""Seconds to wait for another writer."""


def new_state() -> dict[str, Any]:
    """The state of a judgment that has learned nothing."""
    return {
        "version": STATE_VERSION,
        "graph": None,
        "entries": [],
        "steps": [],
        "consultations": [],
        "failures": {},
        "patterns": [],
        "health": {},
        "dropped": {},
    }


def parsed_state(text: str) -> dict[str, Any]:
    """The state that a file's text holds.

    Raises:
        JudgmentError: It holds none, or one of a later version.
    """
    try:
        state = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise JudgmentError(f"it is no JSON: {error}") from error
    if not isinstance(state, dict):
        raise JudgmentError(f"it holds a {type(state).__name__} instead of an object")
    found: dict[str, Any] = {"dropped": {}, "consulted": 0, **cast("dict[str, Any]", state)}
    if "graph" not in found:
        raise JudgmentError("its part 'graph' is missing")
    version = found.get("version")
    if isinstance(version, int) and version > STATE_VERSION:
        raise JudgmentError(
            f"it has version {version!r}, and this program reads up to {STATE_VERSION}: "
            "it was written by a newer coag"
        )
    check_shape(found)
    for number, one in enumerate(found["entries"]):
        one.setdefault("id", f"entry {number}")
        one.setdefault("record", "")
    return found


class StateFile:
    """A judgment's state in a file, or in RAM.

    Args:
        path: The file; made with the first change, its folder too. None for RAM.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.problem = ""
        """What was wrong with the file when it was read last, and what was used instead."""
        self._state: dict[str, Any] | None = None
        self._seen: tuple[int, int, int] | None = None

    @property
    def copy(self) -> Path:
        """The last good copy."""
        path = self._file()
        return path.with_name(f"{path.name}.good")

    def detached(self) -> StateFile:
        """The same state in RAM: what is changed there does not reach the file.

        Raises:
            JudgmentError: Neither the file nor its copy can be read.
        """
        held = StateFile(None)
        held._state = self._draft()
        return held

    def exists(self) -> bool:
        """Whether there is a state, or a copy of one."""
        if self.path is None:
            return self._state is not None
        return self.path.exists() or self.copy.exists()

    def read(self) -> dict[str, Any]:
        """The state now; read again only if the file has changed. Not to be changed.

        Raises:
            JudgmentError: Neither the file nor its copy can be read.
        """
        if self.path is None:
            return self._state or new_state()
        seen = _stamp(self.path)
        if self._state is None or seen is None or seen != self._seen:
            self._state, self._seen = self._load(), seen
        return self._state

    @contextmanager
    def changing(self) -> Generator[dict[str, Any]]:
        """A copy of the state to be changed; stored at the end, unless an error is raised.

        Raises:
            JudgmentError: The state cannot be read, locked or written; it is as it was.
        """
        if self.path is None:
            draft = self._draft()
            yield draft
            _written(draft)
            self._state = draft
            return
        with self._locked(self.path):
            draft = self._draft()
            yield draft
            self._store(draft)

    def begin(self, state: dict[str, Any], *, anew: bool) -> None:
        """Stores a first state.

        Args:
            state: What to store.
            anew: Whether a state that is there is given up, even if it cannot be read.

        Raises:
            JudgmentError: There is a state already, or it cannot be locked or written.
        """
        if self.path is None:
            self._refuse_second(anew)
            self._state = state
            return
        with self._locked(self.path):
            self._refuse_second(anew)
            self._store(state)

    def _draft(self) -> dict[str, Any]:
        """A copy of the state; its shape is known to be right."""
        return json.loads(_written(self.read()))

    def _refuse_second(self, anew: bool) -> None:
        if self.exists() and not anew:
            where = "here" if self.path is None else f"in {str(self.path)!r}"
            raise JudgmentError(
                f"There is a judgment {where} already. To lose what it has learned and begin "
                "anew, say so: anew=True (--anew)."
            )

    def _locked(self, path: Path) -> IO[bytes]:
        try:
            return lock_file(path.with_name(f"{path.name}.lock"), _PATIENCE)
        except (LockHeldError, OSError) as error:
            raise JudgmentError(f"Judgment {str(path)!r} cannot be changed: {error}.") from error

    def _file(self) -> Path:
        if self.path is None:
            raise JudgmentError("This judgment is in RAM: give a path to keep it.")
        return self.path

    def _store(self, state: dict[str, Any]) -> None:
        path = self._file()
        text = _written(state)
        try:
            if self.problem and path.exists():
                os.replace(path, path.with_name(f"{path.name}.spoiled"))
            replace_file(path, text)
            replace_file(self.copy, text, durable=False)
        except OSError as error:
            raise JudgmentError(f"Judgment {str(path)!r} cannot be written: {error}.") from error
        self._state, self._seen, self.problem = state, _stamp(path), ""

    def _load(self) -> dict[str, Any]:
        """The state of the file, or of its copy."""
        path = self._file()
        problems: list[str] = []
        for place in (path, self.copy):
            try:
                state = parsed_state(place.read_text(encoding="utf-8"))
            except FileNotFoundError:
                problems.append(f"{place.name} is missing")
            except (OSError, UnicodeDecodeError, JudgmentError) as error:
                problems.append(f"{place.name} cannot be read ({error})")
            else:
                self.problem = ""
                if problems:
                    self.problem = (
                        f"{problems[0]}: the last good copy {place.name} is used. What cannot be "
                        f"read is put aside as {path.name}.spoiled with the next change."
                    )
                return state
        if not self.exists():
            self.problem = ""
            return new_state()
        raise JudgmentError(
            f"Judgment {str(path)!r} cannot be read, and neither can its copy: "
            f"{'; '.join(problems)}. Restore one of them, or remove both to begin anew."
        )


def _written(state: Mapping[str, Any]) -> str:
    # Halves of characters come back as they were only if they are escaped; ids depend on it.
    try:
        return json.dumps(state, allow_nan=False, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError) as error:
        raise JudgmentError(f"The judgment cannot be written as JSON: {error}.") from error


def _no_number(name: str) -> None:
    raise ValueError(f"it has {name} for a number")


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes when a file is replaced; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
