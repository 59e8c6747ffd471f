"""Between AutoGen's memory contents and the texts and metadata of our records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from autogen_core.memory import MemoryContent, MemoryMimeType

from coag.schema import Fact, Scalar
from coag.store import FIXED_FIELDS

_REST = "autogen"
"""Metadata key for what filters cannot ask for: the type, and nested or empty values."""
_TEXTS = (MemoryMimeType.TEXT, MemoryMimeType.MARKDOWN, MemoryMimeType.JSON)


def text_of(content: MemoryContent) -> str:
    """The text that is remembered for a content; JSON in one form, so that equals are equal.

    Raises:
        ValueError: It is neither text, Markdown nor JSON.
    """
    kind = _mime(content)
    if kind == MemoryMimeType.JSON.value and not isinstance(content.content, str | bytes):
        return _json(content.content, "The content")
    if kind not in {one.value for one in _TEXTS} or not isinstance(content.content, str):
        known = ", ".join(one.value for one in _TEXTS)
        raise ValueError(
            f"A content of {kind!r} that is a {type(content.content).__name__} cannot be "
            f"remembered; what can: {known}."
        )
    return content.content


def value_of(text: str, mime_type: str) -> str | dict[str, Any]:
    """What AutoGen gets for a remembered text: an object again where it was one."""
    if mime_type != MemoryMimeType.JSON.value:
        return text
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return cast("dict[str, Any]", value) if isinstance(value, dict) else text


def fact_of(content: MemoryContent) -> Fact | None:
    """The fact that a content's metadata tell; None unless they say of what, which and what.

    That is, unless `subject`, `attribute` and `value` are all texts that show something; a value
    may be a number or a truth value, too, and is taken as text.
    """
    parts = _fact_parts(content)
    return None if _lacking(parts) else Fact.model_validate(parts)


def lacking_of_fact(content: MemoryContent) -> tuple[str, ...]:
    """What a content's metadata lack of a fact of which they name the subject or attribute.

    Each with the value that is no text, if there is one, e.g. `value (is None)`.
    """
    parts = _fact_parts(content)
    if parts["subject"] is None and parts["attribute"] is None:
        return ()
    told = content.metadata or {}
    return tuple(
        f"{name} (is {told[name]!r})" if name in told else name for name in _lacking(parts)
    )


def _fact_parts(content: MemoryContent) -> dict[str, Any]:
    told = content.metadata or {}
    parts = {name: told.get(name) for name in ("subject", "attribute", "value")}
    if isinstance(parts["value"], bool | int | float):
        parts["value"] = json.dumps(parts["value"])
    return parts


def _lacking(parts: Mapping[str, Any]) -> list[str]:
    return [name for name, part in parts.items() if not (isinstance(part, str) and part.strip())]


def metadata_for(content: MemoryContent) -> dict[str, Scalar]:
    """A content's metadata as records keep it.

    Raises:
        ValueError: A value is no JSON.
    """
    plain: dict[str, Scalar] = {}
    rest: dict[str, Any] = {}
    for key, value in (content.metadata or {}).items():
        if isinstance(value, str | int | float | bool) and key not in (*FIXED_FIELDS, _REST):
            plain[key] = value
        else:
            _json(value, f"Metadata {key!r}")
            rest[key] = value
    kind = _mime(content)
    if rest or kind != MemoryMimeType.TEXT.value:
        plain[_REST] = json.dumps({"mime_type": kind, "rest": rest}, ensure_ascii=False)
    return plain


def metadata_from(metadata: Mapping[str, Scalar]) -> tuple[str, dict[str, Any]]:
    """The type and the metadata that `metadata_for` was given."""
    plain: dict[str, Any] = dict(metadata)
    unpacked = _unpacked(plain.get(_REST))
    if unpacked is None:
        return MemoryMimeType.TEXT.value, plain
    del plain[_REST]
    mime_type, rest = unpacked
    return mime_type, {**plain, **rest}


def _unpacked(packed: object) -> tuple[str, dict[str, Any]] | None:
    """What `metadata_for` packed; None for what somebody else keeps under its key."""
    try:
        value: object = json.loads(packed) if isinstance(packed, str) else None
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    parts = cast("dict[str, Any]", value)
    mime_type, rest = parts.get("mime_type"), parts.get("rest")
    if not isinstance(mime_type, str) or not isinstance(rest, dict):
        return None
    return mime_type, cast("dict[str, Any]", rest)


def _mime(content: MemoryContent) -> str:
    kind = content.mime_type
    return kind.value if isinstance(kind, MemoryMimeType) else kind


def _json(value: Any, what: str) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is no JSON and cannot be kept: {error}.") from error
