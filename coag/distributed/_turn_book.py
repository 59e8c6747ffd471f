"""The turns that a hosted agent knows: the running one, the last ones, and older ones by id."""

from __future__ import annotations

from collections import OrderedDict

from ._limits import Limits
from ._turn import HostedTurn
from ._wire import RemoteFailure


class TurnBook:
    """Finds turns by id, so that one which is sent again is not run again.

    Args:
        limits: How many are kept.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._turns: OrderedDict[str, HostedTurn] = OrderedDict()
        self._forgotten: OrderedDict[str, None] = OrderedDict()

    @property
    def running(self) -> HostedTurn | None:
        """The turn that the agent is in."""
        return next((turn for turn in reversed(self._turns.values()) if turn.running), None)

    def add(self, turn: HostedTurn) -> None:
        """Takes in a turn; of the oldest ones that have ended only the ids stay."""
        self._turns[turn.id] = turn
        over = len(self._turns) - self._limits.turns_kept
        for old in [turn for turn in self._turns.values() if not turn.running][: max(0, over)]:
            if old is not turn:
                del self._turns[old.id]
                self._forgotten[old.id] = None
        while len(self._forgotten) > self._limits.ids_kept:
            self._forgotten.popitem(last=False)

    def find(self, turn: str) -> HostedTurn | None:
        """The turn with its result, where it is kept."""
        return self._turns.get(turn)

    def why_unknown(self, turn: str) -> RemoteFailure | None:
        """Why a turn that is over cannot be given again; None for one never heard of."""
        if turn not in self._forgotten:
            return None
        problem = (
            f"The turn is over; the results of the last {self._limits.turns_kept} turns are kept, "
            "and it is an older one. It is not run again."
        )
        return RemoteFailure(kind="forgotten", problem=problem)
