"""Tools as components."""

from __future__ import annotations

import builtins
import dis
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any, cast

from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolOverride,
    Workbench,
)
from pydantic import BaseModel

from coag.context import check_public, nested_component
from coag.errors import ConfigurationError
from coag.schema import from_import_name, import_name, provider_name

from .tool_runner import Tool

# ---- Whether a function's source stands alone ----


def check_program(name: str, function: Callable[..., Any], config: Mapping[str, Any]) -> None:
    """Refuses a function whose source uses names that a loaded one would not find.

    Args:
        name: The tool's name, for the error.
        function: The function.
        config: The config of AutoGen's `FunctionTool`: its `global_imports` are found.

    Raises:
        ConfigurationError: Names what it closes over or uses of its module.
    """
    code = cast("CodeType", getattr(function, "__code__"))  # noqa: B009 - a Callable has none
    if code.co_freevars:
        raise ConfigurationError(
            f"Tool {name!r} closes over {', '.join(code.co_freevars)}, which its source does not "
            "bring along. Move the function to the top level of a module, or make a BaseTool "
            "that is a component and keeps them in its config."
        )
    found = {*dir(builtins), code.co_name, *_imported(config.get("global_imports", []))}
    missing = sorted(set(_globals(code)) - found)
    if missing:
        raise ConfigurationError(
            f"Tool {name!r} uses {', '.join(missing)} of its module, which its source does not "
            "bring along. Move the function to the top level of a module that can be imported, "
            "or list them in the FunctionTool's global_imports."
        )


