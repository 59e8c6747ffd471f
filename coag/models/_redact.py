"""Keeps keys out of what is recorded about a failed call."""

from __future__ import annotations

import os
import re

_SHOWN = "[redacted]"
_MIN_SECRET = 6
"""Shorter values of key variables are placeholders such as `none`; cutting them out garbles."""
_MAX_TEXT = 600
_VARIABLE = re.compile(r"(_API_KEY|_TOKEN|_SECRET|_PASSWORD)$")
_PATTERNS = (
    re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai)[-_][A-Za-z0-9_\-*]{6,}"),
    re.compile(r"(?i)(?<=bearer )[^\s\"',]+"),
    re.compile(r"(?<=://)[^\s/@]+(?=@)"),
    re.compile(r"(?i)(?<=api[-_]key=)[^\s&\"']+"),
)


def redacted(text: str) -> str:
    """The text without what looks like a key or equals one in the environment, cut to a bound."""
    for name, value in os.environ.items():
        if _VARIABLE.search(name) and len(value) >= _MIN_SECRET:
            text = text.replace(value, _SHOWN)
    for pattern in _PATTERNS:
        text = pattern.sub(_SHOWN, text)
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…"
