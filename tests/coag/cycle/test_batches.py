"""Which candidates are one batch, and how many of it may be predicted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kits.minds import make_mind

from coag.cycle._batches import PARALLEL, batched, one_prediction
from coag.schema import Candidate, Evaluation, Verdict

PARALLEL_DEPS = make_mind().deps
ONE_BY_ONE_DEPS = make_mind(parallel=False).deps
BATCHES = st.lists(st.sampled_from([None, "b1", "b2"]), max_size=5)
PROJECTIONS = st.none() | st.dictionaries(st.just("a"), st.integers(), max_size=1)


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


def evaluation(number: int, survived: bool, projection: dict[str, Any] | None) -> Evaluation:
    verdict = Verdict(allowed=survived, constraint="rule", reason="" if survived else "no")
    return Evaluation(
        candidate_id=f"c{number}", arguments={}, verdicts=(verdict,), projection=projection
    )


@given(st.lists(st.tuples(st.booleans(), PROJECTIONS), max_size=6))
def test_of_a_batch_at_most_one_predicted_action_survives(
    judged: list[tuple[bool, dict[str, Any] | None]],
) -> None:
    before = [evaluation(n, *one) for n, one in enumerate(judged)]
    after = one_prediction(before)
    assert [one.candidate_id for one in after] == [one.candidate_id for one in before]
    predicted = [one for one in after if one.survived and one.projection is not None]
    first = next((b for b in before if b.survived and b.projection is not None), None)
    assert [one.candidate_id for one in predicted] == ([first.candidate_id] if first else [])
    for old, new in zip(before, after, strict=True):
        if old == new:
            continue
        assert old.survived
        assert new.died_of is not None
        assert new.died_of.constraint == PARALLEL
    assert one_prediction(after) == after
