"""What faded and how the personality changed, read from the file of the dynamics."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from kits.remembered import START
from kits.sleepers import Calendar, dynamics_of, note, sleeper

from coag.errors import ConfigurationError
from coag.inspector.charts import fading_svg
from coag.inspector.fading import MemoryReader
from coag.inspector.run_cache import RunCache
from coag.inspector.web import create_app
from coag.memory import LongTermMemory
from coag.memory.consolidation import sleep
from coag.memory.dynamics import DAY, DYNAMICS_FILE, seconds
from coag.memory.dynamics.aging import TraitChange

CHANGE = TraitChange(
    trait="openness", before=0.5, after=0.54, confidence=0.4, reason="Much that is new."
)


def asking(cache: RunCache) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(cache))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")


async def lived(folder: Path, text: str = "The lamp is off.") -> LongTermMemory:
    """A memory in which one of two notes faded in a year."""
    calendar = Calendar()
    memory = sleeper(settings="companion", path=folder / DYNAMICS_FILE, clock=calendar)
    await note(memory, text)
    kept = await note(memory, "The door is open.")
    await sleep(memory)
    calendar.passes(365)
    states = dynamics_of(memory).states
    states.put(
        one._replace(used_at=one.used_at + 365 * DAY) for one in states.get([kept.id]).values()
    )
    await sleep(memory)
    return memory


async def test_what_faded_is_shown_with_the_reason_the_day_and_the_strength_then(
    tmp_path: Path,
) -> None:
    memory = await lived(tmp_path)
    (owner,) = MemoryReader(tmp_path).view().owners
    (row,) = owner.faded
    assert (owner.owner, owner.states) == ("alice", 2)
    assert row.record is not None
    assert row.record.text == "The lamp is off."
    assert row.why == "faded: not used for 365 days, below 0.05"
    assert (row.at - START).days == 365
    assert row.strength is not None
    assert row.strength < row.floor == 0.05
    assert row.curve[-1] == (pytest.approx(365), pytest.approx(row.strength))
    drawn = fading_svg(row, "p")
    assert "in 365 days without a use." in drawn
    assert ">300<" in drawn
    await memory.close()


async def test_what_others_still_recall_and_what_was_archived_by_hand_say_so(
    tmp_path: Path,
) -> None:
    memory = await lived(tmp_path)
    dynamics = dynamics_of(memory)
    shared = await note(memory, "The key is blue.")
    dynamics.states.put(
        one._replace(faded_at=seconds(START)) for one in dynamics.states.get([shared.id]).values()
    )
    strange = shared.model_copy(update={"id": "f" * 32})
    dynamics.archive.put([strange], owner="alice", at=1e18, reason="by_hand")
    rows = {row.id: row for row in MemoryReader(tmp_path).view().owners[0].faded}
    assert rows[shared.id].record is None
    assert rows[strange.id].why == "archived by hand"
    assert (rows[strange.id].strength, rows[strange.id].at.year) == (None, 9999)
    await memory.close()


async def test_versions_of_the_personality_name_the_proposal_that_led_to_each(
    tmp_path: Path,
) -> None:
    memory = await lived(tmp_path)
    persona = dynamics_of(memory).persona
    applied = persona.propose([CHANGE], at=seconds(START), apply=True)
    persona.propose([CHANGE], at=seconds(START))
    persona.roll_back(0, at=seconds(START), reason="Too much.")
    (owner,) = MemoryReader(tmp_path).view().owners
    rows = [row for row, _ in owner.persona]
    assert [row.state for row in rows] == ["applied", "applied", "proposed", "applied"]
    assert ([row.version for row in rows], owner.holds) == ([0, 1, 2, 3], 3)
    assert rows[1].traits == applied.traits
    assert rows[1].changes == (CHANGE,)
    assert (rows[3].reason, owner.persona[3][1]) == ("Too much.", START)
    await memory.close()


async def test_the_page_is_read_only_and_shows_how_to_restore(tmp_path: Path) -> None:
    memory = await lived(tmp_path, "<script>window.harmed = 1</script> The lamp is off.")
    dynamics_of(memory).persona.propose([CHANGE], at=seconds(START), apply=True)
    await memory.close()
    before = (tmp_path / DYNAMICS_FILE).read_bytes()
    async with asking(RunCache(tmp_path, memory=tmp_path)) as client:
        assert 'href="/memory"' in (await client.get("/")).text
        page = await client.get("/memory")
    assert page.status_code == 200
    assert re.search(r"coag memory restore [0-9a-f]{8} -m ", page.text)
    assert "Much that is new." in page.text
    assert "<script>window.harmed" not in page.text
    assert (tmp_path / DYNAMICS_FILE).read_bytes() == before


async def test_without_a_memory_there_is_no_page_and_a_wrong_folder_is_refused(
    tmp_path: Path,
) -> None:
    async with asking(RunCache(tmp_path)) as client:
        page = await client.get("/memory")
    assert page.status_code == 404
    assert "coag inspect --memory FOLDER" in page.text
    with pytest.raises(ConfigurationError, match="No memory is inspected"):
        MemoryReader(None).view()
    with pytest.raises(ConfigurationError, match="has no dynamics"):
        MemoryReader(tmp_path / "nowhere")
