"""Folders of runs: made, opened, found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from coag._util.files import replace_file
from coag._util.html_cards import html_card
from coag._util.validation import first_error
from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.schema import (
    TRACE_VERSION,
    Clock,
    Percept,
    PerceptKind,
    Record,
    Redactor,
    Snapshot,
    TraceRecord,
)

from .files import FOLDER, is_held, regular, trace_errors
from .hash_chain import (
    FIXED,
    closing_hash,
    file_hash,
    info_fields,
    is_older,
    newer_version,
    opening_hash,
    seal_of,
)
from .pages import PhasePages, PlainPages
from .reader import read_trace
from .run import RunInfo, run_facts
from .signatures import check_environment, seal_by_environment
from .writer import TraceWriter

# ---- The folder of one run ----


_INFO = "run.json"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder that holds all that a run leaves; see `coag.tracing` for what is in it."""

    path: Path

    @classmethod
    def create(cls, logs: Path, info: RunInfo, *, redactor: Redactor | None = None) -> Self:
        """Makes the folder of a new run and writes its `run.json`; it is its owner's alone.

        Args:
            logs: The folder of all runs; made if it is not there.
            info: What is known at the start; names the folder.
            redactor: Takes secrets out; None for the one that knows this process's environment.

        Raises:
            TraceError: If the folder exists already or cannot be written to.
            ConfigurationError: The environment has a `COAG_SEAL_KEY` that is no key.
        """
        check_environment()
        folder = cls(logs / info.id)
        with trace_errors(folder.path, "cannot be made"):
            try:
                folder.path.mkdir(mode=FOLDER, parents=True)
            except FileExistsError as error:
                raise TraceError(folder.path, "exists already; a run needs a new folder") from error
        folder._write(folder._fields(info, redactor))
        return folder

    @property
    def info_path(self) -> Path:
        """What is known about the run: `run.json`."""
        return self.path / _INFO

    @property
    def trace_path(self) -> Path:
        """Every record of the run: `trace.jsonl`."""
        return self.path / "trace.jsonl"

    @property
    def held(self) -> bool:
        """Whether a process writes the run now; False where locks cannot say (Windows)."""
        return is_held(self.trace_path)

    @property
    def cycles_path(self) -> Path:
        """The pages for reading, one folder per cycle."""
        return self.path / "cycles"

    @property
    def remembered_path(self) -> Path:
        """Of a fork: the records that its memory began with, one a line."""
        return self.path / "remembered.jsonl"

    @property
    def exists(self) -> bool:
        """True if there is a run here."""
        return os.path.isfile(self.info_path)

    def _repr_html_(self) -> str:
        try:
            facts = run_facts(read_run(self.path))
        except TraceError as error:
            return html_card("No run", lines=[str(error)])
        return html_card(f"Run {self.path.name}", facts=facts)

    def remembered(self) -> tuple[Record, ...]:
        """The records that a fork's memory began with.

        Raises:
            TraceError: If they are not there, or cannot be read.
        """
        path = self.remembered_path
        try:
            with open(path, "rb", opener=regular) as file:
                return tuple(map(Record.model_validate_json, file.read().splitlines()))
        except (OSError, ValidationError) as error:
            raise TraceError(path, f"holds no records of a fork's memory: {error}") from error

    def finish(
        self,
        *,
        at: datetime,
        result: dict[str, Any] | None = None,
        redactor: Redactor | None = None,
    ) -> RunInfo:
        """Notes in `run.json` that the run ended, and with what; in one step or not at all.

        The trace is closed by now. How many records it has, its last hash and a hash over all that
        `run.json` says are noted as the `seal`, unless the trace ends in what is no whole line of
        this version. Where the environment has a key (`COAG_SEAL_KEY`), `seal.json` is signed.

        Args:
            at: When it ended.
            result: What was found out about it, as JSON.
            redactor: Takes secrets out; None for the one that knows this process's environment.

        Raises:
            TraceError: If `run.json` cannot be read or written.
            ConfigurationError: The environment's key is none; the run is ended all the same.
        """
        trace = self.trace_path
        seal = seal_of(trace) if trace.is_file() else None
        info = read_run(self.path).model_copy(
            update={"ended_at": at, "result": result, "seal": None}
        )
        fields = self._fields(info, redactor)
        if seal is not None:
            with trace_errors(self.remembered_path, "cannot be read"):
                remembered = file_hash(self.remembered_path)
            closing = closing_hash(fields, seal.records, seal.hash, remembered)
            seal = seal.model_copy(update={"closing": closing})
            fields["seal"] = seal.model_dump(mode="json")
        self._write(fields)
        seal_by_environment(self.path, at)
        return info.model_copy(update={"seal": seal})

    def reopen(self, *, redactor: Redactor | None = None) -> None:
        """Notes in `run.json` that a run that had ended continues.

        Args:
            redactor: Takes secrets out; None for the one that knows this process's environment.

        Raises:
            TraceError: If `run.json` cannot be read or written.
        """
        info = read_run(self.path)
        if info.ended_at is not None or info.seal is not None:
            reopened = info.model_copy(update={"ended_at": None, "seal": None})
            self._write(self._fields(reopened, redactor))

    def _fields(self, info: RunInfo, redactor: Redactor | None) -> dict[str, Any]:
        """What to write to `run.json`; what a run began with is not changed by a letter."""
        clean = (redactor or Redactor.from_environment()).clean
        fields: dict[str, Any] = from_json(clean(info.model_dump_json()))
        old = info_fields(self.info_path) or {}
        return fields | {name: old[name] for name in FIXED if name in old}

    def _write(self, fields: dict[str, Any]) -> None:
        text = to_json(fields, indent=2).decode()
        with trace_errors(self.info_path, "cannot be written"):
            replace_file(self.info_path, text + "\n", durable=False)


