"""From a percept to what an adapter takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coag.awareness._adapter import Adapter
from coag.schema import Percept, PerceptKind, Trust

from ._percept_adapter import PerceptAdapter

Reader = Callable[[Percept], Mapping[str, object] | None]
"""Gives an adapter's raw input for a percept; None where it says nothing to the domain."""


def fields_of(percept: Percept) -> Mapping[str, object]:
    """A percept as a `PerceptAdapter` takes it; images are left out."""
    return percept.model_dump(mode="json", exclude={"images"})


def message_of(percept: Percept) -> Mapping[str, object] | None:
    """A message as the domains of talk and of code take it, unanalysed; None for the rest."""
    if percept.kind is not PerceptKind.MESSAGE or percept.trust is Trust.DEVELOPER:
        return None
    return {"message": percept.content}


def reader_for(adapter: Adapter) -> Reader:
    """The reader that serves where none is given."""
    return fields_of if isinstance(adapter, PerceptAdapter) else message_of
