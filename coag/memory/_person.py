"""The origin of what a person says."""

from __future__ import annotations

from coag.schema import Provenance, Trust

_PERSON = "person"
"""The kind of source that a person is who writes into a memory."""


def said_by_person(name: str = _PERSON) -> Provenance:
    """The origin of what a person writes into a memory: a user's word, said in no run.

    Args:
        name: Who it is.
    """
    return Provenance(
        run="", activity="", cycle=0, source=name, source_kind=_PERSON, trust=Trust.USER
    )
