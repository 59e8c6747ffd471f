"""A pinned workbench as a component, and which servers it can be for."""

from __future__ import annotations

from typing import Any

from autogen_core import ComponentModel
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import ToolOverride
from autogen_ext.tools.mcp import StdioServerParams, StreamableHttpServerParams
from pydantic import BaseModel, ConfigDict, Field

from coag.errors import ConfigurationError

from ._mcp_limits import McpLimits
from ._mcp_params import ServerParams, dumpable
from ._mcp_pins import PinBoard


class PinnedMcpConfig(BaseModel):
    """A `PinnedMcpWorkbench` as a component: no secret, no pins, only where they are."""

    model_config = ConfigDict(extra="forbid")

    server_params: StdioServerParams | StreamableHttpServerParams = Field(discriminator="type")
    """How the server is reached; values of `env` and `headers` are references `${NAME}`."""
    pins: str | None = None
    """The file of pins."""
    trust_first_use: bool = True
    """Whether what the server offers first is trusted without approval."""
    limits: McpLimits = McpLimits()
    """The bounds."""
    tool_overrides: dict[str, ToolOverride] = {}
    """Other names and descriptions, by the tools' names at the server."""
    model_client: ComponentModel | dict[str, Any] | None = None
    """The client that answers the server's requests for sampling."""


def config_of(
    params: ServerParams,
    board: PinBoard,
    limits: McpLimits,
    tool_overrides: dict[str, ToolOverride],
    model_client: ChatCompletionClient | None,
) -> PinnedMcpConfig:
    """How a workbench of these parts is written down.

    Raises:
        ConfigurationError: The parameters hold a secret that cannot be left out.
    """
    return PinnedMcpConfig(
        server_params=dumpable(params),
        pins=str(board.path) if board.path else None,
        trust_first_use=board.trust_first_use,
        limits=limits,
        tool_overrides=tool_overrides,
        model_client=model_client.dump_component() if model_client else None,
    )


def settings_of(config: PinnedMcpConfig) -> dict[str, Any]:
    """What the workbench's constructor takes besides the server."""
    client = config.model_client
    return {
        "pins": config.pins,
        "trust_first_use": config.trust_first_use,
        "limits": config.limits,
        "tool_overrides": config.tool_overrides,
        "model_client": ChatCompletionClient.load_component(client) if client else None,
    }


def supported(params: object) -> ServerParams:
    """The parameters, if they are of a transport that is supported.

    Raises:
        ConfigurationError: They are not.
    """
    if isinstance(params, StdioServerParams | StreamableHttpServerParams):
        return params
    raise ConfigurationError(
        f"{type(params).__name__} is no server that can be used here: give StdioServerParams, "
        "StreamableHttpServerParams (which took the place of SSE), or a McpWorkbench with them."
    )


def limits_of(params: ServerParams) -> McpLimits:
    """The default bounds, with the read time-out of the parameters where one was given."""
    own = "read_timeout_seconds" if isinstance(params, StdioServerParams) else "sse_read_timeout"
    if own not in params.model_fields_set:
        return McpLimits()
    return McpLimits(call_seconds=getattr(params, own))
