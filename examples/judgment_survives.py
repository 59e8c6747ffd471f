"""Judgment that survives: a dead end of one run is not tried in the next, until something changes.

Each run is a new agent that knows nothing but the file of its judgment. The first finds out that
the exporter cannot write PDF. The second wants to try it again, and may not. Then the exporter has
another version: the third may, and it works. The model is scripted and wants the same in every run,
so that only the judgment makes the difference.
"""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from coag import CoagAgent, ScriptedModel
from coag.judgment import JudgmentModule
from coag.models import ScriptedRequest
from coag.schema import EvaluationOutcome

VERSION = {"export": "1.0"}


def export(form: str) -> dict[str, Any]:
    """Writes the report in a form."""
    if form == "pdf" and VERSION["export"] == "1.0":
        return {"ok": False, "failure": "deterministic", "reason": "version 1.0 has no PDF"}
    return {"ok": True, "written": f"report.{form}"}


def wish(action: str, score: float, **arguments: str) -> dict[str, Any]:
    """A candidate as a model writes it."""
    return {"action": action, "arguments": json.dumps(arguments), "score": score}


def wants_pdf(request: ScriptedRequest) -> str:
    """The scripted model: rather PDF than text, and the answer once one of them is written."""
    written = next((f for f in ("pdf", "txt") if f"report.{f}" in str(request.messages)), None)
    wishes = [wish("export", 0.9, form="pdf"), wish("export", 0.5, form="txt")]
    if written:
        wishes = [wish("respond", 1.0, text=f"Here is report.{written}.")]
    return json.dumps({"situation": "A report is wanted.", "candidates": wishes})


async def main() -> None:
    """Three runs, the last one with a newer exporter."""
    with tempfile.TemporaryDirectory() as folder:
        for VERSION["export"] in ("1.0", "1.0", "2.0"):
            judgment = JudgmentModule(Path(folder, "j.json"), versions=VERSION, close_after=1)
            given: dict[str, Any] = {"tools": [export], "modules": [judgment], "proposal": "json"}
            agent = CoagAgent("clerk", ScriptedModel(wants_pdf), depth="compact", **given)
            answer = (await agent.run(task="Export the report.")).messages[-1].to_text()
            print(f"version {VERSION['export']}: {answer}")
            judged = (r.evaluations for r in agent.trace if isinstance(r, EvaluationOutcome))
            verdicts = [v for each in judged for one in each for v in one.verdicts]
            for reason in dict.fromkeys(v.reason for v in verdicts if "dead end" in v.reason):
                print("  ", reason)


if __name__ == "__main__":
    asyncio.run(main())
