"""The declarative form of a context: what its constructor was given, never what was said."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from autogen_core import Component, ComponentModel
from autogen_core.model_context import ChatCompletionContext
from pydantic import BaseModel, ConfigDict

from coag.errors import ConfigurationError
from coag.schema import Imported, SystemClock, from_import_name, import_name, provider_name

from ._budgets import Budgets
from ._parts import from_part, load_context, nested_component, to_part
from ._rendering import Rendering
from ._secrets import check_public


class CoagContextConfig(BaseModel):
    """The declarative form of a context: how it renders, never what was said.

    What is None or missing was not given: the class's own default holds.
    """

    model_config = ConfigDict(extra="forbid")

    rendering: Rendering | None = None
    """How a cycle's prompts relate to each other."""
    budgets: Budgets | None = None
    """Token budgets of the sections."""
    activity: str | None = None
    """Name of the activity."""
    dialogue: ComponentModel | None = None
    """Another context that decides which messages of the dialogue are shown."""
    clock: Imported | None = None
    """Where the time of messages comes from."""
    perceptual_state_schema: str | None = None
    """Import name of the schema that the class has; another one is refused at loading."""
    arguments: dict[str, Any] = {}
    """What else a subclass's constructor was given, by name, as `to_part` writes it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a context's constructor was given."""

    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ContextComponent(ChatCompletionContext, Component[CoagContextConfig]):
    """A context whose component tells what its constructor was given."""

    component_config_schema = CoagContextConfig
    _given: Given

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keeps what the constructor is given, so that a component tells of it as it was."""
        context = super().__new__(cls)
        context._given = Given(args, kwargs)
        return context

    def dump_component(self) -> ComponentModel:
        """The component of this very class: how to make the context, never what was said.

        Raises:
            ConfigurationError: The class, its schema or an argument cannot be imported.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    @property
    def _state_schema(self) -> type:
        raise NotImplementedError

    def _named_arguments(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        return given_to(type(self), self._given)

    def _to_config(self) -> CoagContextConfig:
        return context_config(self._named_arguments(), type(self), self._state_schema)

    @classmethod
    def _from_config(cls, config: CoagContextConfig) -> Self:
        context = cls(**context_arguments(config, cls))
        check_schema(config, cls, context._state_schema)
        return context


def given_to(kind: type, given: Given) -> dict[str, Any]:
    """The arguments by name.

    Raises:
        ConfigurationError: Some have no name to give them by.
    """
    signature = inspect.signature(kind.__init__)
    bound = signature.bind(None, *given.positional, **given.named).arguments
    named: dict[str, Any] = {}
    for name, value in list(bound.items())[1:]:
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_KEYWORD:
                named |= value
            case inspect.Parameter.POSITIONAL_ONLY | inspect.Parameter.VAR_POSITIONAL:
                raise ConfigurationError(
                    f"{kind.__name__} takes {name!r} by position only, which a component cannot "
                    "give. Let its constructor take it by name."
                )
            case _:
                named[name] = value
    return named


def context_config(named: Mapping[str, Any], kind: type, schema: type) -> CoagContextConfig:
    """The declarative form of a context.

    Counters of ids are state and not part of it; the machine's clock is the default.

    Args:
        named: The constructor's arguments by name.
        kind: The context's class.
        schema: Its schema of the perceptual state.

    Raises:
        ConfigurationError: The schema or an argument cannot be written down.
    """
    typed: dict[str, Any] = {"perceptual_state_schema": import_name(schema)}
    further: dict[str, Any] = {}
    for name, value in named.items():
        where = f"{name} of {kind.__name__}"
        match name, value:
            case ("ids", _) | ("clock", SystemClock()):
                continue
            case "rendering", str():
                typed[name] = Rendering(value)
            case ("budgets", Budgets()) | ("activity", str()):
                typed[name] = value
            case "dialogue", ChatCompletionContext():
                typed[name] = nested_component(cast("object", value), where)
            case "clock", _ if value is not None:
                typed[name] = Imported.of(value)
            case _:
                further[name] = to_part(value, where)
    check_public(further, f"The component of {kind.__name__}")
    return CoagContextConfig(**typed, arguments=further)


def context_arguments(config: CoagContextConfig, kind: type) -> dict[str, Any]:
    """The constructor's arguments for `kind`, besides the schema, which the class has itself.

    Raises:
        ConfigurationError: Something that the component names does not exist any more.
    """
    named = {name: from_part(part) for name, part in config.arguments.items()}
    for name in ("rendering", "budgets", "activity"):
        if (value := getattr(config, name)) is not None:
            named[name] = value
    if config.dialogue is not None:
        named["dialogue"] = load_context(config.dialogue)
    if config.clock is not None:
        named["clock"] = config.clock.get()
    parameters = inspect.signature(kind).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    unknown = sorted(set(named) - set(parameters))
    if unknown and not open_ended:
        raise ConfigurationError(
            f"This component gives {kind.__name__} {unknown}, which it does not take. Dump it "
            "anew, or let the constructor take them."
        )
    return named


def check_schema(config: CoagContextConfig, kind: type, schema: type) -> None:
    """Refuses a component of a context with another perceptual state.

    Raises:
        ConfigurationError: The class has another schema now, or the schema is gone.
    """
    name = config.perceptual_state_schema
    if name is not None and from_import_name(name) is not schema:
        raise ConfigurationError(
            f"This component is of a {kind.__name__} whose perceptual state is {name!r}; now it "
            f"is {import_name(schema)!r}. Dump the context anew."
        )
