"""Which tools there are, and what each does to the world."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from autogen_core.tools import (
    BaseTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolSchema,
    Workbench,
)

from coag._util.json_schemas import schema_fault
from coag._util.timeouts import LateError, SelfCancelledError, describe_error, within
from coag.cycle import IDEMPOTENCY_KEY
from coag.errors import ConfigurationError
from coag.schema import ActionSpec, Reconciliation, UnsettledAction, well_formed

# ---- What a tool's author declares of its effects: `@tool(read_only=True)` ----


ToolT = TypeVar("ToolT")
Reconcile = Callable[[UnsettledAction], Reconciliation | Awaitable[Reconciliation]]
"""Finds out what became of an action: it looks, and changes nothing. A plain function is run in a
thread of its own."""
_EFFECTS = "__coag_effects__"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEffects:
    """What is declared of a tool's effects; by default nothing, so anything is possible."""

    read_only: bool = False
    idempotent: bool = False
    reconcile: Reconcile | None = None


def tool(
    *, read_only: bool = False, idempotent: bool = False, reconcile: Reconcile | None = None
) -> Callable[[ToolT], ToolT]:
    """Declares a tool's effects; the function or AutoGen tool itself stays what it is.

    Example:
        `@tool(read_only=True)` above a function that only looks something up.

    Args:
        read_only: It changes nothing outside. Calls of one answer run side by side, and one that
            gave no answer may simply be repeated.
        idempotent: Running it again with the same arguments does no more than running it once, so
            a call of unknown outcome may be repeated.
        reconcile: Is asked what became of a call of unknown outcome, before the model is.

    Raises:
        ConfigurationError: What is declared cannot be kept with this tool.
    """
    if reconcile is not None and not callable(reconcile):
        raise ConfigurationError(
            f"@tool(reconcile={reconcile!r:.80}): give a function that takes the action and "
            "answers 'happened', 'did_not_happen' or 'unknown'."
        )
    effects = ToolEffects(read_only=read_only, idempotent=idempotent, reconcile=reconcile)

    def declare(declared: ToolT) -> ToolT:
        try:
            setattr(declared, _EFFECTS, effects)
        except AttributeError as error:
            raise ConfigurationError(
                f"@tool cannot mark {declared!r}: give a function or a tool object."
            ) from error
        return declared

    return declare


def effects_of(tool: object) -> ToolEffects:
    """What was declared of a tool, or of the function that it was made of."""
    for each in (tool, getattr(tool, "_func", None)):
        declared = getattr(each, _EFFECTS, None)
        if isinstance(declared, ToolEffects):
            return declared
    return _NOTHING


def effects_in(workbench: Workbench, name: str) -> ToolEffects:
    """What is declared of a workbench's tool: by an MCP server's hints, or of the tool itself."""
    declared = getattr(workbench, "effects", None)
    if callable(declared):
        effects = declared(name)
        return effects if isinstance(effects, ToolEffects) else _NOTHING
    tool = tool_in(workbench, name)
    return _NOTHING if tool is None else effects_of(tool)


def tool_in(workbench: Workbench, name: str) -> BaseTool[Any, Any] | None:
    """The tool object behind a name of a workbench that holds its tools itself."""
    if not isinstance(workbench, StaticWorkbench):
        return None
    own = workbench._override_name_to_original.get(name, name)  # pyright: ignore[reportPrivateUsage] - AutoGen tells it nowhere else
    tools = workbench._tools  # pyright: ignore[reportPrivateUsage] - as above
    return next((tool for tool in tools if tool.name == own), None)


_NOTHING = ToolEffects()


# ---- Which tools there are now, and whose each one is ----


GIVEN = 0
"""Owns the tools that were given without a workbench; the nth workbench is n."""
_NAME = re.compile(r"\S{1,128}")
_PROBLEM = 500
"""Characters of a problem that are kept."""
_TAKEN = "the one that was offered first under this name stays. Rename one of them."
_UNUSABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What a tool's schema raises that cannot be offered."""


class ToolNames:
    """Whose each name is: its who offered it first, and never another's afterwards.

    What was judged and approved as the tool of one workbench is thus never run by another, be the
    first one away, late or without the tool by then.

    Args:
        given: The names of tools without a workbench.
    """

    def __init__(self, given: Iterable[str] = ()) -> None:
        self._owners = dict.fromkeys(given, GIVEN)

    def belongs(self, name: str, owner: int) -> bool:
        """Whether the name is this owner's; a name that nobody has had becomes it."""
        return self._owners.setdefault(name, owner) == owner

    def owner(self, name: str) -> int | None:
        """Whose the name is; None if nobody has had it."""
        return self._owners.get(name)


