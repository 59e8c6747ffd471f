"""Calls that a cancellation ends with a result."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from autogen_core import CancellationToken

from ._guarded_answers import NOTHING_DONE, GuardedResult, said


async def until_cancelled(
    name: str, call: Coroutine[Any, Any, GuardedResult], token: CancellationToken | None
) -> GuardedResult:
    """The result of a call, or one that says that the token cancelled it.

    A stock agent hangs where a workbench raises. That this very task is cancelled is raised,
    after the call's end was written down.
    """
    if token is not None and token.is_cancelled():
        call.close()
        return said(name, f"{name} was cancelled before it began. {NOTHING_DONE}")
    calling = asyncio.create_task(call)
    if token is not None:
        token.link_future(calling)
    try:
        await asyncio.wait({calling})
    finally:
        if not calling.done():
            calling.cancel()
            await asyncio.wait({calling})
    if calling.cancelled():
        return said(name, f"{name} was cancelled before it ran. {NOTHING_DONE}")
    return calling.result()
