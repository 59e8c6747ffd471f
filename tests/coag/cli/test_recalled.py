"""What the log says of recalled records."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond
from kits.remembered import remembered

from coag import CoagAgent, LongTermMemory
from coag.cli.log import RunLines
from coag.context import AssistantState, Budgets, CoagContext
from coag.schema import MemoryKind, RecalledRecord, RetrievalOutcome, ScoreParts
from coag.store import HashEmbedder, InMemoryStore

HIT = RecalledRecord(
    record=remembered("A wall stands at (2,1)."),
    score=0.6,
    why=ScoreParts(dense=0.2, lexical=0.41, recency=0.001, trust=-0.02),
)


def test_log_says_why_each_record_came_and_which_had_no_room() -> None:
    outcome = RetrievalOutcome(
        cycle=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        query="walls",
        records=(HIT,),
        left_out=("0123456789abcdef",),
    )
    lines = [text.plain.strip() for text in RunLines().of(outcome)]
    assert lines[2:] == [
        "why: lexical +0.41, dense +0.20, trust -0.02",
        "no room in the prompt for: 0123456789ab",
    ]


async def _asked(logs: Path, records: tuple[str, ...]) -> str:
    """A run in which a prompt has room for little; gives its name."""
    store = InMemoryStore(HashEmbedder())
    await store.add([remembered(one, kind=MemoryKind.SEMANTIC, scope="scout") for one in records])
    agent = CoagAgent(
        "scout",
        brain(respond()),
        memory=LongTermMemory(store, scope="scout"),
        model_context=CoagContext[AssistantState](budgets=Budgets(recalled=60)),
        logs=logs,
        proposal="json",
    )
    task = TextMessage(content="Are red doors locked?", source="user")
    await agent.on_messages([task], CancellationToken())
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder.path.name


def test_why_names_records_that_had_no_room(tmp_path: Path, say: Callable[..., Any]) -> None:
    long = "Red doors are heavy. " + "They creak. " * 30
    run = asyncio.run(_asked(tmp_path, ("Red doors are locked.", long)))
    (name,) = json.loads(say("why", run, "1", "--json").out)["explanation"]["left_out"]
    lines = say("why", run, "1").out.splitlines()
    at = lines.index(f"  no room in the prompt for: {name[:12]}")
    assert "Red doors are locked." in lines[at - 2]
    alone = asyncio.run(_asked(tmp_path / "other", ("Red doors are locked.",)))
    assert "no room" not in say("why", alone, "1", "--logs", str(tmp_path / "other")).out


def test_a_record_without_a_known_reason_is_shown_without_one() -> None:
    outcome = RetrievalOutcome(
        cycle=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        query="walls",
        records=(HIT.model_copy(update={"why": None}),),
    )
    assert not any("why" in text.plain for text in RunLines().of(outcome))
