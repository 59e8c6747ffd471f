"""The memory and the procedures that an agent's arguments name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from autogen_core.memory import ListMemory, Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage

from coag.errors import ConfigurationError
from coag.memory import (
    LTM_FOLDER,
    PROCEDURES_FILE,
    GateSettings,
    LongTermMemory,
    ProceduralMemory,
    Procedure,
    seed_procedures,
)
from coag.schema import Clock, MemoryKind, Provenance, RecalledRecord, Record, Trust, record_id
from coag.store import StoreConfig, holds_records, open_store

from .arguments import MemoryArgument

IN_RAM = ":memory:"
"""Names a memory that lasts as long as the agent, as in SQLite."""
UNSCORED = 0.5
"""Score of what an AutoGen memory brings without a score of its own."""


class AutoGenRecall:
    """An AutoGen memory as a further source of recall; nothing is written to it.

    Args:
        memory: Any AutoGen `Memory`.
        scope: Whose recall it serves.
        clock: Dates what it brings: AutoGen's memories keep no times.
    """

    def __init__(self, memory: Memory, *, scope: str, clock: Clock) -> None:
        self._memory = memory
        self._scope = scope
        self._clock = clock
        self.name = type(memory).__name__
        self.whole = isinstance(memory, ListMemory)
        """A list is no search: all of it counts, as far as the prompt has room."""

    async def recall(self, query: str, k: int) -> list[RecalledRecord]:
        """What the memory finds for the query, as untrusted records.

        A memory whose query finds nothing may work in `update_context`, as AssistantAgent calls it:
        what it adds to a context that holds the query counts as found.
        """
        result = (await self._memory.query(query)).results or await self._added(query)
        texts = [content for content in result if str(content.content).strip()]
        return [self._record(content) for content in texts[:k]]

    async def _added(self, query: str) -> list[MemoryContent]:
        query_message = UserMessage(content=query, source="user")
        context = UnboundedChatCompletionContext(initial_messages=[query_message])
        await self._memory.update_context(context)
        messages = [one for one in await context.get_messages() if one != query_message]
        return [
            MemoryContent(content=one.content, mime_type=MemoryMimeType.TEXT)
            for one in messages
            if isinstance(one.content, str)
        ]

    def _record(self, content: MemoryContent) -> RecalledRecord:
        text = str(content.content)
        score = (content.metadata or {}).get("score", UNSCORED)
        provenance = Provenance(
            run="",
            activity="",
            cycle=0,
            source=self.name,
            source_kind="memory",
            trust=Trust.UNTRUSTED,
        )
        record = Record(
            id=record_id(MemoryKind.SEMANTIC, self._scope, text),
            kind=MemoryKind.SEMANTIC,
            text=text,
            scope=self._scope,
            created_at=self._clock.now(),
            provenance=provenance,
        )
        return RecalledRecord(record=record, score=min(1.0, max(0.0, float(score))))


def owns_memory(given: MemoryArgument | None) -> bool:
    """Whether the agent opened its memory itself, and so closes it."""
    return not isinstance(given, LongTermMemory)


def offers_memory(given: MemoryArgument | None) -> bool:
    """Whether the agent is offered actions that write to its memory: where it was given one.

    AutoGen memories are read only, and a memory that lasts no longer than the agent is worth no
    tools in every request.
    """
    return isinstance(given, str | Path | LongTermMemory)


def memory_location(memory: LongTermMemory | None) -> str | None:
    """Where a memory is, without what may be a secret; None for RAM and foreign stores."""
    if memory is None:
        return None
    try:
        return StoreConfig.of(memory.store).location
    except ConfigurationError:  # a store of somebody else's, or an address with a secret
        return None


def open_memory(given: MemoryArgument | None, *, scope: str, clock: Clock) -> LongTermMemory:
    """The long-term memory that an agent's argument names.

    Raises:
        ConfigurationError: It is nothing that can be a memory.
    """
    if isinstance(given, str) and not given.strip():
        raise ConfigurationError(
            f"memory={given!r} names no folder. Give a folder or a URL, or None for a memory that "
            "lasts as long as the agent."
        )
    if isinstance(given, LongTermMemory):
        return given
    if given is None or given == IN_RAM:
        return LongTermMemory(open_store(None), scope=scope, clock=clock)
    if isinstance(given, Path) or (isinstance(given, str) and "://" not in given):
        return LongTermMemory(open_store(_records_in(Path(given))), scope=scope, clock=clock)
    if isinstance(given, str):
        return LongTermMemory(open_store(given), scope=scope, clock=clock)
    if isinstance(given, Memory):
        raise TypeError(f"memory= takes a list of AutoGen memories: memory=[{given!r}].")
    memories: Sequence[Memory] = list(given)
    for memory in memories:
        if not isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
            raise ConfigurationError(
                f"memory= takes a folder, a URL, a LongTermMemory or AutoGen memories, "
                f"not {memory!r}."
            )
    sources = [AutoGenRecall(memory, scope=scope, clock=clock) for memory in memories]
    return LongTermMemory(open_store(None), scope=scope, clock=clock, sources=sources)


def _records_in(folder: Path) -> Path:
    """Where the records of an agent's folder are: in it, if it is a store already."""
    below = folder / LTM_FOLDER
    return folder if holds_records(folder) and not holds_records(below) else below


def open_procedures(
    given: MemoryArgument | None,
    own: Mapping[str, Procedure],
    clock: Clock,
    gate: GateSettings | None,
) -> ProceduralMemory:
    """The procedures, kept beside the long-term memory where that is a folder."""
    path: Path | None = None
    if isinstance(given, Path) or (
        isinstance(given, str) and "://" not in given and given != IN_RAM
    ):
        path = Path(given) / PROCEDURES_FILE
    return ProceduralMemory({**seed_procedures(), **own}, path=path, gate=gate, clock=clock)
