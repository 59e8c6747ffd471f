"""Tools of the Agent Framework as the tools of an agent of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agent_framework import (
    AgentSession,
    FunctionInvocationContext,
    FunctionTool,
    MCPStdioTool,
    MCPStreamableHTTPTool,
    normalize_tools,
)
from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult, ToolSchema

from coag.compat import StatelessWorkbench, ToolEffects
from coag.errors import ConfigurationError

from .guarded_tools import declared_effects, text_of

_SERVERS = (MCPStdioTool, MCPStreamableHTTPTool)
AnyTool = FunctionTool | MCPStdioTool | MCPStreamableHTTPTool
GivenTools = Any
"""Functions, tools or MCP tools of the framework; one, or several."""


def usable_tools(tools: GivenTools) -> list[AnyTool]:
    """The tools that can be run here.

    Raises:
        ConfigurationError: One that a service or the host runs: it could not be judged here.
    """
    usable: list[AnyTool] = []
    for tool in normalize_tools(tools):
        if not isinstance(tool, (FunctionTool, *_SERVERS)):
            raise ConfigurationError(
                f"tools: {tool!r:.80} is run by the model's service, where no rule can judge it. "
                "Give functions, FunctionTool or MCP tools."
            )
        if isinstance(tool, FunctionTool) and tool.declaration_only:
            raise ConfigurationError(
                f"tools: {tool.name!r} is only declared, so nothing here could run it. Give it a "
                "function."
            )
        usable.append(tool)
    return usable


class ToolSpace(StatelessWorkbench):
    """The tools of one session: those of its agent, and those of the run."""

    component_config_schema = None  # pyright: ignore[reportAssignmentType] - it is no component

    def __init__(self, tools: Sequence[AnyTool]) -> None:
        self._tools = tools
        self._known: dict[str, FunctionTool] = {}
        self.of_the_run: Sequence[AnyTool] = ()
        """Tools that only this run has."""
        self.session: AgentSession | None = None
        self.kwargs: Mapping[str, Any] = {}
        """What tools get in their `FunctionInvocationContext`."""

    @property
    def may_ask(self) -> bool:
        """Whether a tool may need approval; what a server's tools need is not known before."""
        return any(
            not isinstance(tool, FunctionTool) or tool.approval_mode == "always_require"
            for tool in self._tools
        )

    def asks(self, action: str, arguments: Mapping[str, Any]) -> str:
        """Why a tool needs approval; empty where it does not."""
        tool = self._known.get(action)
        needed = tool is not None and tool.approval_mode == "always_require"
        return "its tool says approval_mode='always_require'" if needed else ""

    async def list_tools(self) -> list[ToolSchema]:
        """The tools that exist now; MCP servers are connected at first."""
        for tool in (*self._tools, *self.of_the_run):
            if not isinstance(tool, FunctionTool) and not tool.is_connected:
                await tool.connect()
        self._known = {}
        for tool in self._functions():
            self._known.setdefault(tool.name, tool)
        return [
            ToolSchema(
                name=tool.name,
                description=tool.description,
                parameters=cast("Any", tool.parameters()),
            )
            for tool in self._known.values()
        ]

    def effects(self, name: str) -> ToolEffects:
        """What is declared of a tool's effects."""
        return declared_effects(self._known[name])

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Runs a tool with just these arguments; it may raise anything."""
        tool, given = self._known[name], dict(arguments or {})
        context = FunctionInvocationContext(
            function=tool, arguments=given, session=self.session, kwargs=dict(self.kwargs)
        )
        contents: Any = await tool.invoke(arguments=given, context=context, tool_call_id=call_id)
        failed = isinstance(contents, list) and any(
            getattr(one, "type", "") == "error" for one in cast("list[object]", contents)
        )
        text = TextResultContent(content=text_of(cast("object", contents)))
        return ToolResult(name=name, result=[text], is_error=failed)

    def _functions(self) -> Iterator[FunctionTool]:
        for tool in (*self._tools, *self.of_the_run):
            if isinstance(tool, FunctionTool):
                yield tool
            else:
                yield from tool.functions
