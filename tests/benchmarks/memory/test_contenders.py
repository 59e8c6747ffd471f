"""Memories as contenders: every one that is installed does what its protocol says."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.memory import (
    Contender,
    Saying,
    Statement,
    World,
    finders,
    item_of,
    keepers,
    open_keeper,
    tell,
)
from coag.store import HashEmbedder

TURNS = [
    ("t1", "The boat is blue.", {"speaker": "Ida", "session": 1, "turn": 0}),
    ("t2", "The kettle stands in the kitchen.", {"speaker": "Ole", "session": 1, "turn": 1}),
]

NEW = [one for one in World(3).statements(30) if one.saying is Saying.NEW][:3]

names = pytest.mark.parametrize(
    ("make", "name"),
    [(make, one.name) for make in (finders, keepers) for one in make() if one.make is not None],
)
Make = Callable[[HashEmbedder], list[Contender]]


@names
def test_a_contender_finds_what_it_took_in(make: Make, name: str, tmp_path: Path) -> None:
    contender = next(one for one in make(HashEmbedder()) if one.name == name)
    assert contender.make is not None
    memory = contender.make(tmp_path)
    items = [item_of(one) for one in NEW] if make is keepers else TURNS
    for item in items:
        memory.add([item])
    assert memory.query(items[1][1], 2)[0] == items[1][0]
    memory.close()


@pytest.mark.parametrize("name", [one.name for one in keepers() if one.make is not None])
def test_what_is_taken_back_is_gone_or_said_to_be_wrong(name: str, tmp_path: Path) -> None:
    contender = next(one for one in keepers(HashEmbedder()) if one.name == name)
    memory = open_keeper(contender, tmp_path)
    retraction = a_retraction(NEW[0])
    tell(memory, [*NEW, retraction])
    names = memory.query(NEW[0].text, 3)
    assert (NEW[0].name in names) is (retraction.name in names)
    memory.close()


def a_retraction(wrong: Statement) -> Statement:
    """The word that a statement was wrong."""
    return Statement(
        name="r1",
        saying=Saying.RETRACTION,
        topic=wrong.topic,
        subject=wrong.subject,
        attribute=wrong.attribute,
        value=wrong.value,
        text=f"Taken back, this was a mistake: {wrong.text}",
        source=wrong.source,
        trusted=True,
        at=wrong.at,
        takes_back=(wrong.name,),
    )
