"""A procedure learned from failed episodes; held-out ones go better. Both models are scripted."""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coag import CoagAgent, ScriptedModel
from coag.evals import PlayedEpisode, search_procedures
from coag.memory import GateSettings, ProceduralMemory, Procedure
from coag.models import ScriptedRequest, StructuredModel

LESSON = "Look a price up before you say it."


def deliberate(request: ScriptedRequest) -> dict[str, object]:
    """Looks the price up if its procedure says so; else it guesses."""
    knows = LESSON in str(request.messages)
    action = "price" if knows and request.number == 1 else "respond"
    arguments = {} if action == "price" else {"text": "7 euros" if knows else "5 euros"}
    offer = {"action": action, "arguments": json.dumps(arguments)}
    return {"situation": "A price is asked for.", "candidates": [offer]}


def rewrite(request: ScriptedRequest) -> dict[str, str]:
    """Adds the lesson to the procedure that it is shown."""
    shown = str(request.messages[-1].content).partition("<procedure>")[2]
    old = shown.partition("</procedure>")[0].strip()
    return {"text": f"{old}\n- {LESSON}"}


def price() -> str:
    """The price of today."""
    return "7 euros"


async def play(seed: int, procedures: Mapping[str, Procedure], folder: Path) -> PlayedEpisode:
    """One customer asks; the answer is right or wrong."""
    how: Any = {"depth": "compact", "proposal": "json"}
    agent = CoagAgent(
        "clerk", ScriptedModel(deliberate), tools=[price], procedures=procedures, logs=folder, **how
    )
    answer = (await agent.run(task=f"Customer {seed}: what does it cost?")).messages[-1]
    await agent.close()
    right = "7 euros" in str(answer)
    return PlayedEpisode(float(right), "" if right else "The price was guessed, and wrong.")


if __name__ == "__main__":
    memory = ProceduralMemory(gate=GateSettings(untrusted_requires_approval=False))
    model, logs = StructuredModel(ScriptedModel(rewrite)), Path(tempfile.mkdtemp())
    seeds: Any = {"train": range(4), "held_out": range(100, 108)}
    found = search_procedures(play, memory, ["deliberation"], model=model, folder=logs, **seeds)
    print(found.reason, memory.get("deliberation").diff.splitlines()[-1])
