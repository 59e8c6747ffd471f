"""Rules on procedures and on what is written to memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from coag.context import WorkingMemory
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION, is_user_scope
from coag.schema import (
    MemoryKind,
    Phase,
    Record,
    RetrievalOutcome,
    Snapshot,
    SnapshotReason,
    Written,
    cleaned,
    content_id,
    record_id,
)
from coag.tracing import REDACTED

from .book import Book, Rule, Taking, difference, same, shown
from .story import Story

# ---- Which action writes what to memory ----


_RECORDS = {
    EPISODIC_ACTION: (MemoryKind.EPISODIC, "summary"),
    SEMANTIC_ACTION: (MemoryKind.SEMANTIC, "fact"),
}
"""The kind of record that an action writes, and which argument is its text."""


def selected_in(memory: WorkingMemory) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The actions that were selected in the cycle that goes on, with their arguments."""
    cognitive = memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None or cognitive.evaluation is None:
        return
    names = {candidate.id: candidate.action for candidate in cognitive.proposal.candidates}
    given = {judged.candidate_id: judged.arguments for judged in cognitive.evaluation.evaluations}
    for chosen in cognitive.selection.chosen:
        yield names.get(chosen, ""), given.get(chosen) or {}


def writes(action: str, arguments: Mapping[str, Any], written: Written) -> bool:
    """Whether this is what the action writes, as far as can be told: redacted texts may be."""
    content = written.content
    if written.what == "procedure":
        name = written.id.rpartition("@")[0]
        return (
            action == PROCEDURAL_ACTION
            and same(name, arguments.get("procedure"))
            and _alike(content.get("reason"), arguments.get("reason"))
        )
    if action not in _RECORDS:
        return False
    kind, argument = _RECORDS[action]
    return content.get("kind") == kind and _alike(content.get("text"), arguments.get(argument))


def _alike(one: object, other: object) -> bool:
    """Whether two texts say the same; white space does not count, as in a record's id.

    Nor do control characters, which memory does not keep.
    """
    return same(*(" ".join(cleaned(str(text)).split()) for text in (one, other)))


# ---- Procedures are pinned, and what is written to memory comes from here and now ----


class _State(BaseModel):
    """What a snapshot tells of the texts of procedures, as far as it is needed here."""

    procedures: dict[str, list[dict[str, Any]]] = {}


_VERSIONS: TypeAdapter[dict[str, int]] = TypeAdapter(dict[str, int])
_STATE: TypeAdapter[_State | None] = TypeAdapter(_State | None)


