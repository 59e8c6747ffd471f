"""A `SituatedAgent` as an AutoGen component: its arguments as JSON, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from coag.context import CoagContext, SituatedContext
from coag.errors import ConfigurationError
from coag.mcp import StdioServerParams, StreamableHttpServerParams, dumpable
from coag.memory.consolidation import Intentions
from coag.schema import CognitiveModule, from_import_name, import_name
from coag.situated import (
    ActivityBudget,
    McpToolConnection,
    SituatedSettings,
    ToolConnection,
    ToolPerceptionSettings,
    is_database,
)

from .arguments import AgentArguments
from .goals import Goal, SignalGoal, TimedGoal, check_goals
from .serialize import CoagAgentConfig, from_config, to_config

MakeContext = Callable[[], CoagContext[Any]]
MakeModules = Callable[[], Sequence[CognitiveModule]]
_PLAIN = (
    *("folder", "store", "answer", "goals", "workers"),
    *("live", "budget", "perception", "situated"),
)
"""Fields of the component that are arguments as they are."""
_MADE = frozenset({"workbench", "tools", "model_context", "logs", "recipe"})
"""Arguments of `CoagAgent` that each activity's agent is given by its situated agent."""


class ServerConfig(BaseModel):
    """An MCP server of tools, as a component writes it down."""

    name: str
    params: StdioServerParams | StreamableHttpServerParams = Field(discriminator="type")


class SituatedAgentConfig(BaseModel):
    """The declarative form of a `SituatedAgent`: what `coag run` reads."""

    model_config = ConfigDict(extra="forbid")

    agent: CoagAgentConfig
    """What the agents of its activities are given: name, model, memory, constraints ..."""
    servers: list[ServerConfig]
    folder: str | None = None
    store: str | None = None
    """The database that workers share; its password is not in here (`PGPASSWORD`, `~/.pgpass`)."""
    answer: Literal["end", "id"] = "end"
    goals: list[SignalGoal | TimedGoal] = []
    context: str | None = None
    """Import name of what makes the contexts of activities."""
    modules: str | None = None
    """Import name of what makes their further modules."""
    workers: int = 4
    live: int = 32
    budget: ActivityBudget = ActivityBudget()
    perception: ToolPerceptionSettings = ToolPerceptionSettings()
    situated: SituatedSettings = SituatedSettings()


def check_arguments(
    arguments: Mapping[str, Any],
    servers: Sequence[object],
    goals: Sequence[Goal | Intentions],
    store: str | None,
    folder: object,
) -> None:
    """Refuses what no activity's agent could be made with."""
    if own := _MADE & set(arguments):
        made = f"A SituatedAgent makes {', '.join(sorted(own))} itself"
        raise ConfigurationError(f"{made}. Give servers= for tools, context= and folder=.")
    for server in servers:
        if not (hasattr(server, "catalogue") and hasattr(server, "on_hint")):
            takes = "InProcessConnection(workspace) or McpToolConnection(params, name)"
            given = repr(server)[:100]
            raise ConfigurationError(f"servers= takes connections, not {given}: give {takes}.")
    unknown = sorted(set(arguments) - {one.name for one in fields(AgentArguments)})
    if unknown:
        lacks = f"A SituatedAgent has no argument {', '.join(map(repr, unknown))}"
        raise ConfigurationError(f"{lacks}. It takes its own, and those of CoagAgent.")
    AgentArguments(**arguments).cycle_settings(has_tools=True)
    check_goals(goals)
    _check_store(store, folder)


def _check_store(store: str | None, folder: object) -> None:
    """Refuses a store that workers could not share."""
    if store is None:
        return
    if not is_database(store):
        takes = "store= takes a Postgres database, postgresql://HOST/NAME"
        raise ConfigurationError(f"{takes}, not {store!r}. For one process folder= is enough.")
    if folder is None:
        why = "an activity is continued by the run that it has there"
        raise ConfigurationError(f"store= needs folder=, one that all workers reach: {why}.")


def to_situated_config(
    servers: Sequence[ToolConnection],
    context: MakeContext,
    modules: MakeModules,
    given: Mapping[str, Any],
    arguments: Mapping[str, Any],
) -> SituatedAgentConfig:
    """The component, unless an argument cannot be written down or holds a secret.

    Args:
        servers: The servers of tools.
        context: Makes contexts.
        modules: Makes modules.
        given: The arguments that are written down as they are.
        arguments: Those for the agents of activities.
    """
    if any(isinstance(goal, Intentions) for goal in given["goals"]):
        problem = "Intentions among goals= cannot be written down: they are in a file of memory's"
        raise ConfigurationError(f"{problem} dynamics. Make the agent in code.")
    store: str | None = given["store"]
    if store is not None and (urlsplit(store).password or "password" in urlsplit(store).query):
        problem = "The address in store= has a password, which is not written down"
        raise ConfigurationError(f"{problem}: give it by PGPASSWORD or in ~/.pgpass.")
    return SituatedAgentConfig(
        agent=to_config(AgentArguments(**arguments).keywords()),
        servers=[_written(server) for server in servers],
        context=None if context is SituatedContext else import_name(context),
        modules=None if modules is tuple else import_name(modules),
        **given,
    )


def from_situated_config(config: SituatedAgentConfig) -> dict[str, Any]:
    """The arguments that a component holds."""
    arguments = from_config(config.agent)
    for name in ("events", *_MADE):
        arguments.pop(name, None)
    return {
        **arguments,
        "servers": [McpToolConnection(one.params, one.name) for one in config.servers],
        "context": from_import_name(config.context) if config.context else SituatedContext,
        "modules": from_import_name(config.modules) if config.modules else tuple,
        **{name: getattr(config, name) for name in _PLAIN},
    }


def _written(server: ToolConnection) -> ServerConfig:
    if not isinstance(server, McpToolConnection):
        problem = f"The server {server.name!r} is in this process and cannot be written down"
        raise ConfigurationError(f"{problem}. Serve it by MCP, and give a McpToolConnection.")
    return ServerConfig(name=server.name, params=dumpable(server.params))
