"""Arguments as an intent records them."""

import pytest

from coag.schema import UNPARSED, parsed_arguments


def test_an_object_is_recorded_as_it_is() -> None:
    assert parsed_arguments('{"x": [1, null]}') == {"x": [1, None]}


@pytest.mark.parametrize("written", ["", "{soon", "[1]", "null", "7", "[" * 100_000, "9" * 5_000])
def test_what_is_no_object_is_recorded_as_it_was_written(written: str) -> None:
    assert parsed_arguments(written) == {UNPARSED: written}
