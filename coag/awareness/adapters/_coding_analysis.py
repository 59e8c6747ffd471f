"""What is analysed of one message in work on software (SAGEN §5.2)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator

from coag.awareness._observation import ObservedFailure
from coag.awareness.state import Heard, HeardText
from coag.schema import Value

from ._analysis import Analysis, HeardNames


class CodingEntityType(StrEnum):
    """What software is made of."""

    FILE = "file"
    LIBRARY = "library"
    ERROR = "error"
    ENDPOINT = "endpoint"
    SERVICE = "service"
    CONCEPT = "concept"
    FUNCTION = "function"
    CONFIG = "config"


class CodingEdgeType(StrEnum):
    """How parts of software hang together."""

    IMPORTS = "imports"
    CALLS = "calls"
    DEPENDS_ON = "depends_on"
    RAISES = "raises"
    DEFINED_IN = "defined_in"
    CONNECTS_TO = "connects_to"
    BLOCKS = "blocks"
    ATTEMPTED_FIX = "attempted_fix"


class RaisedError(Value):
    """An error that shows."""

    name: Heard
    message: HeardText = ""


def _from_text(given: object) -> object:
    return {"name": given} if isinstance(given, str) else given


class CodingEdge(Value):
    """How two parts hang together, by their names."""

    source: Heard
    type: CodingEdgeType
    target: Heard


class CodingAnalysis(Analysis):
    """What one message about software says. Every part may be left out."""

    files: HeardNames = ()
    libraries: HeardNames = ()
    endpoints: HeardNames = ()
    services: HeardNames = ()
    concepts: HeardNames = ()
    functions: HeardNames = ()
    configs: HeardNames = ()
    errors: tuple[Annotated[RaisedError, BeforeValidator(_from_text)], ...] = ()
    """Errors that show now; a mere text is the name of one."""
    fixed: HeardNames = ()
    """Errors that are confirmed to be gone, by name."""
    conflicts: HeardNames = ()
    """Versions or libraries that do not go together, a sentence each."""
    relationships: tuple[CodingEdge, ...] = ()
    failure: ObservedFailure | None = None
    """Something that was tried and did not work, with what to learn from it."""
