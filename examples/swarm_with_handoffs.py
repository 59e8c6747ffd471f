"""Two CoagAgents in a Swarm: one hands over to the other, which uses a tool and hands back.

A constraint binds the handoff as it would any action: nobody is handed back without a refund. The
scripted model tries to do so at first.
"""

import asyncio
from typing import Any

from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_agentchat.ui import Console
from autogen_core import FunctionCall

from coag import Candidate, CoagAgent, ScriptedModel, Verdict
from coag.models import scripted_answers

REFUNDED: list[str] = []


def refund(ticket: str) -> str:
    """Refunds a ticket."""
    REFUNDED.append(ticket)
    return f"{ticket} is refunded"


def refund_before_handing_back(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    """The customer is not sent back with nothing done."""
    if candidate.action == "transfer_to_desk" and not REFUNDED:
        return Verdict.forbid("nothing was refunded yet: refund the ticket first")
    return Verdict.allow()


def _call(name: str, arguments: str = "{}") -> list[FunctionCall]:
    return [FunctionCall(id=name, name=name, arguments=arguments)]


HAND_BACK = _call("transfer_to_desk")
at_the_desk = scripted_answers([_call("transfer_to_refunds"), "Your ticket was refunded. DONE"])
at_refunds = scripted_answers([HAND_BACK, _call("refund", '{"ticket": "T-7"}'), HAND_BACK])


async def main() -> None:
    """Runs the team on one request."""
    desk = CoagAgent("desk", ScriptedModel(at_the_desk), handoffs=["refunds"], depth="compact")
    refunds = CoagAgent(
        "refunds",
        ScriptedModel(at_refunds),
        tools=[refund],
        handoffs=["desk"],
        constraints=[refund_before_handing_back],
        depth="compact",
    )
    team = Swarm([desk, refunds], termination_condition=TextMentionTermination("DONE"))
    await Console(team.run_stream(task="Please refund my ticket T-7."))


if __name__ == "__main__":
    asyncio.run(main())
