"""Everything that procedural memory holds, as one value, and how two of them go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import Field

from coag.errors import ConfigurationError
from coag.schema import Value

from ._procedure import (
    PendingRewrite,
    Procedure,
    ProcedureVersion,
    difference,
    missing_placeholders,
)

SEED = "seed"
"""Author of versions that come from a developer's file."""

History = tuple[ProcedureVersion, ...]
"""Versions of one procedure from 1 without gaps; never empty."""


class Histories(Value):
    """The histories of all procedures, and the rewrites that wait."""

    format: Literal[1] = 1
    procedures: dict[str, History] = Field(default_factory=dict)
    pending: tuple[PendingRewrite, ...] = ()

    def with_version(self, name: str, version: ProcedureVersion) -> Histories:
        """With one more version of a procedure."""
        longer = (*self.procedures.get(name, ()), version)
        return self.model_copy(update={"procedures": {**self.procedures, name: longer}})

    def with_pending(self, pending: Iterable[PendingRewrite]) -> Histories:
        """With these waiting rewrites in the place of those before."""
        return self.model_copy(update={"pending": tuple(pending)})


def next_version(
    name: str,
    history: History,
    text: str,
    *,
    author: str,
    reason: str,
    cycle: int | None,
    at: datetime,
    origins: tuple[str, ...] = (),
) -> ProcedureVersion:
    """The version that follows a history."""
    return ProcedureVersion(
        version=len(history) + 1,
        text=text,
        author=author,
        reason=reason,
        cycle=cycle,
        at=at,
        diff=difference(name, history[-1].text, text) if history else "",
        origins=origins,
    )


def seeded(histories: Histories, procedures: Mapping[str, Procedure], at: datetime) -> Histories:
    """Histories that begin with, or follow, the developers' files.

    A file that changed since becomes a new version, unless the agent has rewritten the procedure
    in the meantime; then the agent's version stands, as long as it has all placeholders.
    """
    for name, procedure in procedures.items():
        history = histories.procedures.get(name, ())
        if not history or _outdated(history, procedure):
            version = next_version(
                name,
                history,
                procedure.text,
                author=SEED,
                reason="The developer's file changed." if history else "",
                cycle=None,
                at=at,
            )
            histories = histories.with_version(name, version)
    return histories


def merged(ours: Histories, theirs: Histories, where: str) -> Histories:
    """Both together: of each procedure the longer history, one being the other's beginning.

    Args:
        ours: What is held.
        theirs: What is found elsewhere; its waiting rewrites are the ones that count.
        where: Names the other place in the error.

    Raises:
        ConfigurationError: If the two tell different stories.
    """
    together = dict(theirs.procedures)
    for name, history in ours.procedures.items():
        other = theirs.procedures.get(name, ())
        common = min(len(history), len(other))
        if [_essence(v) for v in history[:common]] != [_essence(v) for v in other[:common]]:
            raise ConfigurationError(
                f"{where} holds another history of procedure {name!r} than this memory; "
                "give each its own file."
            )
        together[name] = history if len(history) > len(other) else other
    return Histories(procedures=together, pending=theirs.pending)


def _outdated(history: History, procedure: Procedure) -> bool:
    latest = history[-1]
    if missing_placeholders(procedure, latest.text):
        return True
    return latest.author == SEED and latest.text != procedure.text


def _essence(version: ProcedureVersion) -> tuple[str, str, str]:
    """What makes a version the same in two processes, which may have seeded it apart."""
    return version.text, version.author, version.reason
