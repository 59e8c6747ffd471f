"""Who is compared with whom, and what a domain brings for each."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autogen_core.memory import Memory
from autogen_core.tools import BaseTool
from pydantic import Field

from coag.agent import MemoryArgument
from coag.awareness import Awareness
from coag.context import CoagContext
from coag.errors import UnknownNameError
from coag.memory import Procedure
from coag.schema import CognitiveModule, Constraint, Depth, Environment, Value
from coag.tracing import Recipe

Kind = Literal["random", "rules", "oracle", "plain", "coag"]
Part = Literal["retrieval", "reasoning", "evaluation", "rewriting"]
"""What a CoAG agent can be without; see `coag.CycleSettings.without`."""


class Contender(Value):
    """An agent that is compared, by its differences from the others."""

    name: str
    """How it is asked for and shown."""
    summary: str
    """What it is, in a sentence."""
    kind: Kind
    """What it is made of: a policy without a model, AutoGen's `AssistantAgent`, or `CoagAgent`."""
    depth: Depth = "full"
    """CoAG: one model call a phase, one a cycle, or as many as each cycle needs."""
    grounded: bool = False
    """CoAG: whether the domain proposes the candidates instead of the model."""
    without: tuple[Part, ...] = ()
    """CoAG: what it is without."""
    enumerated: Literal["allowed", "calls", False] = "allowed"
    """CoAG: which calls the schema of its answers lists: those that the rules allow now, all that
    exist, or none, so that anything can be written. It counts with servers that enforce schemas."""
    conduct: bool = True
    """Whether the domain's rules of good conduct, if any, are added to those of safety."""
    valued: bool = True
    """CoAG: whether the domain's heuristic value of predicted states, where it has one, counts."""
    aware: bool = False
    """CoAG: whether it keeps situational awareness, as a module (`coag.awareness.Awareness`)."""
    constrained: bool = False
    """Whether the domain's constraints and the progress detector guard its actions.

    For a `CoagAgent` without constraints the progress detector stays.
    """
    tool_iterations: int = Field(default=1, ge=1)
    """Plain: how many actions a turn may have. A CoAG agent has one."""
    remembers: bool = False
    """Plain: whether it has AutoGen's Chroma memory."""

    dynamics: bool = False
    """CoAG: whether its long-term memory has the dynamics `assistant`."""

    @property
    def has_memory(self) -> bool:
        """Whether it writes to a long-term memory and recalls from it."""
        return self.remembers or (self.kind == "coag" and "retrieval" not in self.without)

    @property
    def asks_model(self) -> bool:
        """Whether a model decides what it does."""
        return self.kind in ("plain", "coag")


_ITERATIONS = 5
"""Actions that a turn of `plain-iterations` may have."""
_SUMMARIES = {
    "random": "any legal call, each as likely as the others",
    "rules": "a hand-written program that sees what the others see",
    "oracle": "sees the whole world and plans by search: an upper bound",
    "plain": "AutoGen's AssistantAgent with a utility-maximising prompt",
    "plain-iterations": f"the same with up to {_ITERATIONS} tool iterations a turn",
    "plain-memory": "the same with AutoGen's ChromaDBVectorMemory, which gets what it did",
    "plain-guarded": "the same behind our constraints and progress detector",
    "coag-compact": "CoAG with one model call a cycle",
    "coag-full": "CoAG with one model call a phase",
    "coag-auto": "CoAG with no model call, one, or one a phase, as each cycle needs",
    "coag-compact-grounded": "CoAG compact over the candidates that the domain proposes",
    "coag-full-grounded": "CoAG full over the candidates that the domain proposes",
    "coag-compact-aware": "CoAG compact with situational awareness",
    "coag-full-aware": "CoAG full with situational awareness",
    "coag-compact-dynamics": "CoAG compact whose memory has the dynamics `assistant`",
    "coag-full-dynamics": "CoAG full whose memory has the dynamics `assistant`",
    "coag-without-retrieval": "CoAG full, but without retrieval",
    "coag-without-reasoning": "CoAG full, but without reasoning",
    "coag-without-evaluation": "CoAG full, but without evaluation",
    "coag-without-constraints": "CoAG full, but without the domain's constraints",
    "coag-without-rewriting": "CoAG full, but without rewriting",
    "coag-without-conduct": "CoAG full, but with the domain's rules of safety alone",
    "coag-without-value": "CoAG full, but without the domain's value of predicted states",
    "coag-without-enumeration": "CoAG full, but the schema of its answers does not list the calls "
    "that exist",
    "coag-without-masking": "CoAG full, but the schema of its answers lists also what the rules "
    "forbid now",
}
_DIFFERS: dict[str, dict[str, object]] = {
    "plain-iterations": {"tool_iterations": _ITERATIONS},
    "plain-memory": {"remembers": True},
    "plain-guarded": {"constrained": True},
    "coag-without-constraints": {"constrained": False},
    "coag-without-conduct": {"conduct": False},
    "coag-without-value": {"valued": False},
    "coag-without-enumeration": {"enumerated": False},
    "coag-without-masking": {"enumerated": "calls"},
    **{
        f"coag-without-{part}": {"without": (part,)}
        for part in ("retrieval", "reasoning", "evaluation", "rewriting")
    },
}


def _made(name: str, summary: str) -> Contender:
    fields: dict[str, object] = {"kind": name.partition("-")[0]}
    if name.startswith("coag"):
        fields |= {
            "constrained": True,
            "depth": next((one for one in ("compact", "auto") if one in name), "full"),
            "grounded": name.endswith("-grounded"),
            "aware": name.endswith("-aware"),
            "dynamics": name.endswith("-dynamics"),
        }
    values = {**fields, **_DIFFERS.get(name, {}), "name": name, "summary": summary}
    return Contender.model_validate(values)


CONTENDERS: Mapping[str, Contender] = {
    name: _made(name, summary) for name, summary in _SUMMARIES.items()
}
"""Every contender by name, in the order in which they are shown."""


def contender_named(name: str) -> Contender:
    """The contender of this name.

    Raises:
        UnknownNameError: There is none; the message lists those that exist.
    """
    if name not in CONTENDERS:
        raise UnknownNameError("contender", name, CONTENDERS)
    return CONTENDERS[name]


Delivery = Literal["constraint", "procedure"]
"""How a CoAG agent gets a change of requirements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One call of a tool."""

    action: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that another agent says, its sender named in the text too."""

    source: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of requirements, which comes while an agent is at work."""

    sentence: str
    """What is different from now on, in words."""
    constraint: Constraint
    """The same as a rule in code. It has a `name`, by which it is known to be in force."""

    @property
    def name(self) -> str:
        """The rule's name."""
        return str(getattr(self.constraint, "name", self.constraint))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a policy sees: the same as every contender, and nothing more."""

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
    """AutoGen's memory, for the plain agent that has one; the caller closes it."""
    changes: Sequence[Change] = ()
    """Changes of requirements that may come."""
    recipe: Recipe | None = None
    """How to build the agent again, for `coag replay`."""
    environment: Environment | None = None
    """What the agent acts in, for the snapshots of CoAG's traces."""
    configuration: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What `run.json` of a plain agent holds."""
    enforces_schemas: bool = True
    """Whether the model may be taken to enforce schemas. A scripted one, which is a function, does
    not: to list calls for it would take time and change nothing."""
    tool_timeout: float = 60.0
    """Seconds that one call may take."""
