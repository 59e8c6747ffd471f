"""Tools, workbenches, constraints and other parts as AutoGen components."""

from __future__ import annotations

import builtins
import dis
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Self, cast

from autogen_core import (
    ComponentLoader,
    ComponentModel,
    ComponentToConfig,
)
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolOverride,
    Workbench,
)
from pydantic import BaseModel, ConfigDict

from coag.context import check_public, nested_component
from coag.cycle import ConstraintSet, JudgedBy, NamedConstraint, bound, check_rule
from coag.errors import ConfigurationError
from coag.schema import (
    Candidate,
    Constraint,
    Imported,
    Verdict,
    check_own_code,
    from_import_name,
    import_name,
    provider_name,
)

from .tools import Tool, as_tool


class NamedComponent:
    """A component whose subclasses are dumped under their own names, not under the base's."""

    def dump_component(self) -> ComponentModel:
        """The component of this very class: no state, no secrets."""
        mixed_in = cast(
            "ComponentToConfig[BaseModel]", super()
        )  # AutoGen's `Component` comes after this class
        return mixed_in.dump_component().model_copy(update={"provider": provider_name(type(self))})


# ---- Constraints and other parts by import name ----


Part = str | Imported | ComponentModel
"""An import name, a class with arguments, or an AutoGen component."""


class ConstraintConfig(BaseModel):
    """A constraint under a name that is not its own."""

    model_config = ConfigDict(extra="forbid")

    name: str
    """The name by which logs and errors call it."""
    rule: Part


@dataclass(frozen=True, slots=True)
class RuleUnderName:
    """A loaded constraint under a name that is not its own."""

    name: str
    rule: Constraint

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """The rule's verdict."""
        return self.rule(candidate, state, projection)

    def within(self, known: JudgedBy) -> Constraint:
        """The rule as it judges by what was said, where it asks for that."""
        return bound(self.rule, known)


