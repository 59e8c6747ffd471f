"""A constraint: a rule in code that no model output overrides, added while the agent runs.

The scripted model wants to refund 400, twice. The first refund is paid; the second is forbidden in
Evaluation, with the rule's name and reason in the trace.

With a real model: `model = open_model("openai:gpt-5-mini")`, with `open_model` from `coag`.
"""

import asyncio
from typing import Any

from coag import Candidate, CoagAgent, ScriptedModel, Verdict
from coag.models import scripted_answers
from coag.schema import EvaluationOutcome

PAID: list[int] = []


def refund(amount: int) -> str:
    """Pays an amount back to the customer."""
    PAID.append(amount)
    return f"refunded {amount}"


def at_most_100(candidate: Candidate, state: object, projection: object) -> Verdict:
    """Larger refunds are for people to decide."""
    amount = (candidate.arguments or {}).get("amount", 0)
    if candidate.action == "refund" and amount > 100:
        return Verdict.forbid(f"{amount} is more than 100: hand it to a person")
    return Verdict.allow()


def wish(action: str, **arguments: Any) -> dict[str, Any]:
    """What the model answers: one candidate."""
    return {"situation": "A refund?", "candidates": [{"action": action, "arguments": arguments}]}


ANSWERS = [
    wish("refund", amount=400),
    wish("respond", text="Your money is on its way."),
    wish("refund", amount=400),  # forbidden by now: an impasse, which the next cycle perceives
    wish("respond", text="A colleague will look at it."),
]


async def main() -> None:
    """Asks for the same refund before and after the rule is in force."""
    model = ScriptedModel(scripted_answers(ANSWERS))
    agent = CoagAgent("desk", model, tools=[refund], depth="compact", proposal="json")
    print("without the rule:", (await agent.run(task="I want 400 back.")).messages[-1].to_text())
    agent.constraints.add(at_most_100)  # in force from the next cycle
    print("with the rule:   ", (await agent.run(task="Another 400!")).messages[-1].to_text())
    judged = [e for r in agent.trace if isinstance(r, EvaluationOutcome) for e in r.evaluations]
    for verdict in [e.rejected_by for e in judged if e.rejected_by is not None]:
        print(f"rejected by {verdict.constraint}: {verdict.reason}")
    print("paid:", PAID)


if __name__ == "__main__":
    asyncio.run(main())
