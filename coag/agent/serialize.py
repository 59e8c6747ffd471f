"""An agent as a component and as a saved state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.agents._assistant_agent import AssistantAgentConfig
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import StructuredMessageFactory
from autogen_core import ComponentModel
from autogen_core.memory import Memory
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from coag._util.validation import first_error
from coag.compat import (
    ConstraintConfig,
    Part,
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
from coag.errors import CoagError, ConfigurationError, StateError
from coag.memory import GateSettings, LongTermMemory, LongTermMemoryConfig, Procedure
from coag.memory.dynamics import MemoryDynamicsSettings, Preset
from coag.schema import ActionCall, from_import_name, import_name, random_state, set_random
from coag.store import public_location
from coag.tracing import Recipe

from .arguments import DEFAULT
from .build import Mind
from .memories import memory_location

# ---- `CoagAgent` as an AutoGen component: its constructor's arguments as JSON, and back ----
#
# What was said and what is remembered is state, not part of it. Every field that is None was not
# given, or was given as None where that is the default, so that no None changes its meaning where
# AutoGen leaves it out.


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
    memory_dynamics: Preset | MemoryDynamicsSettings | None = None
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


def _write_workbenches(workbench: Workbench | Sequence[Workbench]) -> list[ComponentModel]:
    benches = [workbench] if isinstance(workbench, Workbench) else workbench
    return [workbench_component(one) for one in benches]


def _write_handoff(handoff: Handoff | str) -> Handoff | str:
    if isinstance(handoff, str) or type(handoff) is Handoff:
        return handoff
    kind = f"handoffs=: a {type(handoff).__name__} would come back as a plain Handoff"
    raise ConfigurationError(f"{kind}. Give a Handoff, or build the agent in code.")


def _write_memory(memory: object) -> list[ComponentModel] | LongTermMemoryConfig | str:
    if isinstance(memory, str | Path):
        return public_location(memory)
    if isinstance(memory, LongTermMemory):
        return LongTermMemoryConfig.of(memory)
    memories = [memory] if isinstance(memory, Memory) else cast("Sequence[object]", memory)
    return [nested_component(memory, "memory=") for memory in memories]


def _read_memory(
    config: list[ComponentModel] | LongTermMemoryConfig | str,
) -> list[Memory] | LongTermMemory | str:
    if isinstance(config, LongTermMemoryConfig):
        return config.open()
    return [*map(Memory.load_component, config)] if isinstance(config, list) else config


_WRITE: Mapping[str, Callable[[Any], Any]] = {
    "model_client": lambda value: nested_component(value, "model_client="),
    "tools": lambda tools: [tool_component(one) for one in tools],
    "workbench": _write_workbenches,
    "model_context": lambda value: nested_component(value, "model_context="),
    "memory": _write_memory,
    "handoffs": lambda handoffs: [_write_handoff(one) for one in handoffs],
    "modules": lambda modules: [part_of(one, "modules=") for one in modules],
    "constraints": lambda rules: [constraint_config(one) for one in rules],
    "tool_call_summary_formatter": lambda one: part_of(one, "tool_call_summary_formatter="),
    "procedures": dict,
    "logs": str,
}
"""How arguments are written that are not JSON as they are."""
_READ: Mapping[str, Callable[[Any], Any]] = {
    # looked up at each call: tests patch it
    "model_client": lambda part: ChatCompletionClient.load_component(part),  # noqa: PLW0108
    "tools": lambda parts: [*map(load_tool, parts)],
    "workbench": lambda parts: [*map(load_workbench, parts)],
    "model_context": load_context,
    "memory": _read_memory,
    "modules": lambda parts: [*map(get_part, parts)],
    "constraints": lambda parts: [*map(from_constraint_config, parts)],
    "tool_call_summary_formatter": get_part,
}
"""How they are read again."""
_OWN = ("deliberation", "further", "output_content_type", "structured_message_factory")
"""Fields that are not an argument of the same name."""
_TEXTS = {"system_message", "description", "procedures", "tools", "workbench"}
"""Fields whose words are the developer's own or were checked already."""


def _as_it_is(value: Any) -> Any:
    return value


def to_config(arguments: Mapping[str, Any]) -> CoagAgentConfig:
    """The declarative form of an agent."""
    values = {
        name: value
        for name, value in arguments.items()
        if value is not DEFAULT and value is not None
    }
    fields = output_fields(values.pop("output_content_type", None))
    named = {name: values.pop(name) for name in CycleSettings.model_fields if name in values}
    settings = CycleSettings.model_validate(named).model_dump(mode="json")
    fields["deliberation"] = {name: settings[name] for name in named}
    further: dict[str, Any] = {}
    for name, value in values.items():
        if name in CoagAgentConfig.model_fields:
            fields[name] = _WRITE.get(name, _as_it_is)(value)
        else:
            further[name] = to_part(value, f"{name}=")
    config = CoagAgentConfig(**fields, further=further)
    public = config.model_dump(mode="json", exclude=_TEXTS)
    check_public(public, f"The component of agent {config.name!r}")
    return config


