"""What a `CoagAgent` is given: each argument once, with its type, its default and its check."""

# ruff: noqa: RUF009 - `_option` gives a field of a dataclass

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast

from autogen_agentchat.base import Handoff
from autogen_core import FunctionCall
from autogen_core.memory import Memory
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient, FunctionExecutionResult, ModelInfo
from autogen_core.tools import Workbench
from pydantic import BaseModel, ValidationError

from coag.compat import ConstrainedClient, Tool
from coag.cycle import (
    Ablation,
    ApprovalPolicy,
    ApproveFunction,
    Bounds,
    Budget,
    CycleSettings,
    check_rule,
)
from coag.errors import ConfigurationError
from coag.memory import GateSettings, LongTermMemory, Procedure
from coag.memory.dynamics import MemoryDynamicsSettings, Preset
from coag.models import Price
from coag.schema import CognitiveModule, Constraint, Depth, Environment, Redactor
from coag.tracing import Recipe

DESCRIPTION = "An agent that deliberates before it acts, and uses tools."
SYSTEM_MESSAGE = (
    "You are a helpful AI assistant. Solve tasks using your tools. Reply with TERMINATE when the "
    "task has been completed."
)
"""AssistantAgent's own."""
SUMMARY = "{result}"
"""AssistantAgent's own form of the answer where a turn ends with a tool call."""
MemoryArgument = str | Path | LongTermMemory | Memory | Sequence[Memory]
"""Long-term memory: a folder, a Chroma server's URL, `":memory:"` for one in RAM, one of ours, or
AutoGen memories."""
DEFAULT: Any = ...
"""Means the default of `CycleSettings`."""
EARLIER: Mapping[str, str] = {"selection": "model", "prompts": "whole"}
"""Settings with their earlier defaults, for runs that do not name them."""

# ---- What an argument may be ----

Test = Callable[[Any], bool]


def _is(*kinds: type) -> Test:
    return lambda value: isinstance(value, kinds)


def _has(*names: str) -> Test:
    """Objects with these attributes; as in AssistantAgent, look-alikes and mocks are taken too."""
    return lambda value: not isinstance(value, type) and all(hasattr(value, name) for name in names)


def _mapping_of(*kinds: type) -> Test:
    return lambda value: (
        isinstance(value, Mapping)
        and all(isinstance(one, kinds) for one in cast("Mapping[Any, Any]", value).values())
    )


def _series(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _list(value: Any) -> bool:
    return _series(value) and isinstance(value, Collection)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def _folder(value: Any) -> bool:
    return isinstance(value, Path) or (isinstance(value, str) and bool(value.strip()))


def _answer_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel) and value is not BaseModel


def _workbenches(value: Any) -> bool:
    return _has("list_tools", "call_tool")(value) or _series(value)


def _memory(value: Any) -> bool:
    return isinstance(value, str | Path | LongTermMemory | Memory) or _series(value)


def _option(default: Any, test: Test, takes: str) -> Any:
    return field(default=default, metadata={"fits": test, "takes": takes})


def _maybe(test: Test, takes: str) -> Any:
    return _option(None, lambda value: value is None or test(value), takes)


