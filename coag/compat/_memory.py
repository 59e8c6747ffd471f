"""Our long-term memory for stock AutoGen agents."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Self, cast

from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.memory import (
    Memory,
    MemoryContent,
    MemoryQueryResult,
    UpdateContextResult,
)
from autogen_core.model_context import ChatCompletionContext
from pydantic import BaseModel

from coag.errors import RecordStoreError
from coag.memory import LongTermMemory, LongTermMemoryConfig, Recall
from coag.schema import (
    MemoryKind,
    Provenance,
    RecalledRecord,
    Trust,
    estimate_tokens,
    provider_name,
)
from coag.store import short_id

from ._cancellable import cancellable
from ._memory_block import RECALLED, last_request
from ._memory_content import (
    fact_of,
    lacking_of_fact,
    metadata_for,
    metadata_from,
    text_of,
    value_of,
)

_LOG = logging.getLogger(__name__)
_QUOTED = 60
"""Characters of a content that a warning quotes."""
_NO_FACT = (
    "Kept %r as a text, not as a fact: its metadata lack %s. Give 'subject', 'attribute' and "
    "'value', each in words, to have it take the place of what it contradicts."
)


class AutoGenMemoryConfig(BaseModel):
    """The declarative form of an `AutoGenMemory`: where it rests, never what it holds."""

    memory: LongTermMemoryConfig
    kind: MemoryKind = MemoryKind.SEMANTIC
    """Which memory `add` writes to."""
    k: int = 5
    """Records recalled at most."""
    min_score: float | None = None
    """None for the embedder's own minimum."""
    budget: int = 800
    """Tokens of a prompt that recalled records may take."""
    trust: Trust = Trust.UNTRUSTED
    """How far what `add` writes is trusted, unless a call says otherwise."""


