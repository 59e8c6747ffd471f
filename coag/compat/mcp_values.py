"""MCP servers: limits, definitions of tools, results, and pins of what was approved."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePath
from threading import Lock
from typing import Any, Literal, Self, cast
from urllib.parse import urlsplit

from autogen_core import Image
from autogen_core.tools import (
    ImageResultContent,
    ParametersSchema,
    TextResultContent,
    ToolOverride,
    ToolResult,
    ToolSchema,
)
from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams
from PIL.Image import DecompressionBombError
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from coag._util.files import replace_file
from coag._util.text import visible, without_unseen
from coag.errors import CoagError, ConfigurationError
from coag.schema import REDACTED, Redactor, is_secret_setting, well_formed

# ---- How long an MCP server may take, and how much of it is kept ----


class McpLimits(BaseModel):
    """Bounds of what a server may cost; whatever goes beyond is cut or refused with a note."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    call_seconds: float = Field(default=60.0, gt=0)
    """Time that one call or listing may take; AutoGen's own default of 5 s is short for tools."""
    start_seconds: float = Field(default=60.0, gt=0)
    """Time from starting a server to its first answer; some install themselves first."""
    check_seconds: float = Field(default=2.0, gt=0)
    """How often a server over HTTP is asked for a sign of life while a call runs, and how long a
    server has to give one after a call of it was cancelled or late, before it is restarted."""
    restarts: int = Field(default=3, ge=0)
    """How often in a row a server is started again before a call of it succeeds."""
    pause_seconds: float = Field(default=60.0, ge=0)
    """Time after which a server that was given up is tried once more."""
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


# ---- What can go wrong between this process and an MCP server ----


class McpServerError(CoagError):
    """An MCP server could not be started, asked or understood.

    Attributes:
        server: How the server is called in messages.
        may_have_happened: Whether what was asked for may have been done all the same.
    """

    def __init__(self, server: str, problem: str, *, may_have_happened: bool = False) -> None:
        self.server = server
        self.may_have_happened = may_have_happened
        super().__init__(f"MCP server {server!r} {problem}")


class NotSentError(Exception):
    """A request never reached the server: the connection was closed before."""


class LostError(Exception):
    """The connection broke while the server had a request."""


class RefusedError(Exception):
    """The server answered with an error of the protocol, or with something unintelligible.

    Attributes:
        understood: Whether the answer was a proper one, so that nothing is left in doubt.
    """

    def __init__(self, problem: str, *, understood: bool) -> None:
        self.understood = understood
        super().__init__(problem)


_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_VALUES = frozenset({"default", "const", "enum", "examples"})
"""Parts of a schema that hold values; a text in them is no description."""


