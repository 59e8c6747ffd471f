"""From what an MCP tool returned to a result that is bounded and can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autogen_core import Image
from autogen_core.tools import ImageResultContent, TextResultContent, ToolResult
from PIL.Image import DecompressionBombError

from coag.schema import well_formed

from ._mcp_limits import McpLimits

Content = TextResultContent | ImageResultContent
_PIXELS = 50_000_000
"""An image with more of them is described only: decoding it would take its memory."""
_NAMED = 200
"""Characters of an address or a type that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What a tool of a server returned, in MCP's own form."""

    contents: Sequence[Mapping[str, Any]]
    """Content blocks as MCP's JSON has them."""
    structured: Any
    """The structured result, or None."""
    is_error: bool
    """Whether the tool says that it failed."""


class McpToolResult(ToolResult):
    """What a call of an MCP tool came to.

    Its images are there as `ImageResultContent`; as text each is `[image]`, after a line that
    describes it, where AutoGen would write out all its bytes.
    """

    may_have_happened: bool = False
    """Whether an error leaves open what the tool did: the server died, was late or was cancelled.
    Such a call is not to be repeated blindly."""

    def to_text(self, replace_image: str | None = None) -> str:
        """The result as text."""
        return super().to_text(replace_image or "[image]")


def failed(name: str, text: str, *, may_have_happened: bool = False) -> McpToolResult:
    """An error as a result, since a stock agent hangs where a workbench raises."""
    return McpToolResult(
        name=name,
        result=[TextResultContent(content=well_formed(text))],
        is_error=True,
        may_have_happened=may_have_happened,
    )


def read_result(name: str, returned: Returned, limits: McpLimits) -> McpToolResult:
    """The result within the limits: its texts, its images, and a line for whatever else.

    The structured result is shown where there is no other; by the protocol it says the same.
    """
    contents = returned.contents
    if not contents and returned.structured is not None:
        contents = [{"type": "text", "text": json.dumps(returned.structured, ensure_ascii=False)}]
    parts = [part for content in contents for part in _parts(content, limits)]
    kept = _cut(parts, limits.text_characters)
    return McpToolResult(name=name, result=kept, is_error=returned.is_error)


def _parts(content: Mapping[str, Any], limits: McpLimits) -> list[Content]:
    match content.get("type"):
        case "text":
            return [_text(str(content.get("text") or ""))]
        case "image":
            return _image(content, limits)
        case "audio":
            size = _size(str(content.get("data") or ""))
            return [_text(f"[audio, {_named(content.get('mimeType'))}, {size:,} bytes]")]
        case "resource":
            return _resource(content.get("resource") or {})
        case "resource_link":
            kind = _named(content.get("mimeType"))
            return [_text(f"[link to resource {_named(content.get('uri'))}, {kind}]")]
        case other:
            return [_text(f"[content of a kind that is not known: {_named(other)}]")]


def _image(content: Mapping[str, Any], limits: McpLimits) -> list[Content]:
    """A line that describes the image, and the image where it is one and not too large."""
    encoded = str(content.get("data") or "")
    size = _size(encoded)
    said = f"image, {_named(content.get('mimeType'))}, {size:,} bytes"
    if size > limits.image_bytes:
        return [_text(f"[{said}: too large to be shown]")]
    try:
        image = Image.from_base64(encoded)
    except (ValueError, OSError, DecompressionBombError):  # no base64, or no image PIL knows
        return [_text(f"[{said}: cannot be read]")]
    width, height = image.image.size
    said += f", {width} x {height} pixels"
    if width * height > _PIXELS:
        return [_text(f"[{said}: too large to be shown]")]
    return [_text(f"[{said}]"), ImageResultContent(content=image)]


def _resource(resource: Mapping[str, Any]) -> list[Content]:
    named = f"resource {_named(resource.get('uri'))}, {_named(resource.get('mimeType'))}"
    text = resource.get("text")
    if isinstance(text, str):
        return [_text(f"[{named}]\n{text}")]
    return [_text(f"[{named}, {_size(str(resource.get('blob') or '')):,} bytes]")]


def _cut(parts: list[Content], limit: int) -> list[Content]:
    """The parts within the limit; the note stands first, so that no later cut takes it away."""
    whole = sum(len(part.content) for part in parts if isinstance(part, TextResultContent))
    if whole <= limit:
        return parts
    kept: list[Content] = [_text(f"[cut: the first {limit:,} of {whole:,} characters follow]")]
    left = limit
    for part in parts:
        if isinstance(part, ImageResultContent):
            kept.append(part)
        elif left > 0:
            kept.append(_text(part.content[:left]))
            left -= len(part.content)
    return kept


def _text(text: str) -> TextResultContent:
    return TextResultContent(content=well_formed(text))


def _named(value: Any) -> str:
    return str(value or "of no type")[:_NAMED]


def _size(encoded: str) -> int:
    """Bytes that a text in base64 stands for."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")
