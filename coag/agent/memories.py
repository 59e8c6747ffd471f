"""The memory and the procedures that an agent's arguments name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from autogen_core.memory import ListMemory, Memory
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import UserMessage

from coag.errors import ConfigurationError
from coag.memory import (
    PROCEDURES_FILE,
    GateSettings,
    LongTermMemory,
    MemoryDynamicsModule,
    ProceduralMemory,
    Procedure,
    seed_procedures,
)
from coag.memory.dynamics import DYNAMICS_FILE, MemoryDynamics, MemoryDynamicsSettings, Preset
from coag.schema import (
    Clock,
    CognitiveModule,
    MemoryKind,
    Provenance,
    RecalledRecord,
    Record,
    Trust,
    record_id,
)
from coag.store import LTM_FOLDER, InMemoryStore, StoreConfig, holds_records, open_store

from .arguments import MemoryArgument

IN_RAM = ":memory:"
"""Names a memory that lasts as long as the agent, as in SQLite."""
UNSCORED = 0.5
"""Score of what an AutoGen memory brings without a score of its own."""


class AutoGenRecall:
    """An AutoGen memory as a further source of recall; nothing is written to it."""

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
        results = (await self._memory.query(query)).results
        found = [(str(one.content), (one.metadata or {}).get("score", UNSCORED)) for one in results]
        if not found:
            message = UserMessage(content=query, source="user")
            context = UnboundedChatCompletionContext(initial_messages=[message])
            await self._memory.update_context(context)
            added = [one.content for one in await context.get_messages() if one != message]
            found = [(text, UNSCORED) for text in added if isinstance(text, str)]
        filled = [(text, score) for text, score in found if text.strip()]
        return [self._record(text, score) for text, score in filled[:k]]

    def _record(self, text: str, score: float) -> RecalledRecord:
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


def offers_memory(memory: MemoryArgument | None) -> bool:
    """Whether the agent is offered actions that write to its memory: where it was given one.

    AutoGen memories are read only, and a memory that lasts no longer than the agent is worth no
    tools in every request.
    """
    return isinstance(memory, str | Path | LongTermMemory)


def memory_location(memory: LongTermMemory | None) -> str | None:
    """Where a memory is, without what may be a secret; None for RAM and foreign stores."""
    if memory is None:
        return None
    try:
        return StoreConfig.of(memory.store).location
    except ConfigurationError:  # a store of somebody else's, or an address with a secret
        return None


def open_memory(
    given: MemoryArgument | None,
    *,
    scope: str,
    clock: Clock,
    dynamics: Preset | MemoryDynamicsSettings | None = None,
) -> LongTermMemory:
    """The long-term memory that an agent's arguments name; refuses what does not go together."""
    folder = folder_of(given)
    if isinstance(given, LongTermMemory):
        _refuse_dynamics(dynamics, "a LongTermMemory")
        return given
    if isinstance(given, Memory):
        raise TypeError(f"memory= takes a list of AutoGen memories: memory=[{given!r}].")
    where = None if folder is None else _records_in(folder)
    sources: list[AutoGenRecall] = []
    if isinstance(given, str) and folder is None and given != IN_RAM:
        _refuse_dynamics(dynamics, f"{given!r}")
        where = given
    elif isinstance(given, Sequence) and not isinstance(given, str):
        for memory in given:
            if not isinstance(memory, Memory):  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
                takes = "memory= takes a folder, a URL, a LongTermMemory or AutoGen memories"
                raise ConfigurationError(f"{takes}, not {memory!r}.")
            sources.append(AutoGenRecall(memory, scope=scope, clock=clock))
    changing = None
    if dynamics is not None:
        path = None if folder is None else folder / DYNAMICS_FILE
        changing = MemoryDynamics(dynamics, path=path, owner=scope)
    return LongTermMemory(
        open_store(where), scope=scope, clock=clock, sources=sources, dynamics=changing
    )


def _refuse_dynamics(dynamics: object, memory: str) -> None:
    if dynamics is not None:
        raise ConfigurationError(
            f"memory_dynamics={dynamics!r} is for a memory in a folder or in RAM, not for "
            f"{memory}. Give LongTermMemory(..., dynamics=MemoryDynamics(..., path=...))."
        )


def modules_of(
    memory: LongTermMemory,
    given: Sequence[CognitiveModule] = (),
    narrowed: Callable[[LongTermMemory], LongTermMemory] = lambda memory: memory,
) -> tuple[CognitiveModule, ...]:
    """The modules that a memory brings: that of its dynamics, unless there is one already."""
    if memory.dynamics is None or not memory.dynamics.acts:
        return ()
    if any(isinstance(one, MemoryDynamicsModule) for one in given):
        return ()
    return (MemoryDynamicsModule(memory, narrowed=narrowed),)


def modules_apart(
    memory: LongTermMemory, given: Sequence[CognitiveModule]
) -> tuple[CognitiveModule, ...]:
    """The same modules for a replay: they know and write nothing of this memory."""
    if memory.dynamics is None:
        return ()
    apart = LongTermMemory(InMemoryStore(), scope=memory.scope, dynamics=memory.dynamics.apart())
    return modules_of(apart, given)


def folder_of(memory: MemoryArgument | None) -> Path | None:
    """The folder that an argument names; None for an address, RAM, or a memory itself."""
    if isinstance(memory, Path):
        return memory
    if not isinstance(memory, str) or "://" in memory or memory == IN_RAM:
        return None
    if memory.strip():
        return Path(memory)
    named = f"memory={memory!r} names no folder"
    raise ConfigurationError(f"{named}. Give a folder or a URL, or None for a memory in RAM.")


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
    folder = folder_of(given)
    path = None if folder is None else folder / PROCEDURES_FILE
    return ProceduralMemory({**seed_procedures(), **own}, path=path, gate=gate, clock=clock)
