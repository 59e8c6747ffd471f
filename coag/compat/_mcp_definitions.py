"""What an MCP server says of a tool: its definition, its hash, and what a model gets to see."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Self, cast

from autogen_core.tools import ParametersSchema, ToolOverride, ToolSchema
from pydantic import BaseModel, ConfigDict, Field, model_validator

from coag.schema import well_formed

from ._mcp_limits import McpLimits

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
    plain = "".join(sign for sign in well_formed(text) if not _unseen(sign))
    return plain if len(plain) <= limit else f"{plain[:limit]} [cut]"


def _unseen(sign: str) -> bool:
    """Whether a person who reads the text would not see the character."""
    return unicodedata.category(sign) in ("Cc", "Cf") and sign not in "\n\t"


def visible(text: str) -> str:
    """The text with characters that nobody sees written as escapes."""
    return "".join(
        sign.encode("unicode_escape").decode("ascii") if _unseen(sign) else sign
        for sign in well_formed(text)
    )
