"""How far a record may be trusted: as far as the best of those who stated it themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import (
    ANN,
    EPISODIC,
    ROBBIE,
    UNTRUSTED,
    USER,
    WEB,
    memory_over,
    origin,
    tell,
)

from coag.memory import LongTermMemory, Remembered, binding_metadata, retract_source
from coag.schema import Provenance, Record, Trust

RANK = {Trust.UNTRUSTED: 0, Trust.USER: 1, Trust.DEVELOPER: 2}


@pytest.mark.parametrize(("first", "second"), [(WEB, ANN), (ANN, WEB)])
async def test_what_a_user_states_too_is_trusted_as_theirs_and_keeps_both_origins(
    memory: LongTermMemory, first: Provenance, second: Provenance
) -> None:
    before = await tell(memory, "It is shut.", first)
    both = (await tell(memory, "It is shut.", second)).record
    made = await tell(memory, "One cannot walk in.", ROBBIE, "", both)
    assert (both.provenance, both.lineage.also_from) == (ANN, (WEB,))
    assert both.created_at == before.record.created_at
    assert made.record.provenance.trust is USER


async def test_what_is_concluded_from_an_untrusted_record_is_untrusted(
    memory: LongTermMemory,
) -> None:
    poor = (await tell(memory, "It is open.", WEB)).record
    made = await tell(memory, "One can walk in.", ANN, "", poor)
    assert made.record.provenance.trust is UNTRUSTED
    assert made.record.lineage.derived_from == (poor.id,)
    gone = poor.model_copy(update={"id": "nothing"})
    with pytest.raises(ValueError, match="'nothing'"):
        await tell(memory, "x y", ANN, "", gone)


async def test_an_agent_that_repeats_an_untrusted_text_adds_no_trust(
    memory: LongTermMemory,
) -> None:
    ground = await tell(memory, "Ann has the key.", ANN)
    await tell(memory, "It is shut.", WEB)
    again = await tell(memory, "It is shut.", ROBBIE)
    nearly = await tell(memory, "it is shut", ROBBIE)
    as_event = await tell(memory, "It is shut.", ROBBIE, kind=EPISODIC)
    derived = origin("dreams", USER, "consolidation")
    from_sound_ones = await tell(memory, "It is shut.", derived, "", ground.record)
    assert again.record.provenance == from_sound_ones.record.provenance == WEB
    assert {one.trust for one in from_sound_ones.record.lineage.also_from} == {UNTRUSTED}
    assert not nearly.new
    assert as_event.record.provenance.trust is UNTRUSTED


async def test_an_agent_that_repeats_an_untrusted_value_in_other_words_adds_no_trust(
    memory: LongTermMemory,
) -> None:
    sound = await tell(memory, "The door is open.", ANN, "open")
    rumour = await tell(memory, "The door is shut.", WEB, "shut")
    again = await tell(memory, "Nobody can get in here.", ROBBIE, "shut")
    instead = await tell(
        memory, "It cannot be opened.", ROBBIE, "shut", supersedes=rumour.record.id
    )
    assert (again.merged, again.record.id) == (True, rumour.record.id)
    assert instead.record.provenance.trust is UNTRUSTED
    (held,) = await memory.store.get([sound.record.id])
    assert (held.superseded_by, held.provenance.trust) == (None, USER)


async def test_an_origin_that_is_revoked_takes_its_trust_away_again(
    memory: LongTermMemory,
) -> None:
    rumour = await tell(memory, "It is shut.", WEB)
    both = await tell(memory, "It is shut.", ANN)
    made = await tell(memory, "One cannot walk in.", ROBBIE, "", both.record)
    further = await tell(memory, "Nobody is in.", ROBBIE, "", made.record)
    done = await retract_source(memory, rumour.record.id[:8], "ann", "She meant another door.")
    assert set(done.lowered) == {rumour.record.id, made.record.id, further.record.id}
    assert (done.cleared, done.source, done.record_id) == ((), "ann", rumour.record.id)
    held = await memory.store.get(done.lowered)
    assert {one.provenance.trust for one in held} == {UNTRUSTED}
    assert await memory.store.get([rumour.record.id]) == [rumour.record]


async def test_what_a_revoked_origin_had_superseded_holds_again_beside_what_is_left(
    memory: LongTermMemory,
) -> None:
    sound = await tell(memory, "The door is open.", origin("ben", USER), "open")
    rumour = await tell(memory, "The door is shut.", WEB, "shut")
    both = await tell(memory, "The door is shut.", ANN, "shut")
    assert both.superseded == (sound.record.id,)
    done = await retract_source(memory, rumour.record.id, "ann", "She meant another door.")
    assert done.restored == (sound.record.id,)
    recall = await memory.recall("the door is")
    assert len(recall.records) == 2
    assert set(recall.contradictions[0]) == {sound.record.id, rumour.record.id}


async def test_a_record_whose_only_source_is_revoked_goes_with_all_derived_from_it(
    memory: LongTermMemory,
) -> None:
    only = await tell(memory, "It is shut.", ANN)
    made = await tell(memory, "One cannot walk in.", ROBBIE, "", only.record)
    with pytest.raises(ValueError, match="not from 'web'"):
        await retract_source(memory, only.record.id, "web", "It lies.")
    with pytest.raises(ValueError, match="reason is empty"):
        await retract_source(memory, only.record.id, "ann", " ")
    done = await retract_source(memory, only.record.id, "ann", "She meant another door.")
    assert set(done.records) == {only.record.id, made.record.id}
    with pytest.raises(ValueError, match="There is no record"):
        await retract_source(memory, only.record.id, "ann", "Again.")


async def test_metadata_bind_only_where_code_read_them_off_or_nobody_untrusted_had_a_part(
    memory: LongTermMemory,
) -> None:
    async def write(text: str, by: Provenance, *, sensed: bool = False) -> Record:
        done = await memory.remember(
            EPISODIC, text, provenance=by, metadata={"x": 1}, sensed=sensed
        )
        return done.record

    planted = await write("A wall.", WEB)
    assert binding_metadata(planted) == {}
    assert binding_metadata(await write("A wall.", ANN)) == {}  # her word is not its metadata
    assert binding_metadata(await write("A wall.", ROBBIE, sensed=True)) == {}
    assert binding_metadata(await write("A gate.", WEB, sensed=True)) == {"x": 1}
    assert binding_metadata(await write("A door.", ANN)) == {"x": 1}


async def test_a_stranger_who_repeats_a_trusted_text_does_not_unbind_its_metadata(
    memory: LongTermMemory,
) -> None:
    async def write(by: Provenance) -> Record:
        done = await memory.remember(EPISODIC, "A wall.", provenance=by, metadata={"x": 1})
        return done.record

    await write(ANN)
    assert binding_metadata(await write(WEB)) == {"x": 1}


async def replaced(memory: LongTermMemory, *, last: Provenance) -> list[Remembered]:
    """A stranger's text that two others took the place of, one after the other."""
    first = await tell(memory, "The code is 1234.", WEB)
    second = await tell(memory, "The code is 9999.", WEB, supersedes=first.record.id)
    third = await tell(memory, "The code is 7777.", last, supersedes=second.record.id)
    return [first, second, third]


