"""Percepts: what arrives from outside."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field

from .values import Moment, Value


class Trust(StrEnum):
    """How far a text may steer the agent. Only `DEVELOPER` text counts as instruction."""

    DEVELOPER = "developer"
    """Written with the agent: system message, procedures, the framework's own sentences."""
    USER = "user"
    """Said by the person whom the agent serves; a request, quoted."""
    UNTRUSTED = "untrusted"
    """Tool returns, other agents' words, manuals, documents: data, never instruction."""


class PerceptKind(StrEnum):
    """What arrived."""

    MESSAGE = "message"
    TOOL_RETURN = "tool_return"
    PROPERTY_CHANGE = "property_change"
    SIGNAL = "signal"
    TIME_OUT = "time_out"
    """What was waited for did not arrive by the deadline."""
    REMINDER = "reminder"
    """What the agent wanted to remember now."""
    GAP = "gap"
    """Signals may be missing: a tool was restarted, or its log is shorter than what was missed."""
    IMPASSE = "impasse"
    UNKNOWN_OUTCOME = "unknown_outcome"
    """An external action began, and whether it had its effect is not known."""
    SETTLED = "settled"
    """It was found out what became of such an action."""


class Settlement(StrEnum):
    """What became of an action of unknown outcome."""

    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"


class Failure(StrEnum):
    """Why an action failed, as far as repeating it is concerned."""

    DETERMINISTIC = "deterministic"
    """The same action in the same state fails again."""
    TRANSIENT = "transient"
    """It may work if tried again."""


class Percept(Value):
    """One thing that arrived from outside the agent's deliberation (A&A; Soar for impasses).

    A percept is the only thing that changes the perceptual state: `state_patch` is the change
    that the domain's hook computed from it, recorded so that a state can be rebuilt from the
    trace without the domain's code.
    """

    record: Literal["percept"] = "percept"
    id: str
    at: Moment
    kind: PerceptKind
    source: str
    """Name of the sender, tool, sensor or of the framework's part it comes from."""
    trust: Trust
    content: str
    """The text as the model may see it, cut to its bound."""
    data: Any = None
    """The structured form of the content, where there is one (JSON)."""
    images: dict[str, str] = Field(default_factory=dict)
    """Images of a message by their hash, as data URIs."""
    caused_by: str | None = None
    """Id of the intent whose execution caused this."""
    arguments: dict[str, Any] | None = None
    """For a tool return: what the tool was called with."""
    is_error: bool = False
    """For a tool return: the tool reported or raised a failure."""
    failure: Failure | None = None
    """For a failed tool return: whether repeating it unchanged can help."""
    counts: bool = False
    """For a failed tool return: it may have done something, so rules that count count it."""
    settlement: Settlement | None = None
    """For `settled`: what became of the action that `caused_by` began."""
    settles: tuple[str, ...] = ()
    """Intents whose outcome is known by this percept; decided when it is perceived."""
    sets_goal: bool = False
    """For a message: it opens a new goal; decided when it is perceived."""
    begins_turn: bool = False
    """For a message: it is the first of its turn."""
    memory_scope: str | None = None
    """Whose records are recalled and written from now on, where that changed; empty for nobody's.
    Decided when it is perceived."""
    state_patch: dict[str, Any] | None = None
    """Change of the perceptual state (JSON merge patch, RFC 7396); None until perceived."""
    hook_problem: str | None = None
    """Why the domain's hook could not read it, so that the perceptual state is out of date."""


UNPERCEIVED: Mapping[str, Any] = MappingProxyType(
    {
        "state_patch": None,
        "sets_goal": False,
        "hook_problem": None,
        "settles": (),
        "memory_scope": None,
    }
)
"""What is decided of a percept when it is perceived, as it is before."""
