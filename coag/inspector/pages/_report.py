"""One file that holds pages of some runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from markupsafe import Markup

from ._addresses import ReportAddresses
from ._environment import Templates
from ._static import STYLE, static_text

_LAST = ("keys.js", "keep.js")
"""Scripts of a report; nothing in it is live."""


def _hash_of(text: str) -> str:
    """How a Content-Security-Policy names a text that may stand in the page."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def report_page(title: str, parts: Sequence[str]) -> str:
    """A document that opens anywhere: style and scripts are in it, and it asks for nothing.

    Args:
        title: What it is about.
        parts: Pages made by `Pages(..., layout="part")`, in order.
    """
    style = static_text(STYLE)
    scripts = [static_text(name) for name in _LAST]
    policy = (
        f"default-src 'none'; style-src {_hash_of(style)}; img-src data:; base-uri 'none'; "
        f"form-action 'none'; script-src {' '.join(_hash_of(script) for script in scripts)}"
    )
    return Templates(ReportAddresses(frozenset())).render(
        "report",
        title=title,
        policy=policy,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        parts=[Markup(part) for part in parts],
    )
