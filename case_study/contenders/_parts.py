"""What a domain brings, so that every contender can be built in it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autogen_core.memory import Memory
from autogen_core.tools import BaseTool

from coag.agent import MemoryArgument
from coag.awareness import Awareness
from coag.context import CoagContext
from coag.memory import Procedure
from coag.schema import CognitiveModule, Constraint, Environment
from coag.tracing import Recipe

Delivery = Literal["constraint", "procedure"]
"""How a CoAG agent is told of a change of requirements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One call of a tool."""

    action: str
    """The tool's name."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that another agent says."""

    source: str
    """Who says it."""
    text: str
    """What it says, its sender named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of requirements, which comes while an agent is at work."""

    sentence: str
    """What is different from now on, for who reads."""
    constraint: Constraint
    """The same as a rule in code. It has a `name`, by which it is known to be in force."""

    @property
    def name(self) -> str:
        """The rule's name."""
        return str(getattr(self.constraint, "name", self.constraint))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a policy sees: what every contender is told, and nothing more."""

    task: str
    """The first message."""
    changes: tuple[str, ...] = ()
    """Changes of requirements, as sentences."""
    messages: tuple[Message, ...] = ()
    """What other agents said."""
    results: tuple[str, ...] = ()
    """What its actions gave, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a domain, for one episode."""

    name: str
    """The agent's name, a Python identifier."""
    task: str
    """The first message of the episode."""
    tools: Sequence[BaseTool[Any, Any]]
    """The tools that truly exist; every call of one is an external action."""
    system_prompt: str
    """CoAG's system message."""
    utility_prompt: str
    """The plain agents' system message."""
    context: Callable[[], CoagContext[Any]]
    """Makes the structured context, for those that have one."""
    random_action: Callable[[random.Random], Act]
    """Any legal call, each as likely as the others."""
    rule_action: Callable[[Observation], Act | None]
    """What a hand-written program does next; None when it has finished."""
    oracle_action: Callable[[], Awaitable[Act | None]] | None = None
    """What one does who sees everything; None where the domain has no such way."""
    awareness: Callable[[], CognitiveModule] = Awareness
    """Makes the situational awareness of those that are aware; not given, one that knows tools,
    whatever the domain."""
    constraints: Sequence[Constraint] = ()
    """The domain's rules, for those that are constrained."""
    memory: MemoryArgument | None = None
    """CoAG's long-term memory; None keeps it in RAM for this episode."""
    procedures: Mapping[str, Procedure] = field(default_factory=dict[str, Procedure])
    """Procedures that take the place of CoAG's seeds, e.g. those of the episode before."""
    recalled: int = 5
    """How many records CoAG recalls; 0 for an agent that is to remember nothing."""
    recall: Memory | None = None
    """AutoGen's memory, for the plain agent that has one; see `case_study.baseline.open_recall`.

    Whoever opened it closes it.
    """
    changes: Sequence[Change] = ()
    """Changes of requirements that may come."""
    recipe: Recipe | None = None
    """How to build the agent again, for `coag replay`."""
    environment: Environment | None = None
    """What the agent acts in, for the snapshots of CoAG's traces."""
    configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What `run.json` of a plain agent tells."""
    enforces_schemas: bool = True
    """Whether the model may be taken to enforce schemas. A scripted one, which is a function, does
    not: to list calls for it would take time and change nothing."""
    tool_timeout: float = 60.0
    """Seconds that one call may take."""
