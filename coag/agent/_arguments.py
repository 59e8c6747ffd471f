"""Reading AssistantAgent's arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from autogen_core.model_context import ChatCompletionContext
from autogen_core.tools import Workbench

from coag.compat import Tool, ToolRunner
from coag.context import CoagContext
from coag.errors import ConfigurationError


def tool_runner(
    tools: Sequence[Tool] | None, workbench: Workbench | Sequence[Workbench] | None, timeout: float
) -> ToolRunner:
    """The external action space that tools or workbenches make.

    Raises:
        ConfigurationError: Both were given, or names are not unique.
    """
    if tools and workbench:
        raise ConfigurationError("Give tools or a workbench, not both.")
    benches = [workbench] if isinstance(workbench, Workbench) else list(workbench or ())
    return ToolRunner(tools or (), benches, timeout=timeout)


def context_from(given: ChatCompletionContext | None) -> CoagContext[Any]:
    """The given `CoagContext`, or a default one that shows what another context selects.

    Raises:
        ConfigurationError: It is no context.
    """
    if given is not None and not isinstance(given, ChatCompletionContext):  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
        raise ConfigurationError(
            f"model_context takes a context, e.g. CoagContext(), not {given!r}."
        )
    if isinstance(given, CoagContext):
        return cast("CoagContext[Any]", given)
    return CoagContext[Any](dialogue=given)


def refuse_unsupported(
    handoffs: Sequence[object] | None,
    model_client_stream: bool,
    output_content_type: type | None,
    reflect_on_tool_use: bool | None,
) -> None:
    """Refuses arguments that this version gives no meaning, rather than ignoring them.

    Raises:
        ConfigurationError: Names them.
    """
    given = {
        "handoffs": bool(handoffs),
        "model_client_stream": model_client_stream,
        "output_content_type": output_content_type is not None,
        "reflect_on_tool_use=False": reflect_on_tool_use is False,
    }
    asked = [name for name, is_given in given.items() if is_given]
    if asked:
        raise ConfigurationError(
            f"CoagAgent does not support {', '.join(asked)} yet: every result is deliberated "
            "on in the next cycle, and the answer is one text. Leave it out."
        )
