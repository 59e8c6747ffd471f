"""What tools there are: whose each id is, what it says of itself, and whether that has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from coag.errors import UnknownNameError

from .connection import ToolConnection, ToolConnectionError, ask
from .manual import Manual, parse_manual
from .records import ToolDescription
from .trust import (
    MANUAL_CHARACTERS,
    Pins,
    PinStore,
    ToolRefusedError,
    owned_tools,
    safe_description,
    safe_text,
)

_PROBLEM_CHARACTERS = 500


class ToolCatalogue:
    """The tools of all servers of an agent, each id that of one server.

    What a tool says of itself is pinned when it is first seen; one that has changed since then is
    in quarantine until a person approves.

    Args:
        connections: The servers by their names, in order.
        store: Where pins are kept.
        max_age: Seconds after which a catalogue that is asked for is read again.
    """

    def __init__(
        self, connections: Mapping[str, ToolConnection], store: PinStore, *, max_age: float
    ) -> None:
        self.stale = asyncio.Event()
        """Set where a server has said that its tools may have changed."""
        self._connections = connections
        self._pins = Pins(store)
        self._max_age = max_age
        self._tools: dict[str, tuple[str, ToolDescription]] = {}
        self._manuals: dict[str, Manual] = {}
        self._unanswered: dict[str, str] = {}
        self._refused: list[str] = []
        self._read_at: float | None = None
        self._reading = asyncio.Lock()

    # ---- What there is ----

    @property
    def problems(self) -> tuple[str, ...]:
        """Which servers did not answer, and which of their tools were refused, and why."""
        return (*self._unanswered.values(), *self._refused)

    @property
    def incomplete(self) -> bool:
        """Whether a server did not answer when it was asked last."""
        return bool(self._unanswered)

    async def tools(self) -> Mapping[str, ToolDescription]:
        """The tools that there are, by their ids; those in quarantine are left out."""
        now = asyncio.get_running_loop().time()
        if self._read_at is None or self.stale.is_set() or now - self._read_at > self._max_age:
            await self.refresh()
        return {tool: one for tool, (_, one) in self._tools.items() if not self.changed(tool)}

    def known(self, tool: str) -> ToolDescription | None:
        """What a tool declares, as it was last read; None for one that is not known."""
        return self._tools[tool][1] if tool in self._tools else None

    def server(self, tool: str) -> str | None:
        """The server of a tool: in the catalogue, or from which it was accepted before."""
        if tool in self._tools:
            return self._tools[tool][0]
        return next((name for name in self._connections if self._pins.has(name, tool)), None)

    async def check(self, tool: str) -> str:
        """The server of a tool that may be used.

        Raises:
            UnknownNameError: There is no such tool.
            ToolRefusedError: It is in quarantine.
            ToolConnectionError: Its server did not answer, or one that may have it.
        """
        if tool not in self._tools or self.stale.is_set():
            await self.refresh()
        if tool not in self._tools:
            server = self.server(tool) or next(iter(self._unanswered), None)
            if server in self._unanswered:  # it may have it
                raise ToolConnectionError(server, self._unanswered[server])
            raise UnknownNameError("tool", safe_text(tool, 100), self._tools)
        server = self._tools[tool][0]
        self._pins.check(server, tool)
        return server

    async def described(self, tool: str) -> ToolDescription:
        """What a tool that may be used declares; raises as `check` does."""
        await self.check(tool)
        return self._tools[tool][1]

    # ---- Manuals ----

    async def manual(self, tool: str) -> Manual:
        """The manual of a tool; its text may be shown as it is.

        Raises:
            UnknownNameError: There is no such tool.
            ToolRefusedError: It is in quarantine, its manual cannot be read as one, or it has
                none.
            ToolConnectionError: Its server did not answer.
        """
        server = await self.check(tool)
        if tool not in self._manuals:
            await self._read_manual(server, tool)
            self._pins.check(server, tool)
        return self._manuals[tool]

    def manual_read(self, tool: str) -> Manual | None:
        """The manual of a tool as it was last read; None if it was not, or is in quarantine."""
        return None if self.changed(tool) else self._manuals.get(tool)

    # ---- Quarantine ----

    def changed(self, tool: str) -> str | None:
        """What of a tool has changed since it was accepted; None if nothing has."""
        return self._pins.changed(self._tools[tool][0], tool) if tool in self._tools else None

    async def approve(self, tool: str) -> None:
        """Accepts a tool's description and manual as they are now.

        Raises:
            UnknownNameError: There is no such tool.
        """
        await self.refresh()
        if tool not in self._tools:
            raise UnknownNameError("tool", safe_text(tool, 100), self._tools)
        self._pins.approve(self._tools[tool][0], tool)

    # ---- Reading ----

    async def refresh(self) -> None:
        """Reads all catalogues, and the manuals that were read before."""
        async with self._reading:
            self.stale.clear()
            names = list(self._connections)
            offers = dict(zip(names, await asyncio.gather(*map(self._offer, names)), strict=True))
            owned, self._refused = owned_tools(offers, self._pins)
            for name, one in owned.values():
                self._pins.see_description(name, one)
            tools = self._tools.items()
            kept = {tool: one for tool, one in tools if offers.get(one[0], ()) is None}
            safe = {tool: (name, safe_description(one)) for tool, (name, one) in owned.items()}
            self._tools = {**kept, **safe}
            for tool in [one for one in self._manuals if one in owned]:
                with suppress(ToolConnectionError, ToolRefusedError):
                    await self._read_manual(owned[tool][0], tool)
            self._read_at = asyncio.get_running_loop().time()

    async def _offer(self, name: str) -> Sequence[ToolDescription] | None:
        self._unanswered.pop(name, None)
        try:
            return await ask(name, self._connections[name].catalogue)
        except ToolConnectionError as error:
            self._unanswered[name] = safe_text(str(error), _PROBLEM_CHARACTERS)
        return None

    async def _read_manual(self, server: str, tool: str) -> None:
        if not self._tools[tool][1].has_manual:
            raise ToolRefusedError(tool, "it has no manual; it is used without one.")
        text = await ask(server, lambda: self._connections[server].manual(tool))
        self._pins.see_manual(server, tool, text)
        if len(text) > MANUAL_CHARACTERS:
            raise ToolRefusedError(
                tool, f"its manual has {len(text):,} characters, more than {MANUAL_CHARACTERS:,}."
            )
        try:
            manual = parse_manual(safe_text(text), tool)
        except ValueError as error:
            raise ToolRefusedError(tool, safe_text(str(error), _PROBLEM_CHARACTERS)) from error
        if manual.tool != tool:
            shown = safe_text(manual.tool, 100)
            raise ToolRefusedError(tool, f"its manual is that of another tool, {shown!r}.")
        self._manuals[tool] = manual
