"""How large the models' windows are: known, told by a server, or assumed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.messages import BaseChatMessage

from coag.context import CoagContext
from coag.cycle import Deps
from coag.errors import WindowTooSmallError
from coag.models import Asker, asked_window, can_be_asked, window_of
from coag.schema import estimate_tokens

INSTRUCTIONS = 100
"""Tokens that procedures and rules take at least."""


def known_window(askers: Sequence[Asker]) -> int | None:
    """The smallest window of the models that is known; None if none is."""
    sizes = [window_of(asker.client) for asker in askers]
    return min((size for size in sizes if size is not None), default=None)


async def check_fits(
    messages: Sequence[BaseChatMessage], context: CoagContext[Any], deps: Deps
) -> None:
    """Refuses a task that the model's window cannot hold, before anything of it is taken in.

    Where the window is only assumed, the task is sent whole, with a warning.

    Raises:
        WindowTooSmallError: The task, the system message and the tools take more than they may.
    """
    limits = context.working_memory.limits
    task = next((text for one in messages if (text := one.to_model_text())), "")
    if context.working_memory.goal_open or len(task) < limits.prompt:  # a quarter, at most
        return
    specs = (await deps.actions.specs()).values()
    parts = {
        "system message and instructions": estimate_tokens(deps.system_message) + INSTRUCTIONS,
        "tools": sum(estimate_tokens(spec.model_dump_json()) for spec in specs),
        "goal": estimate_tokens(task),
    }
    if sum(parts.values()) <= limits.prompt:
        return
    if limits.known:
        raise WindowTooSmallError(parts, limits.prompt, limits.window)
    warnings.warn(
        f"The task has about {parts['goal']:,} tokens. It is sent whole, and nobody told the "
        f"model's window, which is taken to be {limits.window:,} tokens. Say it: "
        "model_context=CoagContext(budgets=Budgets(window=...)).",
        stacklevel=2,
    )


class ModelWindow:
    """Asks servers, once and before the first turn, what nobody has told.

    Args:
        askers: The agent's models.
    """

    def __init__(self, askers: Sequence[Asker]) -> None:
        self._askers = tuple(askers)
        self._asked = False

    async def learn(self, context: CoagContext[Any]) -> str:
        """Fits the context to what servers tell, unless its limits are known or in use.

        Working memory that has been through a cycle keeps its limits: its trace says them.

        Returns:
            What is to be noted, where a server was asked and did not tell; else nothing.
        """
        if self._asked or context.working_memory.cycle or context.budgets.window is not None:
            return ""
        self._asked = True
        unknown = [one.client for one in self._askers if window_of(one.client) is None]
        told = [await asked_window(one) for one in unknown if can_be_asked(one)]
        sizes = [size for size in (known_window(self._askers), *told) if size is not None]
        if told and sizes:
            context.fit(min(sizes))
        if None not in told:
            return ""
        window = context.working_memory.limits.window
        return f"The server did not tell the model's window; it is taken to be {window:,} tokens."
