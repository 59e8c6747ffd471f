"""Pages of views: the templates, the addresses that links lead to, and documents of one file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence, Set
from functools import cache, partial
from importlib.resources import files
from typing import Any, cast
from urllib.parse import quote, urlencode

from coag.errors import ConfigurationError
from coag.schema import PHASES

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise ConfigurationError(
        "Pages of runs need jinja2, which is not installed: pip install 'coag[ui]'."
    ) from error

from .filters import FILTERS

_SCRIPTS = ("inspector.js", "keys.js", "live.js", "keep.js")
"""The ES modules; a page loads the first, which imports the others."""
MEDIA_TYPES: Mapping[str, str] = {
    "inspector.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(_SCRIPTS, "text/javascript; charset=utf-8"),
}
"""Every file that comes with the pages, with its type: what a server may give out."""


@cache
def static_text(name: str) -> str:
    """A file that comes with the pages; `name` is one of `MEDIA_TYPES`."""
    return files("coag.inspector.pages").joinpath("static", name).read_text(encoding="utf-8")


# ---- Where links lead ----


_PATHS: Mapping[str, str] = {
    "runs": "/",
    "run": "/runs/{run}",
    "cycle": "/runs/{run}/cycles/{number}",
    "why": "/runs/{run}/cycles/{number}/why",
    "beliefs": "/runs/{run}/beliefs",
    "awareness": "/runs/{run}/awareness",
    "stood": "/runs/{run}/cycles/{number}/awareness",
    "memory": "/runs/{run}/memory",
    "procedures": "/runs/{run}/procedures",
    "findings": "/runs/{run}/findings",
    "compare": "/compare",
    "record": "/runs/{run}/records/{number}",
    "events": "/runs/{run}/events",
    "activities": "/activities",
    "dynamics": "/memory",
    "activity_events": "/activities/events",
}
"""Every place that a link can lead to, and its path on the web."""


class Addresses:
    """How places are named: on the web, where each page has its own address, or in one document.

    A place is a name of `_PATHS`, with the key of its run, the number of its cycle or record, and
    the id of a spot on its page; of a comparison `other` is the key of the right run. A document
    has some pages, pairs of runs side by side, and names of its own for runs; no link leads out.
    """

    def __init__(
        self,
        has: Set[tuple[str, str, int | None]] | None = None,
        pairs: Set[tuple[str, str]] = frozenset(),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._has = has
        self._pairs = pairs
        self._names = names or {}

    def to(
        self,
        target: str,
        run: str = "",
        number: int | None = None,
        spot: str = "",
        other: str = "",
        **query: str | int,
    ) -> str:
        """What to put into `href`; empty where the document has no such place."""
        if self._has is not None:
            page = (target, run, number)
            here = (run, other) in self._pairs if target == "compare" else page in self._has
            return f"#{self.anchor(target, run, number, spot, other)}" if here else ""
        path = _PATHS[target].format(run=quote(run, safe=""), number=number)
        if target == "compare":
            query = {"a": run, **({"b": other} if other else {}), **query}
        suffix = f"?{urlencode(query)}" if query else ""
        return f"{path}{suffix}" + (f"#{_id(spot)}" if spot else "")

    def anchor(
        self, target: str, run: str = "", number: int | None = None, spot: str = "", other: str = ""
    ) -> str:
        """The `id` of an element, unique in the document; empty for a page as a whole on the web.

        `to` of the same place leads to it.
        """
        if self._has is None:
            return _id(spot)
        run, other = (self._names.get(key, key) for key in (run, other))
        parts = [target, run, other] if target == "compare" else ["run", run]
        if target not in ("run", "compare"):
            parts.append(target)
        parts += [str(number)] if number is not None else []
        return _id("-".join([*parts, *([spot] if spot else [])]))

    def static(self, name: str) -> str:
        """The address of a file that comes with the pages; empty if it is in the document."""
        return f"/static/{quote(name)}" if self._has is None else ""


def _id(name: str) -> str:
    """A name that can be an id: others are escaped, so that two never become the same."""
    return re.sub(r"[^\w.:-]", lambda found: f"_{ord(found.group()):x}_", name, flags=re.ASCII)


# ---- Pages ----


@cache
def _templates() -> Environment:
    """The templates; one for all, so that each is compiled once a process."""
    made = Environment(
        loader=PackageLoader("coag.inspector.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    cast("dict[str, Any]", made.filters).update(FILTERS)
    return made


def prepare() -> None:
    """Compiles every template, so that the first page takes no longer than those after it."""
    made = _templates()
    for name in made.list_templates(extensions=["html"]):
        made.get_template(name)


class Pages:
    """Makes HTML of views, from the templates.

    A page is a whole document, or else an article within `report_page`: without a head, without
    navigation between runs, and with headings one level lower.
    """

    def __init__(self, addresses: Addresses | None = None, *, whole: bool = True) -> None:
        self.addresses = addresses = addresses or Addresses()
        first = 1 if whole else 2
        self._values: Mapping[str, Any] = {
            "to": addresses.to,
            "leads": partial(partial, addresses.to),
            "anchor": addresses.anchor,
            "static": addresses.static,
            "PHASES": [phase.value for phase in PHASES],
            "layout": "document.html" if whole else "part.html",
            "whole": whole,
            **{f"h{level}": f"h{first + level - 1}" for level in (1, 2, 3)},
        }

    def render(self, name: str, **values: Any) -> str:
        """The template of a name, filled with these values: see the template for its names."""
        return _templates().get_template(f"{name}.html").render({**self._values, **values})

    def fragment(self, name: str, **values: Any) -> str:
        """A piece of a page for live updates.

        Each element has an id and replaces the one with that id; a new one is added to the end of
        the list that its `data-list` names.
        """
        return self.render("fragments", piece=name, **values)


# ---- One file that holds pages of some runs ----


def report_page(title: str, parts: Sequence[str]) -> str:
    """A document that opens anywhere: style and scripts are in it, and it loads nothing."""
    style, *scripts = map(static_text, ("inspector.css", "keys.js", "keep.js"))  # nothing is live
    policy = (
        f"default-src 'none'; style-src {_hash_of(style)}; img-src data:; base-uri 'none'; "
        f"form-action 'none'; script-src {' '.join(map(_hash_of, scripts))}"
    )
    return Pages(Addresses(frozenset())).render(
        "report",
        title=title,
        policy=policy,
        style=Markup(style),
        scripts=list(map(Markup, scripts)),
        parts=list(map(Markup, parts)),
    )


def _hash_of(text: str) -> str:
    """How a Content-Security-Policy names a text that may be in the page."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
