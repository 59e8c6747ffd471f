"""Which candidates are one batch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kits.minds import make_mind

from coag.cycle.checks import batched
from coag.schema import Candidate

PARALLEL_DEPS = make_mind().deps
ONE_BY_ONE_DEPS = make_mind(parallel=False).deps
BATCHES = st.lists(st.sampled_from([None, "b1", "b2"]), max_size=5)


def candidates(batches: list[str | None]) -> list[Candidate]:
    return [
        Candidate(id=f"c{n}", action="a", raw_arguments="{}", batch=batch)
        for n, batch in enumerate(batches)
    ]


@given(BATCHES)
def test_a_batch_is_all_of_one_and_nothing_else(batches: list[str | None]) -> None:
    one = bool(batches) and batches[0] is not None and len(set(batches)) == 1
    assert batched(candidates(batches), PARALLEL_DEPS) == one
    assert not batched(candidates(batches), ONE_BY_ONE_DEPS)
