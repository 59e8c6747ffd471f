"""The stream of statements and its truth, and what is said of answers."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.memory import Saying, Statement, Topic, World, judged

seeds = st.integers(0, 10_000)


def streamed(seed: int, count: int = 150) -> tuple[World, list[Statement]]:
    world = World(seed)
    return world, list(world.statements(count))


def a_topic() -> tuple[Topic, dict[str, Statement]]:
    """A topic of which something is so, outdated, wrongly claimed and taken back."""
    world, statements = streamed(1, 2_000)
    by_value: dict[str, Statement] = {}
    for topic in world.topics:
        if topic.current and topic.outdated and topic.claimed and topic.taken_back:
            about = [one for one in statements if one.topic == topic.name]
            by_value = {one.value: one for one in about if one.saying is not Saying.RETRACTION}
            return topic, by_value
    raise AssertionError("no such topic in the stream")


def one_of(values: Iterable[str]) -> str:
    return sorted(values)[0]


def test_a_seed_always_makes_the_same_stream() -> None:
    assert streamed(7)[1] == streamed(7)[1]
    assert streamed(7)[1] != streamed(8)[1]


def test_every_way_of_saying_comes_up_and_names_are_unique() -> None:
    _, statements = streamed(2, 600)
    assert {one.saying for one in statements} == set(Saying)
    assert len({one.name for one in statements}) == len(statements) == 600


@given(seeds)
def test_what_is_so_was_last_said_by_somebody_who_is_trusted(seed: int) -> None:
    world, statements = streamed(seed)
    for topic in world.topics:
        if topic.current is not None:
            about = [one for one in statements if one.topic == topic.name]
            assert any(one.trusted and one.value == topic.current for one in about)


@given(seeds)
def test_what_is_so_is_neither_outdated_nor_taken_back(seed: int) -> None:
    world, _ = streamed(seed)
    for topic in world.topics:
        assert topic.current not in topic.outdated | topic.taken_back | topic.claimed


@given(seeds)
def test_a_retraction_names_all_that_was_said_of_its_value(seed: int) -> None:
    _, statements = streamed(seed)
    known = {one.name: one for one in statements}
    for one in statements:
        if one.saying is Saying.RETRACTION:
            assert one.takes_back
            assert {known[name].value for name in one.takes_back} == {one.value}
            assert {known[name].topic for name in one.takes_back} == {one.topic}


@given(seeds)
def test_only_claims_come_from_sources_that_are_not_trusted(seed: int) -> None:
    _, statements = streamed(seed)
    assert all(one.trusted is (one.saying is not Saying.CLAIM) for one in statements)


def test_an_answer_with_the_truth_first_is_faultless() -> None:
    topic, facts = a_topic()
    verdict = judged(topic, [facts[str(topic.current)], facts[one_of(topic.outdated)]])
    assert (verdict.first, verdict.stale, verdict.misled, verdict.junk) == (
        True,
        False,
        False,
        False,
    )


def test_an_outdated_value_above_the_truth_or_without_it_is_stale() -> None:
    topic, facts = a_topic()
    old, current = facts[one_of(topic.outdated)], facts[str(topic.current)]
    assert judged(topic, [old, current]).stale is True
    assert judged(topic, [old]).stale is True
    assert judged(topic, []).stale is False


def test_a_wrong_claim_above_the_truth_misleads() -> None:
    topic, facts = a_topic()
    assert judged(topic, [facts[one_of(topic.claimed)], facts[str(topic.current)]]).misled is True


def test_what_was_taken_back_is_junk_wherever_it_is() -> None:
    topic, facts = a_topic()
    assert judged(topic, [facts[str(topic.current)], facts[one_of(topic.taken_back)]]).junk is True


def test_what_was_taken_back_is_no_junk_beside_the_word_that_it_was() -> None:
    topic, facts = a_topic()
    wrong = facts[one_of(topic.taken_back)]
    _, statements = streamed(1, 2_000)
    word = next(
        one
        for one in statements
        if one.saying is Saying.RETRACTION and (one.topic, one.value) == (wrong.topic, wrong.value)
    )
    assert judged(topic, [wrong, word]).junk is False


def test_saying_the_same_twice_is_counted_as_repeated() -> None:
    topic, facts = a_topic()
    current = facts[str(topic.current)]
    assert judged(topic, [current, current]).repeated == 0.5
    assert judged(topic, [current]).repeated == 0.0
