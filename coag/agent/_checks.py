"""Refusing arguments of a `CoagAgent` that nothing could be made of, before anything is."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from autogen_core.memory import Memory
from autogen_core.models import ChatCompletionClient
from pydantic import BaseModel

from coag.context import CoagContext
from coag.cycle import ApprovalPolicy, check_rule
from coag.errors import ConfigurationError
from coag.memory import GateSettings, LongTermMemory, Procedure
from coag.models import Price
from coag.tracing import Recipe, Redactor

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