async def test_what_a_user_states_holds_though_a_stranger_had_put_another_text_in_its_place(
    memory: LongTermMemory,
) -> None:
    _, second, third = await replaced(memory, last=WEB)
    again = await tell(memory, "The code is 1234.", ANN)
    assert (again.new, again.contradicts) == (True, (third.record.id,))
    recall = await memory.recall("The code is 1234.", k=1)
    assert [hit.record.text for hit in recall.records] == ["The code is 1234.", third.record.text]
    chain = [one.id for one in await memory.history(third.record.id)]
    assert chain == [second.record.id, third.record.id]


async def test_what_a_user_repeats_stays_replaced_by_what_is_trusted_as_much(
    memory: LongTermMemory,
) -> None:
    *_, third = await replaced(memory, last=ANN)
    again = await tell(memory, "The code is 1234.", ANN)
    assert again.record.superseded_by == third.record.id


@given(
    cases=st.lists(
        st.tuples(st.sampled_from(Trust), st.sampled_from(("message", "agent"))), min_size=1
    )
)
async def test_trust_is_the_best_of_the_independent_origins(cases: list[tuple[Trust, str]]) -> None:
    memory, expected = memory_over(), None
    for cycle, (trust, kind) in enumerate(cases):
        done = await tell(memory, "It is shut.", origin("x", trust, kind, cycle=cycle))
        if expected is None or (kind == "message" and RANK[trust] > RANK[expected]):
            expected = trust
        assert done.record.provenance.trust is expected
