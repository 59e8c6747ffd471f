"""One run of a folder of logs, as far as it is known; what fails with it fails for it alone."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta

from coag.errors import CoagError
from coag.inspector.views import RunCard, Trouble
from coag.tracing import RunInfo

from ._card import card_of
from ._folders import Found, info_of, key_of
from ._tally import Tally

_LOG = logging.getLogger(__name__)
_DAY = 86_400
_WHY = 200
"""Characters of an error that a card tells."""
LOG_FAULTS = (
    CoagError,
    OSError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    RecursionError,
)
"""What reading a log may end in, whatever it holds: one run's fault is not the others'."""


@dataclass(slots=True)
class Shelf:
    """One run, as far as it is known."""

    found: Found
    info: RunInfo | None
    """None where its `run.json` cannot be read."""
    trouble: Trouble | None
    tally: Tally
    name: str
    """Its id, or what stands for it; the one known before while `run.json` is half written."""
    key: str = ""
    failed: bool = False
    """True if it could not be counted, for a reason nobody thought of: it is left alone."""
    _card: RunCard | None = field(default=None)

    @classmethod
    def of(cls, found: Found, before: Shelf | None) -> Shelf:
        """What is known of a folder, now that its `run.json` is another one.

        Args:
            found: The folder.
            before: What was known of it.
        """
        info, trouble = info_of(found)
        tally = before.tally if before else Tally(found.folder.trace_path)
        name = before.name if before and info is None else key_of(found, info)
        return cls(found, info, trouble, tally, name, failed=before is not None and before.failed)

    @property
    def id(self) -> str:
        """The run's id; empty where it is not known."""
        return self.info.id if self.info else ""

    @property
    def newest(self) -> float:
        """When it began, to sort by; no time that can be written fails."""
        if self.info is None:
            return 0.0
        at = self.info.started_at
        seconds = at.hour * 3600 + at.minute * 60 + at.second + at.microsecond / 1e6
        return at.toordinal() * _DAY + seconds - (at.utcoffset() or timedelta()).total_seconds()

    def rename(self, key: str) -> None:
        """Gives it the key by which it is known from now on."""
        if key != self.key:
            self.key, self._card = key, None

    @property
    def card(self) -> RunCard:
        """Its card; one with a trouble where none can be made of what its files say."""
        if self._card is None:
            self._card = self._made()
        return self._card

    def _made(self) -> RunCard:
        name = self.found.name
        try:
            return card_of(self.key, name, self.info, self.tally.totals, self.trouble)
        except LOG_FAULTS as error:  # the other runs are to be shown
            why = f"{type(error).__name__}: {str(error)[:_WHY]}"
            trouble = Trouble(text=f"What this run says cannot be told ({why}).", grave=True)
            return card_of(self.key, name, None, None, trouble)

    @property
    def is_due(self) -> bool:
        """True if there is something to count."""
        return self.info is not None and not self.failed and self.tally.is_due

    def count_on(self) -> None:
        """Counts a piece more of its trace."""
        try:
            self.tally.advance()
        except LOG_FAULTS:  # the other runs are to be counted
            self.failed = True
            _LOG.exception("The run in %r cannot be counted and is left out", self.found.name)

    def counted(self) -> None:
        """Lets its card be made anew, from what was counted."""
        self._card = None
