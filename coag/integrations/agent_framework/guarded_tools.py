"""One answer's tools of the Agent Framework, as a guard calls them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agent_framework import (
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionTool,
    MCPStdioTool,
    MCPStreamableHTTPTool,
    MiddlewareFailure,
    _tools,  # pyright: ignore[reportPrivateUsage] - no public way
    normalize_tools,
)
from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult, ToolSchema
from pydantic_core import PydanticSerializationError, to_jsonable_python

from coag.compat import (
    UNUSABLE_SCHEMA,
    StatelessWorkbench,
    ToolEffects,
    completed_arguments,
    effects_of,
    output_of,
    read_result,
    spec_of,
)
from coag.cycle import with_defaults
from coag.errors import ConfigurationError
from coag.schema import ActionCall, ActionResult, ActionSpec

_UNDECLARED = ToolEffects()
_PROBLEM = 500
"""Characters of a problem that are kept."""

# ---- Arguments that nobody changes after they were judged ----


_SEAL = _tools._SECURITY_ARGUMENTS_SNAPSHOT_CONTEXT_KEY  # pyright: ignore[reportPrivateUsage] - no public way
"""By this key the framework compares arguments right before a tool runs, and aborts the run where
they are others."""
_RESEALED = (
    "Middleware behind ConstrainedMiddleware changed what {name} was called with, after it was "
    "judged. Put ConstrainedMiddleware last in the list of middleware; where a context provider "
    "brought the other one, give ConstrainedMiddleware(...).provider() after that provider."
)


def _sealed(context: FunctionInvocationContext) -> object:
    """Binds a call to the arguments that it has now."""
    arguments: Any = context.arguments
    seal: object = _tools._argument_authority_token(  # pyright: ignore[reportPrivateUsage] - as above
        dict(arguments), boundary="the rules"
    )
    context.metadata[_SEAL] = seal
    return seal


# ---- Tools ----


@dataclass(slots=True)
class OfferedTools:
    """The tools that an answer may call, by name. They are judged here, and not run."""

    tools: Mapping[str, FunctionTool]
    problems: tuple[str, ...] = ()

    async def specs(self) -> Sequence[ActionSpec]:
        """The tools as actions; one whose schema cannot be checked is left out."""
        specs: list[ActionSpec] = []
        problems: list[str] = []
        for tool in self.tools.values():
            schema = {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters(),
            }
            try:
                specs.append(spec_of(schema, declared_effects(tool)))
            except UNUSABLE_SCHEMA as error:
                problems.append(f"{tool.name} is left out: {error}"[:_PROBLEM])
        self.problems = tuple(problems)
        return specs

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments as the tool's own type takes them.

        Raises:
            ValueError: It refuses them.
        """
        tool = self.tools[spec.name]
        if tool.input_model is None:
            return with_defaults(arguments, spec.parameters)
        return completed_arguments(tool.input_model, tool.name, arguments)

    async def execute(self, call: ActionCall) -> ActionResult:
        """Never asked: calls are run by the framework."""
        problem = f"{call.action} is not run here."
        return ActionResult(content=problem, is_error=True, nothing_done=True)


@dataclass(slots=True)
class InvokedTool(OfferedTools):
    """The tool of one call that the framework is about to run."""

    context: FunctionInvocationContext = field(kw_only=True)
    call_next: Callable[[], Awaitable[None]] = field(kw_only=True)
    timeout: float = field(kw_only=True)
    text: str | None = None
    """What the tool returned, in text; None while it has not run."""
    raised: Exception | None = None
    """What the tool, or middleware behind us, raised; the framework handles it."""

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs the call with just the arguments that were judged."""
        if call.arguments != json_of(self.context.arguments):
            self.context.arguments = call.arguments

        async def run() -> tuple[str, bool, bool | None]:
            seal = _sealed(self.context)
            try:
                await self.call_next()
                if self.context.metadata.get(_SEAL) is not seal:
                    raise MiddlewareFailure(_RESEALED.format(name=call.action))
            except Exception as error:
                self.raised = error
                raise
            return text_of(self.context.result), False, True

        critical = declared_effects(self.tools[call.action]).critical
        text, is_error, done = await output_of(call.action, self.timeout, run, critical)
        self.text = text
        return read_result(text, is_error=is_error, done=done)


def json_of(arguments: object) -> Any:
    """Arguments as JSON; as they are where they are none, so that no schema lets them pass."""
    try:
        return to_jsonable_python(arguments)
    except (PydanticSerializationError, ValueError, RecursionError):
        return arguments


def text_of(result: object) -> str:
    """What a tool returned, as text; an image becomes `[image]`."""
    if isinstance(result, list):
        parts = cast("list[object]", result)
        return "\n".join(_part(part) for part in parts)
    return _part(result)


def _part(part: object) -> str:
    if not isinstance(part, Content):
        return "" if part is None else str(part)
    if part.text is not None:
        return part.text
    return f"[{(part.media_type or part.type).partition('/')[0]}]"


def declared_effects(tool: FunctionTool) -> ToolEffects:
    """What is declared of a tool's effects, or of its function's."""
    declared = effects_of(tool)
    return effects_of(tool.func) if declared == _UNDECLARED else declared


# ---- Tools as those of an agent of ours ----


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
