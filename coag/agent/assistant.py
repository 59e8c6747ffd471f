"""From the component of an AssistantAgent to a `CoagAgent`'s arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.agents._assistant_agent import AssistantAgentConfig
from autogen_agentchat.messages import StructuredMessageFactory
from autogen_core import ComponentModel
from autogen_core.memory import Memory
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench
from pydantic import ValidationError

from coag.context import load_context
from coag.errors import ConfigurationError

_PROVIDERS = ("AssistantAgent", "autogen_agentchat.agents.AssistantAgent")
_ALIKE = (
    *("name", "handoffs", "description", "system_message", "model_client_stream"),
    *("reflect_on_tool_use", "tool_call_summary_format", "metadata"),
)
"""Fields that are arguments of ours by the same name and as they are."""


def assistant_arguments(
    given: ComponentModel | Mapping[str, Any] | AssistantAgent,
) -> dict[str, Any]:
    """The arguments of a `CoagAgent` like an AssistantAgent.

    A limit of one use of tools is AssistantAgent's default and is kept where it was given.
    """
    try:
        given = given.dump_component() if isinstance(given, AssistantAgent) else given
        component = ComponentModel.model_validate(given)
        if component.provider not in _PROVIDERS:
            raise ConfigurationError(
                f"from_assistant takes the component of an AssistantAgent, not one of "
                f"{component.provider!r}. Load that with its own class."
            )
        config = AssistantAgentConfig.model_validate(component.config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigurationError(
            f"This is no component of an AssistantAgent: {where}: {first['msg']}. Give what "
            "its dump_component() gave."
        ) from error
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
