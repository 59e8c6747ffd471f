"""The refund desk's rules as a policy file: tried on cases, then held by an agent (scripted)."""

import asyncio
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from coag import Candidate, CoagAgent, CoagContext, ScriptedModel
from coag.models import scripted_answers
from coag.policy import load_policy, run_cases


class Desk(BaseModel, frozen=True):
    """An order of the customer's that was looked up, and what the till holds."""

    number: int = 17
    owner: str = "ada"
    customer: str = "ada"
    paid: float = 80
    refunded: float = 0
    till: float = 200


class DeskContext(CoagContext[Desk]):
    """Foresees what a refund does."""

    def _project(self, candidate: Candidate, state: Desk) -> Desk:
        back: float = (candidate.arguments or {}).get("amount", 0)
        return state.model_copy(update={"refunded": back, "till": state.till - back})


def issue_refund(number: int, amount: float) -> str:
    """Gives money back."""
    return f"{amount:g} are on their way"


async def main() -> None:
    """Tries the cases, then the agent."""
    policy = load_policy(Path(__file__).parent / "refund_desk" / "rules.yaml")
    print(*policy.explain(), *(one.text for one in run_cases(policy)), sep="\n")
    wishes = [{"number": 17, "amount": amount} for amount in (800, 80)]
    calls: list[dict[str, Any]] = [{"action": "issue_refund", "arguments": one} for one in wishes]
    calls.append({"action": "respond", "arguments": {"text": "80 are on their way."}})
    answers = [{"situation": "?", "candidates": [call]} for call in calls]
    model = ScriptedModel(scripted_answers(answers))
    agent = CoagAgent("desk", model, tools=[issue_refund], model_context=DeskContext(),
                      constraints=policy, approve=lambda request: True, depth="compact",
                      proposal="json")  # fmt: skip
    print((await agent.run(task="Order 17 broke.")).messages[-1].to_text())


asyncio.run(main())
