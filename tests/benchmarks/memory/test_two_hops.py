"""The world of the questions that need two facts."""

from __future__ import annotations

import json

import pytest

from benchmarks.memory._two_hops import measure_two_hops, records, world
from coag.store import HashEmbedder


def test_the_same_seed_makes_the_same_world() -> None:
    assert world(20, 3) == world(20, 3)
    assert world(20, 3) != world(20, 4)


def test_a_question_of_two_facts_names_the_first_and_not_the_second() -> None:
    facts, two, one = world(20, 0)
    assert len(two) == len(one) == 20
    for asked in two:
        first, second = asked.needs
        assert first in facts
        assert second in facts
        assert first.value == second.subject
        assert first.subject in asked.text
        assert second.subject not in asked.text


def test_every_fact_is_a_record_of_its_own() -> None:
    facts, _, _ = world(20, 0)
    assert len({record.id for record in records(facts, as_facts=True)}) == len(facts)
    assert all(record.fact is None for record in records(facts, as_facts=False))


def test_more_persons_than_names_are_refused() -> None:
    with pytest.raises(ValueError, match="names for"):
        world(1_000_000, 0)


def test_the_network_finds_more_second_facts_than_hybrid_recall_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    measure_two_hops(24, 6, 0, HashEmbedder(), as_json=True)
    alone, networked, *_ = json.loads(capsys.readouterr().out)["results"]
    assert networked["both"] > alone["both"]
