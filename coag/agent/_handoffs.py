"""Handoffs: actions that end the turn and give the conversation to another agent."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from autogen_agentchat.base import Handoff

from coag.compat import RESERVED
from coag.errors import ConfigurationError
from coag.schema import ActionCall, ActionResult, ActionSpec

_NO_ARGUMENTS = {"type": "object", "properties": dict[str, object]()}


class Handoffs:
    """The agents that this one can hand over to, as internal actions.

    Args:
        given: Names of agents, or AutoGen's `Handoff`s.

    Raises:
        ConfigurationError: Two have the same name, one has the name of a tool or of an action
            of the agent's own, or one is neither.
    """

    def __init__(self, given: Sequence[Handoff | str], tools: Sequence[str] = ()) -> None:
        self.by_name: Mapping[str, Handoff] = {h.name: h for h in map(_handoff, given)}
        names = [h.name for h in map(_handoff, given)]
        if doubled := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigurationError(f"Handoff names must be unique; given twice: {doubled}.")
        if taken := sorted(set(names).intersection({*tools, *RESERVED})):
            raise ConfigurationError(
                f"These handoffs have names that a tool or an own action has: {taken}. "
                "Give Handoff(target=..., name=...) another name."
            )

    def action_specs(self) -> Sequence[ActionSpec]:
        """One action per handoff, without arguments."""
        return [
            ActionSpec(
                name=handoff.name,
                description=handoff.description,
                parameters=_NO_ARGUMENTS,
                internal=True,
                repeatable=True,
            )
            for handoff in self.by_name.values()
        ]

    def warn_of_several(self, wanted: Sequence[str]) -> None:
        """Warns, as AssistantAgent does, where one answer hands over more than once."""
        named = [name for name in wanted if name in self.by_name]
        if len(named) > 1:
            warnings.warn(
                f"Multiple handoffs detected. Only the first is executed: {named}. Disable "
                "parallel tool calls in the model client to avoid this warning.",
                stacklevel=2,
            )

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Ends the turn with the handoff's message."""
        return ActionResult(content=self.by_name[call.action].message, ends_turn=True)


def _handoff(given: Handoff | str) -> Handoff:
    if isinstance(given, str):
        return Handoff(target=given)
    if isinstance(given, Handoff):  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
        return given
    raise ConfigurationError(
        f"Unsupported handoff type: {given!r} is no handoff. Give an agent's name, or a Handoff."
    )
