"""Keeps secrets out of logs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

from coag.schema import ENTRY

REDACTED = "[redacted]"
"""What stands in a log in the place of a secret."""

_SHORTEST = 8
"""Shorter values of secret-looking variables are taken for words, not for secrets."""

_SECRET_VARIABLE = re.compile(
    r"(?:^|_)(?:API_?KEY|ACCESS_KEY|PRIVATE_KEY|TOKEN)$|SECRET|PASSWORD|PASSWD", re.IGNORECASE
)
_SECRET_FIELD = re.compile(
    r"(?:^|[_-])(?:api[_-]?key|access[_-]?token|auth[_-]?token|password|passwd|secret"
    r"|authorization)$",
    re.IGNORECASE,
)

# Each with a quick look that finds every match and some more: it starts with plain letters, so
# that it runs over a long line many times faster than the pattern itself.
_PATTERNS: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = (
    (
        re.compile(r"sk-[A-Za-z0-9_-]{16,}"),
        # The letter of an escape such as `\n` may stand before a key, a word as in `task-…` not.
        re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"),
    ),
    (re.compile(r"earer [\w.~+/-]{16,}"), re.compile(r"(?<=[Bb]earer )[\w.~+/-]{16,}=*")),
    *(
        (re.compile(pattern), re.compile(pattern))
        for pattern in (
            r"gh[pousr]_[A-Za-z0-9]{30,}",
            r"xox[abprs]-[A-Za-z0-9-]{16,}",
            r"AKIA[0-9A-Z]{16}",
            r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}",
        )
    ),
)
_FIELD_PIECES = (
    *("api_key", "apikey", "api-key", "access_token", "access-token", "accesstoken"),
    *("auth_token", "auth-token", "authtoken", "password", "passwd", "secret", "authorization"),
)
_FIELD_IN_TEXT = re.compile(
    r'("(?:[a-z]+[_-])*(?:api[_-]?key|access[_-]?token|auth[_-]?token|password|passwd|secret'
    r'|authorization)"\s*:\s*")([^"\\]+)',
    re.IGNORECASE,
)
"""A secret field of JSON that stands as text within a text, as models write arguments."""


class Redactor:
    """Replaces secrets in JSON: known values, things that look like keys, fields named so.

    Args:
        values: The very texts that must not be logged. Those under eight characters are
            ignored, since they would black out ordinary words.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        lines = {line.strip() for value in values for line in (value, *value.splitlines())}
        secrets = {line for line in lines if len(line) >= _SHORTEST}
        # A text may itself be JSON, as the arguments that models write are.
        forms = secrets | {_in_json(secret) for secret in secrets}
        # Longest first, so that a secret within another does not leave the rest standing.
        self._values = tuple(sorted(forms, key=len, reverse=True))
        self._written = tuple({_in_json(form) for form in forms})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Redactor:
        """A redactor of the values of all environment variables named like secrets.

        Args:
            environment: The variables; None for those of this process.
        """
        variables = os.environ if environment is None else environment
        return cls(value for name, value in variables.items() if _SECRET_VARIABLE.search(name))

    def clean(self, text: str, *, indent: int | None = None) -> str:
        """A JSON text without the secrets in its strings; unchanged where there are none.

        Args:
            text: A whole JSON value.
            indent: Spaces per level of the result, if anything had to be replaced.
        """
        if not self._suspects(text):
            return text
        parsed = json.loads(text)
        cleaned = self._clean_value(parsed)
        if cleaned == parsed:
            return text
        separators = (",", ":") if indent is None else None
        return json.dumps(cleaned, ensure_ascii=False, separators=separators, indent=indent)

    def clean_text(self, text: str) -> str:
        """A plain text without the secrets in it."""
        if text in _vocabulary():
            return text
        for value in self._values:
            text = text.replace(value, REDACTED)
        for _, pattern in _PATTERNS:
            text = pattern.sub(REDACTED, text)
        return _FIELD_IN_TEXT.sub(rf"\g<1>{REDACTED}", text)

    def _suspects(self, text: str) -> bool:
        """True if the JSON text may hold a secret; errs on the side of suspicion."""
        if any(value in text for value in self._written):
            return True
        if any(look.search(text) for look, _ in _PATTERNS):
            return True
        lowered = text.lower()
        return any(piece in lowered for piece in _FIELD_PIECES)

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean_text(value)
        if isinstance(value, list):
            return [self._clean_value(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {self.clean_text(key): self._clean_field(key, fields[key]) for key in fields}
        return value

    def _clean_field(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and value and _SECRET_FIELD.search(key):
            return REDACTED
        return self._clean_value(value)


def _in_json(text: str) -> str:
    """The text as it stands in a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


@cache
def _vocabulary() -> frozenset[str]:
    """The format's own words: field names, tags and enumerations.

    They are never replaced where they stand alone, even if someone's password is one of them:
    the trace would become unreadable.
    """
    return frozenset(_words(ENTRY.json_schema()))


def _words(schema: Any) -> Iterable[str]:
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from _words(item)
    if not isinstance(schema, dict):
        return
    node = cast("dict[str, Any]", schema)
    yield from node.get("properties", {})
    yield from (word for word in node.get("enum", ()) if isinstance(word, str))
    if isinstance(node.get("const"), str):
        yield node["const"]
    for item in node.values():
        yield from _words(item)
