"""Keeps secrets out of logs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

from coag.schema import ENTRY

from ._secrets import REDACTED, SECRET_FIELD, SECRET_VARIABLE, suspicious, without_secrets

_SHORTEST = 8
"""Shorter values of secret-looking variables are taken for words, not for secrets."""


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
        once = secrets.union(*map(_written_forms, secrets))
        forms = once.union(*map(_written_forms, once))
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
        return cls(value for name, value in variables.items() if SECRET_VARIABLE.search(name))

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
        return without_secrets(text)

    def _suspects(self, text: str) -> bool:
        """True if the JSON text may hold a secret; errs on the side of suspicion."""
        for value in self._written:
            if value in text:
                return True
        return suspicious(text)

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean_text(value)
        if isinstance(value, list):
            return self._clean_list(cast("list[Any]", value))
        if isinstance(value, dict):
            return self._clean_fields(cast("dict[str, Any]", value))
        return value

    def _clean_list(self, items: list[Any]) -> list[Any]:
        lines = [item for item in items if isinstance(item, str) and "\n" not in item]
        if lines and len(lines) == len(items):  # a text, as pages show it
            cleaned = without_secrets("\n".join(lines)).split("\n")
            items = list(cleaned if len(cleaned) == len(lines) else lines)
        return [self._clean_value(item) for item in items]

    def _clean_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for key, value in fields.items():
            name = self.clean_text(key)
            while name in cleaned:  # two secrets as names
                name += "'"
            cleaned[name] = self._clean_field(key, value)
        return cleaned

    def _clean_field(self, key: str, value: Any) -> Any:
        return self._hidden(value) if SECRET_FIELD.fullmatch(key) else self._clean_value(value)

    def _hidden(self, value: Any) -> Any:
        """A secret field's value: no text of it stays, nor of its lists; its counts do."""
        if isinstance(value, list):
            return [self._hidden(item) for item in cast("list[Any]", value)]
        return REDACTED if isinstance(value, str) and value else self._clean_value(value)


def _in_json(text: str) -> str:
    """The text as it stands in a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _written_forms(text: str) -> set[str]:
    """The text as it may stand in a JSON string, with or without its signs beyond ASCII."""
    ascii_only = json.dumps(text)[1:-1]
    escaped = re.sub(r"\\u[0-9a-f]{4}", lambda found: r"\u" + found[0][2:].upper(), ascii_only)
    return {_in_json(text), ascii_only, escaped}


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
