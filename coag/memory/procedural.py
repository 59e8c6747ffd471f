"""Procedural memory: procedures with their whole history, rewritable through the gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from coag._util.files import replace_file
from coag._util.locks import LockHeldError, lock_file
from coag.errors import ConfigurationError, RecordStoreError, UnknownNameError
from coag.schema import Clock, SystemClock

from .gate import (
    GateSettings,
    RewriteRequest,
    Undone,
    approved,
    dropped,
    rewritten,
    rolled_back,
    without_origins,
)
from .procedures import (
    Histories,
    History,
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    RuleChange,
    fill,
    merged,
    seed_procedures,
    seeded,
)

_PATIENCE = 10.0
"""Seconds to wait for another process that is writing."""
_T = TypeVar("_T")


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
        RecordStoreError: If the file cannot be read.
    """

    def __init__(
        self,
        procedures: Mapping[str, Procedure] | None = None,
        *,
        path: Path | None = None,
        gate: GateSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._procedures = dict(seed_procedures() if procedures is None else procedures)
        self._gate = gate or GateSettings()
        self._clock = clock or SystemClock()
        self._path = path
        self._held = seeded(_read(self._path) or Histories(), self._procedures, self._clock.now())

    def names(self) -> tuple[str, ...]:
        """The names of all procedures, sorted."""
        return tuple(sorted(self._procedures))

    def versions(self, name: str) -> History:
        """Every version of a procedure, oldest first.

        Raises:
            UnknownNameError: If there is no such procedure.
        """
        self._procedure(name)
        return self._held.procedures[name]

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

    def render(self, name: str, values: Mapping[str, str], version: int | None = None) -> str:
        """A procedure's text with its placeholders replaced; further values do no harm.

        Raises:
            UnknownNameError: If there is no such procedure or version.
            ConfigurationError: If a placeholder has no value.
        """
        return fill(self._procedure(name), self.get(name, version).text, values)

    def pin(self) -> dict[str, int]:
        """The current version of every procedure, to hold on to for a cycle."""
        return {name: len(self._held.procedures[name]) for name in self.names()}

    def pending(self) -> tuple[PendingRewrite, ...]:
        """The rewrites that wait for approval, oldest first."""
        return self._held.pending

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
        request = RewriteRequest(
            edit=lambda _: new_text.strip(),
            author=author,
            reason=reason,
            cycle=cycle,
            untrusted=tuple(untrusted),
            tainted=bool(untrusted),
        )
        return self._rewritten(name, request)

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

        Args:
            name: Which procedure.
            change: What to do.
            author: Who does it.
            reason: Why.
            cycle: The agent's cycle, if in one.
            untrusted: Texts from outside that the author has seen.
            tainted: Whether the author has seen others, which are not at hand any more.
            origins: Ids of the records of long-term memory on which this depends, and `source:NAME`
                for sources that the author was shown; `revoke` takes it back with any of them.
        """
        request = RewriteRequest(
            edit=change.apply,
            author=author,
            reason=reason,
            cycle=cycle,
            untrusted=tuple(untrusted),
            tainted=tainted or bool(untrusted),
            origins=tuple(dict.fromkeys(origins)),
            blind=change.operation == "add",
        )
        return self._rewritten(name, request)

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
        request = RewriteRequest(edit=str, author=author, reason=reason, cycle=cycle)
        procedure = self._procedure(name)
        return self._change(
            lambda held: rolled_back(held, procedure, version, request, self._clock.now())
        )

    def revoke(self, records: Collection[str], *, reason: str) -> Undone:
        """Takes back what depends on records of long-term memory that were revoked.

        Rules that came by such a change are taken out, those that it took out come back. Where
        that cannot be done by rule, the text before the first such change holds again. Every
        version stays; done twice, it changes nothing.

        Args:
            records: Ids of the revoked records.
            reason: Why.

        Raises:
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        return self._change(
            lambda held: without_origins(held, self._procedures, records, reason, self._clock.now())
        )

    def approve(self, rewrite_id: str, *, by: str) -> ProcedureVersion:
        """Puts a waiting rewrite in force.

        Raises:
            UnknownNameError: If nothing of this id waits.
            ProcedureRejected: If the procedure has changed since; reject it then.
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        return self._change(lambda held: approved(held, rewrite_id, by, self._clock.now()))

    def reject(self, rewrite_id: str) -> PendingRewrite:
        """Drops a waiting rewrite.

        Raises:
            UnknownNameError: If nothing of this id waits.
            RecordStoreError: If it cannot be saved; nothing is changed then.
        """
        return self._change(lambda held: dropped(held, rewrite_id))

    def save_state(self) -> dict[str, Any]:
        """Every version and every waiting rewrite, as JSON."""
        return self._held.model_dump(mode="json")

    @property
    def as_given(self) -> bool:
        """Whether the procedures are as the developer gave them, and no rewrite waits."""
        held = self._held
        return not held.pending and all(len(one) == 1 for one in held.procedures.values())

    def undo_all(self) -> None:
        """Continues from the procedures as the developer gave them, as `load_state` does."""
        held = self._held
        first = {name: history[:1] for name, history in held.procedures.items()}
        self._load(held.model_copy(update={"procedures": first, "pending": ()}))

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state; versions that the file holds beyond it are kept.

        Raises:
            ConfigurationError: If the file has another history.
            pydantic.ValidationError: If the state is malformed.
        """
        self._load(Histories.model_validate(state))

    def _procedure(self, name: str) -> Procedure:
        if name not in self._procedures:
            raise UnknownNameError("procedure", name, self._procedures)
        return self._procedures[name]

    def _rewritten(self, name: str, request: RewriteRequest) -> ProcedureVersion | PendingRewrite:
        procedure, seen = self._procedure(name), len(self.versions(name))
        return self._change(
            lambda held: rewritten(
                held, procedure, request, seen=seen, gate=self._gate, at=self._clock.now()
            )
        )

    def _change(self, by: Callable[[Histories], tuple[Histories, _T]]) -> _T:
        """Changes what is current, with no other process between reading and saving.

        Args:
            by: Gives the new histories and the result.

        Raises:
            ConfigurationError: If the file has another history.
            RecordStoreError: If they cannot be saved; nothing is changed then.
        """
        if self._path is None:
            self._held, result = by(self._held)
            return result
        try:
            with lock_file(self._path.with_name(f".{self._path.name}.lock"), _PATIENCE):
                stored = _read(self._path)
                if stored is not None:
                    self._held = merged(self._held, stored, str(self._path))
                held, result = by(self._held)
                if held is not self._held:
                    replace_file(self._path, held.model_dump_json(indent=1))
                self._held = held
                return result
        except LockHeldError as error:
            raise RecordStoreError(
                f"Another process has been writing {str(self._path)!r} for {_PATIENCE:g} s."
            ) from error
        except OSError as error:
            raise RecordStoreError(
                f"Procedures cannot be saved to {str(self._path)!r}: {error}"
            ) from error

    def _load(self, histories: Histories) -> None:
        stored = _read(self._path)
        if stored is not None:
            histories = merged(histories, stored, str(self._path))
        self._held = seeded(histories, self._procedures, self._clock.now())


def _read(path: Path | None) -> Histories | None:
    """What the file holds; None if there is no file."""
    if path is None:
        return None
    try:
        return Histories.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise ConfigurationError(
            f"{str(path)!r} is no file of procedures that this version reads; "
            f"move it away, or name another path. ({error})"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RecordStoreError(f"Procedures cannot be read from {str(path)!r}: {error}") from error
