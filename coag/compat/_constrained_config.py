"""A `ConstrainedWorkbench` as a component, and its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from autogen_core import ComponentModel
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag.context import (
    CoagContext,
    check_public,
    from_part,
    load_context,
    nested_component,
    to_part,
)
from coag.errors import StateError
from coag.schema import ActionCall

from ._constraint_components import (
    ConstraintConfig,
    Part,
    constraint_config,
    from_constraint_config,
)
from ._offered_tools import OfferedTools
from ._results import OUTPUT_CHARACTERS
from ._tool_components import load_tool, load_workbench, tool_component, workbench_component


class ConstrainedWorkbenchConfig(BaseModel):
    """The declarative form of a `ConstrainedWorkbench`."""

    model_config = ConfigDict(extra="forbid")

    tools: list[ComponentModel] = []
    """Tools that were given without a workbench."""
    workbenches: list[ComponentModel] = []
    """Workbenches that were given."""
    constraints: list[ConstraintConfig | Part] = []
    """The rules by import name."""
    context: ComponentModel | None = None
    """The context, if one was given."""
    approval: Any = None
    """The policy of approval, as `coag.context.to_part` writes it."""
    approve: Any = None
    """Who is asked, in the same form."""
    logs: str | None = None
    """The folder for run folders, as it was given."""
    name: str = "workbench"
    """Who acts."""
    timeout: float = 60.0
    """Seconds that one call may take."""
    output_characters: int = OUTPUT_CHARACTERS
    """Characters of output that are kept."""
    parallel: bool = False
    """Whether the calls of a batch run together."""


_PLAIN = ("logs", "name", "timeout", "output_characters", "parallel")


class WorkbenchState(BaseModel):
    """The saved state of a `ConstrainedWorkbench`."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["ConstrainedWorkbenchState"] = "ConstrainedWorkbenchState"
    version: Literal[1] = 1
    inner: list[dict[str, Any]]
    """States of the workbenches within, the one of plain tools first."""
    context: dict[str, Any]
    """State of the context."""
    detector: dict[str, Any]
    """Calls that failed."""
    ids: dict[str, int]
    """How far ids were counted."""
    pending: list[ActionCall] = Field(default_factory=list[ActionCall])
    """Calls that had begun and not ended when it was saved."""


def to_config(offered: OfferedTools, given: Mapping[str, Any]) -> ConstrainedWorkbenchConfig:
    """The declarative form of a workbench.

    Args:
        offered: What it offers.
        given: What else its constructor was given, by name.

    Raises:
        ConfigurationError: A part cannot be written down, or holds a secret.
    """
    context = given["context"]
    config = ConstrainedWorkbenchConfig(
        tools=[tool_component(tool) for tool in offered.tools],
        workbenches=[workbench_component(workbench) for workbench in offered.given],
        constraints=[constraint_config(rule) for rule in given["constraints"]],
        context=None if context is None else nested_component(context, "context="),
        approval=to_part(given["approval"], "approval="),
        approve=to_part(given["approve"], "approve="),
        **{name: given[name] for name in _PLAIN},
    )
    shown = config.model_dump(mode="json", exclude={"tools", "workbenches"})
    check_public(shown, f"The component of workbench {config.name!r}")
    return config


def from_config(config: ConstrainedWorkbenchConfig) -> dict[str, Any]:
    """The constructor's arguments.

    Raises:
        ConfigurationError: Something that the component names does not exist any more.
    """
    context = None if config.context is None else load_context(config.context)
    return {
        "inner": [
            *(load_tool(tool) for tool in config.tools),
            *(load_workbench(workbench) for workbench in config.workbenches),
        ],
        "constraints": [from_constraint_config(rule) for rule in config.constraints],
        "context": cast("CoagContext[Any] | None", context),
        "approval": from_part(config.approval),
        "approve": from_part(config.approve),
        **{name: getattr(config, name) for name in _PLAIN},
    }


def read_state(state: Mapping[str, Any], workbenches: int) -> WorkbenchState:
    """A saved state.

    Raises:
        StateError: It is none, or of a workbench with another number of workbenches within.
    """
    try:
        saved = WorkbenchState.model_validate(dict(state))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StateError(
            f"This is no saved state of a ConstrainedWorkbench: {where}: {first['msg']}. Give "
            "what its save_state() gave."
        ) from error
    if len(saved.inner) != workbenches:
        raise StateError(
            f"This state is of {len(saved.inner)} workbench(es), and there are {workbenches} "
            "here. Make the workbench as it was when it was saved."
        )
    return saved
