"""The state of a judgment: one JSON file that several processes share.

Who changes it holds the file's lock, reads what is there, changes that and puts the new file in
the old one's place in one step, so that two writers lose nothing and a killed writer leaves the
file as it was. Once a change is stored it is copied beside the file. Where the file cannot be read
any more, because a disk or a hand spoiled it, that copy is used, and `problem` says so.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from coag._util.files import AtomicFile
from coag._util.locks import LockHeldError, lock_file
from coag.errors import JudgmentError

from .graph import WEIGHT_BOUND

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


class _NewerStateError(JudgmentError):
    """A state of a later version: it is whole, and to be left as it is."""


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
        raise _NewerStateError(
            f"it has version {version!r}, and this program reads up to {STATE_VERSION}: "
            "it was written by a newer coag"
        )
    _check_shape(found)
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
        return self.path.exists() or _copy_of(self.path).exists()

    def read(self) -> dict[str, Any]:
        """The state now; read again only if the file has changed. Not to be changed.

        Raises:
            JudgmentError: Neither the file nor its copy can be read.
        """
        if self.path is None:
            return self._state or new_state()
        seen = _stamp(self.path)
        if self._state is None or seen is None or seen != self._seen:
            self._state, self._seen = self._load(self.path), seen
        return self._state

    @contextmanager
    def changing(self) -> Generator[dict[str, Any]]:
        """A copy of the state to be changed; stored at the end, unless an error is raised.

        Raises:
            JudgmentError: The state cannot be read, locked or written; it is as it was.
        """
        with self._locked():
            draft = self._draft()
            yield draft
            self._store(draft)

    def begin(self, state: dict[str, Any], *, anew: bool) -> None:
        """Stores a first state.

        Args:
            state: What to store.
            anew: Whether an existing state is replaced, even if it cannot be read.

        Raises:
            JudgmentError: There is a state already, or it cannot be locked or written.
        """
        with self._locked():
            if self.exists() and not anew:
                where = "here" if self.path is None else f"in {str(self.path)!r}"
                raise JudgmentError(
                    f"There is a judgment {where} already. To lose what it has learned and begin "
                    "again, pass anew=True (--anew)."
                )
            self._store(state)

    def _draft(self) -> dict[str, Any]:
        """A copy of the state; its shape is known to be right."""
        return json.loads(_written(self.read()))

    def _locked(self) -> AbstractContextManager[object]:
        if (path := self.path) is None:
            return nullcontext()
        try:
            return lock_file(path.with_name(f"{path.name}.lock"), _PATIENCE)
        except (LockHeldError, OSError) as error:
            raise JudgmentError(f"Judgment {str(path)!r} cannot be changed: {error}.") from error

    def _store(self, state: dict[str, Any]) -> None:
        data = _written(state).encode()
        if (path := self.path) is None:
            self._state = state
            return
        try:
            if self.problem and path.exists():
                os.replace(path, path.with_name(f"{path.name}.spoiled"))
            with AtomicFile(_copy_of(path), durable=False) as copy, AtomicFile(path) as file:
                for one in (copy, file):  # both fit the disk, or neither is put in its place
                    one.draft.write(data)
                    one.draft.flush()
        except OSError as error:
            raise JudgmentError(f"Judgment {str(path)!r} cannot be written: {error}.") from error
        self._state, self._seen, self.problem = state, _stamp(path), ""

    def _load(self, path: Path) -> dict[str, Any]:
        """The state of the file, or of its copy."""
        problems: list[str] = []
        for place in (path, _copy_of(path)):
            try:
                state = parsed_state(place.read_text(encoding="utf-8"))
            except FileNotFoundError:
                problems.append(f"{place.name} is missing")
            except _NewerStateError as error:
                raise JudgmentError(f"Judgment {str(place)!r} cannot be read: {error}.") from error
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
            f"{'; '.join(problems)}. Restore one of them, or remove both to begin again."
        )


def _copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.good")


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


# ---- What the JSON has to look like, so that a spoiled file is known as one ----

# A file can be JSON and still be none: cut and joined by a hand or a tool, or with numbers that are
# none. What entries say is checked where they are read (`entry_from`).

_Check = Callable[[Any], bool]
"""Whether a value is what it should be."""


def _check_shape(state: Mapping[str, Any]) -> None:
    for name, check in _PARTS.items():
        try:
            right = check(state.get(name))
        except (KeyError, TypeError, ValueError):  # a check looks into what may be anything
            right = False
        if not right:
            raise JudgmentError(f"its part {name!r} is missing or has a wrong value")


def _number(low: float, high: float) -> _Check:
    def check(value: Any) -> bool:
        return type(value) in (int, float) and low <= value <= high

    return check


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _list(of: _Check) -> _Check:
    return lambda value: isinstance(value, list) and all(map(of, cast("list[Any]", value)))


def _each(of: _Check) -> _Check:
    """An object whose values are all alike; JSON has no other keys than texts."""
    return lambda value: (
        isinstance(value, dict) and all(map(of, cast("dict[str, Any]", value).values()))
    )


def _record(needed: Mapping[str, _Check], further: Mapping[str, _Check] | None = None) -> _Check:
    """An object with these fields; what else it has is not looked at."""
    maybe: Mapping[str, _Check] = further or {}

    def check(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and all(of(value[name]) for name, of in needed.items())
            and all(of(value[name]) for name, of in maybe.items() if name in value)
        )

    return check


def _none_or(of: _Check) -> _Check:
    return lambda value: value is None or of(value)


_UNIT = _number(0, 1)
_FINITE = _number(-math.ldexp(1, 1000), math.ldexp(1, 1000))
_WEIGHT = _number(-WEIGHT_BOUND, WEIGHT_BOUND)
_CAPABILITY = _record(
    {"name": _text}, {"summary": _text, "keywords": _list(_text), "utility": _UNIT, "cost": _UNIT}
)
_LEARNED = (_WEIGHT, _count, _UNIT, _UNIT, _UNIT)
"""An edge's weight, tries, mean, recent and novelty."""
_EDGE = _record(
    {"source": _text, "target": _text},
    {
        **dict.fromkeys(("utility", "cost", "novelty", "mean", "recent"), _UNIT),
        "weight": _WEIGHT,
        "tries": _count,
    },
)
_GRAPH = _record({"capabilities": _list(_CAPABILITY), "joined": _flag, "edges": _list(_EDGE)})
_SHARES = _each(_UNIT)
_STEP = _record(
    {
        **dict.fromkeys(("at", "from", "used", "source"), _text),
        "trust": lambda value: value in ("developer", "user", "untrusted"),
        **dict.fromkeys(("reward", "cost"), _UNIT),
        "moved": _FINITE,
    },
    {
        "before": _none_or(
            lambda value: (
                isinstance(value, list)
                and all(of(one) for of, one in zip(_LEARNED, cast("list[Any]", value), strict=True))
            )
        ),
        "shares": _SHARES,
        **dict.fromkeys(("override", "drawn"), _flag),
    },
)
_PATTERN = _record({"kind": _text, "route": _list(_text), "strength": _UNIT, "uses": _count})
_TALLIES = {
    **dict.fromkeys(("followed", "overridden"), _count),
    **dict.fromkeys(("net_followed", "net_overridden"), _FINITE),
}
_ENTRY = _record(
    {"is": _text, "origin": _record({"source": _text}, {"derived_from": _list(_text)})},
    {**dict.fromkeys(("id", "record", "tier", "reopened"), _text), "across": _list(_text)},
)
_PARTS: Mapping[str, _Check] = {
    "version": _count,
    "graph": _none_or(_GRAPH),
    "entries": _list(_ENTRY),
    "steps": _list(_STEP),
    "consultations": _list(_record({"id": _text, "current": _text, "shares": _SHARES})),
    "failures": _each(_count),
    "patterns": _list(_PATTERN),
    "health": _record({}, {"reports": _count, "since_reflection": _count, **_TALLIES}),
    "dropped": _record(
        {},
        {
            "sources": _each(_count),
            "moved": _each(_each(_FINITE)),
            "patterns": _list(_PATTERN),
            **_TALLIES,
        },
    ),
    "consulted": _count,
}
