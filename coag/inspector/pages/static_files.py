"""The style and the scripts that come with the pages."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from coag.errors import CoagError

STYLE = "inspector.css"
"""The one style sheet."""
SCRIPTS = ("inspector.js", "keys.js", "live.js", "keep.js")
"""The ES modules; a page loads the first, which imports the others."""
MEDIA_TYPES: Mapping[str, str] = {
    "inspector.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(SCRIPTS, "text/javascript; charset=utf-8"),
}
"""Every file there is, with its type: what a server may give out."""


class UnknownStaticError(CoagError):
    """There is no such file among those that come with the pages."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The inspector has no file {name!r}; it has {', '.join(MEDIA_TYPES)}.")


@cache
def _read(name: str) -> str:
    return files("coag.inspector.pages").joinpath("static", name).read_text(encoding="utf-8")


def static_text(name: str) -> str:
    """A file that comes with the pages.

    Raises:
        UnknownStaticError: There is none of that name.
    """
    if name not in MEDIA_TYPES:
        raise UnknownStaticError(name)
    return _read(name)
