"""Procedural memory: procedures with their whole history, rewritable through the gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from coag._util.files import replace_file
from coag._util.locks import LockHeldError, lock_file
from coag.errors import ConfigurationError, ProcedureRejected, RecordStoreError, UnknownNameError
from coag.schema import Clock, SystemClock, Value, content_id

from .gate import GateSettings, objections, undoing
from .procedures import (
    History,
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    RuleChange,
    fill,
    missing_placeholders,
    next_version,
    seed_procedures,
)

_PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""
SEED = "seed"
"""Author of versions that come from a developer's file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """What `ProceduralMemory.revoke` took back."""

    versions: tuple[tuple[str, ProcedureVersion], ...] = ()
    """The procedures that changed, with the version that now holds."""
    dropped: tuple[PendingRewrite, ...] = ()
    """Rewrites that waited for approval and depend on what was revoked."""


class _Histories(Value):
    format: Literal[1] = 1
    procedures: dict[str, History] = Field(default_factory=dict)
    pending: tuple[PendingRewrite, ...] = ()

    def with_version(self, name: str, version: ProcedureVersion) -> _Histories:
        longer = (*self.procedures.get(name, ()), version)
        return self.model_copy(update={"procedures": {**self.procedures, name: longer}})


class ProceduralMemory:
    """The agent's procedures. Every change is a new version; the old ones stay.

    Saving and locking are quick and block: not for several threads at once.

    Args:
        procedures: The developer's procedures by name; None for those that come with `coag`.
        path: File to keep the versions in between sessions; None keeps them in memory only.
        gate: How strict the gate is.
        clock: Tells when a version was made.

    Raises:
        ConfigurationError: If the file holds something else.
    """

    def __init__(
        self,
        procedures: Mapping[str, Procedure] | None = None,
        *,
        path: Path | str | None = None,
        gate: GateSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._procedures = dict(seed_procedures() if procedures is None else procedures)
        self._clock = clock or SystemClock()
        file = None if path is None else Path(path)
        self._kept = _Kept(self._procedures, file, gate or GateSettings(), self._clock)

    def names(self) -> tuple[str, ...]:
        """The names of all procedures, sorted."""
        return tuple(sorted(self._procedures))

    def versions(self, name: str) -> History:
        """Every version of a procedure, oldest first.

        Raises:
            UnknownNameError: If there is no such procedure.
        """
        self._procedure(name)
        return self._kept.histories.procedures[name]

    def get(self, name: str, version: int | None = None) -> ProcedureVersion:
        """A version of a procedure; the current one for None.

        Raises:
            UnknownNameError: If there is no such procedure or version.
        """
        history = self.versions(name)
        if version is None:
            return history[-1]
        if not 1 <= version <= len(history):
            known = (f"{name}@{one.version}" for one in history)
            raise UnknownNameError("version of a procedure", f"{name}@{version}", known)
        return history[version - 1]

    def current(self) -> dict[str, Procedure]:
        """Every procedure with its current text, as another agent can be given them."""
        return {
            name: one.model_copy(update={"text": self.get(name).text})
            for name, one in sorted(self._procedures.items())
        }

    def objections(self, name: str, text: str, *, untrusted: Sequence[str] = ()) -> tuple[str, ...]:
        """Why the gate would refuse a text, one sentence each; nothing is changed.

        Raises:
            UnknownNameError: If there is no such procedure.
        """
        return self._kept.objections(name, text.strip(), untrusted)

    def render(self, name: str, values: Mapping[str, str], version: int | None = None) -> str:
        """A procedure's text with its placeholders replaced; further values do no harm.

        Raises:
            UnknownNameError: If there is no such procedure or version.
            ConfigurationError: If a placeholder has no value.
        """
        return fill(self._procedure(name), self.get(name, version).text, values)

    def pin(self) -> dict[str, int]:
        """The current version of every procedure, to hold on to for a cycle."""
        return {name: len(self._kept.histories.procedures[name]) for name in self.names()}

    def pending(self) -> tuple[PendingRewrite, ...]:
        """The rewrites that wait for approval, oldest first."""
        return self._kept.histories.pending

    def rewrite(
        self,
        name: str,
        new_text: str,
        *,
        author: str,
        reason: str,
        cycle: int | None = None,
        untrusted: Sequence[str] = (),
    ) -> ProcedureVersion | PendingRewrite:
        """Replaces a procedure's text, if the gate lets it through.

        Asked for again with the same text, author, reason and cycle, it gives the version made
        before, so that an interrupted action can be repeated.

        Args:
            name: Which procedure.
            new_text: The whole new text, without front matter.
            author: Who writes it.
            reason: Why.
            cycle: The agent's cycle, if in one.
            untrusted: Texts from outside that the author has seen. If there are any, the rewrite
                waits for approval by default; see `GateSettings`.

        Returns:
            The new version, or what waits for approval where the gate asks for that.

        Raises:
            UnknownNameError: If there is no such procedure.
            ProcedureRejected: If the gate refuses, or another process has changed the procedure
                since this one last looked.
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        self._procedure(name)
        of = {"author": author, "reason": reason, "cycle": cycle}
        tainted = bool(untrusted)
        return self._kept.rewritten(name, lambda _: new_text.strip(), of, untrusted, tainted)

    def change_rule(
        self,
        name: str,
        change: RuleChange,
        *,
        author: str,
        reason: str,
        cycle: int | None = None,
        untrusted: Sequence[str] = (),
        tainted: bool = False,
        origins: Sequence[str] = (),
    ) -> ProcedureVersion | PendingRewrite:
        """Adds, replaces or removes one standing rule; otherwise as `rewrite`.

        It is `tainted` also where the author has seen texts from outside that are not at hand any
        more. `origins` are the ids of the records of long-term memory on which it depends, and
        `source:NAME` for sources that the author was shown: `revoke` takes it back with any.
        """
        self._procedure(name)
        of: dict[str, Any] = {"author": author, "reason": reason, "cycle": cycle}
        of["origins"] = tuple(dict.fromkeys(origins))
        tainted, blind = tainted or bool(untrusted), change.operation == "add"
        return self._kept.rewritten(name, change.apply, of, untrusted, tainted, blind=blind)

    def rollback(
        self, name: str, version: int, *, author: str, reason: str, cycle: int | None = None
    ) -> ProcedureVersion:
        """Makes an old version current again, as a new version equal to it.

        The developer's way back: it asks neither the gate nor for approval, but every
        placeholder must be there.

        Raises:
            UnknownNameError: If there is no such procedure or version.
            ProcedureRejected: If the old version lacks a placeholder or is the current one.
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        self.get(name, version)
        with self._kept.changing():
            history = self.versions(name)
            text = history[version - 1].text
            missing = missing_placeholders(self._procedures[name], text)
            if missing:
                raise ProcedureRejected(name, [f"Version {version} lacks {', '.join(missing)}."])
            if history[-1].text == text:
                raise ProcedureRejected(name, [f"Version {version} is the current one already."])
            return self._kept.commit(name, text, author=author, reason=reason, cycle=cycle)

    def revoke(self, records: Collection[str], *, reason: str) -> Undone:
        """Takes back what depends on records of long-term memory that were revoked.

        Rules that came by such a change are taken out, those that it took out come back. Where
        that cannot be done by rule, the text before the first such change holds again. Every
        version stays; done twice, it changes nothing.

        Raises:
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        with self._kept.changing():
            gone, held, at = frozenset(records), self._kept.histories, self._clock.now()
            dropped = tuple(one for one in held.pending if gone.intersection(one.origins))
            if dropped:
                left = tuple(one for one in held.pending if one not in dropped)
                held = held.model_copy(update={"pending": left})
            made: list[tuple[str, ProcedureVersion]] = []
            for name, procedure in sorted(self._procedures.items()):
                version = undoing(procedure, held.procedures[name], gone, reason, at)
                if version is not None:
                    held = held.with_version(name, version)
                    made.append((name, version))
            self._kept.histories = held
            return Undone(versions=tuple(made), dropped=dropped)

    def approve(self, rewrite_id: str, *, by: str) -> ProcedureVersion:
        """Puts a waiting rewrite in force.

        Raises:
            UnknownNameError: If nothing of this id waits.
            ProcedureRejected: If the procedure has changed since; reject it then.
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        with self._kept.changing():
            waiting = self._kept.taken_out(rewrite_id)
            name = waiting.procedure
            current = len(self._kept.histories.procedures[name])
            if current != waiting.base:
                why = f"It was made from version {waiting.base}, and {current} is current now."
                raise ProcedureRejected(name, [why])
            return self._kept.commit(
                name,
                waiting.text,
                author=waiting.author,
                reason=f"{waiting.reason} (approved by {by})",
                cycle=waiting.cycle,
                origins=waiting.origins,
            )

    def reject(self, rewrite_id: str) -> PendingRewrite:
        """Drops a waiting rewrite.

        Raises:
            UnknownNameError: If nothing of this id waits.
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        with self._kept.changing():
            return self._kept.taken_out(rewrite_id)

    def save_state(self) -> dict[str, Any]:
        """Every version and every waiting rewrite, as JSON."""
        return self._kept.histories.model_dump(mode="json")

    @property
    def as_given(self) -> bool:
        """Whether the procedures are as the developer gave them, and no rewrite waits."""
        held = self._kept.histories
        return not held.pending and all(len(one) == 1 for one in held.procedures.values())

    def undo_all(self) -> None:
        """Continues from the procedures as the developer gave them, as `load_state` does."""
        held = self._kept.histories
        first = {name: history[:1] for name, history in held.procedures.items()}
        self._kept.load(held.model_copy(update={"procedures": first, "pending": ()}))

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state; versions that the file holds beyond it are kept.

        Raises:
            ConfigurationError: If the file has another history.
            pydantic.ValidationError: If the state is malformed.
        """
        self._kept.load(_Histories.model_validate(state))

    def _procedure(self, name: str) -> Procedure:
        if name not in self._procedures:
            raise UnknownNameError("procedure", name, self._procedures)
        return self._procedures[name]


class _Kept:
    """The histories of procedures, in a file if there is one."""

    def __init__(
        self,
        procedures: Mapping[str, Procedure],
        path: Path | None,
        gate: GateSettings,
        clock: Clock,
    ) -> None:
        self._procedures = procedures
        self._gate = gate
        self._path = path
        self._clock = clock
        self.histories = self._seeded(self._stored() or _Histories())

    def rewritten(
        self,
        name: str,
        edit: Callable[[str], str],
        of: Mapping[str, Any],
        untrusted: Sequence[str],
        tainted: bool,
        *,
        blind: bool = False,
    ) -> ProcedureVersion | PendingRewrite:
        """Changes a text as the gate allows; a blind edit makes sense whatever the text is now."""
        seen = len(self.histories.procedures[name])
        with self.changing():
            history = self.histories.procedures[name]
            if (done := self._done_before(name, edit, of)) is not None:
                return done
            newest = history[-1]
            if len(history) != seen and not blind:
                who = f"{newest.author!r} wrote version {newest.version} meanwhile; read it first."
                raise ProcedureRejected(name, [who])
            try:
                text = edit(newest.text)
            except ValueError as error:
                raise ProcedureRejected(name, [str(error)]) from error
            if reasons := self.objections(name, text, untrusted):
                raise ProcedureRejected(name, reasons)
            if not self._gate.lets_wait(tainted=tainted):
                return self.commit(name, text, **of)
            made = next_version(name, history, text, **of, at=self._clock.now())
            waiting = PendingRewrite(
                id=content_id(name, str(len(history)), text, made.author, str(made.cycle))[:8],
                procedure=name,
                base=len(history),
                **made.model_dump(exclude={"version", "undoes"}),
            )
            pending = (*self.histories.pending, waiting)
            self.histories = self.histories.model_copy(update={"pending": pending})
            return waiting

    def objections(self, name: str, text: str, untrusted: Sequence[str]) -> tuple[str, ...]:
        procedure, current = self._procedures[name], self.histories.procedures[name][-1].text
        return objections(procedure, current, text, untrusted, self._gate.budget)

    def _done_before(
        self, name: str, edit: Callable[[str], str], of: Mapping[str, Any]
    ) -> ProcedureVersion | PendingRewrite | None:
        """What the same request led to before, if nothing has happened since."""
        history = self.histories.procedures[name]
        made: list[tuple[str, ProcedureVersion | PendingRewrite]] = [
            (before.text, after)
            for before, after in zip(history[-2:], history[-1:], strict=False)
            if before is not after
        ]
        for waiting in self.histories.pending:
            if waiting.procedure == name and waiting.base == len(history):
                made.append((history[-1].text, waiting))
        for before, one in made:
            if all(getattr(one, field) == of[field] for field in ("author", "reason", "cycle")):
                with suppress(ValueError):
                    if edit(before) == one.text:
                        return one
        return None

    def commit(self, name: str, text: str, **of: Any) -> ProcedureVersion:
        history = self.histories.procedures[name]
        made = next_version(name, history, text, **of, at=self._clock.now())
        self.histories = self.histories.with_version(name, made)
        return made

    def taken_out(self, rewrite_id: str) -> PendingRewrite:
        """A waiting rewrite, which waits no longer."""
        waiting = {one.id: one for one in self.histories.pending}
        if rewrite_id not in waiting:
            raise UnknownNameError("waiting rewrite", rewrite_id, waiting)
        taken = waiting.pop(rewrite_id)
        self.histories = self.histories.model_copy(update={"pending": tuple(waiting.values())})
        return taken

    @contextmanager
    def changing(self) -> Generator[None]:
        """Around a change of what is held, with no other process between reading and saving."""
        before = self.histories
        try:
            if self._path is None:
                yield
                return
            with lock_file(self._path.with_name(f".{self._path.name}.lock"), _PATIENCE):
                stored = self._stored()
                if stored is not None:
                    self.histories = before = self._merged(before, stored)
                yield
                if self.histories is not before:
                    replace_file(self._path, self.histories.model_dump_json(indent=1))
        except LockHeldError as error:
            raise RecordStoreError(
                f"Another process has been writing {str(self._path)!r} for {_PATIENCE:g} s."
            ) from error
        except BaseException as error:
            self.histories = before
            if not isinstance(error, OSError):
                raise
            raise RecordStoreError(
                f"Procedures cannot be saved to {str(self._path)!r}: {error}"
            ) from error

    def load(self, histories: _Histories) -> None:
        stored = self._stored()
        self.histories = self._seeded(
            histories if stored is None else self._merged(histories, stored)
        )

    def _seeded(self, histories: _Histories) -> _Histories:
        """Histories that begin with, or follow, the developers' files.

        A file that changed since becomes a new version, unless the agent has rewritten the
        procedure in the meantime; then the agent's version is kept, as long as it has all
        placeholders.
        """
        at = self._clock.now()
        for name, procedure in self._procedures.items():
            history, reason = histories.procedures.get(name, ()), ""
            if history:
                latest, reason = history[-1], "The developer's file changed."
                outdated = latest.author == SEED and latest.text != procedure.text
                if not outdated and not missing_placeholders(procedure, latest.text):
                    continue
            of = {"author": SEED, "reason": reason, "cycle": None, "at": at}
            version = next_version(name, history, procedure.text, **of)
            histories = histories.with_version(name, version)
        return histories

    def _merged(self, ours: _Histories, theirs: _Histories) -> _Histories:
        """Both together: of each procedure the longer history, one being the other's beginning.

        The waiting rewrites of the file are the ones that count.
        """
        together = dict(theirs.procedures)
        for name, history in ours.procedures.items():
            other = theirs.procedures.get(name, ())
            for one, same in zip(history, other, strict=False):
                # two processes may have seeded a version apart, at other times
                if (one.text, one.author, one.reason) != (same.text, same.author, same.reason):
                    raise ConfigurationError(
                        f"{self._path} holds another history of procedure {name!r} than this "
                        "memory; give each its own file."
                    )
            together[name] = history if len(history) > len(other) else other
        return _Histories(procedures=together, pending=theirs.pending)

    def _stored(self) -> _Histories | None:
        if self._path is None:
            return None
        where = repr(str(self._path))
        try:
            return _Histories.model_validate_json(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise ConfigurationError(
                f"{where} is no file of procedures that this version reads; "
                f"move it away, or name another path. ({error})"
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            raise RecordStoreError(f"Procedures cannot be read from {where}: {error}") from error
