"""What an adapter keeps between calls changes no result."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AwarenessEngine,
    CodingAdapter,
    CompositeAdapter,
    ConversationAdapter,
    DomainAdapter,
)
from coag.schema import SteppingClock

_NAMES = st.lists(st.sampled_from(["Ada", "parser", "KeyError", "pasta", "a.py"]), max_size=3)


def _talk(names: list[str]) -> dict[str, object]:
    return {"topics": names, "questions": ["Why?"]}


def _work(names: list[str]) -> dict[str, object]:
    return {"files": names, "errors": names[:1], "fixed": names[1:]}


def _both(names: list[str]) -> dict[str, object]:
    return {"coding": _work(names), "conversation": _talk(names)}


def _composite() -> DomainAdapter:
    return CompositeAdapter([CodingAdapter(), ConversationAdapter()])


@pytest.mark.parametrize(
    ("new", "raw"), [(ConversationAdapter, _talk), (CodingAdapter, _work), (_composite, _both)]
)
@given(turns=st.lists(st.tuples(st.booleans(), _NAMES), max_size=8))
def test_an_adapter_of_two_engines_does_for_each_what_its_own_one_would(
    new: Callable[[], DomainAdapter],
    raw: Callable[[list[str]], dict[str, object]],
    turns: list[tuple[bool, list[str]]],
) -> None:
    common = new()
    sharing = [AwarenessEngine(common, clock=SteppingClock()) for _ in range(2)]
    alone = [AwarenessEngine(new(), clock=SteppingClock()) for _ in range(2)]
    for which, names in turns:
        assert sharing[which].step(raw(names)) == alone[which].step(raw(names))
        assert sharing[which].state == alone[which].state
