"""A clerk with everything that outlives a run: judgment, reminders, awareness, all in files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from coag.agent import CoagAgent
from coag.awareness import Awareness, FolderStateStore
from coag.judgment import JudgmentModule
from coag.memory.consolidation import AtEvent, IntentionModule, Intentions
from coag.memory.dynamics import MemoryDynamics
from coag.models import ScriptedModel, ScriptedRequest
from coag.tracing import Recipe


def export(form: str) -> dict[str, Any]:
    """Writes the report in a form."""
    if form == "pdf":
        return {"ok": False, "failure": "deterministic", "reason": "no PDF here"}
    return {"ok": True, "written": f"report.{form}"}


def wants_pdf(request: ScriptedRequest) -> str:
    """Tries PDF first, then text."""
    wishes = [("export", {"form": "pdf"}), ("export", {"form": "txt"})]
    if "report.txt" in str(request.messages):
        wishes = [("respond", {"text": "Done."})]
    candidates = [
        {"action": action, "arguments": json.dumps(given), "score": 0.9 - n / 10}
        for n, (action, given) in enumerate(wishes)
    ]
    return json.dumps({"situation": "A report is wanted.", "candidates": candidates})


def reminders(folder: Path) -> Intentions:
    """What the clerk wants to be reminded of."""
    return Intentions(MemoryDynamics("assistant", path=folder / "mind.db", owner="clerk"))


def clerk(*, files: str, logs: str, about: str = "export") -> CoagAgent:
    """Exports a report; what it learns lies in a folder. Its recipe builds it again."""
    folder = Path(files)
    folder.mkdir(exist_ok=True)
    intentions = reminders(folder)
    intentions.add("Tell Ann about the report.", AtEvent(event=about, recurring=True))
    return CoagAgent(
        "clerk",
        ScriptedModel(wants_pdf),
        tools=[export],
        modules=[
            JudgmentModule(folder / "judgment.json", close_after=1),
            IntentionModule(intentions),
            Awareness(store=FolderStateStore(folder / "states")),
        ],
        depth="compact",
        proposal="json",
        logs=logs,
        recipe=Recipe(
            factory="kits.report_clerks:clerk",
            arguments={"files": files, "logs": logs, "about": about},
        ),
    )
