"""Tools of MCP servers as values: their definitions, which are trusted, and what they return."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Self, cast

from autogen_core import Image
from autogen_core.tools import (
    ImageResultContent,
    ParametersSchema,
    TextResultContent,
    ToolOverride,
    ToolResult,
    ToolSchema,
)
from PIL.Image import DecompressionBombError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from coag._util.files import replace_file
from coag._util.text import visible, well_formed, without_unseen
from coag.errors import ConfigurationError
from coag.mcp import McpBounds


class McpLimits(McpBounds):
    """Bounds of what a server may cost; whatever goes beyond is cut or refused with a note."""

    text_characters: int = Field(default=20_000, gt=0)
    """Characters of one result that are kept."""
    image_bytes: int = Field(default=2_000_000, ge=0)
    """Larger images are described only; 0 describes them all."""
    description_characters: int = Field(default=2_000, gt=0)
    """Characters of a tool's description, and of each one in its schema, that a model sees."""
    definition_characters: int = Field(default=50_000, gt=0)
    """A tool whose name, description and schema together are longer is not offered."""
    tools: int = Field(default=128, gt=0)
    """Tools of one server that are offered; further ones are left out."""


# ---- A tool as its server defines it, and as a model sees it ----


_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_VALUES = frozenset({"default", "const", "enum", "examples"})
"""Parts of a schema that hold values; a text in them is no description."""


