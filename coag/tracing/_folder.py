"""The folder of one run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from coag.errors import TraceError
from coag.schema import TRACE_VERSION, Clock, Record, Redactor, html_card

from ._line_file import backwards
from ._pages import PhasePages, PlainPages
from ._parse import Unreadable, newer_version, parse_line
from ._private import FOLDER, private
from ._regular import regular
from ._run import RunInfo, Seal, run_facts
from ._upgrade import is_older, upgraded_run
from ._writer import TraceWriter

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
        """
        folder = cls(logs / info.id)
        try:
            folder.path.mkdir(mode=FOLDER, parents=True)
        except FileExistsError as error:
            raise TraceError(folder.path, "exists already; a run needs a new folder") from error
        except OSError as error:
            raise TraceError(folder.path, f"cannot be made: {_reason(error)}") from error
        folder._write(info, redactor or Redactor.from_environment())
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
        return self.info_path.is_file()

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

        The trace is closed by now. How many records it has and its last hash are noted as the
        `seal`, unless it ends in what is no whole line of this version, or is not there.

        Args:
            at: When it ended.
            result: What was found out about it, as JSON.
            redactor: Takes secrets out; None for the one that knows this process's environment.

        Raises:
            TraceError: If `run.json` cannot be read or written.
        """
        trace = self.trace_path
        seal = seal_of(trace) if trace.is_file() else None
        info = read_run(self.path).model_copy(
            update={"ended_at": at, "result": result, "seal": seal}
        )
        self._write(info, redactor or Redactor.from_environment())
        return info

    def reopen(self, *, redactor: Redactor | None = None) -> None:
        """Notes in `run.json` that a run that had ended goes on.

        Args:
            redactor: Takes secrets out; None for the one that knows this process's environment.

        Raises:
            TraceError: If `run.json` cannot be read or written.
        """
        info = read_run(self.path)
        if info.ended_at is not None or info.seal is not None:
            going_on = info.model_copy(update={"ended_at": None, "seal": None})
            self._write(going_on, redactor or Redactor.from_environment())

    def _write(self, info: RunInfo, redactor: Redactor) -> None:
        text = redactor.clean(info.model_dump_json(indent=2), indent=2)
        draft = self.info_path.with_suffix(".json.tmp")
        try:
            with open(draft, "w", encoding="utf-8", opener=private) as file:
                file.write(text + "\n")
            os.replace(draft, self.info_path)
        except OSError as error:
            raise TraceError(self.info_path, f"cannot be written: {_reason(error)}") from error


def read_run(folder: Path) -> RunInfo:
    """What is known about the run in a folder.

    Raises:
        TraceError: If there is no `run.json`, or it is none of this version of the format or of
            an older one.
    """
    path = folder / _INFO
    try:
        with open(path, "rb", opener=regular) as file:
            text = file.read()
    except FileNotFoundError as error:
        raise TraceError(folder, f"is no run's folder: it holds no {_INFO}") from error
    except OSError as error:
        raise TraceError(path, f"cannot be read: {_reason(error)}") from error
    return _parse(text, path)


def open_trace(
    folder: RunFolder, *, clock: Clock | None = None, redactor: Redactor | None = None
) -> TraceWriter:
    """Opens a run's trace for writing, new or to go on with, with its pages for reading.

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
    writer = TraceWriter(folder.trace_path, pages=pages, clock=clock, redactor=redactor)
    try:
        folder.reopen(redactor=redactor)
    except BaseException:
        writer.close()
        raise
    return writer


def seal_of(trace: Path) -> Seal | None:
    """What a closed trace came to: how many records it has, and its last hash.

    Args:
        trace: A run's `trace.jsonl`.

    Returns:
        The seal; None if there is no trace, or it ends in what is no whole line of this version.

    Raises:
        TraceError: If the trace cannot be read.
    """
    try:
        with FileIO(trace, "r", opener=regular) as file:
            lines = backwards(file, os.fstat(file.fileno()).st_size)
            tail, last = next(lines), next(lines, b"")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TraceError(trace, f"cannot be read: {_reason(error)}") from error
    if not tail and not last:
        return Seal(records=0, hash="")
    parsed = parse_line(last)
    if tail or isinstance(parsed, Unreadable) or not parsed.entry.hash:
        return None
    return Seal(records=parsed.entry.seq + 1, hash=parsed.entry.hash)


def _parse(text: bytes, path: Path) -> RunInfo:
    try:
        version = _Version.model_validate_json(text).v
        if version > TRACE_VERSION:
            raise TraceError(path, newer_version(version))
        if is_older(version):
            text = to_json(upgraded_run(from_json(text)))
        return RunInfo.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise TraceError(path, f"describes no run: {at}: {first['msg']}") from error


class _Version(BaseModel):
    """The one field that every version of `run.json` has."""

    v: int


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
