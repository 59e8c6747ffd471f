"""Our guard around the plain agent's tools: its rules and its progress detector, nothing else."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import ToolResult, Workbench

from coag.compat import ConstrainedWorkbench
from coag.context import CoagContext
from coag.schema import Constraint


@dataclass(frozen=True, slots=True)
class Guard:
    """What guards the tools of a plain agent."""

    context: Callable[[], CoagContext[Any]]
    """Makes the context that keeps the state by which rules judge."""
    constraints: Sequence[Constraint]
    """The rules from the beginning."""
    later: Mapping[str, Constraint] = field(default_factory=dict[str, Constraint])
    """Rules that come into force with a change of requirements, by its sentence."""


class GuardedWorkbench(ConstrainedWorkbench):
    """The tools behind the rules; knows which calls reached it.

    Args:
        inner: The tools, written down.
        guard: What guards them.
    """

    def __init__(self, inner: Workbench, guard: Guard) -> None:
        super().__init__(inner, constraints=list(guard.constraints), context=guard.context())
        self.judged: set[str] = set()
        """Ids of the model's calls that the rules were asked about."""

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """Calls a tool under guard, as `AssistantAgent` does."""
        if call_id is not None:
            self.judged.add(call_id)
        items = super().call_tool_stream(name, arguments, cancellation_token, call_id)
        async with aclosing(items):
            async for item in items:
                yield item
