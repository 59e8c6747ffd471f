"""The agents that are compared, and the tools that they all get in the same way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import TextResultContent, ToolResult, ToolSchema, Workbench

from case_study.bench.protocol import Arm
from case_study.contenders import used_tokens
from coag import CoagAgent, ScriptedModel
from coag.compat import ConstrainedClient, ConstrainedWorkbench, StatelessWorkbench
from coag.context import CoagContext
from coag.cycle import Bounds
from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import Constraint

_NAME = "assistant"


@dataclass(frozen=True, slots=True)
class Executed:
    """A call of a tool that was made."""

    name: str
    arguments: Mapping[str, Any]
    output: str
    is_error: bool
    value: Any = None
    """What the environment gave, where the adapter needs it."""


Run = Callable[[str, Mapping[str, Any]], Awaitable[Executed]]
"""Runs a tool of the environment; it never raises, since `AssistantAgent` hangs where one does."""


class EnvironmentWorkbench(StatelessWorkbench):
    """The tools of a benchmark's environment; notes every call that was made.

    Args:
        schemas: What is offered, given once: agents ask for it in every cycle.
        run: Runs one.
    """

    def __init__(self, schemas: Sequence[ToolSchema], run: Run) -> None:
        self._schemas = list(schemas)
        self._run = run
        self.executed: list[Executed] = []

    def offer(self, schemas: Sequence[ToolSchema]) -> None:
        """Offers these tools from now on."""
        self._schemas = list(schemas)

    async def list_tools(self) -> list[ToolSchema]:
        """What is offered."""
        return self._schemas

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Runs a tool and notes it."""
        del cancellation_token, call_id
        done = await self._run(name, dict(arguments or {}))
        self.executed.append(done)
        text = TextResultContent(content=done.output)
        return ToolResult(name=name, result=[text], is_error=done.is_error)


def tool_schema(name: str, description: str, parameters: Mapping[str, Any]) -> ToolSchema:
    """A tool as AutoGen lists it, from its JSON Schema."""
    schema: Any = {"type": "object", "properties": {}, **parameters}
    return ToolSchema(name=name, description=description, parameters=schema)


@dataclass(frozen=True, slots=True)
class Setup:
    """What the agent of a case is made of."""

    client: ChatCompletionClient
    workbench: EnvironmentWorkbench
    system_message: str
    rules: Sequence[Constraint] = ()
    most_calls: int = 40
    """Rounds of tool use a turn."""
    seconds: float = 600.0
    """For one turn."""
    context: Callable[[], CoagContext[Any]] = CoagContext[Any]
    """Makes what keeps the state that the rules judge by."""
    impasses: int = Bounds().impasses
    """Cycles in a row with the same refused calls, after which a turn of a `CoagAgent` ends."""


@dataclass(slots=True)
class Player:
    """An arm that plays a case: say something, and see what it answers."""

    agent: AssistantAgent | CoagAgent
    setup: Setup
    problems: list[str] = field(default_factory=list[str])
    began: float = field(default_factory=time.monotonic)

    async def say(self, text: str) -> str:
        """The agent's answer to the user; empty where it was not there in time."""
        try:
            async with asyncio.timeout(self.setup.seconds):
                result = await self.agent.run(task=text)
        except TimeoutError:
            self.problems.append(f"the turn took longer than {self.setup.seconds:g} s")
            return ""
        return _answer(result)

    def spent(self) -> dict[str, Any]:
        """What it has cost so far and how it went, by arguments of `Case.result`."""
        return {
            "calls": len(self.setup.workbench.executed),
            "tokens": used_tokens(self.setup.client),
            "seconds": round(time.monotonic() - self.began, 3),
            "problem": "; ".join(self.problems),
        }

    async def close(self) -> None:
        """Ends the agent's run, and lets go of the model."""
        if isinstance(self.agent, CoagAgent):
            await self.agent.close()
        await self.setup.client.close()


def policy_model(act: Callable[[], FunctionCall | str]) -> ScriptedModel:
    """A model that does what a policy says, for any agent.

    Args:
        act: The next call, or the answer that ends the turn. It is asked once for each proposal,
            so that a call that is refused is not wished again unless the policy says so.
    """

    def script(request: ScriptedRequest) -> ScriptedReply:
        if request.schema is not None:
            return _opinion(request.schema)
        wish = act()
        return wish if isinstance(wish, str) else [wish]

    return ScriptedModel(script, name="policy")


def _opinion(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A form filled in without an opinion: a policy proposes, and judges nothing."""
    fields = schema.get("properties", {})
    if "evaluations" in fields:
        judged = [{"candidate": number, "reason": "", "score": 0.5} for number in range(1, 5)]
        return {"evaluations": judged}
    return {"choice": 1} if "choice" in fields else {"situation": "As it was."}


def player_of(arm: Arm, setup: Setup) -> Player:
    """The agent of an arm, ready to be spoken to."""
    if arm in ("compact", "auto"):
        return Player(
            CoagAgent(
                _NAME,
                setup.client,
                workbench=setup.workbench,
                system_message=setup.system_message,
                constraints=list(setup.rules),
                model_context=setup.context(),
                depth=arm,
                bounds=Bounds(cycles=setup.most_calls + 10, impasses=setup.impasses),
            ),
            setup,
        )
    client, workbench = setup.client, cast("Workbench", setup.workbench)
    if arm == "guarded":
        guarded = ConstrainedWorkbench(workbench, constraints=setup.rules, context=setup.context())
        client, workbench = ConstrainedClient(client, guarded), guarded
    agent = AssistantAgent(
        _NAME,
        client,
        workbench=workbench,
        system_message=setup.system_message,
        max_tool_iterations=setup.most_calls,
    )
    return Player(agent, setup)


def _answer(result: TaskResult) -> str:
    to_text = getattr(result.messages[-1], "to_text", None) if result.messages else None
    return str(to_text()) if to_text is not None else ""
