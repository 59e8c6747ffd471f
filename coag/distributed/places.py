"""Where an agent is hosted, and how the place gets its agent: a new one, or one from its run."""

from __future__ import annotations

import hashlib
import inspect
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from autogen_agentchat.base import ChatAgent
from autogen_agentchat.messages import TextMessage

from coag.agent import CoagAgent
from coag.errors import ConfigurationError
from coag.schema import TurnEnd, from_import_name, import_name
from coag.tracing import Recipe, RunFolder, read_run

from .journal import PlaceOpened, TurnBegun, TurnJournal

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
        """What `CoagAgent(recipe=...)` takes, so that a replacement can continue its run."""
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
    """Calls a factory; errors as for `build_again`."""
    made: Any = factory(place)
    if inspect.isawaitable(made):
        made = await made
    if not isinstance(made, ChatAgent):
        raise ConfigurationError(
            f"The factory of agent type {place.type!r} made {made!r}, which is no ChatAgent."
        )
    return made


def load_factory(name: str) -> AgentFactory:
    """The factory called `module:function`."""
    try:
        factory = from_import_name(name)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The factory {name!r} (MODULE:FUNCTION) cannot be used: {error} It must be importable "
            "where the worker runs: install its package, or start the worker beside it."
        ) from error
    if not callable(factory):
        raise ConfigurationError(f"{name!r} is {factory!r}, which cannot be called.")
    return cast(AgentFactory, factory)


def name_of(factory: AgentFactory) -> str | None:
    """The factory as `module:function`, where another process can import it so."""
    try:
        name = import_name(factory)
    except ConfigurationError:
        return None
    return None if name.startswith("__main__:") else name


def folder_of(logs: Path, type: str, key: str) -> Path:
    """The folder of one hosted agent; different keys never share one."""
    return logs / _file_name(type) / _file_name(key)


def _file_name(text: str) -> str:
    name = quote(text, safe=" ").replace(".", "%2E")
    if len(name) <= _LONGEST_NAME:
        return name
    return name[:_LONGEST_NAME] + "-" + hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- How a place gets its agent: a new one, or that of a lost worker, from its run ----


_LOST = (
    "The worker was replaced in the middle of the turn, and the agent kept no run to continue "
    "(`logs` and `recipe` of a CoagAgent). What it did until then is unknown; it is not repeated."
)
_NEVER_BEGUN = (
    "The worker was replaced before the agent had begun the turn; nothing of it was done. "
    "Send the messages again."
)
_ANSWER_GONE = (
    "The worker was replaced after the agent had ended the turn and before its answer was kept. "
    "What it did is not undone, and it remembers it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAgent:
    """An agent in its place, and the state of its predecessor's turn."""

    agent: ChatAgent
    instance: str
    """Stays the same where the dialogue continues."""
    turn: str | None = None
    """The turn that its predecessor was in. This agent continues it, unless:"""
    answer: TextMessage | None = None
    """The turn had ended already, with this answer."""
    lost: str | None = None
    """It can neither continue nor be answered, for this reason."""


async def open_agent(
    factory: AgentFactory, place: AgentPlace, journal: TurnJournal | None
) -> OpenedAgent:
    """The agent for a place."""
    if journal is None:
        return OpenedAgent(agent=await make_agent(factory, place), instance=uuid.uuid4().hex)
    run, opened, begun = _run_to_resume(place, journal), journal.opened, journal.open_turn
    if run is not None and opened is not None:
        agent = await CoagAgent.resume(run, trust=[factory.__module__.partition(".")[0]])
        if begun is None:
            return OpenedAgent(agent=agent, instance=opened.instance)
        answer = None if agent.in_turn else _answer_in_trace(agent, begun)
        lost = None
        if not agent.in_turn and answer is None:
            lost = _NEVER_BEGUN if begun.turns_before == agent.turn else _ANSWER_GONE
        return OpenedAgent(
            agent=agent, instance=opened.instance, turn=begun.turn, answer=answer, lost=lost
        )
    made = await make_agent(factory, place)
    if opened is not None and journal.settled and not opened.acted:
        return OpenedAgent(agent=made, instance=opened.instance)
    instance = uuid.uuid4().hex
    journal.write(PlaceOpened(instance=instance, past_runs=run_names(place.logs)))
    turn = begun and begun.turn
    return OpenedAgent(agent=made, instance=instance, turn=turn, lost=_LOST if begun else None)


def run_names(logs: Path | None) -> tuple[str, ...]:
    """Names of the run folders in a folder."""
    if logs is None or not logs.is_dir():
        return ()
    return tuple(sorted(path.name for path in logs.iterdir() if RunFolder(path).exists))


def _run_to_resume(place: AgentPlace, journal: TurnJournal) -> Path | None:
    """The one run that holds the dialogue so far and can be built again."""
    opened = journal.opened
    if place.logs is None or opened is None or not (journal.settled and opened.acted):
        return None
    runs = [place.logs / name for name in run_names(place.logs) if name not in opened.past_runs]
    return runs[0] if len(runs) == 1 and read_run(runs[0]).recipe is not None else None


def _answer_in_trace(agent: CoagAgent, begun: TurnBegun) -> TextMessage | None:
    if begun.turns_before is None or TextMessage not in agent.produced_message_types:
        return None
    number = begun.turns_before + 1
    ends = (one for one in reversed(agent.trace) if isinstance(one, TurnEnd) and one.turn == number)
    end = next(ends, None)
    if end is None or end.reason != "respond":
        return None
    metadata = {"ended_by": end.reason, "taken_from": "trace"}
    return TextMessage(content=end.response, source=agent.name, metadata=metadata)
