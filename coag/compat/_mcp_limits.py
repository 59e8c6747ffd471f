"""How long an MCP server may take, and how much of it is kept."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


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
