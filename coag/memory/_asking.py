"""Further memories that recall asks besides the agent's own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from coag.schema import RecalledRecord

from ._results import Recall


class RecallSource(Protocol):
    """A further memory that recall asks, e.g. somebody's AutoGen memory behind an adapter."""

    name: str

    async def recall(self, query: str, k: int) -> Sequence[RecalledRecord]:
        """At most k records for a query; it may raise, which does not break the recall."""
        ...


MOST = 1_000
"""Records of a source that is no search which are taken, beside those that were searched for."""


def is_whole(source: RecallSource) -> bool:
    """Whether all that a source has counts, however much is searched for (`whole = True`)."""
    return bool(getattr(source, "whole", False))


async def asked(source: RecallSource, query: str, k: int, *, seconds: float) -> Recall:
    """What a further memory answers; one that fails or takes too long is a problem.

    Args:
        source: Whom to ask.
        query: What to look for.
        k: At most so many records.
        seconds: How long it may take.
    """
    try:
        async with asyncio.timeout(seconds):
            return Recall(records=tuple(await source.recall(query, k))[:k])
    except TimeoutError:
        return Recall(problems=(f"{source.name}: no answer within {seconds:g} s.",))
    # A source is somebody else's code and may raise anything; what it raised is handed to
    # the caller, who writes it to the trace.
    except Exception as error:
        return Recall(problems=(f"{source.name}: {error!r}",))
