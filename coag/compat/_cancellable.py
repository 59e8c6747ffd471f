"""Work that an AutoGen token can cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from autogen_core import CancellationToken

ResultT = TypeVar("ResultT")


async def cancellable(
    work: Coroutine[Any, Any, ResultT], token: CancellationToken | None
) -> ResultT:
    """What the work brings; the token cancels it.

    Raises:
        CancelledError: The token was cancelled.
    """
    task = asyncio.ensure_future(work)
    if token is not None:
        token.link_future(task)
    return await task
