"""How to open a long-term memory again."""

from __future__ import annotations

from coag.schema import Imported, SystemClock, Value
from coag.store import StoreConfig

from ._long_term import LongTermMemory


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
        )

    def open(self) -> LongTermMemory:
        """The memory; nothing is read or reached until its first use.

        Raises:
            ConfigurationError: Something that it names does not exist.
        """
        return LongTermMemory(
            self.store.open(),
            scope=self.scope,
            clock=None if self.clock is None else self.clock.get(),
            sources=[source.get() for source in self.sources],
            source_timeout=self.source_timeout,
        )
