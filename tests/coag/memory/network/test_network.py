"""The network of one scope."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.memory.network import NetworkLimits, SemanticNetwork
from coag.schema import Record
from tests.kits.remembered import remembered

_NAMES = ("Anna", "Bert", "Cleo", "Dina", "Emil")
_RECORDS = st.lists(
    st.tuples(st.sampled_from(_NAMES), st.sampled_from(_NAMES), st.integers(0, 50)),
    max_size=12,
    unique=True,
)
Ties = list[tuple[str, str, int]]


def _record(one: str, other: str, minutes: int = 0, **fields: str) -> Record:
    return remembered(f"{one} met {other}, {minutes}", minutes=minutes).model_copy(update=fields)


def _network(*records: Record, **limits: int) -> SemanticNetwork:
    network = SemanticNetwork("alice", limits=NetworkLimits.model_validate(limits))
    network.put(records)
    return network


def _told(network: SemanticNetwork) -> object:
    """All that it answers."""
    awake = [network.activation(name, steps=3) for name in _NAMES]
    return (
        network.entities(),
        [network.neighbours(name) for name in _NAMES],
        [(dict(one.records), dict(one.entities), dict(one.via)) for one in awake],
    )


@given(_RECORDS, st.randoms(use_true_random=False), st.integers(3, 12))
def test_what_it_answers_does_not_depend_on_the_order_of_records(
    ties: Ties, rng: object, most: int
) -> None:
    records = [_record(*tie) for tie in ties]
    other = list(records)
    shuffle = getattr(rng, "shuffle")  # noqa: B009 - hypothesis does not type it
    shuffle(other)
    assert _told(_network(*records, records=most)) == _told(_network(*other, *other, records=most))


@given(_RECORDS, _RECORDS)
def test_what_was_dropped_or_superseded_leaves_nothing_behind(kept: Ties, gone: Ties) -> None:
    records = [_record(*tie) for tie in kept]
    others = [_record(*tie) for tie in gone if tie not in kept]
    network = _network(*records, *others)
    half = len(others) // 2
    network.drop(record.id for record in others[:half])
    network.put(one.model_copy(update={"superseded_by": "later"}) for one in others[half:])
    assert _told(network) == _told(_network(*records))


def test_another_scopes_record_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'bob'.*'alice'"):
        _network(remembered("Anna came", scope="bob"))


def test_neighbours_and_ties_name_the_records_that_say_so() -> None:
    one, two = _record("Anna", "Bert", 1), _record("Bert", "Cleo", 2)
    network = _network(one, two)
    found = {near.entity: near.records for near in network.neighbours("BERT's")}
    assert found == {"anna": (one.id,), "cleo": (two.id,)}
    assert network.ties("anna", "bert") == (one.id,)
    assert network.ties("anna", "cleo") == ()
    assert network.neighbours("nobody") == ()


def test_the_longest_name_in_a_text_counts() -> None:
    network = _network(remembered("Anna came"), remembered("Anna Berg came"))
    assert network.named_in("Did Anna Berg's boat come, or anna?") == ("anna berg", "anna")


def test_what_very_many_records_mention_wakes_nothing() -> None:
    met = [_record("Anna", name, number) for number, name in enumerate(_NAMES[1:])]
    network = _network(*met, never_common=3)
    assert not network.activation("Anna").records
    assert network.activation("Bert").records


def test_of_too_many_records_the_newest_are_known() -> None:
    network = _network(*(_record("Anna", name, at) for at, name in enumerate(_NAMES)), records=2)
    assert len(network) == 2
    assert network.entities() == ("anna", "dina", "emil")


def test_records_written_again_and_again_take_no_more_room() -> None:
    network = SemanticNetwork("alice")
    for _ in range(1200):
        network.put([_record("Anna", "Bert"), _record("Bert", "Cleo", 3)])
    assert len(network) == 2
    assert network.entities() == ("anna", "bert", "cleo")


def test_unknown_seeds_and_records_are_nothing() -> None:
    network = _network(_record("Anna", "Bert"))
    assert not network.activation("").entities
    assert not network.activation({"nobody": 1.0}).records
    assert network.entities("no such record") == ()
    network.drop(["no such record"])
    assert len(network) == 1
