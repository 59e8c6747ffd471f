"""`CoagAgent` as an AutoGen component: its constructor's arguments as JSON, and back.

What was said and what is remembered is state, not part of it. Every field that is None was not
given, or was given as None where that is the default, so that no None changes its meaning where
AutoGen leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from autogen_agentchat.base import Handoff
from autogen_core import ComponentModel
from autogen_core.memory import Memory
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench
from pydantic import BaseModel, ConfigDict, field_validator

from coag.compat import (
    ConstraintConfig,
    Part,
    Tool,
    constraint_config,
    from_constraint_config,
    get_part,
    load_tool,
    load_workbench,
    part_of,
    tool_component,
    workbench_component,
)
from coag.context import check_public, from_part, load_context, nested_component, to_part
from coag.cycle import CycleSettings
from coag.errors import ConfigurationError
from coag.memory import GateSettings, LongTermMemory, LongTermMemoryConfig, Procedure
from coag.store import public_location
from coag.tracing import Recipe

from ._answer_type import load_output_type, output_fields

_TEXTS = {"system_message", "description", "procedures", "tools", "workbench"}
"""Fields in which words are the developer's own or were checked already."""
_PLAIN = (
    *("name", "description", "system_message", "model_client_stream", "reflect_on_tool_use"),
    *("max_tool_iterations", "tool_call_summary_format", "metadata", "seed", "tool_timeout"),
    *("output_content_type_format", "recipe", "gate", "rewriting", "events"),
)
"""Arguments that are JSON, or models of it, as they are."""
_REQUIRED = ("name", "model_client", "description", "system_message")


class CoagAgentConfig(BaseModel):
    """The declarative form of a `CoagAgent`: AssistantAgent's fields, and ours."""

    model_config = ConfigDict(extra="forbid")

    name: str
    model_client: ComponentModel
    tools: list[ComponentModel] | None = None
    workbench: list[ComponentModel] | None = None
    handoffs: list[Handoff] | None = None
    model_context: ComponentModel | None = None
    memory: list[ComponentModel] | LongTermMemoryConfig | str | None = None
    """AutoGen memories, one of ours, or the folder or URL as it was given."""
    description: str
    system_message: str | None = None
    model_client_stream: bool = False
    reflect_on_tool_use: bool | None = None
    tool_call_summary_format: str = "{result}"
    tool_call_summary_formatter: Part | None = None
    max_tool_iterations: int | None = None
    metadata: dict[str, str] | None = None
    structured_message_factory: ComponentModel | None = None
    """The form of answers, where its type cannot be imported."""
    output_content_type: str | None = None
    """Import name of the type of answers."""
    output_content_type_format: str | None = None
    modules: list[Part] | None = None
    """Cognitive modules: components, or by import name."""
    constraints: list[ConstraintConfig | Part] | None = None
    """Hard rules by import name; with a name of their own where one was given."""
    procedures: dict[str, Procedure] | None = None
    logs: str | None = None
    """The folder for run folders, as it was given."""
    recipe: Recipe | None = None
    seed: int = 0
    tool_timeout: float = 60.0
    gate: GateSettings | None = None
    rewriting: bool | None = None
    events: Literal["stock", "phases"] = "stock"
    deliberation: dict[str, Any] = {}
    """Those of `CycleSettings` that were given."""
    further: dict[str, Any] = {}
    """Any further argument, as `coag.context.to_part` writes it."""

    @field_validator("handoffs", mode="before")
    @classmethod
    def _named_handoffs(cls, handoffs: Any) -> Any:
        """AutoGen's `Handoff` cannot be asked to read a name."""
        if not isinstance(handoffs, list):
            return handoffs
        given = cast("list[Any]", handoffs)
        return [{"target": one} if isinstance(one, str) else one for one in given]


def to_config(arguments: Mapping[str, Any]) -> CoagAgentConfig:
    """The declarative form of an agent.

    Args:
        arguments: What its constructor was given, by name, deliberation settings among them;
            `name`, `model_client`, `description` and `system_message` always.

    Raises:
        ConfigurationError: An argument cannot be written down, or holds a secret; the message
            names it and says what to do.
        TypeError: A required argument is missing.
    """
    given = dict(arguments)
    missing = [name for name in _REQUIRED if name not in given]
    if missing:
        raise TypeError(f"to_config needs {', '.join(missing)} of the agent's arguments.")
    config = CoagAgentConfig(
        **{name: given.pop(name) for name in _PLAIN if given.get(name) is not None},
        **_components(given),
        **_parts(given),
        **output_fields(given.pop("output_content_type", None)),
        procedures=_optional(given, "procedures", dict),
        logs=_optional(given, "logs", str),
        deliberation=_deliberation(given),
        further={
            name: to_part(value, f"{name}=") for name, value in given.items() if name not in _PLAIN
        },
    )
    shown = config.model_dump(mode="json", exclude=_TEXTS)
    check_public(shown, f"The component of agent {config.name!r}")
    return config