def part_of(value: object, where: str) -> Part:
    """How to get a value again.

    Raises:
        ConfigurationError: It cannot be had again; names where it was given.
    """
    if hasattr(value, "dump_component") and not isinstance(value, type):
        return nested_component(value, where)
    try:
        imported = Imported.of(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    check_public(imported.arguments, f"{where}: {imported.name}")
    return imported.name if imported.arguments is None else imported


def get_part(part: Part) -> Any:
    """The value that `part_of` was given.

    Raises:
        ConfigurationError: There is no such thing any more.
    """
    if isinstance(part, str):
        value = from_import_name(part)
        check_own_code(value, part)
        return value
    if isinstance(part, Imported):
        return part.get()
    return ComponentLoader.load_component(part, expected=object)


def constraint_config(rule: object) -> ConstraintConfig | Part:
    """How to get a constraint again, under its own name or the one that it was given."""
    if isinstance(rule, RuleUnderName):
        return ConstraintConfig(name=rule.name, rule=part_of(rule.rule, "constraints="))
    if not isinstance(rule, NamedConstraint):
        return part_of(rule, "constraints=")
    own = constraint_config(rule.judge)
    if isinstance(own, ConstraintConfig):
        return own.model_copy(update={"name": rule.name})
    if ConstraintSet().add(rule.judge) == rule.name:
        return own
    return ConstraintConfig(name=rule.name, rule=own)


def from_constraint_config(config: ConstraintConfig | Part) -> Any:
    """The constraint that `constraint_config` was given.

    Raises:
        ConfigurationError: There is no such thing any more, or it is no rule.
    """
    if isinstance(config, ConstraintConfig):
        return RuleUnderName(config.name, from_constraint_config(config.rule))
    rule = get_part(config)
    check_rule(rule)
    return rule


# ---- Tools and workbenches that can be dumped, loaded, used and dumped again ----
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


class ImportedTool(FunctionTool):
    """A function of a module as a tool; its component names the function.

    Args:
        function: The function, or its import name.
        description: What the model reads about it.
        name: The tool's name; None for the function's.
        strict: See AutoGen's `FunctionTool`.

    Raises:
        ConfigurationError: The function cannot be imported.
    """

    component_config_schema = ImportedToolConfig  # pyright: ignore[reportAssignmentType] - our own
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
        super().__init__(called, description, name=name, strict=strict)

    def _to_config(self) -> ImportedToolConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return ImportedToolConfig(
            function=self._import_name,
            description=self.description,
            name=self.name,
            strict=bool(self.schema.get("strict", False)),
        )

    @classmethod
    def _from_config(cls, config: ImportedToolConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return cls(config.function, config.description, name=config.name, strict=config.strict)


class SourceToolConfig(BaseModel):
    """The declarative form of a `SourceTool`: its arguments."""

    tool: dict[str, Any]
    strict: bool = False


class SourceTool(FunctionTool):
    """A function by its source, as AutoGen writes it, that can be dumped again.

    Making one runs the source; AutoGen warns of that.

    Args:
        tool: What AutoGen's `FunctionTool` writes.
        strict: See AutoGen's `FunctionTool`.
    """

    component_config_schema = SourceToolConfig  # pyright: ignore[reportAssignmentType] - our own
    component_provider_override = "coag.compat.SourceTool"

    def __init__(self, tool: Mapping[str, Any], *, strict: bool = False) -> None:
        self._source = dict(tool)
        component = ComponentModel(provider=_FUNCTION_TOOL, config=self._source)
        made = FunctionTool.load_component(component)
        super().__init__(_function_of(made), made.description, name=made.name, strict=strict)

    def _to_config(self) -> SourceToolConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return SourceToolConfig(tool=self._source, strict=bool(self.schema.get("strict", False)))

    @classmethod
    def _from_config(cls, config: SourceToolConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return cls(config.tool, strict=config.strict)


def _function_of(tool: FunctionTool) -> Callable[..., Any]:
    # AutoGen has no other way to ask a tool for its function.
    return cast("Callable[..., Any]", vars(tool)["_func"])


def tool_component(tool: Tool) -> ComponentModel:
    """The component of a tool.

    A function that can be imported goes by its import name; another one by its source, as
    AutoGen does it, if the source needs nothing around it.

    Raises:
        ConfigurationError: It cannot be written down; the message says why and what to do.
    """
    wrapped = as_tool(tool)
    if type(wrapped) is not FunctionTool:
        return nested_component(wrapped, f"Tool {wrapped.name!r}")
    function = _function_of(wrapped)
    strict = bool(wrapped.schema.get("strict", False))
    if not _is_importable(function):
        return _source_component(wrapped, function, strict)
    imported = ImportedTool(function, wrapped.description, name=wrapped.name, strict=strict)
    return imported.dump_component()


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
    """What a script's `__main__` defines is found there only while that script runs."""
    try:
        return not import_name(function).startswith("__main__:")
    except ConfigurationError:
        return False


def _source_component(
    tool: FunctionTool, function: Callable[..., Any], strict: bool
) -> ComponentModel:
    if not inspect.isfunction(function):
        made = f"Tool {tool.name!r} is a {type(function).__name__}, which has no source of its own"
        raise ConfigurationError(f"{made}: give a function of a module, or a component.")
    component = nested_component(tool, f"Tool {tool.name!r}")
    _check_names(tool.name, function.__code__, component.config.get("global_imports", []))
    check_public(component.config, f"Tool {tool.name!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it is the caller's own source
            return SourceTool(component.config, strict=strict).dump_component()
    except (ValueError, TypeError, LookupError, ImportError, RuntimeError) as error:
        problem = f"Tool {tool.name!r} does not work from its source alone: {error}"
        raise ConfigurationError(f"{problem}. Move the function to a module.") from error


def _check_names(name: str, code: CodeType, imports: Sequence[Any]) -> None:
    """Refuses a function whose source uses names that a loaded one would not find."""
    if code.co_freevars:
        raise ConfigurationError(
            f"Tool {name!r} closes over {', '.join(code.co_freevars)}: move the function to the "
            "top level of a module, or make a BaseTool that keeps them in its config."
        )
    used = {
        str(one.argval)
        for part in _codes(code)
        for one in dis.get_instructions(part)
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    missing = sorted(used - {*dir(builtins), code.co_name, *_imported(imports)})
    if missing:
        raise ConfigurationError(
            f"Tool {name!r} uses {', '.join(missing)} of its module: move the function to one that "
            "can be imported, or list them in the FunctionTool's global_imports."
        )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _imported(imports: Sequence[Any]) -> Iterator[str]:
    for one in imports:
        if isinstance(one, str):
            yield one.split(".")[0]
        elif "alias" in one:
            yield one["alias"]
        else:
            yield from _imported(one["imports"])