class ToolDefinition(BaseModel):
    """A tool as its server defines it: all that a model would see of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Its name at the server."""
    description: str
    """What the server says that it does, uncut."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    hints: dict[str, bool] = Field(default_factory=dict[str, bool])
    """What it says of its effects: `read_only`, `idempotent`, `destructive`; without those
    that it does not."""
    digest: str
    """SHA-256 of the canonical JSON of the others, in hexadecimal."""

    @classmethod
    def of(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        hints: Mapping[str, bool] | None = None,
    ) -> Self:
        """The definition with its digest."""
        fields: dict[str, Any] = {
            "name": name,
            "description": description,
            "parameters": parameters,
            "hints": hints or {},
        }
        return cls.model_validate({**fields, "digest": _digest(fields)})

    @model_validator(mode="after")
    def _digest_fits(self) -> Self:
        if self.digest != _digest(self.model_dump(exclude={"digest"})):
            raise ValueError(f"the digest of tool {self.name!r} does not fit its definition")
        return self

    @property
    def size(self) -> int:
        """Characters of name, description and schema."""
        return len(_canonical(self.model_dump(exclude={"digest"})))


def _canonical(fields: Mapping[str, Any]) -> str:
    present = {name: value for name, value in fields.items() if name != "hints" or value}
    return json.dumps(present, sort_keys=True, separators=(",", ":"))


def _digest(fields: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(fields).encode("ascii")).hexdigest()


def _shown_schema(
    definition: ToolDefinition, override: ToolOverride | None, limits: McpLimits
) -> ToolSchema:
    """The tool as a model sees it: with its other name, and descriptions kept short."""
    limit = limits.description_characters
    other = override or ToolOverride()
    described = other.description
    no_properties: dict[str, Any] = {}
    parameters = {
        "type": "object",
        "properties": no_properties,
        **_shortened(definition.parameters, limit),
    }
    return ToolSchema(
        name=other.name or definition.name,
        description=_short(definition.description, limit) if described is None else described,
        parameters=cast("ParametersSchema", parameters),
    )


def _shortened(node: Any, limit: int) -> Any:
    if isinstance(node, list):
        return [_shortened(item, limit) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    short = dict(cast("dict[str, Any]", node))
    for key, value in short.items():
        if key in ("description", "title") and isinstance(value, str):
            short[key] = _short(value, limit)
        elif key not in _VALUES:
            short[key] = _shortened(value, limit)
    return short


def _short(text: str, limit: int) -> str:
    plain = without_unseen(text)
    return plain if len(plain) <= limit else f"{plain[:limit]} [cut]"


# ---- From what a tool returned to a result that is bounded and can be read ----


Content = TextResultContent | ImageResultContent
_PIXELS = 50_000_000
"""An image with more of them is described only: decoding it would take its memory."""
_NAMED = 200
"""Characters of an address or a type that are shown."""


class McpToolResult(ToolResult):
    """The result of a call of an MCP tool.

    Its images are there as `ImageResultContent`; as text each is `[image]`, after a line that
    describes it, where AutoGen would write out all its bytes.
    """

    may_have_happened: bool = False
    """Whether an error leaves open what the tool did: the server ended, was late or was cancelled.
    Such a call is not to be repeated blindly."""

    def to_text(self, replace_image: str | None = None) -> str:
        """The result as text."""
        return super().to_text(replace_image or "[image]")


def failed_result(name: str, text: str, *, may_have_happened: bool = False) -> McpToolResult:
    """An error as a result, since a stock agent hangs where a workbench raises."""
    return McpToolResult(
        name=name,
        result=[TextResultContent(content=well_formed(text))],
        is_error=True,
        may_have_happened=may_have_happened,
    )


def mcp_result(name: str, raw: Mapping[str, Any], limits: McpLimits) -> McpToolResult:
    """The result within the limits: its texts, its images, and a line for whatever else.

    The structured result is shown where there is no other; by the protocol it says the same.
    """
    contents: Sequence[Mapping[str, Any]] = raw["content"]
    structured: Any = raw.get("structuredContent")
    if not contents and structured is not None:
        contents = [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}]
    parts = [part for content in contents for part in _parts(content, limits)]
    result = _cut(parts, limits.text_characters)
    return McpToolResult(name=name, result=result, is_error=bool(raw.get("isError")))


def _parts(content: Mapping[str, Any], limits: McpLimits) -> list[Content]:
    kind, data = _named(content.get("mimeType")), str(content.get("data") or "")
    match content.get("type"):
        case "text":
            return [_text(str(content.get("text") or ""))]
        case "image":
            return _image(data, f"image, {kind}, {_size(data):,} bytes", limits)
        case "audio":
            return [_text(f"[audio, {kind}, {_size(data):,} bytes]")]
        case "resource":
            return [_resource(content.get("resource") or {})]
        case "resource_link":
            return [_text(f"[link to resource {_named(content.get('uri'))}, {kind}]")]
        case other:
            return [_text(f"[content of a kind that is not known: {_named(other)}]")]


def _image(encoded: str, caption: str, limits: McpLimits) -> list[Content]:
    """A line that describes the image, and the image where it is one and not too large."""
    if _size(encoded) > limits.image_bytes:
        return [_text(f"[{caption}: too large to be shown]")]
    try:
        image = Image.from_base64(encoded)
    except (ValueError, OSError, DecompressionBombError):  # no base64, or no image PIL knows
        return [_text(f"[{caption}: cannot be read]")]
    width, height = image.image.size
    caption += f", {width} x {height} pixels"
    if width * height > _PIXELS:
        return [_text(f"[{caption}: too large to be shown]")]
    return [_text(f"[{caption}]"), ImageResultContent(content=image)]


def _resource(resource: Mapping[str, Any]) -> TextResultContent:
    named = f"resource {_named(resource.get('uri'))}, {_named(resource.get('mimeType'))}"
    text = resource.get("text")
    if isinstance(text, str):
        return _text(f"[{named}]\n{text}")
    return _text(f"[{named}, {_size(str(resource.get('blob') or '')):,} bytes]")


def _cut(parts: list[Content], limit: int) -> list[Content]:
    """The parts within the limit; the note comes first, so that no later cut takes it away."""
    total = sum(len(part.content) for part in parts if isinstance(part, TextResultContent))
    if total <= limit:
        return parts
    contents: list[Content] = [_text(f"[cut: the first {limit:,} of {total:,} characters follow]")]
    room = limit
    for part in parts:
        if isinstance(part, ImageResultContent):
            contents.append(part)
        elif room > 0:
            contents.append(_text(part.content[:room]))
            room -= len(part.content)
    return contents


def _text(text: str) -> TextResultContent:
    return TextResultContent(content=well_formed(text))


def _named(value: Any) -> str:
    return str(value or "of no type")[:_NAMED]


def _size(encoded: str) -> int:
    """Bytes that a text in base64 encodes."""
    return len(encoded) * 3 // 4 - encoded[-2:].count("=")


# ---- Which definitions are trusted: pinned at first sight, then compared ----


_STATE = "PinnedMcpWorkbenchState"


class QuarantinedTool(BaseModel):
    """A tool that changed, or that came later, and that nobody has approved yet."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Its name at the server."""
    old: ToolDefinition | None
    """What was pinned; None for a tool that came later."""
    new: ToolDefinition
    """What the server says now; `new.digest` is what an approval can be bound to."""

    @property
    def diff(self) -> str:
        """Old and new line by line, for a person; characters that nobody sees are escaped."""
        old = [] if self.old is None else _lines(self.old)
        titles = ("pinned", "offered now")
        return "\n".join(difflib.unified_diff(old, _lines(self.new), *titles, lineterm="", n=2))

    @property
    def changed(self) -> str:
        """What changed, in words of ours and of the pinned definition only.

        It is shown to models, which must not read what the new definition says.
        """
        if self.old is None:
            return "it was not there when the server's tools were pinned"
        parts = ["its description"] if self.old.description != self.new.description else []
        old, new = _properties(self.old), _properties(self.new)
        parts += [f"its parameter {name[:80]!r}" for name in old if old[name] != new.get(name)]
        if new.keys() - old.keys():
            parts.append("the number of its parameters")
        return f"{', '.join(parts) or 'its schema'} changed since it was pinned"


