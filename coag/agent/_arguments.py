"""Reading AssistantAgent's arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from coag.compat import Tool, ToolRunner
from coag.context import CoagContext
from coag.cycle import CycleSettings
from coag.errors import ConfigurationError, UnknownNameError
from coag.models import Asker, Price
from coag.schema import Phase

SUMMARY = "{result}"
"""AssistantAgent's own form of the answer where a turn ends with a tool call."""
ASKING = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION, Phase.SELECTION)
"""Phases that ask a model."""


def tool_runner(
    tools: Sequence[Tool] | None,
    workbench: Workbench | Sequence[Workbench] | None,
    timeout: float,
    on_event: Callable[[object], None],
    characters: Callable[[], int],
) -> ToolRunner:
    """The external action space that tools or workbenches make.

    Raises:
        ConfigurationError: Both were given, or names are not unique.
    """
    if tools and workbench:
        raise ConfigurationError(
            "Tools cannot be used with a workbench: give tools or a workbench, not both."
        )
    benches = [workbench] if isinstance(workbench, Workbench) else list(workbench or ())
    return ToolRunner(tools or (), benches, timeout=timeout, on_event=on_event, readable=characters)


def context_from(given: ChatCompletionContext | None) -> CoagContext[Any]:
    """The given `CoagContext`, or a default one that shows what another context selects.

    Raises:
        ConfigurationError: It is no context.
    """
    if given is not None and not _is_context(given):
        raise ConfigurationError(
            f"model_context takes a context, e.g. CoagContext(), not {given!r}."
        )
    if isinstance(given, CoagContext):
        return cast("CoagContext[Any]", given)
    return CoagContext[Any](dialogue=given)


def _is_context(given: object) -> bool:
    """Whether it can do what a context does: AssistantAgent asks for no type, either."""
    return not isinstance(given, type) and all(
        callable(getattr(given, name, None)) for name in ("add_message", "get_messages", "clear")
    )


def tool_rounds(
    max_tool_iterations: int | None,
    *,
    reflect_on_tool_use: bool | None,
    summarises: bool,
    structured: bool,
) -> tuple[int | None, bool]:
    """How many times a turn may use tools, and whether an answer follows the last time.

    AssistantAgent uses tools once and then summarises or reflects. Here a turn goes on until it
    is answered, unless a number is given, or a summary is asked for: by
    `reflect_on_tool_use=False`, or by a form for it.

    Raises:
        ConfigurationError: The number is less than 1, or a structured answer is asked for
            together with a summary in its place.
    """
    if max_tool_iterations is not None and max_tool_iterations < 1:
        raise ConfigurationError(
            "Maximum number of tool iterations must be greater than or equal to 1, got "
            f"{max_tool_iterations!r} (max_tool_iterations; None for no limit)."
        )
    if reflect_on_tool_use is None:
        reflect = structured
        once = summarises and not structured
    else:
        reflect, once = reflect_on_tool_use, not reflect_on_tool_use
    rounds = 1 if once and max_tool_iterations is None else max_tool_iterations
    return rounds, reflect


def phase_askers(models: Mapping[str, ChatCompletionClient]) -> dict[Phase, Asker]:
    """The models of single phases.

    Raises:
        UnknownNameError: A name is no phase that asks a model; lists those that do.
    """
    unknown = next((name for name in models if name not in ASKING), None)
    if unknown is not None:
        raise UnknownNameError("phase that asks a model", unknown, ASKING)
    return {Phase(name): Asker(client) for name, client in models.items()}


def check_prices(
    settings: CycleSettings, prices: Mapping[str, Price], askers: Sequence[Asker]
) -> None:
    """Refuses a budget in money that cannot be kept.

    Raises:
        ConfigurationError: A model has no price.
    """
    unpriced = sorted({asker.name for asker in askers} - set(prices))
    if settings.budget.cost is not None and unpriced:
        raise ConfigurationError(
            f"budget.cost={settings.budget.cost!r} needs the price of every model; missing: "
            f"{', '.join(unpriced)}. Give prices={{{unpriced[0]!r}: Price(prompt=..., "
            "completion=...)}."
        )
