"""Records corrected by hand, and those that they are linked to."""

from __future__ import annotations

import pytest
from kits.remembered import remembered
from kits.statements import SEMANTIC, memory_over

from coag.memory import said_by_person
from coag.memory.correction import Correction, amended, corrected, dependents_of, related_to
from coag.schema import Fact, Lineage
from coag.store import HashEmbedder, InMemoryStore

DOOR = remembered("The door is open.", kind=SEMANTIC)


async def test_all_records_derived_from_one_are_found() -> None:
    store = InMemoryStore(HashEmbedder(16))
    one = remembered("One.", lineage=Lineage(derived_from=(DOOR.id, "gone")))
    two = remembered("Two.", scope="bob", lineage=Lineage(derived_from=(one.id, DOOR.id)))
    await store.add([DOOR, one, two])
    assert {r.id for r in await dependents_of(store, DOOR.id)} == {one.id, two.id}
    assert await dependents_of(store, DOOR.id, scopes=["alice"]) == (one,)
    related = await related_to(store, one)
    assert (related.sources, related.lost, related.derived) == ((DOOR,), ("gone",), (two,))
    assert (related.chain, related.origins) == ((one,), (one.provenance,))


async def test_a_text_that_held_before_comes_back_as_it_is_wanted() -> None:
    memory = memory_over()
    await memory.store.add([DOOR])
    shut = Correction(text="The door is shut.", type="door")
    now = await corrected(memory, DOOR, shut, by=said_by_person())
    again = await corrected(memory, now, Correction(text=DOOR.text), by=said_by_person())
    assert (again.id, again.type, again.superseded_by) == (DOOR.id, "door", None)


def test_a_fact_is_given_an_end_and_loses_it() -> None:
    lit = remembered(
        "The lamp is lit.",
        kind=SEMANTIC,
        fact=Fact(subject="lamp", attribute="state", value="lit"),
    )
    over = amended(lit, Correction(until=DOOR.created_at))
    assert over.fact is not None
    assert over.fact.valid_until == DOOR.created_at
    assert amended(over, Correction(holds=True)) == lit
    with pytest.raises(ValueError, match="from 0 to 1"):
        amended(lit, Correction(importance=1.5))