class PinnedTools(BaseModel):
    """The file of pins, and what `save_state` gives of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["coag-mcp-pins-1"] = "coag-mcp-pins-1"
    """Which form of the file this is."""
    tools: dict[str, ToolDefinition] = {}
    """Trusted definitions, by name."""


class PinBoard:
    """Keeps what is trusted of one server, in memory or in a file. Its methods block.

    The file is read each time, so that what another process approves counts at once.
    """

    def __init__(self, path: Path | None, *, trust_first_use: bool) -> None:
        self.path = path
        self.trust_first_use = trust_first_use
        self.in_memory: PinnedTools | None = None
        """The pins, where there is no file."""
        self._one_at_a_time = Lock()

    def judge(self, offered: Mapping[str, ToolDefinition]) -> dict[str, QuarantinedTool]:
        """What of the offered tools is not trusted; at first sight, all of them are pinned."""
        with self._one_at_a_time:
            pins = self._read()
            if pins is None and offered:  # a server without tools may only not be ready yet
                pins = PinnedTools(tools=dict(offered) if self.trust_first_use else {})
                self._write(pins)
        trusted = pins.tools if pins else {}
        return {
            name: QuarantinedTool(name=name, old=trusted.get(name), new=definition)
            for name, definition in offered.items()
            if definition != trusted.get(name)
        }

    def approve(self, definition: ToolDefinition) -> None:
        """Trusts a definition from now on."""
        with self._one_at_a_time:
            trusted = (self._read() or PinnedTools()).tools
            self._write(PinnedTools(tools={**trusted, definition.name: definition}))

    def save_state(self) -> dict[str, Any]:
        """The pins, where no file keeps them."""
        pins = self.in_memory
        return {"type": _STATE, "pins": None if pins is None else pins.model_dump(mode="json")}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what `save_state` gave; of no effect where a file keeps the pins."""
        pins = state.get("pins")
        try:
            self.in_memory = None if pins is None else PinnedTools.model_validate(pins)
        except ValidationError as error:
            raise ConfigurationError(f"The state holds no pinned MCP tools: {error}") from error

    def _read(self) -> PinnedTools | None:
        if self.path is None:
            return self.in_memory
        try:
            return PinnedTools.model_validate_json(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            raise ConfigurationError(
                f"{str(self.path)!r} is no file of pinned MCP tools that can be read: {error}. "
                "Name another path, or delete the file to trust what the server offers next."
            ) from error

    def _write(self, pins: PinnedTools) -> None:
        """Replaces the file at once, and only when the new one is on the disk."""
        if self.path is None:
            self.in_memory = pins
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, pins.model_dump_json(indent=1))
        except OSError as error:
            raise ConfigurationError(
                f"Pinned MCP tools cannot be saved to {str(self.path)!r}: {error}"
            ) from error


