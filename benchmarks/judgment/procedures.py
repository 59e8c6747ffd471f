"""Procedures learned from traces by a language model: does what it writes do better?

An agent puts letters into one of three trays, one letter an episode, one model call each. Nothing
in its prompts says what belongs where; after each episode the check does. The same model writes
the procedures (`coag.evals.search_procedures`). What it found is kept only if twelve held-out
letters go better than with the text that the package ships, by a paired test. Without `--model`
both are scripted, and write and follow rules without a fault: that shows the way, not a result.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from autogen_core.models import ChatCompletionClient

from coag import Bounds, CoagAgent, ScriptedModel, open_model
from coag.evals import PlayedEpisode, figures_of, search_procedures
from coag.memory import GateSettings, ProceduralMemory, Procedure
from coag.models import ScriptedRequest, StructuredModel

TRAYS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "red": (
        "things that arrived broken",
        ("the {} came with a crack", "my {} was smashed in its box", "the {} I got is in pieces"),
    ),
    "blue": (
        "money",
        ("I was charged twice for the {}", "you owe me a refund for the {}",
         "the invoice for my {} is wrong"),
    ),
    "green": (
        "questions about goods",
        ("does the {} come in other sizes", "how long is the {}", "which wood is the {} made of"),
    ),
}  # fmt: skip
"""By tray what belongs there, and what such letters say."""
GOODS = ("lamp", "table", "mirror", "vase", "shelf", "clock", "chair", "frame")
TRAIN, HELD_OUT = range(6), range(100, 112)
TASK = "Put this letter into a tray: {}"


def letter(seed: int) -> tuple[str, str]:
    """Its tray and its text; the trays take turns."""
    draw = random.Random(f"letter {seed}")
    tray = list(TRAYS)[seed % len(TRAYS)]
    return tray, f"“Dear shop, {draw.choice(TRAYS[tray][1]).format(draw.choice(GOODS))}.”"


class Office:
    """Plays episodes, and counts what they cost."""

    def __init__(self, model: str | None) -> None:
        self._spec = model
        self.tokens = 0

    def client(self, scripted: Any) -> ChatCompletionClient:
        """The model asked for, or the scripted one."""
        return ScriptedModel(scripted) if self._spec is None else open_model(self._spec)

    async def play(
        self, seed: int, procedures: Mapping[str, Procedure], folder: Path
    ) -> PlayedEpisode:
        """One letter."""
        right, text = letter(seed)
        used = list[str]()

        def put(tray: Literal["red", "blue", "green"]) -> str:
            """Puts the letter into a tray."""
            used.append(tray)
            return f"The letter is in the {tray} tray."

        client = self.client(_sort)
        try:
            agent = CoagAgent(
                "clerk", client, tools=[put], procedures=procedures, logs=folder, depth="compact",
                proposal="json", bounds=Bounds(cycles=1), seed=seed,
            )  # fmt: skip
            await agent.run(task=TASK.format(text))
            figures = figures_of(list(agent.trace), ("put",))
            self.tokens += figures.prompt_tokens + figures.completion_tokens
            await agent.close()
        finally:
            await client.close()
        if used == [right]:
            return PlayedEpisode(1.0)
        did = f"It went into the {used[0]} tray." if used else "It was put nowhere."
        return PlayedEpisode(0.0, f"{did} The {right} tray is right: it is for {TRAYS[right][0]}.")


def search(model: str | None, episodes: int, folder: Path) -> dict[str, Any]:
    """Searches; what was found is given as plain values, and kept as `found.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    office, memory = (
        Office(model),
        ProceduralMemory(gate=GateSettings(untrusted_requires_approval=False)),
    )
    client = office.client(_rewrite)  # left open: its loop is the search's own, and ends with it
    shipped = memory.get("deliberation").text
    found = search_procedures(
        office.play, memory, ["deliberation"], model=StructuredModel(client), train=TRAIN,
        held_out=HELD_OUT, folder=folder, most_episodes=episodes,
    )  # fmt: skip
    result = {
        "model": model or "scripted", "kept": found.kept, "reason": found.reason,
        "lost": found.lost, "episodes": found.episodes, "tokens": office.tokens,
        "refused": found.refused, "shipped": shipped, "texts": dict(found.texts),
    }  # fmt: skip
    (folder / "found.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    return result


# ---- the scripted models ----


def _sort(request: ScriptedRequest) -> dict[str, Any]:
    """Follows a rule `WORDS: TRAY` of its procedure for such letters; else it takes red."""
    text = str(request.messages)
    (asked,) = re.findall(r"letter into a tray: “(.*?)”", text)[:1]
    kind = next(tray for tray in TRAYS if any(_is_like(asked, one) for one in TRAYS[tray][1]))
    tray = kind if f"{TRAYS[kind][0]}: {kind}" in text else "red"
    offer = {"action": "put", "arguments": json.dumps({"tray": tray}), "score": 0.9}
    return {"situation": "A letter.", "candidates": [offer]}


def _is_like(text: str, pattern: str) -> bool:
    return re.search(pattern.replace("{}", r"\w+"), text) is not None


def _rewrite(request: ScriptedRequest) -> dict[str, str]:
    """Adds a rule for each kind of letter that the feedback names."""
    shown = str(request.messages[-1].content)
    old = shown.partition("<procedure>")[2].partition("</procedure>")[0].strip()
    rules = dict(re.findall(r"The (\w+) tray is right: it is for ([^.]+)\.", shown))
    new = (f"- {what}: {tray}" for tray, what in rules.items() if f"{what}: {tray}" not in old)
    return {"text": "\n".join((old, *new))}
