"""The origin of what a person says."""

from __future__ import annotations

from coag.memory import LongTermMemory, said_by_person
from coag.memory.correction import Correction, corrected
from coag.schema import MemoryKind, Provenance, Trust
from coag.store import HashEmbedder, InMemoryStore


def test_a_persons_word_is_a_users_and_of_no_run() -> None:
    assert said_by_person("eve") == Provenance(
        run="", activity="", cycle=0, source="eve", source_kind="person", trust=Trust.USER
    )
    assert said_by_person().source == "person"


async def test_what_a_person_corrects_tells_who_it_was_and_what_it_replaced() -> None:
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="robbie")
    told = await memory.remember(
        MemoryKind.SEMANTIC, "The charger is at (0,0).", provenance=said_by_person("ann")
    )
    better = Correction(text="The charger is at (3,0).")
    now = await corrected(memory, told.record, better, by=said_by_person("eve"))
    assert (now.provenance.source, now.supersedes) == ("eve", told.record.id)