def _lines(definition: ToolDefinition) -> list[str]:
    schema = json.dumps(definition.parameters, indent=2, sort_keys=True, ensure_ascii=False)
    lines = [f"name: {definition.name}", *f"description: {definition.description}".split("\n")]
    return [visible(line) for line in (*lines, *f"parameters: {schema}".split("\n"))]


def _properties(definition: ToolDefinition) -> dict[str, Any]:
    properties = definition.parameters.get("properties")
    return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}


# ---- What of a server's tools is offered to a model now, and why not the rest ----


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOffer:
    """The tools of a server as they were listed last."""

    tools: Mapping[str, ToolDefinition] = field(default_factory=dict[str, ToolDefinition])
    """Those that could be offered, by their names at the server."""
    quarantined: Mapping[str, QuarantinedTool] = field(default_factory=dict[str, QuarantinedTool])
    """What of them is not offered, until somebody approves it."""
    schemas: tuple[ToolSchema, ...] = ()
    """What a model sees."""
    own_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """From the name that a model sees to the one at the server."""
    left_out: tuple[str, ...] = ()
    """One sentence for each tool that cannot be offered."""


def fitting(
    found: Iterable[ToolDefinition], limits: McpLimits
) -> tuple[dict[str, ToolDefinition], list[str]]:
    """The tools that may be offered by name, and a sentence for each of the others."""
    tools: dict[str, ToolDefinition] = {}
    problems: list[str] = []
    beyond, most = 0, limits.definition_characters
    for tool in found:
        name, size = tool.name, tool.size
        if not _NAME.fullmatch(name):
            problems.append(f"{name[:128]!r} is no name of letters, digits and _ . / -")
        elif size > most:
            problems.append(
                f"the definition of {name!r} has {size:,} characters, more than {most:,}"
            )
        elif name in tools:
            problems.append(f"a second tool with the name {name!r}")
        elif len(tools) == limits.tools:
            beyond += 1
        else:
            tools[name] = tool
    if beyond:
        problems.append(f"{beyond} tools beyond the first {limits.tools}")
    return tools, [f"Left out: {problem}." for problem in problems]


def make_offer(
    tools: Mapping[str, ToolDefinition],
    quarantined: Mapping[str, QuarantinedTool],
    overrides: Mapping[str, ToolOverride],
    limits: McpLimits,
    left_out: Sequence[str] = (),
) -> ToolOffer:
    """What may be offered of the tools, under the names and descriptions given for it."""
    schemas: dict[str, ToolSchema] = {}
    own_names: dict[str, str] = {}
    problems = list(left_out)
    for name, definition in tools.items():
        if name in quarantined:
            continue
        schema = _shown_schema(definition, overrides.get(name), limits)
        if schema["name"] in schemas:
            problems.append(f"Left out: {name!r}, a second tool shown as {schema['name']!r}.")
            continue
        schemas[schema["name"]] = schema
        own_names[schema["name"]] = name
    return ToolOffer(
        tools=tools,
        quarantined=quarantined,
        schemas=tuple(schemas.values()),
        own_names=own_names,
        left_out=tuple(problems),
    )
