"""What is kept of a random source, and what is refused as such."""

import json
import random

import pytest

from coag.errors import StateError
from coag.schema import random_state, set_random


def test_a_source_goes_on_from_its_state_as_json() -> None:
    source, other = random.Random(7), random.Random(8)
    source.gauss(0, 1)  # one more value is kept in the state
    set_random(other, json.loads(json.dumps(random_state(source))))
    assert [other.gauss(0, 1), other.random()] == [source.gauss(0, 1), source.random()]


@pytest.mark.parametrize(
    "state",
    [
        "abc",
        7,
        {},
        [],
        [3, [1, 2], None],
        [3, 5, None],
        [99, [], None],
        [3, [-1] * 625, None],
        [3, [1 << 99] * 625, None],
        [3, ["1"] * 625, None],
        [3, [*[1] * 624, 4_000], None],
        [3, [1] * 625, "soon"],
    ],
)
def test_what_is_no_state_is_refused_and_leaves_the_source_as_it_was(state: object) -> None:
    source = random.Random(7)
    before = source.getstate()
    with pytest.raises(StateError, match="no state of a random source"):
        set_random(source, state)
    assert source.getstate() == before