class AutoGenMemory(Memory, Component[AutoGenMemoryConfig]):
    """A `LongTermMemory` as AutoGen's `Memory`, e.g. `AssistantAgent(..., memory=[...])`.

    What is recalled for the last request stands in the model's context as one user message,
    delimited and labelled as data. The next turn's takes its place; there is never a second
    one, nor a system message. Its component tells where the memory rests, not what it holds:
    one in RAM is loaded empty.

    Args:
        memory: Where things are remembered; closed by `close`.
        kind: Which memory `add` writes to; both are recalled from.
        k: Records recalled at most.
        min_score: Less similar records are left out; None for the embedder's own minimum.
        budget: Tokens (estimated) of a prompt that recalled records may take.
        trust: How far what `add` writes is trusted, unless a call says otherwise. It is yours to
            say, as you know where contents come from; metadata never say it.

    Raises:
        ValueError: If `k` or `budget` is less than 1.
    """

    component_config_schema = AutoGenMemoryConfig
    component_provider_override = "coag.compat.AutoGenMemory"

    def __init__(
        self,
        memory: LongTermMemory,
        *,
        kind: MemoryKind = MemoryKind.SEMANTIC,
        k: int = 5,
        min_score: float | None = None,
        budget: int = 800,
        trust: Trust = Trust.UNTRUSTED,
    ) -> None:
        if k < 1 or budget < 1:
            raise ValueError(f"k and budget must be at least 1, not {k!r} and {budget!r}.")
        self._memory = memory
        self._kind = kind
        self._k = k
        self._min_score = min_score
        self._budget = budget
        self._trust = trust

    async def add(
        self,
        content: MemoryContent,
        cancellation_token: CancellationToken | None = None,
        *,
        trust: Trust | None = None,
    ) -> None:
        """Remembers a text, a Markdown text or JSON; what is known already is left as it is.

        Values of its metadata that are text, numbers or truth values can be filtered by; the
        others come back with the record. The given content is not changed.

        If its metadata tell `subject`, `attribute` and `value` in words, it is a fact, which
        takes the place of an earlier one that says another value (semantic memory only). If they
        tell only some of these, it is kept as a text, and a warning says what is missing.

        Args:
            content: What to remember.
            cancellation_token: Ends the waiting.
            trust: How far this content is trusted; None for what the memory was given.

        Raises:
            ValueError: It is of another type, empty, or its metadata is no JSON.
            RecordStoreError: The store cannot be reached or refuses.
        """
        text = text_of(content)
        fact = fact_of(content) if self._kind is MemoryKind.SEMANTIC else None
        adding = self._memory.remember(
            self._kind,
            text,
            provenance=Provenance(
                run="",
                activity="",
                cycle=0,
                source=type(self).__name__,
                source_kind="memory",
                trust=self._trust if trust is None else trust,
            ),
            metadata=metadata_for(content),
            fact=fact,
        )
        await cancellable(adding, cancellation_token)
        if self._kind is MemoryKind.SEMANTIC and (lacking := lacking_of_fact(content)):
            _LOG.warning(_NO_FACT, text[:_QUOTED], " and ".join(lacking))

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """What is most similar to a query, best first.

        The metadata of each result also tells its `score`, `id`, `kind`, `trust` and `scope`;
        the parts of the score as `why`, and as `contradicts` the ids of the other results that
        say otherwise, where there are such.

        Raises:
            RecordStoreError: No memory could be asked.
            TypeError: Further arguments were given; there are none.
        """
        if kwargs:
            raise TypeError(f"query takes no further arguments, not {sorted(kwargs)}.")
        text = query if isinstance(query, str) else text_of(query)
        recalling = self._memory.recall(text, k=self._k, min_score=self._min_score)
        recall = await cancellable(recalling, cancellation_token)
        if recall.problems and not recall.records:
            raise RecordStoreError(" ".join(recall.problems))
        for problem in recall.problems:
            _LOG.warning("Recalled without one memory: %s", problem)
        return MemoryQueryResult(results=[_content(hit, recall) for hit in recall.records])

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Puts what is recalled for the last request into the context, in place of the last.

        Raises:
            RecordStoreError: No memory could be asked.
        """
        request = last_request(await model_context.get_messages())
        found = await self.query(request) if request else MemoryQueryResult(results=[])
        shown = MemoryQueryResult(results=_within(found.results, self._budget))
        lines = [f"- {_line(result)}" for result in shown.results]
        await RECALLED.show(model_context, "\n".join(lines))
        return UpdateContextResult(memories=shown)

    async def clear(self) -> None:
        """Forgets everything of the memory's scope, for good; other scopes stay.

        Raises:
            RecordStoreError: The store cannot be reached.
        """
        await self._memory.forget()

    async def close(self) -> None:
        """Closes the memory; closing twice does no harm."""
        await self._memory.close()

    def dump_component(self) -> ComponentModel:
        """The component of this very class.

        Raises:
            ConfigurationError: The store's address holds a secret, or a part cannot be imported.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    def _to_config(self) -> AutoGenMemoryConfig:
        return AutoGenMemoryConfig(
            memory=LongTermMemoryConfig.of(self._memory),
            kind=self._kind,
            k=self._k,
            min_score=self._min_score,
            budget=self._budget,
            trust=self._trust,
        )

    @classmethod
    def _from_config(cls, config: AutoGenMemoryConfig) -> Self:
        return cls(
            config.memory.open(),
            kind=config.kind,
            k=config.k,
            min_score=config.min_score,
            budget=config.budget,
            trust=config.trust,
        )


def _content(hit: RecalledRecord, recall: Recall) -> MemoryContent:
    record = hit.record
    mime_type, metadata = metadata_from(record.metadata)
    metadata |= {
        "score": hit.score,
        "id": record.id,
        "kind": record.kind.value,
        "trust": record.provenance.trust.value,
        "scope": record.scope,
    }
    if hit.why is not None:
        metadata["why"] = hit.why.model_dump()
    metadata.pop("contradicts", None)  # what somebody wrote under the name that tells it
    against = [one for pair in recall.contradictions if record.id in pair for one in pair]
    if against:
        metadata["contradicts"] = sorted(set(against) - {record.id})
    content = value_of(record.text, mime_type)
    return MemoryContent(content=content, mime_type=mime_type, metadata=metadata)


def _line(result: MemoryContent) -> str:
    if isinstance(result.content, Mapping):
        text = json.dumps(result.content, ensure_ascii=False)
    else:
        text = str(cast("object", result.content))
    told = result.metadata or {}
    if not told.get("contradicts"):
        return text
    others = " and ".join(map(short_id, told["contradicts"]))
    return f"[id {short_id(told['id'])}, contradicts {others}] {text}"


def _within(results: list[MemoryContent], budget: int) -> list[MemoryContent]:
    """The first results that fit; the very first one always."""
    kept: list[MemoryContent] = []
    used = 0
    for result in results:
        used += estimate_tokens(_line(result)) + 1
        if kept and used > budget:
            break
        kept.append(result)
    return kept
