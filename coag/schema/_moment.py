"""Points in time that can always be compared."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator


def _placed(moment: datetime) -> datetime:
    """The same moment with a zone: one that has none is taken for UTC."""
    offset = moment.utcoffset()
    if offset is None:
        return moment.replace(tzinfo=UTC)
    if offset:
        try:
            moment.astimezone(UTC)
        except OverflowError as error:
            raise ValueError("is no time that UTC can tell") from error
    return moment


Moment = Annotated[datetime, AfterValidator(_placed)]
"""A point in time with a zone; without one it is read as UTC, so that any two can be compared."""