class ToolDefinition(BaseModel):
    """A tool as its server defines it: all that a model would be told of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """Its name at the server."""
    description: str
    """What the server says that it does, uncut."""
    parameters: dict[str, Any]
    """JSON Schema of its arguments."""
    hints: dict[str, bool] = Field(default_factory=dict[str, bool])
    """What it says of its effects: `read_only`, `idempotent`; without those that it does not."""
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
        digest = _digest(name, description, parameters, hints or {})
        return cls(
            name=name,
            description=description,
            parameters={**parameters},
            hints={**(hints or {})},
            digest=digest,
        )

    @model_validator(mode="after")
    def _digest_fits(self) -> Self:
        if self.digest != _digest(self.name, self.description, self.parameters, self.hints):
            raise ValueError(f"the digest of tool {self.name!r} does not fit its definition")
        return self

    @property
    def size(self) -> int:
        """Characters of name, description and schema."""
        return len(_canonical(self.name, self.description, self.parameters, self.hints))


def _canonical(
    name: str, description: str, parameters: Mapping[str, Any], hints: Mapping[str, bool]
) -> str:
    whole = {"name": name, "description": description, "parameters": parameters}
    whole |= {"hints": hints} if hints else {}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"))


def _digest(
    name: str, description: str, parameters: Mapping[str, Any], hints: Mapping[str, bool]
) -> str:
    text = _canonical(name, description, parameters, hints)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def unfit(definition: ToolDefinition, limits: McpLimits) -> str | None:
    """Why the tool cannot be offered to a model, or None."""
    if not _NAME.fullmatch(definition.name):
        return f"{definition.name[:128]!r} is no name of letters, digits and _ . / -"
    if definition.size > limits.definition_characters:
        return (
            f"the definition of {definition.name!r} has {definition.size:,} characters, more than "
            f"{limits.definition_characters:,}"
        )
    return None


def shown_schema(
    definition: ToolDefinition, override: ToolOverride | None, limits: McpLimits
) -> ToolSchema:
    """The tool as a model is told of it: with its other name, and descriptions kept short."""
    limit = limits.description_characters
    name = (override and override.name) or definition.name
    own = override.description if override else None
    description = _short(definition.description, limit) if own is None else own
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {},
        **_shortened(definition.parameters, limit),
    }
    return ToolSchema(
        name=name, description=description, parameters=cast("ParametersSchema", parameters)
    )


def _shortened(node: Any, limit: int) -> Any:
    """The schema with short descriptions; the rest is as the server has it."""
    if isinstance(node, list):
        return [_shortened(item, limit) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    short: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", node).items():
        if key in ("description", "title") and isinstance(value, str):
            short[key] = _short(value, limit)
        else:
            short[key] = value if key in _VALUES else _shortened(value, limit)
    return short


def _short(text: str, limit: int) -> str:
    plain = without_unseen(text)
    return plain if len(plain) <= limit else f"{plain[:limit]} [cut]"


# ---- From what an MCP tool returned to a result that is bounded and can be read ----


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


# ---- Parameters of a server: secrets by reference, and what of them may be shown or dumped ----


ServerParams = StdioServerParams | StreamableHttpServerParams
"""How a server is reached: as a process of its own, or by Streamable HTTP."""
_ONLY_REFERENCE = re.compile(r"(?:(?:Bearer|Basic|[Tt]oken) )?\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def label(params: ServerParams) -> str:
    """How the server is called in messages: command and script, or address; no secret."""
    if isinstance(params, StreamableHttpServerParams):
        address = urlsplit(params.url)
        port = f":{address.port}" if address.port else ""
        return f"{address.scheme}://{address.hostname}{port}{address.path}"
    shown = [after for before, after in pairwise(("", *params.args)) if not _is_secret(before)]
    script = next((arg for arg in shown if not re.search(r"^-|\s", arg)), "")
    named = " ".join(PurePath(part).name for part in (params.command, script) if part)
    return Redactor().clean_text(named)


def expanded(params: ServerParams, environment: Mapping[str, str] | None = None) -> ServerParams:
    """The parameters with every `${NAME}` replaced by the environment variable of that name.

    Raises:
        ConfigurationError: There is no such variable.
    """
    variables = os.environ if environment is None else environment

    def value_of(found: re.Match[str]) -> str:
        if found[1] not in variables:
            raise ConfigurationError(
                f"MCP server {label(params)!r} needs the environment variable {found[1]!r}, which "
                "is not set."
            )
        return variables[found[1]]

    def filled(value: Any) -> Any:
        return _REFERENCE.sub(value_of, value) if isinstance(value, str) else value

    if isinstance(params, StreamableHttpServerParams):
        headers = _mapped(params.headers, filled)
        return params.model_copy(update={"url": filled(params.url), "headers": headers})
    args = [filled(arg) for arg in params.args]
    return params.model_copy(update={"args": args, "env": _mapped(params.env, filled)})


def dumpable(params: ServerParams) -> ServerParams:
    """The parameters as they may be written down.

    Each value of `env` and `headers` that is not a reference (`Bearer ${NAME}` is one, too) is
    replaced by one to the environment variable of the same name; of a header: in capitals, with
    `_` for `-`.

    Raises:
        ConfigurationError: An argument or the address seems to hold a secret, or the address has
            a user, a query or a fragment that is no reference; what it is, is not told.
    """
    if isinstance(params, StreamableHttpServerParams):
        _check(params, [params.url], secret=_has_more_than_a_place(params.url))
        headers = params.headers and {
            name: _by_reference(value, name.upper()) for name, value in params.headers.items()
        }
        return params.model_copy(update={"headers": headers})
    _check(params, params.args, secret=_has_secret_option(params.args))
    env = params.env and {name: _by_reference(value, name) for name, value in params.env.items()}
    return params.model_copy(update={"env": env})


def _mapped(values: Mapping[str, Any] | None, change: Any) -> dict[str, Any] | None:
    return None if values is None else {name: change(value) for name, value in values.items()}


def _by_reference(value: Any, variable: str) -> str:
    if isinstance(value, str) and _ONLY_REFERENCE.fullmatch(value):
        return value
    return f"${{{re.sub(r'[^A-Za-z0-9_]', '_', variable)}}}"


def _has_more_than_a_place(url: str) -> bool:
    """Whether an address says more than where the server is, beside references."""
    address = urlsplit(_REFERENCE.sub("", url))
    values = (part.partition("=") for part in address.query.split("&"))
    told = any(value or not equals for name, equals, value in values if name)
    return "@" in address.netloc or told or bool(address.fragment)


def _has_secret_option(args: Sequence[str]) -> bool:
    """Whether an option that is named like a secret has a value that is no reference."""
    for option, after in pairwise((*args, "")):
        name, equals, value = option.partition("=")
        if not equals:
            value = "" if after.startswith("-") else after
        if value and _is_secret(name) and not _ONLY_REFERENCE.fullmatch(value):
            return True
    return False


def _is_secret(option: str) -> bool:
    return option.startswith("-") and is_secret_setting(option)


def _check(params: ServerParams, texts: Sequence[str], *, secret: bool) -> None:
    plain = _REFERENCE.sub(REDACTED, " ".join(texts))
    if secret or Redactor.from_environment().clean_text(plain) != plain:
        raise ConfigurationError(
            f"MCP server {label(params)!r} cannot be dumped: an argument or its address seems to "
            "hold a secret. Write ${NAME} there, the name of an environment variable that has it."
        )


# ---- Which definitions of a server's tools are trusted: pinned at first sight, then compared ----


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

    def judge(self, offered: Mapping[str, ToolDefinition]) -> dict[str, QuarantinedTool]:
        """Which of the offered tools differ from what is trusted."""
        return {
            name: QuarantinedTool(name=name, old=self.tools.get(name), new=definition)
            for name, definition in offered.items()
            if definition != self.tools.get(name)
        }

    def with_tool(self, definition: ToolDefinition) -> PinnedTools:
        """The same with this definition trusted."""
        return PinnedTools(tools={**self.tools, definition.name: definition})


class PinBoard:
    """Keeps what is trusted of one server, in memory or in a file. Its methods block.

    The file is read anew each time, so that what another process approves counts at once.

    Args:
        path: The file; None keeps the pins in memory.
        trust_first_use: Whether what the server offers first is trusted without approval.
    """

    def __init__(self, path: Path | None, *, trust_first_use: bool) -> None:
        self.path = path
        self.trust_first_use = trust_first_use
        self.in_memory: PinnedTools | None = None
        """The pins, where there is no file."""
        self._one_at_a_time = Lock()

    def judge(self, offered: Mapping[str, ToolDefinition]) -> dict[str, QuarantinedTool]:
        """What of the offered tools is not trusted; at first sight, all of them are pinned.

        Raises:
            ConfigurationError: The file cannot be read or written.
        """
        with self._one_at_a_time:
            pins = self._read()
            if pins is None and offered:  # a server without tools may only not be ready yet
                pins = PinnedTools(tools=dict(offered) if self.trust_first_use else {})
                self._write(pins)
            return pins.judge(offered) if pins else {}

    def approve(self, definition: ToolDefinition) -> None:
        """Trusts a definition from now on.

        Raises:
            ConfigurationError: The file cannot be read or written.
        """
        with self._one_at_a_time:
            self._write((self._read() or PinnedTools()).with_tool(definition))

    def save_state(self) -> dict[str, Any]:
        """The pins, where no file keeps them."""
        pins = self.in_memory
        return {"type": _STATE, "pins": None if pins is None else pins.model_dump(mode="json")}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Takes over what `save_state` gave; of no effect where a file keeps the pins.

        Raises:
            ConfigurationError: The state holds something else.
        """
        pins = state.get("pins")
        try:
            self.in_memory = None if pins is None else PinnedTools.model_validate(pins)
        except ValidationError as error:
            raise ConfigurationError(f"The state holds no pinned MCP tools: {error}") from error

    def _read(self) -> PinnedTools | None:
        return self.in_memory if self.path is None else _read_pins(self.path)

    def _write(self, pins: PinnedTools) -> None:
        if self.path is None:
            self.in_memory = pins
        else:
            _write_pins(self.path, pins)


def _read_pins(path: Path) -> PinnedTools | None:
    """What the file holds; None if there is none. Blocks.

    Raises:
        ConfigurationError: It holds something else, or cannot be read.
    """
    try:
        return PinnedTools.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise ConfigurationError(
            f"{str(path)!r} is no file of pinned MCP tools that can be read: {error}. Name another "
            "path, or delete the file to trust what the server offers next."
        ) from error


def _write_pins(path: Path, pins: PinnedTools) -> None:
    """Replaces the file at once, and only when the new one is on the disk. Blocks.

    Raises:
        ConfigurationError: It cannot be written; the old file is untouched then.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, pins.model_dump_json(indent=1))
    except OSError as error:
        raise ConfigurationError(
            f"Pinned MCP tools cannot be saved to {str(path)!r}: {error}"
        ) from error


def _lines(definition: ToolDefinition) -> list[str]:
    schema = json.dumps(definition.parameters, indent=2, sort_keys=True, ensure_ascii=False)
    lines = [f"name: {definition.name}", *f"description: {definition.description}".split("\n")]
    return [visible(line) for line in (*lines, *f"parameters: {schema}".split("\n"))]


def _properties(definition: ToolDefinition) -> dict[str, Any]:
    found = definition.parameters.get("properties")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
