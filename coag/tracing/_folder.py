"""The folder of one run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ValidationError

from coag.errors import TraceError
from coag.schema import TRACE_VERSION, Clock

from ._pages import PhasePages, PlainPages
from ._private import FOLDER, private
from ._redactor import Redactor
from ._run import RunInfo
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
    def exists(self) -> bool:
        """True if there is a run here."""
        return self.info_path.is_file()

    def finish(
        self,
        *,
        at: datetime,
        result: dict[str, Any] | None = None,
        redactor: Redactor | None = None,
    ) -> RunInfo:
        """Notes in `run.json` that the run ended, and with what; in one step or not at all.

        Args:
            at: When it ended.
            result: What was found out about it, as JSON.
            redactor: Takes secrets out; None for the one that knows this process's environment.

        Raises:
            TraceError: If `run.json` cannot be read or written.
        """
        info = read_run(self.path).model_copy(update={"ended_at": at, "result": result})
        self._write(info, redactor or Redactor.from_environment())
        return info

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
        TraceError: If there is no `run.json`, or it is not one of this version of the format.
    """
    path = folder / _INFO
    try:
        text = path.read_bytes()
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
    pages = make(folder.cycles_path, redactor)
    return TraceWriter(folder.trace_path, pages=pages, clock=clock, redactor=redactor)


def _parse(text: bytes, path: Path) -> RunInfo:
    try:
        version = _Version.model_validate_json(text).v
        if version > TRACE_VERSION:
            raise TraceError(
                path,
                f"is of version {version} of the format, and this coag reads up to "
                f"{TRACE_VERSION}. Update coag.",
            )
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
