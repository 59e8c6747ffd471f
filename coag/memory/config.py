"""A long-term memory as a component."""

from __future__ import annotations

from coag.schema import Imported, SystemClock, Value
from coag.store import DEFAULT_RANKING, LTM_FOLDER, Ranking, StoreConfig

from .long_term import LongTermMemory
from .records import Scopes

# ---- Where an agent's memory lies within the folder that it was given ----


PROCEDURES_FILE = "procedures.json"
"""The procedures, with all their versions."""

__all__ = ["LTM_FOLDER", "PROCEDURES_FILE"]


# ---- How to open a long-term memory again ----


class LongTermMemoryConfig(Value):
    """The declarative form of a `LongTermMemory`: where it rests, never what it holds."""

    scope: str
    """Whose memory it is."""
    store: StoreConfig = StoreConfig()
    clock: Imported | None = None
    """None for the machine's clock."""
    sources: tuple[Imported, ...] = ()
    """Further memories that recall asks."""
    source_timeout: float = 10.0
    """Seconds after which a further memory is left out."""
    reads: tuple[str, ...] = ()
    """Further scopes that it reads."""
    writes: tuple[str, ...] = ()
    """Further scopes that it reads and, where a call names one, writes."""
    ranking: Ranking | None = DEFAULT_RANKING
    """What counts when records are recalled; None for the similarity of meaning alone."""

    @classmethod
    def of(cls, memory: LongTermMemory) -> LongTermMemoryConfig:
        """How to open a memory again; what one in RAM holds is not part of it.

        Raises:
            ConfigurationError: Its store, clock or a source cannot be written down.
        """
        machine = type(memory.clock) is SystemClock
        return cls(
            scope=memory.scope,
            store=StoreConfig.of(memory.store),
            clock=None if machine else Imported.of(memory.clock),
            sources=tuple(Imported.of(source) for source in memory.sources),
            source_timeout=memory.source_timeout,
            reads=memory.scopes.reads,
            writes=memory.scopes.writes,
            ranking=memory.ranking,
        )

    def open(self) -> LongTermMemory:
        """The memory; nothing is read or reached until its first use.

        Raises:
            ConfigurationError: Something that it names does not exist.
        """
        return LongTermMemory(
            self.store.open(),
            scope=Scopes(own=self.scope, reads=self.reads, writes=self.writes),
            clock=None if self.clock is None else self.clock.get(),
            sources=[source.get() for source in self.sources],
            source_timeout=self.source_timeout,
            ranking=self.ranking,
        )
