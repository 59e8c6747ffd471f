"""Taking back what has faded: out of the archive, or out of hiding."""

from __future__ import annotations

from coag.errors import ConfigurationError
from coag.memory.dynamics import MemoryDynamics
from coag.memory.long_term import LongTermMemory
from coag.schema import MemoryKind, Record


async def restore(memory: LongTermMemory, *names: str) -> tuple[Record, ...]:
    """Lets records that have faded be recalled again, word for word; that counts as a use.

    A fact of which another value was stated meanwhile holds beside that one; each names the other.

    Args:
        memory: With its dynamics; it writes the scopes of what the archive has.
        names: Ids, or unique short ids.

    Returns:
        Those that had faded, as they are now.

    Raises:
        ConfigurationError: The memory has no dynamics.
        ValueError: A name is that of no record here, or its scope may not be written.
        RecordStoreError: The store or the file of the dynamics cannot be reached.
    """
    dynamics = memory.dynamics
    if dynamics is None:
        raise ConfigurationError("This memory has no dynamics: nothing in it can have faded.")
    records = [await _record(memory, name) for name in dict.fromkeys(names)]
    ids = [record.id for record in records]
    archived = dynamics.archive.has(ids)
    for record in records:
        if record.id in archived and record.scope not in memory.scopes.writable:
            raise ValueError(
                f"Record {record.id!r} is of {record.scope!r}, not to be written here."
            )
    faded = [one for one in ids if one in archived or _is_hidden(dynamics, one)]
    async with memory.writing:
        await dynamics.whole(memory.store).bring_back(archived)
        dynamics.returned([one for one in faded if one not in archived])
    return tuple(await memory.store.get(faded))


async def _record(memory: LongTermMemory, name: str) -> Record:
    """The record of an id or a short one, wherever it is."""
    for kind in MemoryKind:
        found = await memory.find(kind, name)
        if found is not None:
            return found
    raise ValueError(
        f"There is no record {name!r} here, or several have ids that begin so. Give the whole id."
    )


def _is_hidden(dynamics: MemoryDynamics, name: str) -> bool:
    state = dynamics.states.get([name]).get(name)
    return state is not None and state.faded_at is not None
