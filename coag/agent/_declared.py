"""`CoagAgent` as JSON: what it was given as an AutoGen component, and its state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.agents._assistant_agent import AssistantAgentConfig
from autogen_core import Component, ComponentModel

from coag.schema import Outcome, provider_name
from coag.tracing import Parent

from ._component import CoagAgentConfig, from_config, to_config
from ._from_assistant import assistant_config, from_assistant
from ._making import Arguments
from ._mind import Mind
from ._resume import Remains, restore
from ._runs import Runs
from ._state import load_agent_state, read_agent_state, save_agent_state
from ._turns import Turns

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
