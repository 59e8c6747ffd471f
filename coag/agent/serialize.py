"""An agent as a component and as a saved state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Self, cast

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.agents._assistant_agent import AssistantAgentConfig
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import StructuredMessageFactory
from autogen_core import Component, ComponentModel
from autogen_core.memory import Memory
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

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
from coag.errors import CoagError, ConfigurationError, StateError
from coag.memory import GateSettings, LongTermMemory, LongTermMemoryConfig, Procedure
from coag.schema import ActionCall, Outcome, provider_name, random_state, set_random
from coag.store import public_location
from coag.tracing import Parent, Recipe

from .build import Arguments
from .memories import memory_location
from .mind import Mind
from .resume import Remains, restore
from .runs import Runs
from .settings import load_output_type, output_fields
from .turns import Turns

# ---- `CoagAgent` as an AutoGen component: its constructor's arguments as JSON, and back ----
#
# What was said and what is remembered is state, not part of it. Every field that is None was not
# given, or was given as None where that is the default, so that no None changes its meaning where
# AutoGen leaves it out.


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


# ---- From the component of an AssistantAgent to a `CoagAgent`'s arguments ----


_PROVIDERS = ("AssistantAgent", "autogen_agentchat.agents.AssistantAgent")
_ALIKE = (
    *("name", "handoffs", "description", "system_message", "model_client_stream"),
    *("reflect_on_tool_use", "tool_call_summary_format", "metadata"),
)
"""Fields that are arguments of ours by the same name and as they are."""


def assistant_config(given: ComponentModel | Mapping[str, Any] | AssistantAgent) -> Any:
    """The configuration in an AssistantAgent's component.

    Raises:
        ConfigurationError: It is another component, or none.
    """
    if isinstance(given, AssistantAgent):
        given = given.dump_component()
    try:
        component = ComponentModel.model_validate(given)
        if component.provider not in _PROVIDERS:
            raise ConfigurationError(
                f"from_assistant takes the component of an AssistantAgent, not one of "
                f"{component.provider!r}. Load that with its own class."
            )
        return AssistantAgentConfig.model_validate(component.config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"This is no component of an AssistantAgent: {where}: {first['msg']}. Give what "
            "its dump_component() gave."
        ) from error


def from_assistant(config: AssistantAgentConfig) -> dict[str, Any]:
    """The arguments of a `CoagAgent`; what the component leaves out is left out.

    A limit of one use of tools is AssistantAgent's default and is kept where it was given.
    """
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
    arguments |= {name: given for name, given in parts.items() if given}
    if config.max_tool_iterations > 1:
        arguments["max_tool_iterations"] = config.max_tool_iterations
    return arguments


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
    """Actions that had begun and not ended when it was saved: nobody knows whether they had
    their effect, and they are not run again."""
    long_term_memory: str | None = None
    """Where long-term memory rests; its records are not part of a state. None for RAM."""


async def save_agent_state(mind: Mind, turn: int) -> AgentState:
    """Everything that the mind holds besides its long-term memory, which lasts by itself."""
    deps = mind.deps
    return AgentState(
        llm_context=dict(await mind.context.save_state()),
        procedures={} if deps.procedures.as_given else dict(deps.procedures.save_state()),
        modules=deps.modules.save_state(),
        detector=deps.detector.save_state(),
        ids=deps.ids.save(),
        random=None if mind.fresh_random() else random_state(deps.random),
        turn=turn,
        pending=list(deps.actions.running.values()),
        long_term_memory=memory_location(deps.memory),
    )


def read_agent_state(state: object) -> AgentState:
    """A saved state, with its fields as they must be.

    Raises:
        StateError: It is none; names the field that cannot be.
    """
    if not isinstance(state, Mapping):
        raise StateError(
            f"This is no agent's state but a {type(state).__name__}. Give what save_state() gave."
        )
    try:
        return AgentState.model_validate(dict(cast("Mapping[str, Any]", state)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        given = repr(first["input"])[:80]
        raise StateError(
            f"This is no agent's state: {where}: {first['msg']} (got {given}). Give what "
            "save_state() gave."
        ) from error


async def load_agent_state(state: AgentState, mind: Mind) -> int:
    """Goes on from a saved state and returns its turn.

    Where it cannot be loaded, the mind is as it was.

    Raises:
        StateError: It is no agent's state, one of a newer version, or damaged.
    """
    _check_kind(state)
    before = await save_agent_state(mind, 0)
    try:
        return await _apply(state, mind)
    except (CoagError, ValueError, TypeError, KeyError) as error:
        await _apply(before, mind)
        raise StateError(f"The saved state cannot be loaded: {error}") from error


def _check_kind(state: AgentState) -> None:
    if not state.llm_context:
        raise StateError("This is no agent's state: it has no 'llm_context'.")
    if state.type not in ("CoagAgentState", "AssistantAgentState"):
        raise StateError(f"This is a {state.type}, not the state of an agent.")
    if state.version.partition(".")[0] != "1":
        raise StateError(
            f"This state is of version {state.version!r}; this coag reads versions 1. Update coag."
        )


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
    _note_other_memory(state, mind)
    if state.random is not None:
        set_random(deps.random, state.random)
    else:
        deps.random.seed(mind.seed)
    return state.turn


def _note_other_memory(state: AgentState, mind: Mind) -> None:
    """Says in the trace that this agent remembers elsewhere than the saved one did."""
    saved, here = state.long_term_memory, memory_location(mind.deps.memory)
    if saved is None or saved == here:
        return
    text = (
        f"The state was saved by an agent whose long-term memory rests in {saved!r}; this one's "
        f"rests in {here or 'RAM'!r}, so it recalls other records."
    )
    mind.deps.note(mind.context, "memory", text)


# ---- `CoagAgent` as JSON: what it was given as an AutoGen component, and its state ----


_ALWAYS = ("name", "model_client", "description", "system_message")


class Declared(BaseChatAgent, Component[CoagAgentConfig], ABC):
    """An agent that is declared by what it was given: no dialogue, no memory, no secret."""

    component_type = "agent"
    component_config_schema = CoagAgentConfig

    _given: Arguments
    _mind: Mind
    _runs: Runs
    _turns: Turns
    _turn: int
    _begun: list[Outcome] | None

    def dump_component(self) -> ComponentModel:
        """What the agent was given, as JSON; a subclass dumps as itself.

        Raises:
            ConfigurationError: An argument cannot be written down, or holds a secret.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> CoagAgentConfig:
        given = {
            field.name: getattr(self._given, field.name)
            for field in fields(self._given)
            if field.name != "deliberation"
        }
        told = {
            name: value
            for name, value in given.items()
            if name in _ALWAYS or (value is not None and value != ())
        }
        rules = self._mind.deps.constraints.own()
        told |= {"constraints": list(rules)} if rules else {}
        return to_config({**told, **self._given.deliberation})

    @classmethod
    def _from_config(cls, config: CoagAgentConfig | AssistantAgentConfig) -> Self:
        if isinstance(config, AssistantAgentConfig):
            return cls(**from_assistant(config))
        return cls(**from_config(config))

    @classmethod
    def from_assistant(
        cls, given: ComponentModel | Mapping[str, Any] | AssistantAgent, **further: Any
    ) -> Self:
        """An agent as an AssistantAgent's component describes it.

        Args:
            given: The component, as `dump_component` gives it or as JSON that was read; or an
                AssistantAgent itself, whose component is taken. What was said is not part of it.
            further: Arguments of ours, which also take the place of the component's.

        Raises:
            ConfigurationError: It is no component of an AssistantAgent.
        """
        return cls(**{**from_assistant(assistant_config(given)), **further})

    async def save_state(self) -> Mapping[str, Any]:
        """The whole mind as JSON: working memory, procedures, modules, detector, counters."""
        return (await save_agent_state(self._mind, self._turn)).model_dump(mode="json")

    async def take_up(self, remains: Remains, parent: Parent | None = None) -> None:
        """Goes on where a trace says that a run stood; for `resume` and for forks.

        Args:
            remains: What the trace tells.
            parent: Where a fork comes from: a run of its own begins there.

        Raises:
            TraceError: The run's folder cannot be written to.
        """
        if parent is None:
            self._runs.note_resumed(self._mind, begun=remains.begun)
        await restore(self._mind, remains)
        self._turn = remains.turn
        self._begun = remains.outcomes if remains.turn_open else None
        if parent is not None:
            self._runs.open(self._mind, parent)

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state; an AssistantAgent's messages become dialogue.

        Raises:
            StateError: It is no agent's state, one of a newer version, or damaged.
        """
        read = read_agent_state(state)
        await self._turns.forget()
        self._turn = await load_agent_state(read, self._mind)
        self._runs.note_state(self._mind)