_CLIENT = "an AutoGen chat completion client, e.g. open_model('openai:gpt-5-mini')"
_client = _has("create", "create_stream", "model_info")
_environment = _has("snapshot", "restore", "close")
_MODULE_METHODS = ("observe", "contribute", "save_state", "load_state")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentArguments:
    """The arguments of `CoagAgent`: AssistantAgent's, ours, and those of `CycleSettings`.

    Raises:
        ConfigurationError: Names the argument, what was given, and what it takes.
    """

    name: str = field(kw_only=False)
    """The agent's name, a Python identifier."""
    model_client: ChatCompletionClient = field(
        kw_only=False, metadata={"fits": _client, "takes": _CLIENT}
    )
    """Any AutoGen chat completion client."""
    tools: Sequence[Tool] | None = _maybe(_series, "a list of tools or functions")
    """AutoGen tools, or functions with annotated arguments and a docstring."""
    workbench: Workbench | Sequence[Workbench] | None = _maybe(
        _workbenches, "one workbench or several"
    )
    """AutoGen workbenches instead of tools."""
    handoffs: Sequence[Handoff | str] | None = _maybe(
        _series, "a list of agents' names or of Handoff"
    )
    """Agents that this one can hand over to."""
    model_context: ChatCompletionContext | None = None
    """A `CoagContext` for the domain; any other AutoGen context decides which messages of the
    dialogue are shown."""
    description: str = _option(DESCRIPTION, _is(str), "a text")
    """What the agent can do, for teams."""
    system_message: str | None = _option(
        SYSTEM_MESSAGE, _is(str, type(None)), "a text, or None for none"
    )
    """Instructions of the developer. None sends no system message at all."""
    model_client_stream: bool = _option(False, _is(bool), "True or False")
    """Shows an answer while it is written, where nothing can reject it any more; otherwise as one
    piece."""
    reflect_on_tool_use: bool | None = _maybe(_is(bool), "True, False or None")
    """With a limit on tool use, whether an answer follows the last time (True) or a summary of it
    is the answer. False without a limit means once."""
    max_tool_iterations: int | None = _maybe(_integer, "a whole number, or None for no limit")
    """Cycles of a turn that may use tools; None until the turn is answered or another bound is
    reached."""
    tool_call_summary_format: str = _option(SUMMARY, _is(str), "a text with the place {result}")
    """Form of the summary where a turn ends with a tool call."""
    tool_call_summary_formatter: Callable[[FunctionCall, FunctionExecutionResult], str] | None = (
        _maybe(callable, "a function")
    )
    """A function that makes the summary instead."""
    output_content_type: type[BaseModel] | None = _maybe(
        _answer_type, "a class that derives from pydantic's BaseModel"
    )
    """The form that every answer has."""
    output_content_type_format: str | None = _maybe(_is(str), "a text with places of its fields")
    """How such an answer reads as text."""
    memory: MemoryArgument | None = _maybe(
        _memory, "a folder, a URL, a LongTermMemory, or AutoGen memories"
    )
    """Long-term memory, to which the agent is offered actions: a folder, a Chroma server's URL, a
    `LongTermMemory`, or `":memory:"` for one in RAM. Or a list of AutoGen memories, which are only
    read."""
    memory_dynamics: Preset | MemoryDynamicsSettings | None = _maybe(
        _is(str, MemoryDynamicsSettings), "'assistant', 'companion', 'npc', 'plain' or settings"
    )
    """How memory in a folder or in RAM changes with time and use; a `LongTermMemory` has its own
    (`dynamics=`). See docs/memory-dynamics.md."""
    metadata: Mapping[str, str] | None = _maybe(_mapping_of(str), "texts by name")
    """Kept with the agent, as AssistantAgent does."""
    modules: Sequence[CognitiveModule] = _option((), _list, "a list of cognitive modules")
    """Cognitive modules."""
    constraints: Sequence[Constraint] = _option(
        (), _list, "a list of functions (candidate, state, projection)"
    )
    """Hard rules in code; see also `agent.constraints`."""
    procedures: Mapping[str, Procedure] | None = _maybe(
        _mapping_of(Procedure), "Procedure objects by name"
    )
    """Prompts that take the place of the seeds of the same name."""
    logs: Path | str | None = _maybe(_folder, "a folder, or None to keep the trace in RAM")
    """Folder for run folders; None keeps the trace in RAM."""
    recipe: Recipe | None = _maybe(
        _is(Recipe), "Recipe(factory='module:function', arguments={...})"
    )
    """How to build this agent again, for `resume`, replays and forks; see docs/recipes.md."""
    seed: int = _option(0, _integer, "a whole number")
    """Seed of the run's random source."""
    tool_timeout: float = _option(60.0, _seconds, "a number of seconds greater than 0")
    """Seconds that one tool call, or one action of a module, may take."""
    models: Mapping[str, ChatCompletionClient] | None = _maybe(
        _mapping_of(ChatCompletionClient), f"for each phase {_CLIENT}"
    )
    """Models of their own for phases, e.g. `{"evaluation": strong}`; `model_client` serves the
    rest."""
    prices: Mapping[str, Price] | None = _maybe(
        _mapping_of(Price), "Price objects by the model's name"
    )
    """What models cost, by name, for a budget in money."""
    approval: ApprovalPolicy | None = _maybe(_is(ApprovalPolicy), "an ApprovalPolicy")
    """Which actions somebody must approve; all but `respond` if only `approve` is given."""
    approve: ApproveFunction | None = _maybe(
        callable, "an approver, or a function from a request to True or False"
    )
    """Who is asked: an approver, or a function from a request to True or False."""
    environment: Environment | None = _maybe(
        _environment, "an object with snapshot(), restore(state) and close()"
    )
    """What the agent acts in, if it can report its state: each cycle's snapshot holds it, so that
    a fork can continue from there."""
    gate: GateSettings | None = _maybe(_is(GateSettings), "GateSettings(...)")
    """How strict the gate of procedures is. By default a rule that was made after untrusted text
    was shown waits for approval (`agent.procedures.pending()` and `.approve`)."""
    remembering: bool | None = _maybe(_is(bool), "True, False or None")
    """Whether the agent is offered actions that write to its long-term memory; None for where it
    has a memory of its own, as for `rewriting`."""
    rewriting: bool | None = _maybe(_is(bool), "True, False or None")
    """Whether the agent may change its standing rules; None for where it has a memory of its own,
    i.e. `memory=` is a folder, an address or a `LongTermMemory`."""
    events: Literal["stock", "phases"] = _option(
        "stock", lambda value: value in ("stock", "phases"), "'stock' or 'phases'"
    )
    """`stock`: the agent shows what AssistantAgent shows. `phases`: a `ThoughtEvent` for every
    phase, too. The trace, OpenTelemetry and `PhaseConsole` have them anyway."""
    depth: Depth = DEFAULT
    """See `CycleSettings` for this and the following arguments."""
    close_scores: float = DEFAULT
    reflex_gain: float | None = DEFAULT
    compile_after: int = DEFAULT
    selection: Literal["ties", "rank", "model"] = DEFAULT
    prompts: Literal["lean", "whole"] = DEFAULT
    proposal: Literal["auto", "native", "json", "grounded"] = DEFAULT
    parallel: bool = DEFAULT
    enumerate_actions: bool | Literal["calls", "allowed"] = DEFAULT
    answers: Literal["complete", "brief"] = DEFAULT
    minimum_score: float = DEFAULT
    recall_k: int = DEFAULT
    summarize: bool = DEFAULT
    module_seconds: float = DEFAULT
    rule_seconds: float | None = DEFAULT
    bounds: Bounds = DEFAULT
    budget: Budget = DEFAULT
    ablations: Collection[Ablation] = DEFAULT

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.metadata and not one.metadata["fits"](value):
                raise ConfigurationError(
                    f"{one.name} takes {one.metadata['takes']}, not {_shown(value)}."
                )
        for client in (self.model_client, *(self.models or {}).values()):
            if isinstance(client, ConstrainedClient):
                raise ConfigurationError(
                    "A ConstrainedClient is for stock agents; a CoagAgent judges its own words. "
                    "Give it the client within (`wrapped`), and the rules as constraints=."
                )
        for rule in self.constraints:
            check_rule(rule)
        for module in self.modules:
            _check_module(module)
        for name, value in ({} if self.recipe is None else self.recipe.arguments).items():
            text = json.dumps({name: value}, default=str)
            # The factory would get `[redacted]`.
            if Redactor.from_environment().clean(text) != text:
                problem = f"recipe: the argument {name!r} holds what looks like a secret"
                raise ConfigurationError(
                    f"{problem}. Let the factory take it from the environment."
                )

    def keywords(self) -> dict[str, Any]:
        """All arguments by name, as the constructor takes them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def deliberation(self) -> dict[str, Any]:
        """Those of `CycleSettings` that were given."""
        named = {name: getattr(self, name, DEFAULT) for name in CycleSettings.model_fields}
        return {name: value for name, value in named.items() if value is not DEFAULT}

    def recorded_defaults(self, configuration: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that a run was recorded with, where these arguments leave them to the defaults.

        Args:
            configuration: The `configuration` of the run's `run.json`.
        """
        recorded = {**EARLIER, **configuration.get("settings", {})}
        return {name: recorded[name] for name in EARLIER if getattr(self, name) is DEFAULT}

    def cycle_settings(self, *, has_tools: bool) -> CycleSettings:
        """The settings of every cycle.

        Raises:
            ConfigurationError: A setting that cannot be.
        """
        values, (rounds, reflect) = self.deliberation, self._tool_rounds()
        if rounds is not None:
            bounds: Bounds = values.get("bounds") or Bounds()
            values["bounds"] = bounds.model_copy(update={"actions": rounds})
        try:
            settings = CycleSettings.model_validate({**values, "reflect": reflect})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise ConfigurationError(
                f"{name}={first['input']!r}: {first['msg']}. See coag.CycleSettings."
            ) from error
        if settings.proposal != "auto":
            return settings
        proposal = _proposal_for(self.model_client.model_info, has_tools)
        return settings.model_copy(update={"proposal": proposal})

    def _tool_rounds(self) -> tuple[int | None, bool]:
        """How many times a turn may use tools, and whether an answer follows the last time.

        AssistantAgent uses tools once and then summarises or reflects. Here a turn continues until
        it is answered, unless a number is given, or a summary is asked for: by
        `reflect_on_tool_use=False`, or by a form for it.
        """
        limit, reflect = self.max_tool_iterations, self.reflect_on_tool_use
        if limit is not None and limit < 1:
            least = "Maximum number of tool iterations must be greater than or equal to 1"
            raise ConfigurationError(f"{least}, got {limit!r} (max_tool_iterations).")
        structured = self.output_content_type is not None
        once = reflect is False
        if reflect is None:
            summarises = self.tool_call_summary_format != SUMMARY or bool(
                self.tool_call_summary_formatter
            )
            reflect, once = structured, summarises and not structured
        return (1 if once and limit is None else limit), reflect


