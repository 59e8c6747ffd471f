"""Which definitions of a server's tools are trusted: pinned at first sight, then compared."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from coag.errors import ConfigurationError

from ._mcp_definitions import ToolDefinition, visible

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
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("w", encoding="utf-8") as file:
            file.write(pins.model_dump_json(indent=1))
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
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
