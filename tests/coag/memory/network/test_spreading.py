"""How activation spreads: what must hold of every network."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hypothesis import given
from hypothesis import strategies as st

from coag.memory.network import SemanticNetwork, spread

Pairs = frozenset[tuple[str, str]]
_PAIRS = st.frozensets(
    st.tuples(st.sampled_from("ABCDEF"), st.sampled_from("uvwxyz")), min_size=1, max_size=20
)
_SEEDS = st.dictionaries(st.sampled_from("ABCDEF"), st.floats(0.1, 5.0), min_size=1)


class _Tied(SemanticNetwork):
    """A network of pairs of entity and record, kept in the order of the pairs."""

    def __init__(self, pairs: Collection[tuple[str, str]]) -> None:
        super().__init__("anyone")
        self._of_entity: dict[str, list[str]] = {}
        self._of_record: dict[str, list[str]] = {}
        for entity, record in pairs:
            self._of_entity.setdefault(entity, []).append(record)
            self._of_record.setdefault(record, []).append(entity)

    def records_of(self, entity: str) -> Collection[str]:
        return self._of_entity.get(entity, [])

    def mentioned_in(self, record_id: str) -> Collection[str]:
        return self._of_record[record_id]


def _rounded(awake: Mapping[str, float]) -> dict[str, float]:
    return {one: round(value, 12) for one, value in awake.items()}


@given(_PAIRS, _SEEDS, st.integers(1, 4), st.floats(0.0, 1.0))
def test_activation_is_never_negative_and_never_more_than_was_put_in(
    pairs: Pairs, seeds: dict[str, float], steps: int, decay: float
) -> None:
    awake = spread(seeds, _Tied(sorted(pairs)), steps=steps, decay=decay, least=0.0)
    assert all(value >= 0.0 for value in (*awake.entities.values(), *awake.records.values()))
    put_in = sum(decay**step for step in range(steps))
    assert sum(awake.records.values()) <= put_in + 1e-9
    assert set(awake.via) == set(awake.records)


@given(_PAIRS, _SEEDS)
def test_the_order_in_which_ties_came_makes_no_difference(
    pairs: Pairs, seeds: dict[str, float]
) -> None:
    one = spread(seeds, _Tied(sorted(pairs)))
    other = spread(dict(reversed(seeds.items())), _Tied(sorted(pairs, reverse=True)))
    assert _rounded(one.records) == _rounded(other.records)
    assert one.via == other.via


@given(st.integers(1, 6), st.integers(0, 4), st.floats(0.1, 1.0))
def test_along_a_chain_each_record_is_less_awake_than_the_one_before(
    length: int, fan: int, decay: float
) -> None:
    chain = [(f"e{at:02}", f"r{at:02}") for at in range(length)]
    chain += [(f"e{at + 1:02}", f"r{at:02}") for at in range(length)]
    chain += [("e00", f"other{number}") for number in range(fan)]
    awake = spread({"e00": 1.0}, _Tied(chain), steps=length, decay=decay, least=0.0)
    along = [awake.records[f"r{at:02}"] for at in range(length)]
    assert along == sorted(along, reverse=True)
    assert len(set(along)) == len(along)


def test_the_more_records_mention_an_entity_the_less_each_has_of_it() -> None:
    few = spread({"A": 1.0}, _Tied([("A", "u"), ("A", "v")]))
    many = spread({"A": 1.0}, _Tied([("A", one) for one in "uvwxyz"]))
    assert few.records["u"] == 1 / 2
    assert many.records["u"] == 1 / 6


def test_nothing_is_reached_farther_than_the_steps_say() -> None:
    chain = _Tied([("A", "u"), ("B", "u"), ("B", "v"), ("C", "v"), ("C", "w")])
    assert set(spread({"A": 1.0}, chain, steps=1).records) == {"u"}
    assert set(spread({"A": 1.0}, chain, steps=2).records) == {"u", "v"}
    assert spread({"A": 1.0}, chain, steps=2).via == {"u": "A", "v": "B"}


def test_entities_that_are_hardly_awake_wake_nothing() -> None:
    chain = _Tied([("A", "u"), ("B", "u"), ("B", "v")])
    assert "v" not in spread({"A": 1.0}, chain, steps=2, least=0.3).records
    assert "v" in spread({"A": 1.0}, chain, steps=2, least=0.2).records


def test_without_weight_nothing_wakes() -> None:
    assert not spread({"A": 0.0}, _Tied([("A", "u")])).records
