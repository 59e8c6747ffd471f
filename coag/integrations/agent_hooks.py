"""Our rules as an interceptor of the agent-hooks contract. Experimental, as is the contract.

`AGENT-HOOKS-0.1` (the package `agent-hooks-sdk`, 0.1.0b3) is Microsoft's contract between any agent
framework and the code that judges its calls. Only its JSON is used here: nothing of the package is
imported.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from coag.compat import (
    UNUSABLE_SCHEMA,
    Guard,
    GuardedResult,
    ToolEffects,
    ToolRunner,
    read_result,
    spec_of,
)
from coag.context import CoagContext
from coag.schema import ActionCall, ActionResult, ActionSpec, Constraint

_UNDER_WAY = (
    "Another call is under way, and the rules judge by what it brings. Call it again afterwards."
)
_NO_RETURN = ActionResult(
    content="The host did not say what came of it.", is_error=True, outcome_unknown=True
)


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class _HostCall:
    """A call that the host runs: it has begun once it is allowed, and ends when the host says."""

    schema: Mapping[str, Any]
    problems: tuple[str, ...] = ()
    begun: asyncio.Future[None] = field(default_factory=_future)
    returned: asyncio.Future[ActionResult] = field(default_factory=_future)
    task: asyncio.Task[GuardedResult] | None = None

    async def specs(self) -> Sequence[ActionSpec]:
        return [spec_of(self.schema, ToolEffects())]

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments  # the host runs just what it asked about

    async def execute(self, call: ActionCall) -> ActionResult:
        self.begun.set_result(None)
        return await self.returned

    async def end(self, result: ActionResult) -> None:
        if self.task is not None and not self.returned.done():
            self.returned.set_result(result)
            await self.task


@dataclass(slots=True)
class _Session:
    guard: Guard
    schemas: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    under_way: dict[str, _HostCall] = field(default_factory=dict[str, _HostCall])

    async def judge(self, call: Mapping[str, Any]) -> dict[str, Any]:
        if self.under_way:
            return _deny(_UNDER_WAY)
        name = call["name"]
        host = _HostCall(self.schemas.get(name, {"name": name}))
        host.task = asyncio.create_task(
            self.guard.call(name, call["args"], str(call["id"]), tools=host)
        )
        await asyncio.wait({host.task, host.begun}, return_when=asyncio.FIRST_COMPLETED)
        if host.task.done():
            return _deny(host.task.result().to_text())
        self.under_way[str(call["id"])] = host
        return {"decision": "allow"}

    async def end(self, call: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        host = self.under_way.pop(str(call["id"]), None)
        if host is not None:
            value = result["value"]
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            await host.end(read_result(text, is_error=bool(result["is_error"])))

    async def end_all(self) -> None:
        while self.under_way:
            await self.under_way.popitem()[1].end(_NO_RETURN)


class ConstraintInterceptor:
    """Judges tool calls at `pre_tool_call`, by a state that is read at `post_tool_call`.

    A second call of a session is denied while the first is under way. A call whose result the host
    does not report before it asks the model again is of unknown outcome. What goes wrong here is
    raised: hosts of the contract block then.

    Example:
        `create_agent_hooks_middleware([ConstraintInterceptor([within_ten], context=Purse)])`

    Args:
        constraints: Hard rules; the context's own are asked as well.
        context: Makes what keeps the state of one session, which lasts until `agent_shutdown`.
        logs: The folder for run folders; None keeps traces in RAM.
        name: Who acts.
    """

    def __init__(
        self,
        constraints: Sequence[Constraint] = (),
        *,
        context: Callable[[], CoagContext[Any]] = CoagContext[Any],
        logs: str | None = None,
        name: str = "agent",
    ) -> None:
        self._make = lambda: Guard(
            name, context(), ToolRunner(), constraints=constraints, logs=logs
        )
        self._sessions: dict[str, _Session] = {}

    async def intercept(self, context: Mapping[str, Any], /) -> dict[str, Any]:
        """The verdict, in the contract's JSON."""
        name, point = str(context["session"]["id"]), context["interception_point"]
        if name not in self._sessions:
            self._sessions[name] = _Session(self._make())
        session = self._sessions[name]
        if point == "pre_tool_call":
            return await session.judge(context["tool_call"])
        if point == "post_tool_call":
            await session.end(context["tool_call"], context["tool_result"])
        if point == "pre_model_call":
            await session.end_all()
            session.schemas = _schemas(context.get("tools") or ())
        if point == "agent_shutdown":
            await session.end_all()
            self._sessions.pop(name).guard.trace.close()
        return {"decision": "allow"}


def _deny(reason: str) -> dict[str, Any]:
    return {"decision": "deny", "reason": reason}


def _schemas(tools: Sequence[Any]) -> dict[str, Mapping[str, Any]]:
    """The tools that a host names with a schema that can be checked."""
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        plain = cast("Mapping[str, Any]", tool if isinstance(tool, Mapping) else {})
        given = cast("Mapping[str, Any]", plain.get("function", plain))
        if isinstance(given.get("parameters"), Mapping):
            try:
                spec_of(given, ToolEffects())
            except UNUSABLE_SCHEMA:
                continue
            found[given["name"]] = given
    return found
