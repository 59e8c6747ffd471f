"""What tools there are, and what each says of itself: text from outside, pinned and made safe.

The first description and manual that a server gives of a tool are accepted, and their digests
kept (trust on first use). Later ones that differ are in quarantine: neither operations nor manual
are offered until a person approves. An id belongs to one server: no other one may offer it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from coag._util.text import clip, without_unseen
from coag.errors import CoagError, UnknownNameError

from .connection import ToolConnection, ToolConnectionError, ask
from .manual import Manual, parse_manual
from .records import NAME, ToolDescription, Wire
from .store import ActivityStore

DESCRIPTION_CHARACTERS = 2_000
"""Of each text in a description."""
MANUAL_CHARACTERS = 60_000
"""Of a manual."""
TOOLS = 500
"""Tools of one server."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=\(|\[|:)")
_ID = re.compile(NAME)
WireT = TypeVar("WireT", bound=Wire)


class ToolRefusedError(CoagError):
    """A tool is not used as long as a person has not approved of it.

    Attributes:
        tool: The tool's id.
    """

    def __init__(self, tool: str, problem: str) -> None:
        self.tool = tool
        super().__init__(f"Tool {tool!r} is refused: {problem}")


# ---- Text from outside ----


def safe_text(text: str, limit: int | None = None) -> str:
    """A foreign text as it may be shown: bounded, nothing invisible in it, no HTML, no links.

    A tag has a blank behind its `<`, and a link's text one before its address.

    How many characters beyond `limit` are missing is added.
    """
    shown = without_unseen(text if limit is None else text[:limit])
    return clip(text, limit, _LINK.sub("] ", _TAG.sub("< ", shown)))


_SHOWN = ("description", "category", "version", "unit", "behavior", "preconditions", "effects")
"""Fields of a description that are shown, in it and in its parts."""


def safe_description(description: ToolDescription) -> ToolDescription:
    """A description whose texts may be shown; names and schemas stay as they are."""
    parts = {
        name: tuple(_safe(one) for one in getattr(description, name))
        for name in ("properties", "signals", "operations")
    }
    return _safe(description).model_copy(update=parts)


def _safe(part: WireT) -> WireT:
    names = [name for name in _SHOWN if name in type(part).model_fields]
    texts = {name: safe_text(getattr(part, name), DESCRIPTION_CHARACTERS) for name in names}
    return part.model_copy(update=texts)


# ---- Pins ----


def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Pins:
    """What was accepted of each tool, by digests in a store, and what differs from it now."""

    def __init__(self, store: ActivityStore) -> None:
        self._store = store
        self._seen: dict[tuple[str, str], str] = {}
        self._accepted: dict[str, dict[str, str]] = {}

    def see_description(self, server: str, description: ToolDescription) -> None:
        """Notes what a server says of a tool; the first is accepted."""
        self._see(server, description.id, _digest_of(description.model_dump_json()))

    def see_manual(self, server: str, tool: str, manual: str) -> None:
        """Notes a tool's manual; the first is accepted."""
        self._see(server, _manual(tool), _digest_of(manual))

    def has(self, server: str, tool: str) -> bool:
        """Whether this tool of this server was accepted once."""
        return tool in self._of(server)

    def changed(self, server: str, tool: str) -> str | None:
        """What of a tool has changed since it was accepted: None if nothing has."""
        pins = self._of(server)
        differs = [
            what
            for what, name in (("description", tool), ("manual", _manual(tool)))
            if (seen := self._seen.get((server, name))) and seen != pins.get(name, seen)
        ]
        return " and ".join(differs) or None

    def check(self, server: str, tool: str) -> None:
        """Refuses a tool in quarantine (`ToolRefusedError`)."""
        if differs := self.changed(server, tool):
            raise ToolRefusedError(
                tool,
                f"its {differs} changed since it was accepted from {server!r}. Neither its "
                "operations nor its manual are offered until a person has read what changed and "
                "approves.",
            )

    def approve(self, server: str, tool: str) -> None:
        """Accepts what was last seen of a tool."""
        for name in (tool, _manual(tool)):
            if seen := self._seen.get((server, name)):
                self._accept(server, name, seen)

    def _see(self, server: str, name: str, digest: str) -> None:
        self._seen[server, name] = digest
        if name not in self._of(server):
            self._accept(server, name, digest)

    def _accept(self, server: str, name: str, digest: str) -> None:
        self._store.pin(server, name, digest)
        self._of(server)[name] = digest

    def _of(self, server: str) -> dict[str, str]:
        """What was accepted of a server; read once, since it is asked for each tool and prompt."""
        if server not in self._accepted:
            self._accepted[server] = dict(self._store.pins(server))
        return self._accepted[server]


def _manual(tool: str) -> str:
    return f"{tool}/manual"


# ---- Whose tool an id names ----


def owned_tools(
    offers: Mapping[str, Sequence[ToolDescription] | None], pins: Pins
) -> tuple[dict[str, tuple[str, ToolDescription]], list[str]]:
    """For each id the one server whose tool it names, and what was refused.

    An id that several servers offer belongs to the one from which it was accepted before, else to
    the first. A server that did not answer offers None, and its tools stay its own.
    """
    owned: dict[str, tuple[str, ToolDescription]] = {}
    problems: list[str] = []
    for server, descriptions in offers.items():
        if descriptions is None:
            continue
        if len(descriptions) > TOOLS:
            problems.append(f"{server!r} offers {len(descriptions):,} tools; {TOOLS} are used.")
        for description in descriptions[:TOOLS]:
            problem = _refused(server, description, owned, offers, pins)
            if problem:
                problems.append(problem)
            else:
                owned[description.id] = (server, description)
    return owned, problems


def _refused(
    server: str,
    description: ToolDescription,
    owned: Mapping[str, tuple[str, ToolDescription]],
    offers: Mapping[str, Sequence[ToolDescription] | None],
    pins: Pins,
) -> str | None:
    tool = description.id
    shown = safe_text(tool, 60)
    if not _ID.fullmatch(tool):
        return (
            f"{server!r} offers a tool {shown!r}: an id is words of letters and digits, joined by "
            "single underscores. It is left out."
        )
    earlier = owned[tool][0] if tool in owned else None
    if earlier is None and not pins.has(server, tool):
        others = ((one, has) for one, has in offers.items() if one != server)
        still = (one for one, has in others if has is None or any(it.id == tool for it in has))
        earlier = next((one for one in still if pins.has(one, tool)), None)
    if earlier is None:
        return None
    return (
        f"{server!r} offers a tool {shown!r}, which {earlier!r} has. It is left out: an id names "
        "one tool. Give it another id, or leave one of the servers out."
    )


_PROBLEM_CHARACTERS = 500


class ToolCatalogue:
    """The tools of all servers of an agent, each id that of one server.

    Args:
        connections: The servers by their names, in order.
        store: Where pins are kept.
        max_age: Seconds after which a catalogue that is asked for is read again.
    """

    def __init__(
        self, connections: Mapping[str, ToolConnection], store: ActivityStore, *, max_age: float
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

    async def catalogue(self) -> Mapping[str, ToolDescription]:
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

        Raises as `check`, and `ToolRefusedError` for a manual that cannot be read as one.
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
        """Accepts what a tool says of itself now; `UnknownNameError` where there is none."""
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
