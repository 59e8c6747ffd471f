"""What the tools and workbenches behind a guard offer, as they offer it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from autogen_core.tools import BaseTool, StaticStreamWorkbench, ToolSchema, Workbench

from coag.cycle import IDEMPOTENCY_KEY, LateError, SelfCancelledError, told, within

from ._tool_listing import GIVEN, ToolNames, without_key


class OfferedTools:
    """Lists what is offered, unchanged: overrides, `strict` and tools that come and go included.

    Args:
        tools: Tools without a workbench; they get a static one.
        workbenches: In order.
        names: Whose each name is; nobody else's tool of that name is offered.
        timeout: Seconds that one may take to list its tools.
        note: Is told, about what and in words, where a list from before had to do.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool[Any, Any]],
        workbenches: Sequence[Workbench],
        names: ToolNames,
        timeout: float,
        note: Callable[[str, str], None],
    ) -> None:
        self.tools = tuple(tools)
        self.given = tuple(workbenches)
        """The workbenches that were given."""
        own = (StaticStreamWorkbench(list(tools)),) if tools else ()
        self.workbenches: tuple[Workbench, ...] = (*own, *workbenches)
        """All that have a life of their own: the given ones, and the one of the tools."""
        self._names = names
        self._first = GIVEN if own else GIVEN + 1
        self._told: set[tuple[int, str]] = set()
        self._timeout = timeout
        self._note = note
        self._listed: dict[int, list[ToolSchema]] = {}

    async def schemas(self) -> list[ToolSchema]:
        """What is offered now.

        A stock agent hangs where a listing raises in the middle of its turn: a workbench that
        has listed its tools before keeps that list where it fails.

        Raises:
            Exception: What a workbench raises that has never listed its tools.
        """
        found: dict[str, ToolSchema] = {}
        for number, workbench in enumerate(self.workbenches, start=self._first):
            for schema in await self._list(number, workbench):
                name = schema["name"]
                if name not in found and self._names.belongs(name, number):
                    found[name] = _shown(schema)
                else:
                    self._tell(number, name)
        return list(found.values())

    def _tell(self, number: int, name: str) -> None:
        """Notes, once, that a name is another's."""
        if (number, name) in self._told:
            return
        self._told.add((number, name))
        self._note("tools", f"Two tools are named {name!r}; the one that came first is offered.")

    async def _list(self, number: int, workbench: Workbench) -> list[ToolSchema]:
        kind = type(workbench).__name__
        try:
            self._listed[number] = list(await within(self._timeout, workbench.list_tools))
        except Exception as error:  # a workbench may raise anything
            if number not in self._listed:
                raise _plain(error, kind, self._timeout) from error
            problem = str(_plain(error, kind, self._timeout))
            self._note("tools", f"{kind} keeps the tools that it listed last: {problem}")
        return self._listed[number]


def _shown(schema: ToolSchema) -> ToolSchema:
    """The schema without the key that the guard gives."""
    parameters = schema.get("parameters")
    if not parameters or IDEMPOTENCY_KEY not in parameters.get("properties", {}):
        return schema
    return cast("ToolSchema", {**schema, "parameters": without_key(parameters)})


def _plain(error: Exception, kind: str, timeout: float) -> Exception:
    """The error for whoever asked."""
    if isinstance(error, LateError):
        return TimeoutError(f"{kind} did not list its tools within {timeout:g} s.")
    if isinstance(error, SelfCancelledError):
        return RuntimeError(f"{kind} was cancelled by itself when it was to list its tools.")
    return RuntimeError(f"{kind} could not list its tools: {told(error)}")
