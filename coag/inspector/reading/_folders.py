"""Which folders of runs there are below a folder of logs, by real folders only."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from coag.errors import ConfigurationError, TraceError
from coag.inspector.views import Trouble
from coag.tracing import RunFolder, RunInfo, read_run

_DEPTH = 3
"""Folders that runs may lie below the folder of logs: a demo's, a case's, the run's own."""
_LARGEST = 1 << 24
"""Bytes beyond which a `run.json` is none of ours."""
_ID = 100
"""Characters of an id that names a run in addresses."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what it is seen that a `run.json` is another one."""

    number: int
    """Of the file: one that replaces another has its own."""
    modified: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A folder of a run, as it was found."""

    folder: RunFolder
    name: str
    """As seen from the folder of logs, with `/`; `.` for that itself."""
    stamp: Stamp | None
    """Of its `run.json`; None where it has a trace but no such file."""

    def now(self) -> Found:
        """The same as it is now."""
        stamp = _stamp(self.folder.info_path)
        return self if stamp == self.stamp else replace(self, stamp=stamp)


def run_folders(logs: Path) -> Iterator[Found]:
    """The runs in a folder of logs, by path; of a run's folder that run alone.

    Links are not followed, so nothing outside of the folder is read.

    Raises:
        ConfigurationError: If there is no such folder.
    """
    if not logs.is_dir():
        raise ConfigurationError(
            f"There is no folder of logs at {str(logs)!r}. Name the one that holds the runs, "
            "or the folder of one run."
        )
    own = _found(logs, ".")
    if own is not None:
        yield own
    else:
        yield from _below(logs, "", _DEPTH)


def _below(folder: Path, within: str, depth: int) -> Iterator[Found]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except OSError:
        return  # it went away, or is not ours to read: there are no runs to show in it
    for name in names:
        path = folder / name
        found = _found(path, f"{within}{name}")
        if found is not None:
            yield found
        elif depth > 1:
            yield from _below(path, f"{within}{name}/", depth - 1)


def _found(path: Path, name: str) -> Found | None:
    folder = RunFolder(path)
    readable = os.fsencode(name).decode("utf-8", "replace")
    stamp = _stamp(folder.info_path)
    if stamp is None and _stamp(folder.trace_path) is None:
        return None
    return Found(folder=folder, name=readable, stamp=stamp)


def _stamp(path: Path) -> Stamp | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    regular = stat.S_ISREG(found.st_mode)
    return Stamp(found.st_ino, found.st_mtime_ns, found.st_size) if regular else None


def info_of(found: Found) -> tuple[RunInfo | None, Trouble | None]:
    """What `run.json` says, or why it cannot be read."""
    if found.stamp is None:
        text = "This folder holds a trace but no run.json, so it is not known whose run it is."
        return None, Trouble(text=text, grave=True)
    if found.stamp.size > _LARGEST:
        text = f"run.json is over {_LARGEST:,} bytes, so this is no run of coag."
        return None, Trouble(text=text, grave=True)
    try:
        return read_run(found.folder.path), None
    except TraceError as error:
        return None, Trouble(text=within_run(error), grave=True)


def within_run(error: TraceError) -> str:
    """What is wrong with a file of a run, without the folders that it lies in."""
    problem = str(error).removeprefix(f"{error.path}: ")
    return f"{error.path.name} {problem}".rstrip(".") + "."


def key_of(found: Found, info: RunInfo | None) -> str:
    """The id of a run, or of one whose id is not known or too long its folder's name."""
    if info is not None and len(info.id) <= _ID:
        return info.id
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", found.folder.path.name)[:_ID]
    return name or "run"


def with_hash(key: str, found: Found) -> str:
    """The same, made unique by where the folder is."""
    digest = hashlib.sha256(found.name.encode("utf-8", "replace")).hexdigest()[:6]
    return f"{key}-{digest}"