class Procedures:
    """Versions in force change between cycles only, count up by one, and stay as they were."""

    def __init__(self, book: Book, story: Story) -> None:
        self.book = book
        self.story = story
        self._in_force: dict[str, int] | None = None
        """Versions that the last snapshot told of."""
        self._ahead: dict[str, int] = {}
        """Versions that a Retrieval pinned and no snapshot has told of yet."""
        self._written: dict[str, int] = {}
        """Versions written in this cycle."""
        self._texts: dict[str, tuple[str, ...]] = {}
        """A hash of each version that the trace has told of."""
        self._fresh: dict[tuple[str, int], Mapping[str, Any]] = {}

    @property
    def takes(self) -> Taking:
        """What tells of versions."""
        return {"snapshot": self._snapshot, "outcome": self._outcome, "written": self._write}

    def end(self, *, finished: bool) -> None:
        """A version that only a Retrieval knows of is in force nowhere."""
        for name, version in self._ahead.items():
            self.book.violate(
                Rule.PROCEDURE,
                f"Procedure {shown(name)} was pinned at version {version}; the cycle began with "
                f"version {(self._in_force or {}).get(name)}.",
            )

    def _snapshot(self, record: Snapshot) -> None:
        try:
            told = _VERSIONS.validate_python(record.procedures.get("versions", {}))
            state = _STATE.validate_python(record.procedures.get("state"))
        except ValidationError as error:
            found = error.errors(include_url=False)[0]
            where = ".".join(map(str, found["loc"]))
            self.book.violate(
                Rule.PROCEDURE,
                f"What the snapshot tells of procedures cannot be read: {shown(where)}: "
                f"{found['msg']}.",
            )
            self._in_force = None
            return
        if record.reason is not SnapshotReason.CYCLE:
            self._in_force, self._ahead, self._written = None, {}, {}
            self._texts, self._fresh = {}, {}
        known = {**(self._in_force or {}), **self._ahead, **self._written}
        for name, version in known.items():
            if told.get(name, 0) < version and told:
                self.book.violate(
                    Rule.PROCEDURE,
                    f"Procedure {shown(name)} is in version {told.get(name)} now, and was in "
                    f"version {version} before.",
                )
        if self._in_force not in (None, told) and state is None:
            self.book.violate(
                Rule.PROCEDURE,
                f"The procedures changed from {shown(self._in_force)} to {shown(told)}, and their "
                "texts are not told.",
            )
        self._in_force, self._ahead, self._written = dict(told), {}, {}
        if state is not None:
            self._check_texts(state.procedures, told)

    def _check_texts(
        self, histories: Mapping[str, Sequence[Mapping[str, Any]]], told: Mapping[str, int]
    ) -> None:
        """Every version stays: the histories only grow."""
        for name, history in histories.items():
            numbers = [version.get("version") for version in history]
            if numbers != list(range(1, len(history) + 1)):
                self.book.violate(
                    Rule.PROCEDURE, f"The versions of procedure {shown(name)} are {shown(numbers)}."
                )
            if name in told and told[name] != len(history):
                self.book.violate(
                    Rule.PROCEDURE,
                    f"Procedure {shown(name)} has {len(history)} versions, and version "
                    f"{told[name]} is said to be in force.",
                )
            hashes = tuple(_text_hash(version) for version in history)
            for number, (ours, theirs) in enumerate(
                zip(self._texts.get(name, ()), hashes, strict=False), start=1
            ):
                if ours != theirs:
                    self.book.violate(
                        Rule.PROCEDURE,
                        f"Version {number} of procedure {shown(name)} is not what it was before.",
                    )
            self._texts[name] = hashes
            self._check_written(name, history)

    def _check_written(self, name: str, history: Sequence[Mapping[str, Any]]) -> None:
        for number, version in enumerate(history, start=1):
            wrote = self._fresh.pop((name, number), None)
            if wrote is not None and difference(dict(wrote), dict(version)) is not None:
                self.book.violate(
                    Rule.PROCEDURE,
                    f"Version {number} of procedure {shown(name)} is in force otherwise than it "
                    "was written.",
                )

    def _outcome(self, record: Any) -> None:
        if not isinstance(record, RetrievalOutcome) or self._in_force is None:
            return
        if set(record.procedures) != set(self._in_force) and self._in_force:
            odd = set(record.procedures) ^ set(self._in_force)
            self.book.violate(
                Rule.PROCEDURE,
                f"Pinned are {shown(sorted(record.procedures))}, the cycle began with "
                f"{shown(sorted(self._in_force))}: {', '.join(sorted(odd))}.",
            )
        for name, version in record.procedures.items():
            begun = self._in_force.get(name, version)
            if version > begun:  # another agent may have written it just now: the next tells
                self._ahead[name] = version
            elif version < begun:
                self.book.violate(
                    Rule.PROCEDURE,
                    f"Procedure {shown(name)} was pinned at version {version}; the cycle began "
                    f"with version {begun}.",
                )

    def _write(self, record: Written) -> None:
        if record.what != "procedure":
            return
        name, _, number = record.id.rpartition("@")
        before = {**(self._in_force or {}), **self._ahead, **self._written}.get(name)
        version = record.content.get("version")
        if not isinstance(version, int) or str(version) != number:
            self.book.violate(
                Rule.PROCEDURE,
                f"{shown(record.id)} was written with the version {shown(version)}.",
            )
            return
        if before is not None and version <= before and not self._repeats(name, record):
            self.book.violate(
                Rule.PROCEDURE,
                f"Version {version} of procedure {shown(name)} was written, and version {before} "
                "was there.",
            )
        self._written[name] = max(version, self._written.get(name, 0))
        self._fresh[(name, version)] = record.content

    def _repeats(self, name: str, record: Written) -> bool:
        """Whether an action that a crash broke off was run once more, which writes the same."""
        number = record.content.get("version")
        wrote = self._fresh.get((name, cast("int", number)))
        known = [] if wrote is None else [_text_hash(wrote)]
        return _text_hash(record.content) in (*known, *self._texts.get(name, ())[-1:])


