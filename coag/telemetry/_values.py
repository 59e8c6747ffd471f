"""Values as OpenTelemetry can send them, whatever a record holds.

A span with a value that does not fit its format is lost, with all those beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from opentelemetry.util.types import AttributeValue

from coag.schema import well_formed

_LONGEST_NAME = 200
_MOST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Attributes = dict[str, AttributeValue]


def nanoseconds(at: datetime) -> int:
    """A time as OpenTelemetry counts it; one without a zone is taken for UTC."""
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max((aware - _EPOCH) // _MICROSECOND * 1_000, 0), _MOST)


def duration(seconds: float) -> int:
    """Nanoseconds of a duration; 0 for what is none."""
    return int(min(seconds * 1e9, _MOST)) if seconds > 0 else 0


def later(start: int, by: int) -> int:
    """A time after another, as far as there are times."""
    return min(start + by, _MOST)


def count(number: int) -> int:
    """A count that fits into 64 bits."""
    return min(max(number, 0), _MOST)


def name(text: str) -> str:
    """A name on one line, cut to a length that a name may have."""
    line = " ".join(well_formed(text[: 2 * _LONGEST_NAME]).split())
    return line if len(line) <= _LONGEST_NAME else f"{line[:_LONGEST_NAME]}…"


def present(values: Mapping[str, AttributeValue | None]) -> Attributes:
    """The values that are there; names and other strings made fit to be sent."""
    return {key: value for key, value in values.items() if value is not None}