def read_run(folder: Path | str) -> RunInfo:
    """What is known about the run in a folder.

    Raises:
        TraceError: If there is no `run.json`, or it is none of this version of the format or of
            an older one.
    """
    folder = Path(folder)
    path = folder / _INFO
    with trace_errors(path, "cannot be read"):
        try:
            with open(path, "rb", opener=regular) as file:
                text = file.read()
        except FileNotFoundError as error:
            raise TraceError(folder, f"is no run's folder: it holds no {_INFO}") from error
    return _parse(text, path)


def open_trace(
    folder: RunFolder, *, clock: Clock | None = None, redactor: Redactor | None = None
) -> TraceWriter:
    """Opens a run's trace for writing, new or to be continued, with its pages for reading.

    Args:
        folder: The run's folder; its `run.json` says which kind of pages it gets.
        clock: Dates notes about repairs.
        redactor: Takes secrets out; None for the one that knows this process's environment.

    Raises:
        TraceError: If the trace cannot be opened, is held by another writer or is damaged.
    """
    redactor = redactor or Redactor.from_environment()
    make = PhasePages if read_run(folder.path).kind == "coag" else PlainPages
    pages = make(folder.cycles_path)
    opening = opening_hash(info_fields(folder.info_path) or {})
    writer = TraceWriter(
        folder.trace_path, pages=pages, clock=clock, redactor=redactor, opening=opening
    )
    try:
        folder.reopen(redactor=redactor)
    except BaseException:
        writer.close()
        raise
    return writer


def _parse(text: bytes, path: Path) -> RunInfo:
    try:
        version = _Version.model_validate_json(text).v
        if version > TRACE_VERSION:
            raise TraceError(path, newer_version(version))
        if is_older(version):
            text = to_json({**from_json(text), "v": TRACE_VERSION})  # it lacks what has defaults
        return RunInfo.model_validate_json(text)
    except ValidationError as error:
        raise TraceError(path, f"describes no run: {first_error(error, 'the whole')}") from error


class _Version(BaseModel):
    """The one field that every version of `run.json` has."""

    v: int


# ---- Finding a run by what a person types ----


_DEPTH = 3
"""Folders that runs may lie below the folder of logs: a demo's, a case's, the run's own."""

_LISTED = 20
"""How many runs an error names at most."""


