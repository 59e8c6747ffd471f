"""`MafCoagAgent` beside the Agent Framework's own `Agent`: the same samples, and what a turn costs.

The samples are those of the framework: sequential, concurrent, group chat, Magentic, a checkpoint
that is restored, approval in a workflow, an agent as a tool. Each is run with its agent and with
ours, by the same fixed answers, and the outcomes are compared. Then both take turns of one
session; the model answers at once, so that what is measured is the frameworks' own work.

    python benchmarks/maf.py [--turns 500] [--json]

PASS or FAIL says whether outcomes are the same and the target is met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from statistics import median
from time import process_time
from typing import Any, Literal

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    InMemoryCheckpointStorage,
    InMemoryHistoryProvider,
    Message,
    tool,
)
from agent_framework.orchestrations import (
    ConcurrentBuilder,
    GroupChatBuilder,
    GroupChatState,
    MagenticBuilder,
    SequentialBuilder,
)

from coag.integrations.agent_framework import MafCoagAgent

Kind = Literal["stock", "coag"]
KINDS: tuple[Kind, ...] = ("stock", "coag")
Answer = str | Content
MARKS = (10, 500)
AROUND = 5
"""Turns on each side of a mark whose median counts."""
TARGET = 4.0
"""Times the stock agent's turn, as in `drop_in.py`."""


class FixedClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Gives the same answers, over and over."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        super().__init__()
        self._answers = answers
        self._asked = 0

    def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> Any:
        given = self._answers[self._asked % len(self._answers)]
        self._asked += 1
        contents = [Content.from_text(given) if isinstance(given, str) else given]

        async def pieces() -> Any:
            yield ChatResponseUpdate(contents=contents, role="assistant")

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", contents)])

        return self._build_response_stream(pieces()) if stream else answer()


def make(kind: Kind, name: str, *answers: Answer, tools: Sequence[Any] = ()) -> Any:
    """One of the two agents."""
    client, instructions = FixedClient(answers), "You work with others."
    if kind == "stock":
        return Agent(client, instructions, name=name, tools=list(tools))
    return MafCoagAgent(client, instructions, name=name, tools=tools, depth="compact")


def outputs(result: Any) -> list[str]:
    """What came out of a workflow: who said what."""
    messages = [message for one in result.get_outputs() for message in one.messages]
    return [f"{message.author_name}: {message.text}" for message in messages if message.text]


# ---- The framework's samples ----


def _pair(kind: Kind) -> list[Any]:
    return [make(kind, "writer", "A draft.", "Better."), make(kind, "critic", "Hm.", "Good.")]


async def sequential(kind: Kind) -> list[str]:
    """One after the other, the whole conversation handed over."""
    return outputs(await SequentialBuilder(participants=_pair(kind)).build().run("Write."))


async def concurrent(kind: Kind) -> list[str]:
    """Side by side, the answers gathered."""
    return outputs(await ConcurrentBuilder(participants=_pair(kind)).build().run("Write."))


def _in_turn(state: GroupChatState) -> str:
    return list(state.participants)[state.current_round % 2]


async def group_chat(kind: Kind) -> list[str]:
    """In turns, each hearing what is new."""
    builder = GroupChatBuilder(
        participants=_pair(kind), selection_func=_in_turn, max_rounds=4, output_from="all"
    )
    return outputs(await builder.build().run("Write."))


def _ledger(*, done: bool) -> str:
    answers = {
        "is_request_satisfied": done,
        "is_in_loop": False,
        "is_progress_being_made": True,
        "next_speaker": "writer",
        "instruction_or_question": "Write it.",
    }
    return json.dumps({name: {"reason": "", "answer": one} for name, one in answers.items()})


async def magentic(kind: Kind) -> list[str]:
    """By a manager that plans; the manager is the framework's own agent."""
    said = ("The facts.", "The plan.", _ledger(done=False), _ledger(done=True), "It is written.")
    manager = make("stock", "manager", *said)
    builder = MagenticBuilder(participants=_pair(kind), manager_agent=manager, output_from="all")
    return outputs(await builder.build().run("Write."))


async def checkpoint(kind: Kind) -> list[str]:
    """Restored by other agents from a checkpoint between the two."""
    storage = InMemoryCheckpointStorage()

    def workflow() -> Any:
        builder = SequentialBuilder(
            participants=_pair(kind), checkpoint_storage=storage, name="sample"
        )
        return builder.build()

    first = outputs(await workflow().run("Write."))
    made = await storage.list_checkpoints(workflow_name="sample")
    between = next(one for one in made if "writer" in one.messages)  # what it said waits
    return [*first, *outputs(await workflow().run(checkpoint_id=between.checkpoint_id))]


