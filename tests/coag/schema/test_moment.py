from datetime import UTC, datetime

import pytest
from pydantic import TypeAdapter, ValidationError

from coag.schema import Moment

MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)


def test_a_time_without_a_zone_is_read_as_utc() -> None:
    assert MOMENT.validate_json('"2026-11-22T07:44:18"') == datetime(
        2026, 11, 22, 7, 44, 18, tzinfo=UTC
    )


def test_a_time_with_a_zone_stays_as_it_is() -> None:
    told = MOMENT.validate_json('"2026-11-22T07:44:18+02:00"')
    assert told.isoformat() == "2026-11-22T07:44:18+02:00"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_utc_cannot_tell_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="UTC"):
        MOMENT.validate_python(text)
