"""What left an agent's awareness: on its way to the archive, and back."""

from __future__ import annotations

from collections.abc import Sequence

from coag.awareness._observation import Observation
from coag.awareness._resolving import NameResolver
from coag.awareness.dynamics import ApartArchive, Archive, ArchivedItem, ReturnSettings, recalled
from coag.schema import Trust

from ._keeper import Kept

_WAITING = 500
"""Items that wait for an archive that fails; more push the oldest out."""


class Resting:
    """An archive that may fail or be slow without anything happening to the state.

    What it could not take waits, outside of the state, and is given again with what leaves next.

    Args:
        archive: Where items rest; None loses them.
        resolver: Recognises the names of things that are there.
        settings: When something returns.
    """

    def __init__(
        self, archive: Archive | None, resolver: NameResolver, settings: ReturnSettings
    ) -> None:
        self._whole = self.archive = archive
        self._resolver = resolver
        self._settings = settings
        self._waiting: tuple[ArchivedItem, ...] = ()

    def serve(self, scope: str | None) -> None:
        """Goes on with what rests of one person; what others' left behind is not found any more.

        What waits is lost with an archive that keeps nobody apart: it may be anybody's.

        Args:
            scope: The person's; None where one has all, empty while nobody is known.
        """
        if scope is None:
            return
        whole = self._whole
        self.archive = whole.within(scope) if isinstance(whole, ApartArchive) and scope else None
        self._waiting = ()

    def begin(self) -> None:
        """Goes on as it was made, with nobody's archive; what waits for a person's is lost."""
        if self.archive is not self._whole:
            self.archive, self._waiting = self._whole, ()

    async def returned(self, kept: Kept, seen: Observation) -> Kept:
        """What is kept, with what an observation mentions that had left it.

        Raises:
            Exception: Whatever the archive raises.
        """
        if self.archive is None:
            return kept
        state = await recalled(kept.state, seen, self.archive, self._resolver, self._settings)
        if state is kept.state:
            return kept
        return Kept(state, kept.standing.with_text_of(Trust.UNTRUSTED))

    def add(self, left: Sequence[ArchivedItem]) -> None:
        """Has these items wait."""
        if self.archive is not None:
            self._waiting = (*self._waiting, *left)[-_WAITING:]

    async def put(self) -> None:
        """Gives the archive what waits for it.

        Raises:
            Exception: Whatever the archive raises; the items wait on.
        """
        if self.archive is not None and self._waiting:
            await self.archive.put(self._waiting)
            self._waiting = ()
