"""What a tool says of itself is text from outside: pinned, bounded, and without what acts.

The first description and manual that a server gives of a tool are accepted, and their digests
kept (trust on first use). Later ones that differ are in quarantine: neither operations nor manual
are offered until a person approves. An id belongs to one server: no other one may offer it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from coag._util.text import clip, without_unseen
from coag.errors import CoagError

from .records import NAME, ToolDescription

DESCRIPTION_CHARACTERS = 2_000
"""Of each text in a description."""
MANUAL_CHARACTERS = 60_000
"""Of a manual."""
TOOLS = 500
"""Tools of one server."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_LINK = re.compile(r"\](?=\(|\[|:)")
_ID = re.compile(NAME)
_SHOWN = 60


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

    Args:
        text: Any text.
        limit: Characters kept; how many are missing is added.
    """
    shown = without_unseen(text if limit is None else text[:limit])
    return clip(text, limit, _LINK.sub("] ", _TAG.sub("< ", shown)))


def safe_description(description: ToolDescription) -> ToolDescription:
    """A description whose texts may be shown; names and schemas stay as they are."""

    def safe(text: str) -> str:
        return safe_text(text, DESCRIPTION_CHARACTERS)

    return description.model_copy(
        update={
            "description": safe(description.description),
            "category": safe(description.category),
            "version": safe(description.version),
            "properties": tuple(
                one.model_copy(
                    update={"description": safe(one.description), "unit": safe(one.unit)}
                )
                for one in description.properties
            ),
            "signals": tuple(
                one.model_copy(update={"description": safe(one.description)})
                for one in description.signals
            ),
            "operations": tuple(
                one.model_copy(
                    update={
                        name: safe(getattr(one, name))
                        for name in ("description", "behavior", "preconditions", "effects")
                    }
                )
                for one in description.operations
            ),
        }
    )


# ---- Pins ----


class PinStore(Protocol):
    """Where pins are kept: an `ActivityStore`."""

    def pins(self, server: str) -> Mapping[str, str]:
        """The accepted digest of each thing of a server, by its name."""
        ...

    def pin(self, server: str, tool: str, digest: str) -> None:
        """Accepts a digest."""
        ...


def digest_of(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Pins:
    """What was accepted of each tool, and what differs from it now.

    Args:
        store: Where accepted digests are kept.
    """

    def __init__(self, store: PinStore) -> None:
        self._store = store
        self._seen: dict[tuple[str, str], str] = {}
        self._accepted: dict[str, dict[str, str]] = {}

    def see_description(self, server: str, description: ToolDescription) -> None:
        """Notes what a server says of a tool; the first is accepted."""
        text = description.model_dump_json()
        self._see(server, description.id, digest_of(text))

    def see_manual(self, server: str, tool: str, manual: str) -> None:
        """Notes a tool's manual; the first is accepted."""
        self._see(server, _manual(tool), digest_of(manual))

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
        """Refuses a tool in quarantine.

        Raises:
            ToolRefusedError: It is.
        """
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
    the first.

    Args:
        offers: The descriptions by the names of the servers, in the order of the servers; None
            for one that did not answer, whose tools stay its own.
        pins: What was accepted.
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
    shown = safe_text(tool, _SHOWN)
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
