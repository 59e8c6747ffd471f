"""A stock AssistantAgent that cannot overspend: a hard rule and the state that it judges.

Each call is judged by what the calls before it have left; a refusal is an error to be read.
"""

import asyncio
import json

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from pydantic import BaseModel

from coag import Candidate, CoagContext, Percept, ScriptedModel, Verdict
from coag.cli import main as show
from coag.compat import ConstrainedWorkbench
from coag.models import scripted_answers


class Purse(BaseModel):
    """What the rule judges by."""

    spent: int = 0


class PurseContext(CoagContext[Purse]):
    """Reads the purse out of what `buy` returns."""

    def _update_state_from_function_result(self, state: Purse, percept: Percept) -> Purse:
        return state if percept.is_error else Purse(spent=state.spent + percept.data["price"])


def within_ten(candidate: Candidate, state: Purse, projection: Purse | None) -> Verdict:
    """At most ten may be spent."""
    if state.spent + (candidate.arguments or {})["price"] <= 10:
        return Verdict.allow()
    return Verdict.forbid(f"{state.spent} of 10 are spent already")


def buy(item: str, price: int) -> str:
    """Buys an item."""
    return json.dumps({"bought": item, "price": price})


calls = [
    FunctionCall(id=item, name="buy", arguments=json.dumps({"item": item, "price": price}))
    for item, price in {"tea": 6, "cake": 5, "bread": 4}.items()
]
model = ScriptedModel(scripted_answers([calls]))
bench = ConstrainedWorkbench([buy], constraints=[within_ten], context=PurseContext(), logs="logs")

if __name__ == "__main__":
    agent = AssistantAgent("buyer", model, workbench=bench)
    print(asyncio.run(agent.run(task="Buy tea, cake and bread.")).messages[-1].to_text())
    asyncio.run(bench.stop())
    show(["log", str(bench.folder)])
