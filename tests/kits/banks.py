"""A bank for tests: an account, tools on it, and a context that keeps what they return."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autogen_core import FunctionCall
from pydantic import BaseModel

from coag import CoagContext, Verdict, tool
from coag.schema import Candidate, Percept, Reconciliation, Settlement, UnsettledAction

Behaviour = Literal["works", "late", "lost", "raises"]
"""How a payment goes: `late` has its effect and gives no answer, `lost` has none and gives none."""


@dataclass
class Bank:
    """Knows what really happened."""

    balance: float = 100
    paid: list[float] = field(default_factory=list[float])
    keys: list[str] = field(default_factory=list[str])
    going: Callable[[], Behaviour] = lambda: "works"
    """How the next payment goes."""

    async def pay(self, amount: float) -> dict[str, float]:
        """Pays an amount."""
        how = self.going()
        if how == "raises":
            raise ValueError("no such account")
        if how != "lost":
            await asyncio.sleep(0)
            self.paid.append(amount)
            self.balance -= amount
        if how != "works":
            await asyncio.Event().wait()
        return {"balance": self.balance}

    async def look(self) -> dict[str, float]:
        """Tells the balance."""
        return {"balance": self.balance}

    def truth(self, action: UnsettledAction) -> Reconciliation:
        """What became of a payment; for tests that pay each amount once."""
        return "happened" if action.arguments["amount"] in self.paid else "did_not_happen"

    def tools(self, *, reconciles: bool = False, looks: bool = True) -> list[Any]:
        """`pay` and, declared as read-only, `look`."""

        async def pay(amount: float) -> dict[str, float]:
            """Pays an amount."""
            return await self.pay(amount)

        @tool(read_only=True)
        async def look() -> dict[str, float]:
            """Tells the balance."""
            return await self.look()

        own = tool(reconcile=self.truth)(pay) if reconciles else pay
        return [own, look] if looks else [own]


class Account(BaseModel, frozen=True):
    """What is known of the account."""

    balance: float = 100
    calls: int = 0


class AccountContext(CoagContext[Account]):
    """Keeps the balance as the bank reports it; predicts nothing."""

    def _update_state_from_function_result(self, state: Account, percept: Percept) -> Account:
        returned: Any = percept.data
        balance: float = state.balance if returned is None else returned["balance"]
        return Account(balance=balance, calls=state.calls + 1)

    def _update_state_from_settlement(self, state: Account, percept: Percept) -> Account:
        if percept.settlement is not Settlement.HAPPENED:
            return state
        amount = (percept.arguments or {})["amount"]
        return state.model_copy(update={"balance": state.balance - amount})

    def _update_state_from_percept(self, state: Account, percept: Percept) -> Account:
        return Account(balance=percept.data["balance"], calls=state.calls)


class ForeseeingContext(AccountContext):
    """Predicts what a payment leaves; for everything else that nothing changes."""

    def _project(self, candidate: Candidate, state: Account) -> Account | None:
        if candidate.action != "pay":
            return state
        left = state.balance - (candidate.arguments or {})["amount"]
        return state.model_copy(update={"balance": left})


def never_overdrawn(candidate: Candidate, state: Account, projection: Account | None) -> Verdict:
    """No payment of more than there is, by the state alone."""
    amount = (candidate.arguments or {}).get("amount", 0)
    if candidate.action == "pay" and amount > state.balance:
        return Verdict.forbid(f"{amount} is more than the balance, {state.balance}")
    return Verdict.allow()


def one_call_only(candidate: Candidate, state: Account, projection: Account | None) -> Verdict:
    """One payment in all."""
    if candidate.action == "pay" and state.calls:
        return Verdict.forbid("there was a call already")
    return Verdict.allow()


def payments(amounts: Sequence[float]) -> list[FunctionCall]:
    """One answer of a model that pays several times."""
    return [
        FunctionCall(id=str(n), name="pay", arguments=f'{{"amount": {amount}}}')
        for n, amount in enumerate(amounts)
    ]
