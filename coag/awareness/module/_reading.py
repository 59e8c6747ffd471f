"""From a percept to what an adapter takes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from coag.awareness._adapter import Adapter
from coag.awareness.state import AwarenessState
from coag.schema import Percept, PerceptKind, Trust

from ._percept_adapter import PerceptAdapter

if TYPE_CHECKING:
    from coag.awareness.perception import Perception

Raw = Mapping[str, object] | None
"""An adapter's raw input; None where a percept says nothing to the domain."""
Reader = Callable[[Percept, AwarenessState], Raw | Awaitable[Raw]]
"""Gives an adapter's raw input for a percept, where things stand so."""


def fields_of(percept: Percept) -> Mapping[str, object]:
    """A percept as a `PerceptAdapter` takes it; images are left out."""
    return percept.model_dump(mode="json", exclude={"images"})


def is_heard(percept: Percept) -> bool:
    """Whether a percept is a message of somebody else."""
    return percept.kind is PerceptKind.MESSAGE and percept.trust is not Trust.DEVELOPER


def heard_by(perception: Perception) -> Callable[[Percept, AwarenessState], Awaitable[Raw]]:
    """A reader for the domains of talk and of code: messages are read by a perception.

    One that asks a model takes its time: give the agent `module_seconds` to match. Its calls are
    not in the trace, so that a replay asks again.
    """

    async def reads(percept: Percept, state: AwarenessState) -> Raw:
        return await perception.perceive(percept.content, state) if is_heard(percept) else None

    return reads


def reader_for(adapter: Adapter) -> Reader:
    """The reader that serves where none is given."""
    if isinstance(adapter, PerceptAdapter):
        return lambda percept, state: fields_of(percept)
    return lambda percept, state: {"message": percept.content} if is_heard(percept) else None
