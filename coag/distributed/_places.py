"""Where an agent is hosted, and what makes it there."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from autogen_agentchat.base import ChatAgent

from coag.errors import ConfigurationError
from coag.tracing import Recipe

_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPlace:
    """The place that a factory makes an agent for."""

    type: str
    """The agent type under which it is served."""
    key: str
    """Which agent of this type; each key has one of its own."""
    logs: Path | None = None
    """Folder for the agent's run folders; None where the worker keeps no logs."""
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the worker was started with: `--option NAME=VALUE`."""
    factory: str | None = None
    """The factory as `module:function`; None where it cannot be imported by name."""

    @property
    def recipe(self) -> Recipe | None:
        """What `CoagAgent(recipe=...)` takes, so that a replacement can go on with its run."""
        if self.factory is None:
            return None
        arguments = {
            "agent": self.factory,
            "type": self.type,
            "key": self.key,
            "logs": None if self.logs is None else str(self.logs),
            "options": dict(self.options),
        }
        return Recipe(factory="coag.distributed:build_again", arguments=arguments)


AgentFactory = Callable[[AgentPlace], ChatAgent | Awaitable[ChatAgent]]
"""Makes the agent of a place."""


async def build_again(
    *, agent: str, type: str, key: str, logs: str | None, options: Mapping[str, str]
) -> ChatAgent:
    """Makes the agent of a place again, by name: what recipes of hosted agents call.

    Raises:
        ConfigurationError: The factory cannot be imported, or makes no agent.
    """
    place = AgentPlace(
        type=type, key=key, logs=(logs and Path(logs)) or None, options=options, factory=agent
    )
    return await make_agent(load_factory(agent), place)


async def make_agent(factory: AgentFactory, place: AgentPlace) -> ChatAgent:
    """Calls a factory.

    Raises:
        ConfigurationError: It makes no agent.
    """
    made: Any = factory(place)
    if inspect.isawaitable(made):
        made = await made
    if not isinstance(made, ChatAgent):
        raise ConfigurationError(
            f"The factory of agent type {place.type!r} made {made!r}, which is no ChatAgent."
        )
    return made


def load_factory(name: str) -> AgentFactory:
    """The factory called `module:function`.

    Raises:
        ConfigurationError: There is none.
    """
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ConfigurationError(f"A factory is named MODULE:FUNCTION, not {name!r}.")
    try:
        found: Any = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"The factory {name!r} cannot be imported: {error}. It must be importable where the "
            "worker runs: install its package, or start the worker beside it."
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{name!r} is {found!r}, which cannot be called.")
    return cast(AgentFactory, found)


def name_of(factory: AgentFactory) -> str | None:
    """The factory as `module:function`, where another process can import it so."""
    module = getattr(factory, "__module__", "__main__")
    name = getattr(factory, "__qualname__", "")
    if module == "__main__" or getattr(sys.modules.get(module), name, None) is not factory:
        return None
    return f"{module}:{name}"


def folder_of(logs: Path, type: str, key: str) -> Path:
    """The folder of one hosted agent; different keys never share one."""
    return logs / _file_name(type) / _file_name(key)


def _file_name(text: str) -> str:
    """A text as one name in a file system, that no other text has."""
    name = quote(text, safe=" ").replace(".", "%2E")
    if len(name) <= _LONGEST_NAME:
        return name
    return name[:_LONGEST_NAME] + "-" + hashlib.sha256(text.encode()).hexdigest()[:16]