class Till:
    """A tool that writes down what was bought."""

    def __init__(self, *, approval: bool = False) -> None:
        self.bought: list[int] = []

        def buy(price: int) -> str:
            """Buys something."""
            self.bought.append(price)
            return f"bought for {price}"

        self.tool = tool(buy, approval_mode="always_require" if approval else "never_require")


def _buying(price: int) -> Content:
    return Content.from_function_call(
        call_id="c1", name="buy", arguments=json.dumps({"price": price})
    )


async def approval(kind: Kind) -> list[str]:
    """A workflow waits for a person, who agrees."""
    till = Till(approval=True)
    buyer = make(kind, "buyer", _buying(3), "Bought.", tools=[till.tool])
    workflow = SequentialBuilder(participants=[buyer]).build()
    asked = (await workflow.run("Buy.")).get_request_info_events()
    before = list(till.bought)
    responses = {one.request_id: one.data.to_function_approval_response(True) for one in asked}
    after = await workflow.run(responses=responses)
    return [f"asked {len(asked)}, bought {before} then {till.bought}", *outputs(after)]


async def as_tool(kind: Kind) -> list[str]:
    """A tool of the framework's own agent."""
    till = Till()
    buyer = make(kind, "buyer", _buying(3), "Bought.", tools=[till.tool])
    call = Content.from_function_call(call_id="t1", name="buyer", arguments='{"task": "Buy."}')
    triage = make("stock", "triage", call, "All is done.", tools=[buyer.as_tool()])
    response = await triage.run("Please buy.")
    return [response.text, f"bought {till.bought}"]


SAMPLES: Mapping[str, Callable[[Kind], Awaitable[list[str]]]] = {
    one.__name__: one
    for one in (sequential, concurrent, group_chat, magentic, checkpoint, approval, as_tool)
}


async def compare() -> dict[str, dict[str, list[str]]]:
    """The outcome of every sample with both agents."""
    return {name: {kind: await run(kind) for kind in KINDS} for name, run in SAMPLES.items()}


# ---- What a turn costs ----


async def turns(number: int) -> dict[str, dict[int, float]]:
    """Milliseconds of CPU of a turn with one tool call, around each mark, by kind.

    The stock agent keeps its history in the session, as it does by default; nothing is cut there.
    """
    spent: dict[str, list[float]] = {kind: [] for kind in KINDS}
    agents: dict[str, Any] = {}
    for kind in KINDS:
        till = Till()
        agents[kind] = make(kind, "buyer", _buying(3), "Bought it.", tools=[till.tool])
    agents["stock"].context_providers.append(InMemoryHistoryProvider())
    sessions = {kind: agents[kind].create_session() for kind in KINDS}
    for turn in range(number + AROUND):
        for kind in KINDS:
            began = process_time()
            await agents[kind].run(f"Buy thing number {turn}.", session=sessions[kind])
            spent[kind].append((process_time() - began) * 1_000)
    marks = [mark for mark in MARKS if mark <= number] or [number]
    return {
        kind: {mark: median(times[max(0, mark - AROUND) : mark + AROUND]) for mark in marks}
        for kind, times in spent.items()
    }


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description="MafCoagAgent beside the framework's Agent.")
    parser.add_argument("--turns", type=int, default=MARKS[-1])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    samples = asyncio.run(compare())
    costs = asyncio.run(turns(given.turns))
    ratios = {mark: costs["coag"][mark] / costs["stock"][mark] for mark in costs["stock"]}
    if given.json:
        found = {"samples": samples, "milliseconds": costs, "ratios": ratios}
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    write = sys.stdout.write
    for name, outcome in samples.items():
        same = outcome["stock"] == outcome["coag"]
        write(f"{name:12} {'same' if same else 'OTHER'}  {' | '.join(outcome['coag'])}\n")
    for mark, ratio in ratios.items():
        verdict = "PASS" if ratio <= TARGET else "FAIL"
        cost = ", ".join(f"{kind} {costs[kind][mark]:.1f} ms" for kind in KINDS)
        write(f"turn {mark:5} {verdict}  {ratio:.1f} times the stock agent's ({cost})\n")


if __name__ == "__main__":
    main()
