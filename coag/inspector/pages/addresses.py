"""Where links lead: on the web, and within one file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol
from urllib.parse import quote, urlencode


class Target(StrEnum):
    """What a link can lead to."""

    RUNS = "runs"
    RUN = "run"
    CYCLE = "cycle"
    WHY = "why"
    BELIEFS = "beliefs"
    AWARENESS = "awareness"
    STOOD = "stood"
    """Where the agent stood as one cycle began."""
    MEMORY = "memory"
    PROCEDURES = "procedures"
    FINDINGS = "findings"
    COMPARE = "compare"
    RECORD = "record"
    """One record of the trace, whole; with `plain` as nothing but text."""
    EVENTS = "events"
    """Server-sent events of one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One page, or a spot on it."""

    target: Target
    run: str = ""
    """Key of the run; of a comparison the left one."""
    other: str = ""
    """Of a comparison the right one; empty to choose it."""
    number: int | None = None
    """The cycle, or the record."""
    spot: str = ""
    """Id of an element of that page, as templates name it, e.g. `proposal`."""
    query: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    """Further parts of the address, e.g. `page`."""


class Addresses(Protocol):
    """How places are named in a document."""

    def to(self, place: Place) -> str:
        """What to put into `href`; empty where this document has no such place."""
        ...

    def anchor(self, place: Place) -> str:
        """The `id` of an element, unique in the document; empty for a page as a whole on the web.

        `to` of the same place leads to it.
        """
        ...

    def static(self, name: str) -> str:
        """Where a file of `static/` is had; empty where it is part of the document."""
        ...


_PATHS: Mapping[Target, str] = {
    Target.RUNS: "/",
    Target.RUN: "/runs/{run}",
    Target.CYCLE: "/runs/{run}/cycles/{number}",
    Target.WHY: "/runs/{run}/cycles/{number}/why",
    Target.BELIEFS: "/runs/{run}/beliefs",
    Target.AWARENESS: "/runs/{run}/awareness",
    Target.STOOD: "/runs/{run}/cycles/{number}/awareness",
    Target.MEMORY: "/runs/{run}/memory",
    Target.PROCEDURES: "/runs/{run}/procedures",
    Target.FINDINGS: "/runs/{run}/findings",
    Target.COMPARE: "/compare",
    Target.RECORD: "/runs/{run}/records/{number}",
    Target.EVENTS: "/runs/{run}/events",
}


class WebAddresses:
    """Addresses of the web application: each page has its own."""

    def to(self, place: Place) -> str:
        """The address of a page from the root of the server on."""
        path = _PATHS[place.target].format(
            run=quote(place.run, safe=""), number=place.number if place.number is not None else ""
        )
        asked = dict(place.query)
        if place.target is Target.COMPARE:
            asked = {"a": place.run, **({"b": place.other} if place.other else {}), **asked}
        query = f"?{urlencode(asked)}" if asked else ""
        return f"{path}{query}" + (f"#{_id(place.spot)}" if place.spot else "")

    def anchor(self, place: Place) -> str:
        """The spot: a page of its own needs nothing to tell it from others."""
        return _id(place.spot)

    def static(self, name: str) -> str:
        """The address of a file that comes with the pages."""
        return f"/static/{quote(name)}"


class ReportAddresses:
    """Addresses within one document that holds some pages of some runs.

    Args:
        has: The pages that are in it, without spots and queries. A page that is not in it is
            led to by no link.
        pairs: Which runs stand side by side in it, left and right.
        names: What runs are called within it, by key; others by their keys.
    """

    def __init__(
        self,
        has: Set[tuple[Target, str, int | None]],
        pairs: Set[tuple[str, str]] = frozenset(),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._names = names or {}
        self._has = has
        self._pairs = pairs

    def to(self, place: Place) -> str:
        """A fragment, or empty for what is not in the document."""
        if place.target is Target.COMPARE:
            here = (place.run, place.other) in self._pairs
        else:
            here = (place.target, place.run, place.number) in self._has
        return f"#{self.anchor(place)}" if here else ""

    def anchor(self, place: Place) -> str:
        """A name that no other element of the document has."""
        run, other = (self._names.get(key, key) for key in (place.run, place.other))
        if place.target is Target.RUNS:
            parts = ["runs"]
        elif place.target is Target.COMPARE:
            parts = ["compare", run, other]
        else:
            parts = ["run", run]
            if place.target is not Target.RUN:
                parts.append(place.target.value)
            if place.number is not None:
                parts.append(str(place.number))
        if place.spot:
            parts.append(place.spot)
        return _id("-".join(parts))

    def static(self, name: str) -> str:
        """Nothing: style and script are part of the document."""
        return ""


def _id(name: str) -> str:
    """A name that can be an id: others are escaped, so that two never fall together."""
    return re.sub(r"[^\w.:-]", lambda found: f"_{ord(found.group()):x}_", name, flags=re.ASCII)
