"""Rules on procedures and on what is written to memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from coag._util.secrets import REDACTED
from coag._util.text import cleaned
from coag._util.validation import first_error
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
    content_id,
    record_id,
)

from .findings import Checker, Findings, Rule, same, same_json, shown
from .rules_turns import StateRules

# ---- Procedures are pinned: they change between cycles only ----


class _Texts(BaseModel):
    procedures: dict[str, list[dict[str, Any]]] = {}


class _Held(BaseModel):
    """The procedures in a snapshot, as far as they are needed here."""

    versions: dict[str, int] = {}
    state: _Texts | None = None


class ProcedureRules(Checker):
    """Versions in force change between cycles only, count up by one, and stay as they were."""

    def __init__(self) -> None:
        self._in_force: dict[str, int] | None = None
        """Versions in the last snapshot."""
        self._ahead: dict[str, int] = {}
        """Versions that a Retrieval pinned and no snapshot has yet."""
        self._written: dict[str, int] = {}
        """Versions written in this cycle."""
        self._texts: dict[str, tuple[str, ...]] = {}
        """A hash of each version that the trace has shown."""
        self._fresh: dict[tuple[str, int], Mapping[str, Any]] = {}

    @property
    def _latest(self) -> dict[str, int]:
        return {**(self._in_force or {}), **self._ahead, **self._written}

    def end(self, *, finished: bool) -> Findings:
        """A version that only a Retrieval has is in force nowhere."""
        for name, version in self._ahead.items():
            yield Rule.PROCEDURE.says(_pinned(name, version, (self._in_force or {}).get(name)))

    def on_snapshot(self, record: Snapshot) -> Findings:
        """Versions never go back, and where they change, their texts are in the snapshot."""
        try:
            held = _Held.model_validate(record.procedures)
        except ValidationError as error:
            self._in_force = None
            text = f"The procedures in the snapshot cannot be read: {first_error(error)}."
            yield Rule.PROCEDURE.says(text)
            return
        versions, state = held.versions, held.state
        if record.reason is not SnapshotReason.CYCLE:
            self._in_force, self._ahead, self._written = None, {}, {}
            self._texts, self._fresh = {}, {}
        for name, version in self._latest.items() if versions else ():
            if versions.get(name, 0) < version:
                now = f"Procedure {shown(name)} is in version {versions.get(name)} now"
                yield Rule.PROCEDURE.says(f"{now}, and was in version {version} before.")
        if self._in_force not in (None, versions) and state is None:
            changed = f"from {shown(self._in_force)} to {shown(versions)}"
            yield Rule.PROCEDURE.says(f"The procedures changed {changed}; their texts are missing.")
        self._in_force, self._ahead, self._written = dict(versions), {}, {}
        if state is not None:
            for name, history in state.procedures.items():
                yield from self._check_history(name, history, versions.get(name))

    def _check_history(
        self, name: str, history: Sequence[Mapping[str, Any]], in_force: int | None
    ) -> Findings:
        """Every version stays: histories only grow."""
        numbers = [version.get("version") for version in history]
        if numbers != list(range(1, len(history) + 1)):
            yield Rule.PROCEDURE.says(
                f"The versions of procedure {shown(name)} are {shown(numbers)}."
            )
        if in_force not in (None, len(history)):
            has = f"Procedure {shown(name)} has {len(history)} versions"
            yield Rule.PROCEDURE.says(f"{has}, and version {in_force} is said to be in force.")
        hashes = tuple(map(_text_hash, history))
        before = zip(self._texts.get(name, ()), hashes, strict=False)
        self._texts[name] = hashes
        for number, (ours, theirs) in enumerate(before, start=1):
            if ours != theirs:
                yield Rule.PROCEDURE.says(
                    f"Version {number} of procedure {shown(name)} is not what it was before."
                )
        for number, version in enumerate(history, start=1):
            wrote = self._fresh.pop((name, number), None)
            if wrote is not None and not same_json(dict(wrote), dict(version)):
                named = f"Version {number} of procedure {shown(name)}"
                yield Rule.PROCEDURE.says(f"{named} is in force otherwise than it was written.")

    def on_retrieval(self, record: RetrievalOutcome) -> Findings:
        """It pins what the cycle began with."""
        if self._in_force is None:
            return
        odd = set(record.procedures) ^ set(self._in_force)
        if odd and self._in_force:
            pinned, begun = shown(sorted(record.procedures)), shown(sorted(self._in_force))
            differ = ", ".join(sorted(odd))
            yield Rule.PROCEDURE.says(
                f"Pinned are {pinned}, the cycle began with {begun}: {differ}."
            )
        for name, version in record.procedures.items():
            begun = self._in_force.get(name, version)
            if version > begun:  # another agent may have written it just now: the next shows it
                self._ahead[name] = version
            elif version < begun:
                yield Rule.PROCEDURE.says(_pinned(name, version, begun))

    def on_written(self, record: Written) -> Findings:
        """A version that is written is the next one."""
        if record.what != "procedure":
            return
        name, _, number = record.id.rpartition("@")
        before = self._latest.get(name)
        version = record.content.get("version")
        if not isinstance(version, int) or str(version) != number:
            yield Rule.PROCEDURE.says(
                f"{shown(record.id)} was written with the version {shown(version)}."
            )
            return
        if before is not None and version <= before and not self._repeats(name, record):
            wrote = f"Version {version} of procedure {shown(name)} was written"
            yield Rule.PROCEDURE.says(f"{wrote}, and version {before} was there.")
        self._written[name] = max(version, self._written.get(name, 0))
        self._fresh[(name, version)] = record.content

    def _repeats(self, name: str, record: Written) -> bool:
        """Whether an action that a crash interrupted was run again, which writes the same."""
        number = cast("int", record.content.get("version"))
        wrote = self._fresh.get((name, number))
        known = () if wrote is None else (_text_hash(wrote),)
        return _text_hash(record.content) in (*known, *self._texts.get(name, ())[-1:])


def _pinned(name: str, version: int, begun: int | None) -> str:
    return (
        f"Procedure {shown(name)} was pinned at version {version}; the cycle began with "
        f"version {begun}."
    )


def _text_hash(version: Mapping[str, Any]) -> str:
    text = str(version.get("text", ""))
    return content_id(str(version.get("version")), REDACTED if REDACTED in text else text)


# ---- What is written to memory comes from the selected action ----


_RECORDS = {
    EPISODIC_ACTION: (MemoryKind.EPISODIC, "summary"),
    SEMANTIC_ACTION: (MemoryKind.SEMANTIC, "fact"),
}
"""The kind of record that an action writes, and which argument is its text."""


class WriteRules(Checker):
    """Records are written in Execution, by its action, and are what their ids say."""

    def __init__(self, state: StateRules, run: str | None) -> None:
        self._state = state
        self._run = run
        self._texts: dict[str, str] = {}
        """A hash of the text of each record that was written."""
        self._rolled_back: set[str] = set()
        """Versions of procedures that came with a revocation, which no action of a cycle is."""

    def on_written(self, record: Written) -> Findings:
        """The selected action wrote it."""
        if record.what == "revoked":
            versions: dict[str, Any] = record.content.get("procedures") or {}
            self._rolled_back |= {f"{name}@{version}" for name, version in versions.items()}
            return
        memory = self._state.certain
        if memory is None or record.id in self._rolled_back:
            return
        named = shown(record.id)
        selected = list(_selected_in(memory))
        if memory.phase is not Phase.SELECTION:
            after = f"{memory.phase} of cycle {memory.cycle}"
            yield Rule.WRITTEN.says(
                f"{named} was written after {after}; actions run in Execution only."
            )
        elif not any(_writes(action, arguments, record) for action, arguments in selected):
            calls = ", ".join(f"{action} {shown(dict(given))}" for action, given in selected)
            wrote = f"{named} was written, and nothing that was selected writes it"
            yield Rule.WRITTEN.says(f"{wrote}: {calls or 'nothing was'}.")
        # One that was superseded and holds again has the cycle in which it was first made.
        if record.cycle != memory.cycle and record.content.get("supersedes") is None:
            yield Rule.WRITTEN.says(
                f"{named} is of cycle {record.cycle}, written in cycle {memory.cycle}."
            )
        if record.what == "record":
            yield from self._check_record(record, memory)

    def _check_record(self, record: Written, memory: WorkingMemory) -> Findings:
        named = shown(record.id)
        try:
            held = Record.model_validate(record.content)
        except ValidationError:
            yield Rule.WRITTEN.says(f"{named} holds no record of memory.")
            return
        if held.id != record.id:
            yield Rule.WRITTEN.says(f"{named} was written with the id {shown(held.id)}.")
        if REDACTED not in held.text and held.id != record_id(held.kind, held.scope, held.text):
            yield Rule.WRITTEN.says(
                f"The text of record {shown(held.id)} is not that of its id: {shown(held.text)}."
            )
        self._texts[held.id] = content_id(held.text)
        retrieval = memory.cognitive_state.retrieval
        if retrieval is not None and retrieval.memory_scope is not None:
            yield from _check_person(held, retrieval.memory_scope, "written")
        made = held.provenance
        if self._run is not None and held.supersedes is None and made.run != self._run:
            text = f"{named} says that it was made in run {shown(made.run)}, not in "
            yield Rule.WRITTEN.says(f"{text}{shown(self._run)}.")
        if made.cycle != record.cycle:
            yield Rule.WRITTEN.says(
                f"{named} says that it was made in cycle {made.cycle}, not in {record.cycle}."
            )

    def on_retrieval(self, record: RetrievalOutcome) -> Findings:
        """What is recalled is as it was written, and of the person who is served."""
        for held in (hit.record for hit in record.records):
            if record.memory_scope is not None and is_user_scope(held.scope):
                yield from _check_person(held, record.memory_scope, "recalled")
            if self._texts.get(held.id, content_id(held.text)) != content_id(held.text):
                came = f"Record {shown(held.id)} was recalled otherwise than it was written"
                yield Rule.WRITTEN.says(f"{came}: {shown(held.text)}.")


def _check_person(held: Record, scope: str, what: str) -> Findings:
    if held.scope != scope and REDACTED not in held.scope + scope:
        served = shown(scope) if scope else "nobody"
        yield Rule.PERSON.says(
            f"Record {shown(held.id)} of {shown(held.scope)} was {what} while {served} was served."
        )


def _selected_in(memory: WorkingMemory) -> Iterator[tuple[str, Mapping[str, Any]]]:
    cognitive = memory.cognitive_state
    if cognitive.selection is None or cognitive.proposal is None or cognitive.evaluation is None:
        return
    names = {candidate.id: candidate.action for candidate in cognitive.proposal.candidates}
    calls = {judged.candidate_id: judged.arguments for judged in cognitive.evaluation.evaluations}
    for chosen in cognitive.selection.chosen:
        yield names.get(chosen, ""), calls.get(chosen) or {}


def _writes(action: str, arguments: Mapping[str, Any], written: Written) -> bool:
    """Whether the action writes this, as far as can be known: texts may be redacted."""
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