def from_config(config: CoagAgentConfig) -> dict[str, Any]:
    """The constructor's arguments that `to_config` was given.

    Raises:
        ConfigurationError: Something that the component names does not exist any more.
    """
    plain = {name: getattr(config, name) for name in _PLAIN}
    given = {name: value for name, value in plain.items() if value is not None}
    given["system_message"] = config.system_message
    given["model_client"] = ChatCompletionClient.load_component(config.model_client)
    if config.model_context is not None:
        given["model_context"] = load_context(config.model_context)
    if (memory := _memory_from(config.memory)) is not None:
        given["memory"] = memory
    lists = {
        "tools": (config.tools, load_tool),
        "workbench": (config.workbench, load_workbench),
        "handoffs": (config.handoffs, _as_it_is),
        "modules": (config.modules, get_part),
        "constraints": (config.constraints, from_constraint_config),
    }
    for name, (parts, load) in lists.items():
        if parts is not None:
            given[name] = [load(part) for part in cast("list[Any]", parts)]
    if config.tool_call_summary_formatter is not None:
        given["tool_call_summary_formatter"] = get_part(config.tool_call_summary_formatter)
    settings = CycleSettings.model_validate(config.deliberation)
    return {
        **given,
        **load_output_type(config.output_content_type, config.structured_message_factory),
        **({} if config.procedures is None else {"procedures": dict(config.procedures)}),
        **({} if config.logs is None else {"logs": config.logs}),
        **{name: getattr(settings, name) for name in config.deliberation},
        **{name: from_part(part) for name, part in config.further.items()},
    }


def _components(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are AutoGen components."""
    tools = cast("Sequence[Tool] | None", given.pop("tools", None))
    benches = cast("Workbench | Sequence[Workbench] | None", given.pop("workbench", None))
    if isinstance(benches, Workbench):
        benches = [benches]
    context = given.pop("model_context", None)
    return {
        "model_client": nested_component(given.pop("model_client"), "model_client="),
        "tools": None if tools is None else [tool_component(tool) for tool in tools],
        "workbench": None if benches is None else [workbench_component(one) for one in benches],
        "model_context": None if context is None else nested_component(context, "model_context="),
        "memory": _memory(given.pop("memory", None)),
    }


def _parts(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that go by import name."""
    handoffs = cast("Sequence[Handoff | str] | None", given.pop("handoffs", None))
    modules = cast("Sequence[object] | None", given.pop("modules", None))
    rules = cast("Sequence[object] | None", given.pop("constraints", None))
    formatter = given.pop("tool_call_summary_formatter", None)
    return {
        "handoffs": None if handoffs is None else [_handoff(one) for one in handoffs],
        "modules": None if modules is None else [part_of(one, "modules=") for one in modules],
        "constraints": None if rules is None else [constraint_config(one) for one in rules],
        "tool_call_summary_formatter": None
        if formatter is None
        else part_of(formatter, "tool_call_summary_formatter="),
    }


def _handoff(handoff: Handoff | str) -> Handoff | str:
    if isinstance(handoff, str) or type(handoff) is Handoff:
        return handoff
    raise ConfigurationError(
        f"handoffs=: a {type(handoff).__name__} would come back as a plain Handoff. Give a "
        "Handoff, or build the agent in code."
    )


def _memory(given: object) -> list[ComponentModel] | LongTermMemoryConfig | str | None:
    if given is None:
        return None
    if isinstance(given, str | Path):
        return public_location(given)
    if isinstance(given, LongTermMemory):
        return LongTermMemoryConfig.of(given)
    memories = [given] if isinstance(given, Memory) else cast("Sequence[object]", given)
    return [nested_component(memory, "memory=") for memory in memories]


def _memory_from(
    config: list[ComponentModel] | LongTermMemoryConfig | str | None,
) -> list[Memory] | LongTermMemory | str | None:
    if isinstance(config, LongTermMemoryConfig):
        return config.open()
    if isinstance(config, list):
        return [Memory.load_component(component) for component in config]
    return config


def _deliberation(given: dict[str, Any]) -> dict[str, Any]:
    """Takes out what `CycleSettings` has, as JSON."""
    names = [name for name in given if name in CycleSettings.model_fields]
    settings = CycleSettings.model_validate({name: given.pop(name) for name in names})
    dumped = settings.model_dump(mode="json")
    return {name: dumped[name] for name in names}


def _optional(given: dict[str, Any], name: str, kind: type[Any]) -> Any:
    value = given.pop(name, None)
    return None if value is None else kind(value)


def _as_it_is(value: Any) -> Any:
    return value