def from_config(config: CoagAgentConfig) -> dict[str, Any]:
    """The constructor's arguments that `to_config` was given."""
    values: dict[str, Any] = {"system_message": config.system_message}
    for name in CoagAgentConfig.model_fields:
        value = getattr(config, name)
        if name not in _OWN and value is not None:
            values[name] = _READ.get(name, _as_it_is)(value)
    settings = CycleSettings.model_validate(config.deliberation)
    return {
        **values,
        **load_output_type(config.output_content_type, config.structured_message_factory),
        **{name: getattr(settings, name) for name in settings.model_fields_set},
        **{name: from_part(part) for name, part in config.further.items()},
    }


# ---- From the component of an AssistantAgent to a `CoagAgent`'s arguments ----


_PROVIDERS = ("AssistantAgent", "autogen_agentchat.agents.AssistantAgent")
_ALIKE = (
    *("name", "handoffs", "description", "system_message", "model_client_stream"),
    *("reflect_on_tool_use", "tool_call_summary_format", "metadata"),
)
"""Fields that are arguments of ours by the same name and as they are."""


def assistant_arguments(
    source: ComponentModel | Mapping[str, Any] | AssistantAgent,
) -> dict[str, Any]:
    """The arguments of a `CoagAgent` like an AssistantAgent.

    A limit of one use of tools is AssistantAgent's default and is kept where it was given.
    """
    try:
        source = source.dump_component() if isinstance(source, AssistantAgent) else source
        component = ComponentModel.model_validate(source)
        if component.provider not in _PROVIDERS:
            takes = "from_assistant takes the component of an AssistantAgent"
            raise ConfigurationError(f"{takes}, not one of {component.provider!r}.")
        config = AssistantAgentConfig.model_validate(component.config)
    except ValidationError as error:
        problem = f"This is no component of an AssistantAgent: {first_error(error)}"
        raise ConfigurationError(f"{problem}. Give what its dump_component() gave.") from error
    return config_arguments(config)


def config_arguments(config: AssistantAgentConfig) -> dict[str, Any]:
    """The arguments of a `CoagAgent` like the AssistantAgent of this configuration."""
    arguments: dict[str, Any] = {name: getattr(config, name) for name in _ALIKE}
    arguments["model_client"] = ChatCompletionClient.load_component(config.model_client)
    if config.model_context is not None:
        arguments["model_context"] = load_context(config.model_context)
    if config.structured_message_factory is not None:
        factory = StructuredMessageFactory.load_component(config.structured_message_factory)
        arguments["output_content_type"] = factory.ContentModel
        arguments["output_content_type_format"] = factory.format_string
    parts: dict[str, Any] = {
        "tools": [BaseTool.load_component(one) for one in config.tools or ()],
        "workbench": [Workbench.load_component(one) for one in config.workbench or ()],
        "memory": [Memory.load_component(one) for one in config.memory or ()],
    }
    if config.max_tool_iterations > 1:
        parts["max_tool_iterations"] = config.max_tool_iterations
    return arguments | {name: value for name, value in parts.items() if value}


# ---- The type of an agent's answers in its component ----


def output_fields(kind: type[BaseModel] | None) -> dict[str, Any]:
    """The fields of a component that hold the type of answers.

    By import name where it has one; else as AutoGen does it, from which a like type is made.
    """
    if kind is None:
        return {}
    try:
        name = import_name(kind)
    except ConfigurationError:
        name = "__main__:"
    if not name.startswith("__main__:"):
        return {"output_content_type": name}
    try:
        once = StructuredMessageFactory(input_model=kind).dump_component()
        # What AutoGen makes of a schema has a schema that differs a little; the next is the same.
        again = StructuredMessageFactory(input_model=_content_type(once)).dump_component()
    except Exception as error:  # AutoGen's own errors here derive from nothing narrower
        problem = f"output_content_type= {kind.__name__} cannot be written down: {error}"
        raise ConfigurationError(f"{problem}. Move it to the top level of a module.") from error
    return {"structured_message_factory": again}


