"""`coag memory strength` and `persona`: how memory changes, seen by its owner."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kits.remembered import remembered
from kits.sleepers import LONG, Calendar, dynamics_of

from coag.memory import LongTermMemory
from coag.memory.consolidation import sleep
from coag.memory.dynamics import DYNAMICS_FILE, MemoryDynamics, MemoryDynamicsSettings
from coag.memory.dynamics.aging import TraitChange
from coag.schema import SystemClock
from coag.store import ChromaStore, HashEmbedder

Say = Callable[..., Any]
GIST, NEW = remembered(LONG), remembered("The charger stands at the window.")
FADED = remembered("The charger stood at the door.")
VITAL = remembered("The door code is 4711.", type="code")
WARMER = TraitChange(
    trait="agreeableness", before=0.5, after=0.54, confidence=0.5, reason="much was shared"
)


async def _lived(folder: Path) -> None:
    """A memory with a faded record, a gist, one that stays and a newer one."""
    clock = Calendar(SystemClock().now() - timedelta(days=400))
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    settings = MemoryDynamicsSettings.preset("assistant")
    assert settings.forgetting is not None
    forgetting = settings.forgetting.model_copy(update={"exempt_types": frozenset({"code"})})
    settings = settings.model_copy(update={"forgetting": forgetting})
    dynamics = MemoryDynamics(settings, path=folder / DYNAMICS_FILE, owner="alice", clock=clock)
    memory = LongTermMemory(store, scope="alice", clock=clock, dynamics=dynamics)
    await store.add([FADED, VITAL])
    await sleep(memory)
    clock.passes(330)
    await store.add([GIST, NEW])
    await sleep(memory)
    clock.passes(69)
    await sleep(memory)
    assert dynamics_of(memory).states.get([GIST.id])[GIST.id].gist
    dynamics.persona.propose([WARMER], at=clock.now().timestamp())
    await memory.close()


@pytest.fixture
def lived(tmp_path: Path) -> Path:
    folder = tmp_path / "alice"
    asyncio.run(_lived(folder))
    return folder


def test_the_weakest_records_come_first_with_when_and_why_they_fade(say: Say, lived: Path) -> None:
    shown = say("memory", "strength", str(lived), "--embedder", "hash-64")
    assert shown.code == 0
    first, *rows = shown.out.splitlines()
    assert first == "alice: 4 record(s) with a state"
    by_id = {row.split()[0]: row for row in rows}
    assert rows[0].split()[0] in {FADED.id[:8], VITAL.id[:8]}
    assert "faded: not used for 400 days, below 0.05" in by_id[FADED.id[:8]]
    assert "stays: exempt" in by_id[VITAL.id[:8]]
    assert "unless it is used, 0 use(s): The charger stands at the window" in by_id[NEW.id[:8]]


def test_of_one_record_the_curve_the_gist_beside_the_text_and_its_place_are_shown(
    say: Say, lived: Path
) -> None:
    place = ("-m", str(lived), "--embedder", "hash-64")
    shown = say("memory", "strength", GIST.id[:8], *place).out
    assert "▃▃▂▂" in shown
    assert f"text: {LONG[:40]}" in shown
    assert ", made 20" in shown
    assert "drift by recall 0.00" in shown
    assert "in the store" in shown
    archived = say("memory", "strength", str(lived), FADED.id[:8], "--embedder", "hash-64").out
    assert "faded: not used for 400 days" in archived
    assert "archived, word for word" in archived
    (entry,) = say("memory", "strength", NEW.id[:8], "--json", *place).out.splitlines()
    read = json.loads(entry)
    assert (read["owner"], read["text"]) == ("alice", NEW.text)
    assert read["fades_at"] > read["used_at"]
    assert say("memory", "strength", "00000000", *place).code == 1


def test_a_proposal_takes_effect_and_is_taken_back_by_hand(say: Say, lived: Path) -> None:
    listed = say("memory", "persona", str(lived)).out
    assert "proposed agreeableness 0.50 to 0.54: agreeableness: much was shared" in listed
    applied = say("memory", "persona", str(lived), "--apply", "1").out
    assert "agreeableness 0.54" in applied.splitlines()[0]
    back = say("memory", "persona", str(lived), "--back-to", "0", "--by", "ann").out
    assert "agreeableness 0.50" in back.splitlines()[0]
    assert say("memory", "persona", str(lived), "--refuse", "1").code == 1  # it held already
    versions = say("memory", "persona", str(lived), "--json").out.splitlines()
    assert [json.loads(one)["state"] for one in versions] == ["applied", "applied"]
    wrong = say("memory", "persona", str(lived), "--apply", "1", "--refuse", "1")
    assert wrong.code == 2
    assert "One change of one owner at a time" in wrong.err
    log = (lived / "memory-log.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(log[-1])["details"] == {"owner": "alice", "back-to": 0}


async def _proposing(folder: Path) -> None:
    dynamics = MemoryDynamics("companion", path=folder / DYNAMICS_FILE, owner="bob")
    dynamics.persona.propose([WARMER], at=0.0)
    dynamics.close()


def test_a_proposal_is_refused_by_hand_and_of_several_owners_one_is_to_be_named(
    say: Say, lived: Path
) -> None:
    asyncio.run(_proposing(lived))
    assert say("memory", "persona", str(lived), "--refuse", "1").code == 2
    shown = say("memory", "persona", str(lived), "--refuse", "1", "--owner", "bob").out
    assert "1 1970-01-01 refused" in shown
