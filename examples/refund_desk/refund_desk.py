"""A refund desk on SQLite: six rules, approval, memory per customer; it can be killed and resumed.

The scripted model wants too much, twice. Give a real one: refund_desk.py --model openai:gpt-5-mini
"""

import argparse
import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from autogen_agentchat.ui import Console
from autogen_core import FunctionCall
from pydantic import BaseModel

from coag import CoagAgent, CoagContext, Percept, ScriptedModel, open_model, rule, tool
from coag.cycle import ApprovalPolicy
from coag.memory import user_scope
from coag.schema import Candidate, Reconciliation, UnsettledAction
from coag.tracing import Recipe, list_runs, read_run

TABLES = """
CREATE TABLE IF NOT EXISTS orders (number INTEGER PRIMARY KEY, customer TEXT, paid REAL);
CREATE TABLE IF NOT EXISTS refunds (key TEXT PRIMARY KEY, number INTEGER, amount REAL);
INSERT OR IGNORE INTO orders VALUES (17, 'ada', 80), (18, 'bob', 300);"""


class Desk(BaseModel, frozen=True):
    """What is known: who is asking, the order that was looked up, and what the till holds."""

    customer: str = "ada"  # from the login, not from what somebody writes
    number: int | None = None
    owner: str = ""
    paid: float = 0
    refunded: float = 0
    till: float = 200


class DeskContext(CoagContext[Desk]):
    """Reads what the shop's tools return, and foresees what a refund does."""

    def _update_state_from_function_result(self, state: Desk, percept: Percept) -> Desk:
        return state.model_copy(update={} if percept.is_error else percept.data)

    def _project(self, candidate: Candidate, state: Desk) -> Desk | None:
        if candidate.action != "issue_refund":
            return state
        back: float = (candidate.arguments or {})["amount"]
        update = {"refunded": state.refunded + back, "till": state.till - back}
        return state.model_copy(update=update)

    def _get_memory_scope(self, state: Desk) -> str:
        return user_scope(state.customer)


@rule("issue_refund")
def only_the_order_looked_up(number: int, state: Desk) -> str | None:
    """What nobody has looked at is not known."""
    return None if number == state.number else f"look up order {number} first"


@rule("issue_refund")
def only_ones_own(state: Desk) -> str | None:
    """Customers get back what they paid themselves."""
    return None if state.owner == state.customer else f"this order is not {state.customer}'s"


@rule("issue_refund")
def more_than_nothing(amount: float) -> str | None:
    """A refund gives something back."""
    return None if amount > 0 else "the amount has to be above 0"


RULES = [
    only_the_order_looked_up,
    only_ones_own,
    more_than_nothing,
    rule("issue_refund", name="no_more_than_paid", after=lambda s: s.refunded <= s.paid,
         reason="it is more than was paid"),
    rule("issue_refund", name="till_holds_it", after=lambda s: s.till >= 0,
         reason="the till does not hold that much"),
    rule("issue_refund", name="known_first", fresh=True),
]  # fmt: skip


def build(folder: str, model: str | None = None) -> CoagAgent:
    """Builds the desk over the shop's database: at first, and again when its run is resumed."""
    path = Path(folder) / "shop.db"

    def shop() -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(path, isolation_level=None))

    with shop() as database:
        database.executescript(TABLES)

    def known(number: int) -> dict[str, Any]:
        with shop() as database:
            order = database.execute("SELECT * FROM orders WHERE number = ?", [number]).fetchone()
            back = "SELECT coalesce(sum(amount), 0) FROM refunds"
            (refunded,) = database.execute(f"{back} WHERE number = ?", [number]).fetchone()
            (spent,) = database.execute(back).fetchone()
        return {"number": order[0], "owner": order[1], "paid": order[2],
                "refunded": refunded, "till": 200 - spent}  # fmt: skip

    @tool(read_only=True)
    def look_up_order(number: int) -> dict[str, Any]:
        """Tells whose an order is, what was paid and what was given back."""
        return known(number)

    def what_became(action: UnsettledAction) -> Reconciliation:
        key = [action.arguments["idempotency_key"]]
        with shop() as database:
            found = database.execute("SELECT 1 FROM refunds WHERE key = ?", key).fetchone()
        return "happened" if found else "did_not_happen"

    @tool(reconcile=what_became)
    def issue_refund(number: int, amount: float, idempotency_key: str) -> dict[str, Any]:
        """Gives money back. The key makes a second try of the same refund do nothing."""
        with shop() as database:
            values = (idempotency_key, number, amount)
            database.execute("INSERT OR IGNORE INTO refunds VALUES (?, ?, ?)", values)
        return known(number)

    return CoagAgent(
        "desk",
        open_model(model) if model else ScriptedModel(greedy),
        tools=[look_up_order, issue_refund],
        model_context=DeskContext(),
        constraints=RULES,
        approval=ApprovalPolicy(when=[lambda action, arguments: arguments.get("amount", 0) > 50]),
        approve=lambda request: True,  # a person: ConsoleApprover() of coag.compat
        memory=str(Path(folder) / "memory"),
        logs=str(Path(folder) / "logs"),
        recipe=Recipe(factory="refund_desk:build", arguments={"folder": folder, "model": model}),
        depth="compact",
    )


def greedy(request: Any) -> Any:
    """Looks the order up, then wants another's money, too much of it, and what was paid."""
    if '"refunded":80' in request.text:
        return "You have your 80 back."
    if '"number":17' not in request.text:
        return [_call("look_up_order", number=17)]
    wishes = ((18, 300), (17, 800), (17, 80))
    return [_call("issue_refund", number=number, amount=amount) for number, amount in wishes]


def _call(name: str, **arguments: Any) -> FunctionCall:
    return FunctionCall(id="", name=name, arguments=json.dumps(arguments))


def main() -> None:
    """One customer, one order, one refund."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="a model's spec; without it a scripted one")
    parser.add_argument("--folder", default="desk", help="where the shop, memory and logs are")
    given = parser.parse_args()
    (Path(given.folder) / "logs").mkdir(parents=True, exist_ok=True)
    asyncio.run(serve(given.folder, given.model))


async def serve(folder: str, model: str | None) -> None:
    """Continues a run that was killed, or begins one."""
    runs = [run for run in list_runs(Path(folder) / "logs") if read_run(run.path).ended_at is None]
    desk = await CoagAgent.resume(runs[0].path) if runs else build(folder, model)
    task = None if desk.in_turn else "Please give me back the money for order 17."
    await Console(desk.run_stream(task=task))
    await desk.close()


if __name__ == "__main__":
    main()
