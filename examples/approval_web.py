"""Human approval on a local web page: bills over 100 are paid only after somebody has agreed.

With `--wait` that is you. Otherwise a visitor decides as a program would: by the page's JSON.
"""

import asyncio
import sys
import threading
import time

import httpx

from coag import CoagAgent, ScriptedModel
from coag.compat.approval_web import WebApprover
from coag.cycle import ApprovalPolicy
from coag.models import scripted_answers

PAID: list[int] = []
BILLS = [("pay", {"amount": 20}), ("pay", {"amount": 400}), ("respond", {"text": "All paid."})]
POLICY = ApprovalPolicy(when=[lambda action, given: given["amount"] > 100 and "it is over 100"])
ANSWERS = [{"situation": "", "candidates": [{"action": a, "arguments": b}]} for a, b in BILLS]


def pay(amount: int) -> str:
    """Pays an amount."""
    PAID.append(amount)
    return f"paid {amount}"


def visitor(api: str) -> None:
    """Waits for the first request and grants it."""
    while not (waiting := httpx.get(api).json()["requests"]):
        time.sleep(0.02)
    decision = {"digest": waiting[0]["digest"], "granted": True, "by": "Ann"}
    httpx.post(f"{api}/{waiting[0]['key']}", json=decision)


async def main() -> None:
    """Pays two bills; the second waits for somebody."""
    with WebApprover() as page:
        print("decide here:", page.url)
        if "--wait" not in sys.argv:
            threading.Thread(target=visitor, args=(f"{page.url}api/requests",), daemon=True).start()
        agent = CoagAgent(
            "clerk",
            ScriptedModel(scripted_answers(ANSWERS)),
            tools=[pay],
            depth="compact",
            proposal="json",
            approval=POLICY,
            approve=page,
        )
        print((await agent.run(task="Pay.")).messages[-1].to_text(), PAID)


if __name__ == "__main__":
    asyncio.run(main())