def load_output_type(name: str | None, factory: ComponentModel | None) -> dict[str, Any]:
    """The arguments that `output_fields` was given; with AutoGen's own format, where it has one."""
    if name is not None:
        return {"output_content_type": from_import_name(name)}
    if factory is None:
        return {}
    given: dict[str, Any] = {"output_content_type": _content_type(factory)}
    text = factory.config.get("format_string")
    return given if text is None else {**given, "output_content_type_format": text}


def _content_type(factory: ComponentModel) -> type[BaseModel]:
    kind = StructuredMessageFactory.load_component(factory).ContentModel
    # AutoGen loses the description, which models read.
    kind.__doc__ = factory.config["json_schema"].get("description")
    return kind


# ---- The saved state of a whole mind ----


class AgentState(BaseModel):
    """A mind as JSON. AssistantAgent's state is read too: `llm_context` with its messages."""

    model_config = ConfigDict(extra="ignore")

    type: str = "CoagAgentState"
    version: str = "1.0.0"
    llm_context: dict[str, Any] = Field(default_factory=dict)
    """The context's state: working memory, and plain messages for any AutoGen context."""
    procedures: dict[str, Any] | None = None
    """Every version of them; empty where they are as the developer gave them, None where it is not
    known, as in AssistantAgent's state."""
    modules: dict[str, Any] = Field(default_factory=dict)
    detector: dict[str, Any] = Field(default_factory=dict)
    ids: dict[str, int] = Field(default_factory=dict)
    random: Any = None
    """State of the random source; None while nothing was drawn from it."""
    turn: int = 0
    pending: list[ActionCall] = Field(default_factory=list[ActionCall])
    """Actions that had begun and not ended when it was saved: it is not known whether they had
    their effect, and they are not run again."""
    long_term_memory: str | None = None
    """Where long-term memory is; its records are not part of a state. None for RAM."""


async def save_agent_state(mind: Mind, turn: int) -> AgentState:
    """Everything that the mind holds besides its long-term memory, which lasts by itself."""
    deps = mind.deps
    return AgentState(
        llm_context=dict(await mind.context.save_state()),
        procedures={} if deps.procedures.as_given else dict(deps.procedures.save_state()),
        modules=deps.modules.save_state(),
        detector=deps.detector.save_state(),
        ids=deps.ids.save(),
        random=None if mind.random_unused() else random_state(deps.random),
        turn=turn,
        pending=list(deps.actions.running.values()),
        long_term_memory=memory_location(deps.memory),
    )


def read_agent_state(state: object) -> AgentState:
    """A saved state, with its fields as they must be."""
    if not isinstance(state, Mapping):
        raise StateError(
            f"This is no agent's state but a {type(state).__name__}. Give what save_state() gave."
        )
    try:
        read = AgentState.model_validate(dict(cast("Mapping[str, Any]", state)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        given = repr(first["input"])[:80]
        problem = f"This is no agent's state: {where}: {first['msg']} (got {given})"
        raise StateError(f"{problem}. Give what save_state() gave.") from error
    if not read.llm_context:
        raise StateError("This is no agent's state: it has no 'llm_context'.")
    if read.type not in ("CoagAgentState", "AssistantAgentState"):
        raise StateError(f"This is a {read.type}, not the state of an agent.")
    if read.version.partition(".")[0] != "1":
        raise StateError(
            f"This state is of version {read.version!r}; this coag reads versions 1. Update coag."
        )
    return read


async def load_agent_state(state: AgentState, mind: Mind) -> int:
    """Continues from a saved state and returns its turn.

    Where it cannot be loaded, the mind is as it was.
    """
    before = await save_agent_state(mind, 0)
    try:
        return await _apply(state, mind)
    except (CoagError, ValueError, TypeError, KeyError) as error:
        await _apply(before, mind)
        raise StateError(f"The saved state cannot be loaded: {error}") from error


async def _apply(state: AgentState, mind: Mind) -> int:
    deps = mind.deps
    await mind.context.load_state(state.llm_context)
    if state.procedures == {}:
        deps.procedures.undo_all()
    elif state.procedures is not None:
        deps.procedures.load_state(state.procedures)
    deps.modules.load_state(state.modules)
    deps.detector.load_state(state.detector)
    deps.ids.load(state.ids)
    deps.actions.running.clear()
    deps.actions.running.update({call.id: call for call in state.pending})
    saved, here = state.long_term_memory, memory_location(deps.memory)
    if saved is not None and saved != here:
        text = (
            f"The state was saved by an agent whose long-term memory is in {saved!r}; this one's "
            f"is in {here or 'RAM'!r}, so it recalls other records."
        )
        deps.note(mind.context, "memory", text)
    if state.random is not None:
        set_random(deps.random, state.random)
    else:
        deps.random.seed(mind.arguments.seed)
    return state.turn