class Writes:
    """Records are written in Execution, by its action, and are what their ids say."""

    def __init__(self, book: Book, story: Story, run: str | None) -> None:
        self.book = book
        self.story = story
        self._run = run
        self._texts: dict[str, str] = {}
        """A hash of the text of each record that was written."""
        self._rolled_back: set[str] = set()
        """Versions of procedures that came with a revocation, which no action of a cycle is."""

    @property
    def takes(self) -> Taking:
        """What is written, and what is recalled."""
        return {"written": self._write, "outcome": self._outcome}

    def end(self, *, finished: bool) -> None:
        """Nothing is left open."""

    def _write(self, record: Written) -> None:
        if record.what == "revoked":
            versions: dict[str, Any] = record.content.get("procedures") or {}
            self._rolled_back |= {f"{name}@{version}" for name, version in versions.items()}
            return
        memory = self.story.memory
        if memory is None or self.story.shaken or record.id in self._rolled_back:
            return
        if memory.phase is not Phase.SELECTION:
            self.book.violate(
                Rule.WRITTEN,
                f"{shown(record.id)} was written after {memory.phase} of cycle {memory.cycle}; "
                "actions run in Execution only.",
            )
        else:
            self._check_writer(record, memory)
        # One that was superseded and holds again tells of when it was first made.
        if record.cycle != memory.cycle and record.content.get("supersedes") is None:
            self.book.violate(
                Rule.WRITTEN,
                f"{shown(record.id)} is of cycle {record.cycle}, written in cycle {memory.cycle}.",
            )
        if record.what == "record":
            self._check_record(record)

    def _check_writer(self, record: Written, memory: WorkingMemory) -> None:
        selected = list(selected_in(memory))
        if not any(writes(action, arguments, record) for action, arguments in selected):
            told = ", ".join(f"{action} {shown(dict(given))}" for action, given in selected)
            self.book.violate(
                Rule.WRITTEN,
                f"{shown(record.id)} was written, and nothing that was selected writes it: "
                f"{told or 'nothing was'}.",
            )

    def _check_record(self, record: Written) -> None:
        try:
            held = Record.model_validate(record.content)
        except ValidationError:
            self.book.violate(Rule.WRITTEN, f"{shown(record.id)} holds no record of memory.")
            return
        if held.id != record.id:
            self.book.violate(
                Rule.WRITTEN, f"{shown(record.id)} was written with the id {shown(held.id)}."
            )
        if REDACTED not in held.text and held.id != record_id(held.kind, held.scope, held.text):
            self.book.violate(
                Rule.WRITTEN,
                f"The text of record {shown(held.id)} is not that of its id: {shown(held.text)}.",
            )
        self._texts[held.id] = content_id(held.text)
        memory = self.story.memory
        begun = memory.cognitive_state.retrieval if memory is not None else None
        if begun is not None and begun.memory_scope is not None:
            self._check_person(held, begun.memory_scope, "written")
        made = held.provenance
        if self._run is not None and held.supersedes is None and made.run != self._run:
            self.book.violate(
                Rule.WRITTEN,
                f"{shown(record.id)} says that it was made in run {shown(made.run)}, not in "
                f"{shown(self._run)}.",
            )
        if made.cycle != record.cycle:
            self.book.violate(
                Rule.WRITTEN,
                f"{shown(record.id)} says that it was made in cycle {made.cycle}, not in "
                f"{record.cycle}.",
            )

    def _outcome(self, record: Any) -> None:
        if not isinstance(record, RetrievalOutcome):
            return
        for recalled in record.records:
            held = recalled.record
            if record.memory_scope is not None and is_user_scope(held.scope):
                self._check_person(held, record.memory_scope, "recalled")
            if self._texts.get(held.id, content_id(held.text)) != content_id(held.text):
                self.book.violate(
                    Rule.WRITTEN,
                    f"Record {shown(held.id)} was recalled otherwise than it was written: "
                    f"{shown(held.text)}.",
                )

    def _check_person(self, held: Record, scope: str, what: str) -> None:
        if held.scope != scope and REDACTED not in held.scope + scope:
            served = shown(scope) if scope else "nobody"
            self.book.violate(
                Rule.PERSON,
                f"Record {shown(held.id)} of {shown(held.scope)} was {what} while {served} was "
                "served.",
            )


def _text_hash(version: Mapping[str, Any]) -> str:
    text = str(version.get("text", ""))
    return content_id(str(version.get("version")), REDACTED if REDACTED in text else text)
