"""Which record is meant by an id or by the beginning of one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from coag.schema import MemoryKind
from coag.store import RecordStore, Search, short_id

_ID = re.compile(r"[0-9a-f]{8,32}")
_WHOLE = 32


async def full_id(store: RecordStore, scopes: Sequence[str], name: str) -> str:
    """The whole id that is meant; a whole id is taken as it is, whether there is such a record.

    Raises:
        ValueError: If it can be no id, or is the beginning of none or of several.
        RecordStoreError: If the store cannot be reached.
    """
    if not _ID.fullmatch(name):
        raise ValueError(
            f"{name!r} is no id of a record: that is 32 hexadecimal digits in lower case, of "
            "which the first 8 or more will do."
        )
    if len(name) == _WHOLE:
        return name
    meant: list[str] = []
    for kind in MemoryKind:
        search = Search(
            text=None,
            kind=kind,
            k=10,
            scopes=tuple(scopes),
            where={"short_id": short_id(name)},
            include_superseded=True,
        )
        hits = await store.search(search)
        meant += [hit.record.id for hit in hits if hit.record.id.startswith(name)]
    if len(meant) == 1:
        return meant[0]
    own = " or ".join(map(repr, scopes))
    found = f"fits {', '.join(meant)}" if meant else f"fits no record of {own}"
    raise ValueError(f"The short id {name!r} {found}. Give the whole id of 32 digits.")
