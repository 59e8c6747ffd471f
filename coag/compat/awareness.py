"""Situational awareness for stock AutoGen agents.

A module of its own, so that only who uses it imports `coag.awareness`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Self, cast

from autogen_core import CancellationToken, Component
from autogen_core.memory import (
    Memory,
    MemoryContent,
    MemoryMimeType,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.model_context import ChatCompletionContext
from pydantic import BaseModel, Field

from coag.awareness import (
    Adapter,
    Archive,
    AwarenessState,
    ConversationAdapter,
    DynamicEngine,
    DynamicsSettings,
    EngineSettings,
)
from coag.models import cancellable
from coag.schema import Clock
from coag.store import Embedder

from .autogen_memory import SITUATION, text_of
from .components import NamedComponent, Part, get_part, part_of

if TYPE_CHECKING:
    from coag.awareness import Perception

__all__ = ["AwarenessMemory", "AwarenessMemoryConfig"]


class AwarenessMemoryConfig(BaseModel):
    """The declarative form of an `AwarenessMemory`: its domain, never its state."""

    adapter: Part
    """An adapter, or the class of one that takes no arguments: adapters keep nothing."""
    perception: Part | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    dynamics: dict[str, Any] = Field(default_factory=dict)
    archive: Part | None = None
    budget: int = 500


class AwarenessMemory(NamedComponent, Memory, Component[AwarenessMemoryConfig]):
    """The situation, as AutoGen's `Memory`, e.g. `AssistantAgent(..., memory=[...])`.

    It is one user message in the model's context, right before the last request, delimited and
    labelled as data. The next turn's takes its place; there is never a second one, nor a system
    message. What is added brings it up to date. `state` is all that it knows: to continue, keep
    it and give it to another one. Its component holds the domain, not the state.

    Args:
        adapter: The domain; None for talk (`ConversationAdapter`).
        perception: Reads texts that are added. None gives the adapter a text as a message that
            nobody has analysed.
        budget: Tokens (estimated) of the situation.
        clock: Gives the time of each step.
        embedder: Recognises names by meaning; None recognises them by their form only. A
            component does not hold it.
        settings: How names are recognised and how much is kept.
        dynamics: How the state changes by itself, e.g. `DynamicsSettings.all_on()`; None for not
            at all: the state then grows with all that is added.
        archive: Where goals and things that left are stored, until they are mentioned again; None
            loses them.
        state: The state to continue from; None for a new one.

    Raises:
        ValueError: The budget is less than 1.
        AwarenessError: The state is of another domain than the adapter's.
    """

    component_config_schema = AwarenessMemoryConfig
    component_provider_override = "coag.compat.awareness.AwarenessMemory"

    def __init__(  # noqa: PLR0913 - what the engine takes, and how texts are read
        self,
        adapter: Adapter | None = None,
        *,
        perception: Perception | None = None,
        budget: int = 500,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        settings: EngineSettings | None = None,
        dynamics: DynamicsSettings | None = None,
        archive: Archive | None = None,
        state: AwarenessState | None = None,
    ) -> None:
        if budget < 1:
            raise ValueError(f"budget is in tokens and at least 1, not {budget!r}.")
        self._adapter = adapter or ConversationAdapter()
        self._perception = perception
        self._budget = budget
        self._settings = settings or EngineSettings()
        self._dynamics = dynamics or DynamicsSettings()
        self._archive = archive
        self._make_engine = partial(
            DynamicEngine,
            self._adapter,
            self._dynamics,
            archive=archive,
            clock=clock,
            embedder=embedder,
            settings=self._settings,
        )
        self._engine = self._make_engine(state=state)

    @property
    def state(self) -> AwarenessState:
        """The situation now."""
        return self._engine.state

    async def add(
        self, content: MemoryContent, cancellation_token: CancellationToken | None = None
    ) -> None:
        """Brings the situation up to date.

        JSON is what the adapter takes, e.g. a message's analysis; a text or Markdown text is read
        by the perception.

        Args:
            content: What happened.
            cancellation_token: Ends the waiting for the perception.

        Raises:
            ValueError: It is neither text, Markdown nor an object of JSON.
            AwarenessError: The domain cannot read it, or it names what does not exist. The state
                is as it was.
            RecordStoreError: The archive cannot be reached. The state is as it was.
        """
        raw = _object_of(content)
        if raw is None:
            raw = {"message": text_of(content)}
            if self._perception is not None:
                reading = self._perception.perceive(text_of(content), self.state)
                raw = await cancellable(reading, cancellation_token)
        await self.take(raw)

    async def take(self, raw: Mapping[str, object]) -> None:
        """Brings the situation up to date with what the adapter takes.

        Raises:
            AwarenessError: The domain cannot read it. The state is as it was.
            RecordStoreError: The archive cannot be reached. The state is as it was.
        """
        await self._engine.take(raw)

    async def query(
        self,
        query: str | MemoryContent = "",
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """The situation as one text, whatever the query; nothing where there is nothing to say.

        Raises:
            TypeError: Further arguments were given; there are none.
        """
        del query, cancellation_token
        if kwargs:
            raise TypeError(f"query takes no further arguments, not {sorted(kwargs)}.")
        text = self._engine.inject(self._budget)
        if not text:
            return MemoryQueryResult(results=[])
        metadata = {"step": self.state.step, "domain": self.state.domain}
        content = MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=metadata)
        return MemoryQueryResult(results=[content])

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Puts the situation into the context, in place of the last one."""
        found = await self.query()
        text = "\n".join(str(one.content) for one in found.results)
        await SITUATION.show(model_context, text)
        return UpdateContextResult(memories=found)

    async def clear(self) -> None:
        """Forgets the situation."""
        self._engine = self._make_engine()

    async def close(self) -> None:
        """Holds nothing that must be closed."""

    def _to_config(self) -> AwarenessMemoryConfig:
        seen_by, adapter = self._perception, type(self._adapter)
        configured = is_dataclass(adapter) or signature(adapter).parameters
        return AwarenessMemoryConfig(
            adapter=part_of(self._adapter if configured else adapter, "adapter="),
            perception=None if seen_by is None else part_of(seen_by, "perception="),
            settings=self._settings.model_dump(mode="json", exclude_defaults=True),
            dynamics=self._dynamics.model_dump(mode="json", exclude_defaults=True),
            archive=None if self._archive is None else part_of(self._archive, "archive="),
            budget=self._budget,
        )

    @classmethod
    def _from_config(cls, config: AwarenessMemoryConfig) -> Self:
        adapter = get_part(config.adapter)
        return cls(
            adapter() if isinstance(adapter, type) else adapter,
            perception=None if config.perception is None else get_part(config.perception),
            settings=EngineSettings.model_validate(config.settings),
            dynamics=DynamicsSettings.model_validate(config.dynamics),
            archive=None if config.archive is None else get_part(config.archive),
            budget=config.budget,
        )


def _object_of(content: MemoryContent) -> Mapping[str, object] | None:
    if content.mime_type not in (MemoryMimeType.JSON, MemoryMimeType.JSON.value):
        return None
    value: object = content.content
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"The content says it is JSON, and is not: {error}.") from error
    if not isinstance(value, Mapping):
        raise ValueError(f"JSON that is added must be an object, not a {type(value).__name__}.")
    return cast("Mapping[str, object]", value)