class ToolListing:
    """Lists tools and the tools of workbenches; what cannot be offered is left out and told.

    Args:
        tools: Tools without a workbench.
        workbenches: Are asked anew each time.
        timeout: Seconds that one may take to list its tools.
        reserved: Names that no tool may have.

    Raises:
        ConfigurationError: Two tools have the same name, one has a reserved name, or its schema
            cannot be offered.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool[Any, Any]],
        workbenches: Sequence[Workbench],
        timeout: float,
        reserved: Collection[str],
    ) -> None:
        _check_names([tool.name for tool in tools], reserved)
        self.names = ToolNames(tool.name for tool in tools)
        self.problems: tuple[str, ...] = ()
        """What the last listing left out, and why."""
        self._specs = tuple(_given_spec(tool) for tool in tools)
        self._workbenches = tuple(workbenches)
        self._timeout = timeout
        self._reserved = frozenset(reserved)

    async def specs(self) -> list[ActionSpec]:
        """The tools that exist now, each name once."""
        found = {spec.name: spec for spec in self._specs}
        problems: list[str] = []
        for number, workbench in enumerate(self._workbenches, start=1):
            bench = type(workbench).__name__
            for spec in await self._offered(workbench, problems):
                if spec.name in found or not self.names.belongs(spec.name, number):
                    problems.append(f"{bench} has a tool {spec.name!r}: {_TAKEN}")
                else:
                    found[spec.name] = spec
        self.problems = tuple(problems)
        return list(found.values())

    async def _offered(self, workbench: Workbench, problems: list[str]) -> list[ActionSpec]:
        """What a workbench offers now; what it cannot offer is left out and told."""
        bench = type(workbench).__name__
        try:
            schemas = list(await within(self._timeout, workbench.list_tools))
        except LateError:
            problems.append(f"{bench} did not list its tools within {self._timeout:g} s.")
            return []
        except SelfCancelledError:
            problems.append(f"{bench} was cancelled by itself when it was to list its tools.")
            return []
        except Exception as error:  # a workbench may raise anything; the turn goes on without it
            problems.append(f"{bench} could not list its tools: {describe_error(error)}"[:_PROBLEM])
            return []
        specs: list[ActionSpec] = []
        for schema in schemas:
            try:
                spec = _spec(schema)
            except _UNUSABLE as error:
                problems.append(
                    f"{bench} has a tool that is left out: {describe_error(error)}"[:_PROBLEM]
                )
                continue
            if spec.name in self._reserved:
                problems.append(f"{bench} has a tool {spec.name!r}: the agent's own action stays.")
                continue
            specs.append(_with_effects(spec, effects_in(workbench, spec.name)))
        return specs


def _check_names(names: Sequence[str], reserved: Collection[str]) -> None:
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigurationError(f"Tool names must be unique; given more than once: {doubled}.")
    if taken := sorted(set(reserved).intersection(names)):
        raise ConfigurationError(
            f"These tools have the names of the agent's own actions: {taken}. Rename them."
        )


def _given_spec(tool: BaseTool[Any, Any]) -> ActionSpec:
    try:
        spec = _spec(tool.schema)
    except _UNUSABLE as error:
        raise ConfigurationError(
            f"Tool {tool.name!r} cannot be offered: {describe_error(error)}"
        ) from error
    return _with_effects(spec, effects_of(tool))


def _with_effects(spec: ActionSpec, effects: ToolEffects) -> ActionSpec:
    """The spec with what is declared, and without the key that the model does not give."""
    update: dict[str, Any] = {"read_only": effects.read_only, "idempotent": effects.idempotent}
    key = spec.parameters.get("properties", {}).get(IDEMPOTENCY_KEY)
    if key is not None and key.get("type", "string") != "string":
        raise ConfigurationError(
            f"Tool {spec.name!r} cannot be offered: its parameter {IDEMPOTENCY_KEY!r} is of type "
            f"{key['type']!r}, and the key is a text. Declare it as str."
        )
    if key is not None:
        update |= {"parameters": without_key(spec.parameters), "idempotency_key": True}
    return spec.model_copy(update=update)


def without_key(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a tool as a model is told of them, without the idempotency key."""
    properties: Mapping[str, Any] = parameters["properties"]
    required: Sequence[str] = parameters.get("required", ())
    return {
        **parameters,
        "properties": {name: properties[name] for name in properties if name != IDEMPOTENCY_KEY},
        "required": [name for name in required if name != IDEMPOTENCY_KEY],
    }


def _spec(schema: Mapping[str, Any]) -> ActionSpec:
    """The tool as an action.

    Raises:
        ValueError: Its name has no or too many characters or a blank, or its arguments are not
            described by a JSON Schema of an object that can be checked in bounded time.
            (Or TypeError, KeyError, RecursionError.)
    """
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    name, parameters = schema["name"], schema.get("parameters") or nothing
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of at most 128 characters without blanks.")
    text = well_formed(json.dumps(parameters, allow_nan=False, ensure_ascii=False))
    plain: Any = json.loads(text)
    if not isinstance(plain, dict) or not isinstance(plain.get("properties", {}), dict):  # pyright: ignore[reportUnknownMemberType] - JSON
        raise ValueError(f"the parameters of {name!r} are no JSON Schema of an object.")
    if fault := schema_fault(text):
        raise ValueError(f"{name!r} cannot be checked: {fault}.")
    return ActionSpec(
        name=well_formed(name),
        description=well_formed(str(schema.get("description") or "")),
        parameters=cast("dict[str, Any]", plain),
    )


# ---- What the tools and workbenches behind a guard offer, as they offer it ----


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
    return RuntimeError(f"{kind} could not list its tools: {describe_error(error)}")
