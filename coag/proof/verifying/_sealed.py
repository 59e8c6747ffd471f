"""Whether a run's files are those that were sealed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coag.errors import TraceError
from coag.tracing import (
    RunFolder,
    RunInfo,
    Witness,
    closing_hash,
    file_hash,
    info_fields,
    seal_problems,
    witness_problems,
)

from ._book import Book, shown
from ._violation import Rule

_UNSEALED = "run.json and the pages are not sealed in this run: an older version of coag wrote it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchors:
    """What a run is held against that does not lie in its folder."""

    head: str | None = None
    key: str | Path | None = None
    witness: Path | None = None


@dataclass(slots=True)
class Told:
    """What was read of a trace, as far as seals need it."""

    records: int
    head: str
    bound: bool
    """Whether its first line follows from `run.json`."""
    chained: bool
    """Whether all its lines are of the version that has hashes."""


def check_info(folder: RunFolder, info: RunInfo, told: Told, book: Book) -> None:
    """Holds `run.json` against what was sealed when the run began and ended."""
    for path in (folder.info_path, folder.trace_path, folder.remembered_path):
        if path.is_symlink():
            book.violate(Rule.SEAL, f"{path.name} is a link to somewhere else.")
    if repeated := _repeated(folder.info_path):
        book.violate(Rule.SEAL, f"run.json has the field {shown(repeated)} more than once.")
    seal = info.seal
    if seal is None or not seal.closing:
        _check_unclosed(info, told, book)
        return
    if not _ends_whole(folder.trace_path):
        book.violate(Rule.SEAL, "The trace does not end with a newline, as a sealed one does.")
    try:
        remembered = file_hash(folder.remembered_path)
    except OSError as error:
        book.violate(Rule.SEAL, f"remembered.jsonl cannot be read: {error.strerror}.")
        return
    fields = info_fields(folder.info_path) or {}
    if closing_hash(fields, seal.records, seal.hash, remembered) != seal.closing:
        book.violate(
            Rule.SEAL,
            "What was sealed at the run's end has changed: what run.json says (agent, model, "
            "seed, settings, times, result), its seal, or remembered.jsonl.",
        )


def _check_unclosed(info: RunInfo, told: Told, book: Book) -> None:
    if told.bound and info.ended_at is not None and info.seal is not None:
        book.violate(Rule.SEAL, "The run has ended, and the seal of its run.json was taken away.")
    elif told.bound and info.ended_at is None and info.result is not None:
        book.violate(Rule.SEAL, "run.json has a result, and the run has not ended.")
    elif told.records and told.chained and not told.bound:
        book.remark(_UNSEALED)


def check_anchors(
    folder: RunFolder, info: RunInfo, told: Told, anchors: Anchors, book: Book, heads: Heads
) -> None:
    """Holds a run against a noted hash, a signature and a witness, where they are given.

    Raises:
        ConfigurationError: The public key is none.
        TraceError: The witness file cannot be read, or is none.
    """
    closing = info.seal.closing if info.seal else ""
    if anchors.head is not None and anchors.head not in {told.head, closing} - {""}:
        book.violate(
            Rule.SEAL,
            f"The run was to end with the hash {shown(anchors.head)}; it ends with "
            f"{shown(closing or told.head)}.",
        )
    elif anchors.head is not None and closing and anchors.head == told.head:
        book.remark("The noted hash is that of the last line: it does not cover run.json.")
    if folder.path.resolve().name != info.id:
        text = f"The folder is named {shown(folder.path.resolve().name)}, the run {shown(info.id)}"
        if heads.wanted or anchors.key is not None:
            book.violate(Rule.SEAL, f"{text}: another run may have taken its place.")
        else:
            book.remark(f"{text}.")
    try:
        for problem in seal_problems(folder.path, anchors.key):
            book.violate(Rule.SEAL, problem)
        wrong, remarks = heads.problems(folder.path)
    except TraceError as error:
        book.violate(Rule.SEAL, f"{error}.")
        return
    for problem in wrong:
        book.violate(Rule.SEAL, problem)
    for remark in remarks:
        book.remark(remark)


class Heads:
    """The places of a trace that a witness saw, and what stands there now.

    Raises:
        TraceError: The witness file cannot be read, or is none.
    """

    def __init__(self, witness: Path | None, run: str) -> None:
        self.wanted = witness is not None
        self._entries = (
            [] if witness is None else [one for one in Witness(witness).entries() if one.run == run]
        )
        self._places = {one.records for one in self._entries}
        self._found: dict[int, str] = {0: ""}

    def take(self, records: int, head: str) -> None:
        """So many records end with this hash."""
        if records in self._places:
            self._found[records] = head

    def problems(self, run: Path) -> tuple[list[str], list[str]]:
        """Violations and remarks."""
        if not self.wanted:
            return [], []
        if not self._entries:
            return [f"The run {run.name!r} is not witnessed: the file has no entry of it."], []
        return witness_problems(run, self._entries, self._found)


def _ends_whole(trace: Path) -> bool:
    if not trace.is_file() or trace.stat().st_size == 0:
        return True
    with trace.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"


def _repeated(path: Path) -> str | None:
    """A field that a JSON file has more than once in one object."""
    found: list[str] = []

    def look(pairs: Iterable[tuple[str, Any]]) -> Mapping[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in pairs:
            if name in seen:
                found.append(name)
            seen[name] = value
        return seen

    try:
        json.loads(path.read_bytes(), object_pairs_hook=look)
    except (OSError, ValueError, RecursionError):
        return None
    return found[0] if found else None
