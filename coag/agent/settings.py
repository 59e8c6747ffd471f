"""What a `CoagAgent` is given: which arguments there are, what each may be, what they mean."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

from autogen_agentchat.messages import StructuredMessageFactory
from autogen_core import ComponentModel
from autogen_core.memory import Memory
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient, ModelInfo
from autogen_core.tools import Workbench
from pydantic import BaseModel, ValidationError

from coag.compat import Tool, ToolRunner
from coag.context import CoagContext
from coag.cycle import ApprovalPolicy, Bounds, Budget, CycleSettings, Part, check_rule
from coag.errors import ConfigurationError, UnknownNameError
from coag.memory import GateSettings, LongTermMemory, Procedure
from coag.models import Price, StructuredModel
from coag.schema import Phase, from_import_name, import_name
from coag.tracing import Recipe, Redactor

# ---- What can be set on a `CoagAgent` besides AssistantAgent's arguments ----


MemoryArgument = str | Path | LongTermMemory | Memory | Sequence[Memory]
"""Long-term memory: a folder, a Chroma server's URL, `":memory:"` for one in RAM, one of ours, or
AutoGen memories."""


class Deliberation(TypedDict, total=False):
    """How the agent deliberates; see `coag.CycleSettings` for what each means."""

    depth: Literal["full", "compact"]
    selection: Literal["model", "rank"]
    proposal: Literal["auto", "native", "json", "grounded"]
    parallel: bool
    enumerate_actions: bool | Literal["calls", "allowed"]
    answers: Literal["complete", "brief"]
    minimum_score: float
    recall_k: int
    summarize: bool
    module_seconds: float
    rule_seconds: float | None
    bounds: Bounds
    budget: Budget
    without: Collection[Part]


def cycle_settings(
    given: Deliberation, *, rounds: int | None, reflect: bool, info: ModelInfo, tools: bool
) -> CycleSettings:
    """The settings of every cycle.

    Args:
        given: What the caller set.
        rounds: How many times a turn may use tools; None leaves it to the bounds.
        reflect: Whether an answer follows the last time.
        info: What the model can do; `proposal="auto"` is decided by it.
        tools: Whether there are tools to call.

    Raises:
        TypeError: An argument that nothing has; lists those that exist.
        ConfigurationError: A setting that cannot be.
    """
    values: dict[str, Any] = dict(given)
    unknown = sorted(set(values) - set(CycleSettings.model_fields) | {"reflect"} & set(values))
    if unknown:
        known = [name for name in CycleSettings.model_fields if name != "reflect"]
        raise TypeError(
            f"CoagAgent has no argument {', '.join(map(repr, unknown))}. Beside AssistantAgent's "
            f"it has modules, constraints, procedures, logs, recipe, seed, tool_timeout, models, "
            f"prices, approval, approve, environment, gate, rewriting, {', '.join(known)}."
        )
    if rounds is not None:
        bounds: Bounds = values.get("bounds") or Bounds()
        values["bounds"] = bounds.model_copy(update={"actions": rounds})
    try:
        settings = CycleSettings.model_validate({**values, "reflect": reflect})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        told = f"{name}={first['input']!r}: {first['msg']}. See coag.CycleSettings."
        raise ConfigurationError(told) from error
    if settings.proposal != "auto":
        return settings
    return settings.model_copy(update={"proposal": _by_model(info, tools)})


def _by_model(info: ModelInfo, tools: bool) -> Literal["native", "json"]:
    """Native for a model that can call tools, or that is given none and knows no JSON either."""
    if info.get("function_calling", False):
        return "native"
    knows_json = info.get("json_output", False) or info.get("structured_output", False)
    return "json" if tools or knows_json else "native"


# ---- Reading AssistantAgent's arguments ----


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


def phase_askers(models: Mapping[str, ChatCompletionClient]) -> dict[Phase, StructuredModel]:
    """The models of single phases.

    Raises:
        UnknownNameError: A name is no phase that asks a model; lists those that do.
    """
    unknown = next((name for name in models if name not in ASKING), None)
    if unknown is not None:
        raise UnknownNameError("phase that asks a model", unknown, ASKING)
    return {Phase(name): StructuredModel(client) for name, client in models.items()}


def check_prices(
    settings: CycleSettings, prices: Mapping[str, Price], askers: Sequence[StructuredModel]
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


# ---- Refusing arguments of a `CoagAgent` that nothing could be made of, before anything is ----


Test = Callable[[Any], bool]

_ENVIRONMENT = ("snapshot", "restore", "close")
"""What every environment can do."""

_MODULE = ("observe", "contribute", "save_state", "load_state")
"""What every cognitive module can do, beside having a name."""


def _is(*kinds: type) -> Test:
    return lambda value: isinstance(value, kinds)


def _can(*names: str) -> Test:
    """Objects that have these, as AssistantAgent asks for no type: mocks and look-alikes, too."""
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names)


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _mapping_of(*kinds: type) -> Test:
    return lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(one, kinds) for one in cast("Mapping[Any, Any]", value).values())
    )


def _series(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _several(value: Any) -> bool:
    """Whether it can be gone through more than once."""
    return _series(value) and isinstance(value, Collection)


def _answers(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _place(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, str) and bool(value.strip()))


_bench = _can("list_tools", "call_tool")
_CLIENT = "an AutoGen chat completion client, e.g. open_model('openai:gpt-5-mini')"
_TAKES: Mapping[str, tuple[Test, str]] = {
    "model_client": (_can("create", "create_stream", "model_info"), _CLIENT),
    "models": (_or_none(_mapping_of(ChatCompletionClient)), f"for each phase {_CLIENT}"),
    "description": (_is(str), "a text"),
    "system_message": (_or_none(_is(str)), "a text, or None for none"),
    "metadata": (_or_none(_mapping_of(str)), "texts by name"),
    "tools": (_or_none(_series), "a list of tools or functions"),
    "workbench": (_or_none(lambda v: _bench(v) or _series(v)), "one workbench or several"),
    "handoffs": (_or_none(_series), "a list of agents' names or of Handoff"),
    "modules": (_several, "a list of cognitive modules"),
    "memory": (
        _or_none(lambda value: _is(str, Path, LongTermMemory, Memory)(value) or _series(value)),
        "a folder, a URL, a LongTermMemory, or AutoGen memories",
    ),
    "constraints": (_several, "a list of functions (candidate, state, projection)"),
    "procedures": (_or_none(_mapping_of(Procedure)), "Procedure objects by name"),
    "model_client_stream": (_is(bool), "True or False"),
    "reflect_on_tool_use": (_or_none(_is(bool)), "True, False or None"),
    "max_tool_iterations": (_or_none(_whole), "a whole number, or None for no limit"),
    "tool_call_summary_format": (_is(str), "a text with the place {result}"),
    "tool_call_summary_formatter": (_or_none(callable), "a function"),
    "output_content_type": (
        _or_none(_answers),
        "a class that derives from pydantic's BaseModel",
    ),
    "output_content_type_format": (_or_none(_is(str)), "a text with places of its fields"),
    "logs": (_or_none(_place), "a folder, or None to keep the trace in RAM"),
    "recipe": (_or_none(_is(Recipe)), "Recipe(factory='module:function', arguments={...})"),
    "seed": (_whole, "a whole number"),
    "tool_timeout": (_seconds, "a number of seconds greater than 0"),
    "prices": (_or_none(_mapping_of(Price)), "Price objects by the model's name"),
    "approval": (_or_none(_is(ApprovalPolicy)), "an ApprovalPolicy"),
    "approve": (_or_none(callable), "an approver, or a function from a request to True or False"),
    "environment": (
        _or_none(lambda value: all(callable(getattr(value, one, None)) for one in _ENVIRONMENT)),
        "an object with snapshot(), restore(state) and close()",
    ),
    "gate": (_or_none(_is(GateSettings)), "GateSettings(...)"),
    "events": (lambda value: value in ("stock", "phases"), "'stock' or 'phases'"),
    "rewriting": (_or_none(_is(bool)), "True, False or None"),
}
"""What each argument may be, and how that is told."""


def check(given: Mapping[str, Any]) -> None:
    """Refuses what an argument cannot be.

    Args:
        given: All arguments by name; further names are left out.

    Raises:
        ConfigurationError: Names the argument, what was given, and what it takes.
    """
    for name, (fits, takes) in _TAKES.items():
        if not fits(given[name]):
            raise ConfigurationError(f"{name} takes {takes}, not {_shown(given[name])}.")
    for rule in given["constraints"]:
        check_rule(rule)
    for module in given["modules"]:
        _check_module(module)
    _check_recipe(given["recipe"])


def check_grounded(proposal: str, context: CoagContext[Any]) -> None:
    """Refuses to take candidates from a domain that proposes none.

    Raises:
        ConfigurationError: The context's class has no `_propose_grounded` of its own.
    """
    kind, hooks = type(context), ("_propose_grounded", "propose_grounded")
    own = any(getattr(kind, hook) is not getattr(CoagContext, hook) for hook in hooks)
    if proposal == "grounded" and not own:
        raise ConfigurationError(
            f"proposal='grounded' takes the candidates from the domain, and {kind.__name__} has no "
            "_propose_grounded. Write one in your CoagContext and give it as model_context, or "
            "let the model propose: proposal='auto'."
        )


def _check_module(module: object) -> None:
    name: object = getattr(module, "name", None)
    missing = [one for one in _MODULE if not callable(getattr(module, one, None))]
    if not isinstance(name, str) or isinstance(module, type) or missing:
        lacks = f"has no {missing[0]}()" if missing else f"has no text as its name but {name!r}"
        if isinstance(module, type):
            lacks = "is a class: give an object of it"
        raise ConfigurationError(
            f"modules: {_shown(module)} is no cognitive module, it {lacks}. See "
            "coag.schema.CognitiveModule."
        )


def _check_recipe(recipe: Recipe | None) -> None:
    """Refuses arguments that `run.json` would not keep: the factory would get `[redacted]`."""
    if recipe is None:
        return
    for name, value in recipe.arguments.items():
        told = json.dumps({name: value}, default=str)
        if Redactor.from_environment().clean(told) != told:
            raise ConfigurationError(
                f"recipe: the argument {name!r} holds what looks like a secret, which no run "
                "keeps. Let the factory take it from the environment."
            )


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:100]}…"


# ---- The type of an agent's answers in its component ----


def output_fields(kind: type[BaseModel] | None) -> dict[str, Any]:
    """The fields of a component that tell the type of answers.

    By import name where it has one; else as AutoGen does it, from which a like type is made.

    Raises:
        ConfigurationError: It cannot be imported, nor made again from its JSON Schema.
    """
    if kind is None:
        return {}
    try:
        name = import_name(kind)
    except ConfigurationError:
        name = "__main__:"
    if not name.startswith("__main__:"):
        return {"output_content_type": name}
    try:
        once = StructuredMessageFactory(input_model=kind).dump_component()
        # What AutoGen makes of a schema has a schema that differs a little; the next is the same.
        again = StructuredMessageFactory(input_model=_made(once)).dump_component()
    except Exception as error:  # AutoGen's own errors here derive from nothing narrower
        raise ConfigurationError(
            f"output_content_type= {kind.__name__} cannot be written down: {error}. Move it to "
            "the top level of a module."
        ) from error
    return {"structured_message_factory": again}


def load_output_type(name: str | None, factory: ComponentModel | None) -> dict[str, Any]:
    """The arguments that `output_fields` was given; with AutoGen's own format, where it has one."""
    if name is not None:
        return {"output_content_type": from_import_name(name)}
    if factory is None:
        return {}
    given: dict[str, Any] = {"output_content_type": _made(factory)}
    text = factory.config.get("format_string")
    return given if text is None else {**given, "output_content_type_format": text}


def _made(factory: ComponentModel) -> type[BaseModel]:
    made = StructuredMessageFactory.load_component(factory).ContentModel
    # AutoGen loses the description, which models read.
    made.__doc__ = factory.config["json_schema"].get("description")
    return made