def _globals(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals(constant)


def _imported(imports: list[Any]) -> Iterator[str]:
    """The names that AutoGen's import statements bind."""
    for one in imports:
        if isinstance(one, str):
            yield one.split(".")[0]
            continue
        given = cast("Mapping[str, Any]", one)
        yield from [given["alias"]] if "alias" in given else _imported(given["imports"])


# ---- Tools and workbenches as components that can be dumped, loaded, used and dumped again ----
#
# AutoGen writes a `FunctionTool` as its source. Loaded from it, the tool cannot be dumped again,
# and where the function uses anything around it, it fails when it is called.


_FUNCTION_TOOL = "autogen_core.tools.FunctionTool"
_STATIC: Mapping[str, type[StaticWorkbench]] = {
    "autogen_core.tools.StaticWorkbench": StaticWorkbench,
    "autogen_core.tools.StaticStreamWorkbench": StaticStreamWorkbench,
}


class ImportedToolConfig(BaseModel):
    """The declarative form of an `ImportedTool`."""

    function: str
    """`module:qualname`."""
    description: str
    name: str
    strict: bool = False


class ImportedTool(BaseTool[BaseModel, BaseModel], Component[ImportedToolConfig]):
    """A function of a module as a tool; its component names the function.

    Args:
        function: The function, or its import name.
        description: What the model is told of it.
        name: The tool's name; None for the function's.
        strict: See AutoGen's `FunctionTool`.

    Raises:
        ConfigurationError: The function cannot be imported.
    """

    component_config_schema = ImportedToolConfig
    component_provider_override = "coag.compat.ImportedTool"

    def __init__(
        self,
        function: Callable[..., Any] | str,
        description: str,
        *,
        name: str | None = None,
        strict: bool = False,
    ) -> None:
        self._import_name = function if isinstance(function, str) else import_name(function)
        called = from_import_name(function) if isinstance(function, str) else function
        self._tool = FunctionTool(called, description, name=name, strict=strict)
        super().__init__(
            self._tool.args_type(), self._tool.return_type(), self._tool.name, description, strict
        )

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> Any:
        """Calls the function."""
        return await self._tool.run(args, cancellation_token)

    def _to_config(self) -> ImportedToolConfig:
        return ImportedToolConfig(
            function=self._import_name,
            description=self.description,
            name=self.name,
            strict=bool(self.schema.get("strict", False)),
        )

    @classmethod
    def _from_config(cls, config: ImportedToolConfig) -> ImportedTool:
        return cls(config.function, config.description, name=config.name, strict=config.strict)


class SourceToolConfig(BaseModel):
    """The declarative form of a `SourceTool`."""

    tool: dict[str, Any]
    """What AutoGen's `FunctionTool` writes."""
    strict: bool = False


class SourceTool(BaseTool[BaseModel, BaseModel], Component[SourceToolConfig]):
    """A function by its source, as AutoGen writes it, that can be dumped again.

    Making one runs the source; AutoGen warns of that.

    Args:
        tool: What AutoGen's `FunctionTool` writes.
        strict: See AutoGen's `FunctionTool`.
    """

    component_config_schema = SourceToolConfig
    component_provider_override = "coag.compat.SourceTool"

    def __init__(self, tool: Mapping[str, Any], *, strict: bool = False) -> None:
        self._source = dict(tool)
        component = ComponentModel(provider=_FUNCTION_TOOL, config=self._source)
        self._tool = FunctionTool.load_component(component)
        super().__init__(
            self._tool.args_type(),
            self._tool.return_type(),
            self._tool.name,
            self._tool.description,
            strict,
        )

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> Any:
        """Calls the function."""
        return await self._tool.run(args, cancellation_token)

    def _to_config(self) -> SourceToolConfig:
        return SourceToolConfig(tool=self._source, strict=bool(self.schema.get("strict", False)))

    @classmethod
    def _from_config(cls, config: SourceToolConfig) -> SourceTool:
        return cls(config.tool, strict=config.strict)


def tool_component(tool: Tool) -> ComponentModel:
    """The component of a tool.

    A function that can be imported goes by its import name; another one by its source, as
    AutoGen does it, if the source stands alone.

    Raises:
        ConfigurationError: It cannot be written down; the message says why and what to do.
    """
    if not isinstance(tool, BaseTool):
        return _function_component(FunctionTool(tool, description=(tool.__doc__ or "").strip()))
    given = cast("BaseTool[Any, Any]", tool)
    if isinstance(given, FunctionTool) and type(given) is FunctionTool:
        return _function_component(given)
    return nested_component(given, f"Tool {given.name!r}")


def _function_component(tool: FunctionTool) -> ComponentModel:
    # AutoGen has no other way to ask a tool for its function.
    function = cast("Callable[..., Any]", vars(tool)["_func"])
    strict = bool(tool.schema.get("strict", False))
    if _is_importable(function):
        found = ImportedTool(function, tool.description, name=tool.name, strict=strict)
        return found.dump_component()
    return _source_component(tool, function, strict)


def load_tool(component: ComponentModel) -> BaseTool[Any, Any]:
    """The tool of a component; AutoGen's own function tools can then be dumped again."""
    if component.provider == _FUNCTION_TOOL:
        return SourceTool(component.config)
    return cast("BaseTool[Any, Any]", BaseTool.load_component(component))


def workbench_component(workbench: Workbench) -> ComponentModel:
    """The component of a workbench; the tools of AutoGen's static ones as `tool_component` has it.

    Raises:
        ConfigurationError: It, or one of its tools, cannot be written down.
    """
    if type(workbench) not in _STATIC.values():
        return nested_component(workbench, f"Workbench {type(workbench).__name__}")
    # AutoGen has no other way to ask a static workbench for its tools.
    tools = cast("list[BaseTool[Any, Any]]", vars(workbench)["_tools"])
    overrides = cast("dict[str, ToolOverride]", vars(workbench)["_tool_overrides"])
    return ComponentModel(
        provider=provider_name(type(workbench)),
        component_type="workbench",
        version=workbench.component_version,
        component_version=workbench.component_version,
        label=type(workbench).__name__,
        config={
            "tools": [tool_component(tool).model_dump(exclude_none=True) for tool in tools],
            "tool_overrides": {
                name: override.model_dump(exclude_none=True) for name, override in overrides.items()
            },
        },
    )


def load_workbench(component: ComponentModel) -> Workbench:
    """The workbench of a component; what it holds can then be dumped again."""
    static = _STATIC.get(component.provider)
    if static is None:
        return Workbench.load_component(component)
    tools: list[Any] = component.config.get("tools", [])
    overrides: dict[str, Any] = component.config.get("tool_overrides", {})
    return static(
        tools=[load_tool(ComponentModel.model_validate(tool)) for tool in tools],
        tool_overrides={
            name: ToolOverride.model_validate(given) for name, given in overrides.items()
        },
    )


def _is_importable(function: Callable[..., Any]) -> bool:
    """What stands in a script's `__main__` is found there only while that script runs."""
    try:
        return not import_name(function).startswith("__main__:")
    except ConfigurationError:
        return False


def _source_component(
    tool: FunctionTool, function: Callable[..., Any], strict: bool
) -> ComponentModel:
    if not inspect.isfunction(function):
        raise ConfigurationError(
            f"Tool {tool.name!r} is a {type(function).__name__}, which has no source of its own. "
            "Give a function of a module, or a BaseTool that is a component."
        )
    component = nested_component(tool, f"Tool {tool.name!r}")
    check_program(tool.name, function, component.config)
    check_public(component.config, f"Tool {tool.name!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it is the caller's own source
            return SourceTool(component.config, strict=strict).dump_component()
    except (ValueError, TypeError, LookupError, ImportError, RuntimeError) as error:
        raise ConfigurationError(
            f"Tool {tool.name!r} does not work from its source alone: {error}. Move the function "
            "to the top level of a module."
        ) from error