def list_runs(logs: Path | str) -> Iterator[RunFolder]:
    """The runs in a folder of logs and in the folders of cases in it, by path.

    For ids of `new_run_id` that means oldest first within a folder.

    Folders within it that this user may not read are left out.

    Raises:
        ConfigurationError: If there is no such folder, or it cannot be read.
    """
    logs = Path(logs)
    if not logs.is_dir():
        raise ConfigurationError(
            f"There is no folder of logs at {str(logs)!r}. Name the one that holds the runs: "
            "--logs DIR."
        )
    if not os.access(logs, os.R_OK | os.X_OK):
        raise ConfigurationError(f"The folder of logs {str(logs)!r} may not be read by this user.")
    yield from _runs_below(logs, _DEPTH)


def _runs_below(folder: Path, depth: int) -> Iterator[RunFolder]:
    """Looks no deeper into a run: its own folders are many."""
    for path in sorted(path for path in folder.iterdir() if os.path.isdir(path)):
        run = RunFolder(path)
        if run.exists:
            yield run
        elif depth > 1 and os.access(path, os.R_OK | os.X_OK):
            yield from _runs_below(path, depth - 1)


def find_run(text: str, logs: Path | str) -> RunFolder:
    """The run that a person means.

    Args:
        text: A run's folder, its id, a beginning that only one id has, or `latest` for the
            run that started last.
        logs: The folder of all runs.

    Raises:
        UnknownNameError: If no run is meant; lists the runs there are, of a path those beside it.
        ConfigurationError: If several are meant, the text is a file's path, or there is no folder
            of logs.
        TraceError: For `latest`, if a run's `run.json` is damaged.
    """
    direct = RunFolder(Path(text))
    if direct.exists:
        return direct
    if os.path.isfile(direct.path):
        raise ConfigurationError(_of_a_file(direct.path))
    name = text
    if len(direct.path.parts) > 1:
        logs, name = direct.path.parent, direct.path.name
    runs = list(list_runs(logs))
    if name == "latest" and runs:
        return max(runs, key=lambda run: read_run(run.path).started_at)
    meant = [run for run in runs if run.path.name == name]
    meant = meant or [run for run in runs if name and run.path.name.startswith(name)]
    names = [run.path.name for run in meant or runs]
    if len(names) > _LISTED:
        names = [*names[-_LISTED:], f"… and {len(names) - _LISTED} older ones"]
    if not meant:
        folder = any(map(os.path.isdir, (direct.path, Path(logs) / name)))
        raise UnknownNameError("run" if folder else "run or folder", text, names)
    if len(meant) > 1:
        raise ConfigurationError(f"Several runs begin with {text!r}: {', '.join(names)}.")
    return meant[0]


def _of_a_file(path: Path) -> str:
    """What to say where a file is given for a run."""
    folder = RunFolder(path.parent)
    if folder.exists:
        return f"{str(path)!r} is a file of a run. Give the run's folder: {path.parent}"
    return f"{str(path)!r} is a file. Give a run's folder or its id; `coag log` lists the runs."


def known_cycles(info: RunInfo, last: int) -> str:
    """Which cycles a run has, as words of a sentence, and of a fork whose the earlier ones are.

    Args:
        info: The run.
        last: The last cycle in its trace; 0 for none.
    """
    first = 1 if info.parent is None else info.parent.cycle
    if last < first:
        return "no cycle yet"
    if info.parent is None or first == 1:
        return "cycle 1" if last == 1 else f"cycles up to {last}"
    own = f"cycle {last}" if first == last else f"cycles {first} to {last}"
    return f"{own} (the earlier ones are its parent's, {info.parent.run!r})"


# ---- What a run was asked to do ----


_LOOKED_AT = 100
"""Lines of a trace after which nobody is taken to have asked for anything."""


def asked_in(record: TraceRecord) -> str:
    """What was asked for, by one record: a message's text, or the goal of a snapshot."""
    match record:
        case Percept(kind=PerceptKind.MESSAGE):
            return record.content
        case Snapshot():
            goal = record.working_memory.get("goal")
            return goal if isinstance(goal, str) else ""
        case _:
            return ""


def first_asked(run: RunFolder) -> str:
    """What a run was asked first, a fork what its parent was; empty if nothing can be read."""
    try:
        lines = islice(read_trace(run.trace_path, lambda problem: None), _LOOKED_AT)
        return next(filter(None, (asked_in(entry.body) for entry in lines)), "")
    except TraceError:
        return ""
