"""Sections of a prompt, and the situation that modules get."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .percepts import Trust
from .values import Phase, Value


class Section(Value):
    """A titled, budgeted, source-labelled piece of prompt."""

    title: str
    text: str
    source: str
    """Name of the module, memory or part that the text comes from."""
    trust: Trust = Trust.DEVELOPER
    """Whether the text may count as instruction; everything untrusted is delimited as data."""
    budget: int = Field(default=500, gt=0)
    """At most this many tokens (estimated); what is more is cut with a note."""


class Situation(Value):
    """The few values that a module gets when it contributes."""

    activity: str
    goal: str
    cycle: int
    phase: Phase
    query: str
    """What Retrieval searched long-term memory for in this cycle."""


class PromptMessage(Value):
    """One message of a prompt as it is sent to a model."""

    role: Literal["system", "user", "assistant"]
    content: str
    sections: tuple[Section, ...] = ()
    """The pieces that the content was built from, in order, where it was built from pieces."""
    images: tuple[str, ...] = ()
    """Images that belong to it, as data URIs; only models with vision are sent them."""


Prompt = tuple[PromptMessage, ...]
"""What a phase sends to a model."""