def _proposal_for(info: ModelInfo, tools: bool) -> Literal["native", "json"]:
    """Native for a model that can call tools, or that is given none and knows no JSON either."""
    if info.get("function_calling", False):
        return "native"
    knows_json = info.get("json_output", False) or info.get("structured_output", False)
    return "json" if tools or knows_json else "native"


def _check_module(module: object) -> None:
    name: object = getattr(module, "name", None)
    problems = {
        "is a class: give an object of it": isinstance(module, type),
        **{f"has no {one}()": not callable(getattr(module, one, None)) for one in _MODULE_METHODS},
        f"has no text as its name but {name!r}": not isinstance(name, str),
    }
    problem = next((text for text, holds in problems.items() if holds), None)
    if problem is not None:
        text = f"modules: {_shown(module)} is no cognitive module, it {problem}"
        raise ConfigurationError(f"{text}. See coag.schema.CognitiveModule.")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


# ---- A constructor that takes them ----


AgentT = TypeVar("AgentT")
P = ParamSpec("P")


def takes_arguments(
    arguments: Callable[P, AgentArguments],
) -> Callable[[Callable[[AgentT, AgentArguments], None]], Callable[Concatenate[AgentT, P], None]]:
    """Gives a constructor the parameters of `AgentArguments`, and itself the value of them."""
    signature = inspect.signature(arguments)

    def decorate(
        init: Callable[[AgentT, AgentArguments], None],
    ) -> Callable[Concatenate[AgentT, P], None]:
        @wraps(init)
        def construct(self: AgentT, /, *given: P.args, **named: P.kwargs) -> None:
            if "without" in named:
                warnings.warn("without= is now ablations=.", DeprecationWarning, stacklevel=2)
                named["ablations"] = named.pop("without")
            unknown = [name for name in named if name not in signature.parameters]
            if unknown:
                lacks = f"{type(self).__name__} has no argument {', '.join(map(repr, unknown))}"
                raise TypeError(f"{lacks}. It has: {', '.join(signature.parameters)}.")
            init(self, arguments(*given, **named))

        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [own, *signature.parameters.values()]
        setattr(construct, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - functions have no such attribute by type
        return construct

    return decorate
