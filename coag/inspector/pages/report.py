"""One file that holds pages of some runs."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from markupsafe import Markup

from .addresses import ReportAddresses
from .environment import Templates
from .static_files import STYLE, static_text

_LAST = ("keys.js", "keep.js")
"""Scripts of a report; nothing in it is live."""


def _hash_of(text: str) -> str:
    """How a Content-Security-Policy names a text that may stand in the page."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


_ISOLATED = re.compile(r'<bdi dir="auto">([\x20-\x3b\x3d-\x7e]*)</bdi>')
"""Text that can turn no direction of writing."""
_TAG = re.compile(r"<[a-z][^>]*>")
_QUOTED = re.compile(r' ([a-z][a-z-]*)="([\w#.:-]+)"(?=[ >])')
"""Attributes whose values need no quotes."""
_TEXT = re.compile(r">[^<]+<")


def lighter(html: str) -> str:
    """The same page in fewer bytes: what only attributes need escaped, and what ASCII needs not.

    In pages every `>` of an attribute is escaped, so that what stands between `>` and `<` is text.
    """
    plain = _ISOLATED.sub(r"\1", html.replace(' focusable="false"', ""))
    plain = _TAG.sub(lambda tag: _QUOTED.sub(r" \1=\2", tag[0]), plain)
    return _TEXT.sub(lambda text: text[0].replace("&#34;", '"').replace("&#39;", "'"), plain)


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
        parts=[Markup(lighter(part)) for part in parts],
    )
