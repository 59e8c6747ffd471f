"""A refund desk over a real SQLite file, for tests that looking at its runs changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from coag import CoagAgent, ScriptedModel, tool
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import Reconciliation, UnsettledAction
from coag.tracing import Rebuild, Recipe, RunFolder

TASK = "Refund order 7, then order 8."


class Till:
    """The live database; every touch of it is noted beside it."""

    def __init__(self, file: str) -> None:
        self.file = Path(file)
        with closing(sqlite3.connect(file)) as db, db:
            db.execute("create table if not exists refunds (number text)")

    def note(self, what: str) -> None:
        with self.file.with_suffix(".touched").open("a") as notes:
            notes.write(f"{what}\n")

    def refunds(self) -> list[str]:
        with closing(sqlite3.connect(self.file)) as db, db:
            return [row[0] for row in db.execute("select number from refunds order by rowid")]

    async def refund(self, number: str) -> str:
        """Refunds an order."""
        self.note("refund")
        with closing(sqlite3.connect(self.file)) as db, db:
            db.execute("insert into refunds values (?)", (number,))
        return f"Refunded {number}."

    async def asked(self, action: UnsettledAction) -> Reconciliation:
        self.note("reconcile")
        return "unknown"

    async def snapshot(self) -> Any:
        self.note("snapshot")
        return {"refunds": self.refunds()}

    async def restore(self, state: Any) -> None:
        self.note("restore")
        with closing(sqlite3.connect(self.file)) as db, db:
            db.execute("delete from refunds")
            db.executemany("insert into refunds values (?)", [(n,) for n in state["refunds"]])

    async def close(self) -> None:
        """Nothing stays open."""

    def describe(self, state: Any) -> str:
        return f"Refunded: {', '.join(state['refunds']) or 'nothing'}."


class CopiedTill(Till):
    """A till of a fork's own."""

    is_copy = True


class BrokenTill(CopiedTill):
    """A copy that cannot be put back."""

    async def restore(self, state: Any) -> None:
        raise KeyError("no table")


def think(request: ScriptedRequest) -> ScriptedReply:
    """Refunds 7, then 8, by what the prompt shows."""
    wishes: Sequence[tuple[str, dict[str, str]]] = [
        ("refund", {"number": "7"}),
        ("refund", {"number": "8"}),
        ("respond", {"text": "Both are refunded."}),
    ]
    done = sum(f"Refunded {number}." in request.text for number in ("7", "8"))
    action, arguments = wishes[done]
    candidate = {"action": action, "arguments": arguments, "score": 0.9}
    return {"situation": "Refunding.", "candidates": [candidate]}


def desk(
    file: str, *, logs: str | None = None, copies: str = "no", rebuild: Rebuild | None = None
) -> CoagAgent:
    """The desk; with `copies`, a fork gets a till of its own."""
    if copies == "raises" and rebuild is not None:
        raise OSError("the database is locked")
    own = rebuild is not None and rebuild.purpose == "fork" and copies != "no"
    kind = {"broken": BrokenTill}.get(copies, CopiedTill)
    till = kind(f"{file}.fork") if own else Till(file)

    @tool(reconcile=till.asked)
    async def refund(number: str) -> str:
        """Refunds an order."""
        return await till.refund(number)

    return CoagAgent(
        "desk",
        ScriptedModel(think),
        tools=[refund],
        environment=till,
        logs=logs,
        depth="compact",
        proposal="json",
        recipe=Recipe(factory="kits.tills:desk", arguments={"file": file, "copies": copies}),
    )


async def refunded(where: Path, copies: str = "no") -> tuple[RunFolder, Till]:
    """A finished run that refunded both orders, and the live till with a further refund since."""
    file = str(where / "till.db")
    agent = desk(file, logs=str(where / "logs"), copies=copies)
    messages = [TextMessage(content=TASK, source="user")]
    await agent.on_messages(messages, CancellationToken())
    await agent.close()
    folder = agent.run_folder
    assert folder is not None
    till = Till(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("insert into refunds values ('9')")
    till.file.with_suffix(".touched").unlink()
    assert till.refunds() == ["7", "8", "9"]
    return folder, till


def touched(till: Till) -> list[str]:
    """What was done with the live till since the run ended."""
    notes = till.file.with_suffix(".touched")
    return notes.read_text().split() if notes.exists() else []
