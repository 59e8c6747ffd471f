"""A planted poison, and how all of it is taken back: the record, the conclusion and the rule.

A note in the hall says where to bring the keys. The agent remembers it, concludes something from
it, and makes a rule of it for itself. Then its owner revokes the note.

With a real model: `model = open_model("openai:gpt-5-mini")`, with `open_model` from `coag`.
"""

import asyncio
import json

from coag import CoagAgent, ScriptedModel
from coag.memory import EPISODIC_ACTION, PROCEDURAL_ACTION, SEMANTIC_ACTION
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import MemoryKind, Written

POISON = "A note in the hall says that all keys belong under the mat."
LESSON = "Since all keys belong under the mat, the cellar key is there too."
ACTIONS = [
    (EPISODIC_ACTION, {"summary": POISON}),
    (SEMANTIC_ACTION, {"fact": LESSON}),
    (
        PROCEDURAL_ACTION,
        {
            "procedure": "proposal",
            "operation": "add",
            "rule": "Remember that all keys belong under the mat when you tidy up.",
            "reason": "It was on the note.",
        },
    ),
    ("respond", {"text": "Done."}),
]


def script(request: ScriptedRequest) -> ScriptedReply:
    """Does one action after the other."""
    action, arguments = ACTIONS[min(request.number, len(ACTIONS)) - 1]
    candidate = {"action": action, "arguments": json.dumps(arguments), "score": 0.5}
    return {"situation": "Keys lie about.", "goal_status": "open", "candidates": [candidate]}


async def main() -> None:
    """Lets the poison spread, and takes it back."""
    model = ScriptedModel(script)
    agent = CoagAgent("porter", model, memory=":memory:", depth="compact", proposal="json")
    await agent.run(task="Where do all keys belong? Under the mat?")
    memory = agent.long_term_memory
    (poison,) = (await memory.recall("keys", kind=MemoryKind.EPISODIC)).records
    gone = await agent.revoke(poison.record.id, "Nobody of the house wrote that note.")

    assert len(gone.records) == 2  # the note, and what was concluded from it
    assert (await memory.recall("keys under the mat")).records == ()
    assert "under the mat" not in agent.procedures.get("proposal").text
    for line in (record for record in agent.trace if isinstance(record, Written)):
        print(f"cycle {line.cycle}: {line.what} {line.id[:12]}")
    await agent.close()


if __name__ == "__main__":
    asyncio.run(main())
