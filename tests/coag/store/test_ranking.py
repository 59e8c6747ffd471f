from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.store.hybrid import RankCandidate, Ranked, rank
from coag.store.lexical import IndexEntry
from coag.store.search import Ranking

DAY = 86_400.0
PLAIN = IndexEntry(
    id="plain",
    shelf="s",
    scope="alice",
    episode=0,
    place=0,
    source="ann",
    created=0.0,
    importance=0.5,
    length=8,
    asks=False,
    trusted=True,
    fields="{}",
)
SHARES = st.integers(0, 20).map(lambda n: n / 20)
ENTRIES = st.builds(
    PLAIN._replace,
    episode=st.integers(0, 2),
    place=st.integers(0, 4),
    source=st.sampled_from(["ann", "ben"]),
    created=st.sampled_from([0.0, DAY, 400 * DAY]),
    importance=SHARES,
    length=st.integers(0, 60),
    asks=st.booleans(),
    trusted=st.booleans(),
)
CANDIDATES = st.lists(
    st.builds(RankCandidate, ENTRIES, SHARES, SHARES), min_size=1, max_size=6
).map(
    lambda some: [one._replace(entry=one.entry._replace(id=f"{n}")) for n, one in enumerate(some)]
)
NAMED = st.sampled_from([(), ("ann",), ("ann", "ben")])
TOLERANCE = 1e-5


def ranked(candidates: Sequence[RankCandidate], named: Sequence[str] = ()) -> list[Ranked]:
    return rank(candidates, Ranking(), named=named)


def totals(candidates: Sequence[RankCandidate], named: Sequence[str] = ()) -> dict[str, float]:
    return {one.entry.id: one.total for one in ranked(candidates, named)}


@given(CANDIDATES, NAMED)
def test_parts_of_a_score_add_up_to_it(
    candidates: list[RankCandidate], named: tuple[str, ...]
) -> None:
    for one in ranked(candidates, named):
        assert sum(one.parts) == pytest.approx(one.total, abs=1e-6)
        shown = one.why().model_dump().values()
        assert sum(shown) == pytest.approx(one.total, abs=1e-3)


@given(CANDIDATES, NAMED)
def test_order_is_the_same_however_candidates_come(
    candidates: list[RankCandidate], named: tuple[str, ...]
) -> None:
    found = ranked(candidates, named)
    assert found == ranked(candidates[::-1], named)
    assert {one.entry.id for one in found} == {one.entry.id for one in candidates}
    assert [one.total for one in found] == sorted((one.total for one in found), reverse=True)


CHANGES: dict[str, Callable[[RankCandidate], RankCandidate]] = {
    "dense": lambda one: one._replace(dense=min(1.0, one.dense + 0.2)),
    "lexical": lambda one: one._replace(lexical=min(1.0, one.lexical + 0.2)),
    "importance": lambda one: one._replace(entry=one.entry._replace(importance=1.0)),
    "trust": lambda one: one._replace(entry=one.entry._replace(trusted=True)),
    "telling": lambda one: one._replace(entry=one.entry._replace(asks=False)),
    "length": lambda one: one._replace(entry=one.entry._replace(length=one.entry.length + 9)),
    "source": lambda one: one._replace(entry=one.entry._replace(source="ann")),
}


@given(CANDIDATES, st.sampled_from(sorted(CHANGES)), st.integers(0, 7))
def test_a_record_that_gets_better_is_overtaken_by_none(
    candidates: list[RankCandidate], change: str, which: int
) -> None:
    number = which % len(candidates)
    better = list(candidates)
    better[number] = CHANGES[change](candidates[number])
    one = candidates[number].entry.id
    before, after = totals(candidates, ("ann",)), totals(better, ("ann",))
    for other in before:
        lead = before[one] - before[other]
        assert after[one] - after[other] >= lead - TOLERANCE


def test_a_neighbour_of_a_good_record_gets_some_of_its_weight() -> None:
    good = RankCandidate(PLAIN._replace(id="good", episode=1, place=4), 0.9, 0.9)
    weak = [
        RankCandidate(PLAIN._replace(id=f"{place}", episode=1, place=place), 0.1, 0.0)
        for place in (1, 2, 3)
    ]
    why = {one.entry.id: one.why() for one in ranked([good, *weak])}
    assert why["3"].neighbours > why["2"].neighbours > why["1"].neighbours
    assert why["1"].episode == why["good"].episode > 0


def test_a_record_that_is_unrelated_to_the_query_is_left_out() -> None:
    candidates = [
        RankCandidate(PLAIN._replace(id="meant"), 0.6, 0.0),
        RankCandidate(PLAIN._replace(id="said"), 0.1, 0.3),
        RankCandidate(PLAIN._replace(id="neither"), 0.1, 0.1),
    ]
    found = rank(candidates, Ranking(), minimum=0.3)
    assert {one.entry.id for one in found} == {"meant", "said"}
