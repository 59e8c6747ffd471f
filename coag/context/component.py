"""A context as an AutoGen component, from JSON and back."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any, Self, cast

from autogen_core import Component, ComponentLoader, ComponentModel, ComponentToConfig
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import LLMMessage
from pydantic import BaseModel, ConfigDict, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from coag.errors import ConfigurationError
from coag.schema import (
    Imported,
    SystemClock,
    check_own_code,
    from_import_name,
    import_name,
    provider_name,
)

from .prompt_budgets import Budgets
from .prompts import Rendering
from .states import check_public

# ---- Values and components within a component: as JSON that gives the same back ----


_IMPORT, _MAKE, _ARGUMENTS = "$import", "$make", "arguments"
_BUILD, _COMPONENT, _TUPLE, _SET, _PATH = "$build", "$component", "$tuple", "$set", "$path"
_UNDUMPED = (NotImplementedError, AttributeError, TypeError, ValueError, OSError)
_MESSAGES: TypeAdapter[list[LLMMessage]] = TypeAdapter(list[LLMMessage])


def to_part(value: object, where: str) -> Any:
    """A value as JSON, to be given back by `from_part`.

    JSON stays as it is. Functions and classes go by import name; dataclasses, pydantic models,
    enumerations, tuples, frozen sets and paths are marked as such; AutoGen components are nested.

    Args:
        value: What was given.
        where: What it was given as, for errors.

    Raises:
        ConfigurationError: It cannot be given back.
    """
    kind: type = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float and isfinite(cast("float", value)):
        return value
    if kind in (list, tuple):
        items = [to_part(item, where) for item in cast("list[object]", value)]
        return items if kind is list else {_TUPLE: items}
    if kind is not dict:
        return _marked(value, where)
    fields = cast("dict[object, object]", value)
    odd = [key for key in fields if not isinstance(key, str) or key.startswith("$")]
    if odd:
        raise ConfigurationError(
            f"{where} cannot be written down: {odd[0]!r} is a key that JSON has no place for, or "
            "begins with '$', which marks values here. Use names as keys."
        )
    return {str(key): to_part(item, where) for key, item in fields.items()}


def _marked(value: object, where: str) -> dict[str, Any]:
    """What JSON has no form of its own for."""
    if isinstance(value, Path):
        return {_PATH: str(value)}
    if isinstance(value, Enum):
        return {_IMPORT: f"{import_name(type(value))}.{value.name}"}
    if hasattr(value, "dump_component"):
        return {_COMPONENT: nested_component(value, where).model_dump(mode="json")}
    if isinstance(value, frozenset):
        items = [to_part(item, where) for item in cast("frozenset[object]", value)]
        return {_SET: sorted(items, key=json.dumps)}
    try:
        result = Imported.of(value)
    except ConfigurationError as error:
        if isinstance(value, BaseModel) and not isinstance(error.__cause__, ValidationError):
            return _built(value, where)
        raise ConfigurationError(f"{where} cannot be written down: {error}") from error
    if result.arguments is None:
        return {_IMPORT: result.name}
    return {_MAKE: result.name, _ARGUMENTS: result.arguments}


def _built(value: BaseModel, where: str) -> dict[str, Any]:
    """A model that has more than JSON in its fields, e.g. functions."""
    kind = type(value)
    fields = {name: getattr(value, name) for name in kind.model_fields}
    parts = {name: to_part(field, f"{name} of {where}") for name, field in fields.items()}
    built = {_BUILD: import_name(kind), _ARGUMENTS: parts}
    made = from_part(json.loads(json.dumps(built)))
    if {name: getattr(made, name) for name in fields} != fields:
        raise ConfigurationError(
            f"{where} cannot be written down: a {kind.__name__} does not come back from its "
            "fields as it was."
        )
    return built


def from_part(part: Any) -> Any:
    """The value that `to_part` was given.

    Raises:
        ConfigurationError: It names something that does not exist any more.
    """
    if isinstance(part, list):
        return [from_part(item) for item in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    fields = cast("dict[str, Any]", part)
    for mark, read in _READERS.items():
        if mark in fields:
            return read(fields[mark], fields.get(_ARGUMENTS, {}))
    return {key: from_part(item) for key, item in fields.items()}


def _read_import(name: str, _: object) -> Any:
    result = from_import_name(name)
    check_own_code(result, name)
    return result


def _read_build(name: str, arguments: dict[str, Any]) -> Any:
    kind = from_import_name(name)
    if not isinstance(kind, type) or not issubclass(kind, BaseModel):
        raise ConfigurationError(f"{name!r} is no pydantic model and is not made from arguments.")
    return kind(**{key: from_part(argument) for key, argument in arguments.items()})


_READERS: Mapping[str, Callable[[Any, dict[str, Any]], Any]] = {
    _IMPORT: _read_import,
    _MAKE: lambda name, arguments: Imported(name=name, arguments=arguments).get(),
    _BUILD: _read_build,
    _TUPLE: lambda items, _: tuple(map(from_part, items)),
    _SET: lambda items, _: frozenset(map(from_part, items)),
    _PATH: lambda path, _: Path(path),
    _COMPONENT: lambda model, _: ComponentLoader.load_component(model, expected=object),
}
"""How each mark is read: from its value, and the arguments beside it."""


def nested_component(value: object, where: str) -> ComponentModel:
    """The component of an object within another's: as itself, plain JSON, and without secrets.

    What AutoGen keeps as a `SecretStr`, such as an API key, is left out: the loaded client finds
    its key in the environment.

    Args:
        value: An AutoGen component.
        where: What it was given as, for errors.

    Raises:
        ConfigurationError: It is no component, holds a secret, or cannot be imported.
    """
    dump = getattr(value, "dump_component", None)
    if dump is None:
        raise ConfigurationError(
            f"{where}: a {type(value).__name__} is no AutoGen component and cannot be written down."
        )
    try:
        with warnings.catch_warnings():
            # a private path is corrected or refused below
            warnings.filterwarnings("ignore", "Internal module name used in provider string")
            dumped = cast("ComponentModel", dump())
        bare = ComponentModel.model_validate(_unmasked(dumped.model_dump()))
        plain = ComponentModel.model_validate_json(bare.model_dump_json())
        # What only looks like a component, e.g. a mock, says itself what loads it.
        own = issubclass(type(value), ComponentToConfig)
        provider = _own_provider(type(value), plain.provider) if own else plain.provider
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    except (*_UNDUMPED, PydanticSerializationError) as error:
        raise ConfigurationError(
            f"{where}: the component of a {type(value).__name__} cannot be written down: {error}"
        ) from error
    check_public(plain.config, where)
    return plain.model_copy(update={"provider": provider})


def load_context(component: ComponentModel) -> ChatCompletionContext:
    """A context from its component, with its first messages as messages.

    AutoGen gives some contexts dictionaries in their place.
    """
    context = ChatCompletionContext.load_component(component)
    given = component.config.get("initial_messages")
    retained: list[Any] = getattr(context, "_messages", [])
    if given and any(isinstance(message, dict) for message in retained):
        messages = _MESSAGES.validate_python(given)
        # The base class of AutoGen's contexts has no other way to set them.
        vars(context).update(_messages=list(messages), _initial_messages=messages)
    return context


def _own_provider(kind: type, dumped: str) -> str:
    """What loads the class itself, where it inherited what loads its parent."""
    module, _, name = dumped.rpartition(".")
    try:
        result: object = from_import_name(f"{module}:{name}")
    except ConfigurationError:
        result = None
    return dumped if result is kind and "._" not in f".{dumped}" else provider_name(kind)


def _unmasked(value: Any) -> Any:
    """The value without its secrets, which JSON would show as stars."""
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        secret = (SecretStr, SecretBytes)
        return {key: _unmasked(item) for key, item in items if not isinstance(item, secret)}
    if isinstance(value, list | tuple):
        return [_unmasked(item) for item in cast("list[Any]", value)]
    return value


# ---- The declarative form of a context: what its constructor was given, never what was said ----


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


class ContextComponent(ChatCompletionContext, Component[CoagContextConfig]):
    """A context whose component holds what its constructor was given."""

    component_config_schema = CoagContextConfig
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    """What the constructor was given, by position and by name."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keeps what the constructor is given, so that a component holds it as it was."""
        context = super().__new__(cls)
        context._arguments = (args, kwargs)
        return context

    def dump_component(self) -> ComponentModel:
        """The component of this very class: how to make the context, never its dialogue.

        Raises:
            ConfigurationError: The class, its schema or an argument cannot be imported.
        """
        dumped = super().dump_component()
        return dumped.model_copy(update={"provider": provider_name(type(self))})

    @property
    def perceptual_state_schema(self) -> type[Any]:
        """The pydantic model of the perceptual state."""
        raise NotImplementedError

    def _named_arguments(self) -> dict[str, Any]:
        """The constructor's arguments by name."""
        kind, (positional, keywords) = type(self), self._arguments
        signature = inspect.signature(kind.__init__)
        named: dict[str, Any] = {}
        bound = signature.bind(None, *positional, **keywords).arguments
        for name, value in list(bound.items())[1:]:
            match signature.parameters[name].kind:
                case inspect.Parameter.VAR_KEYWORD:
                    named |= value
                case inspect.Parameter.POSITIONAL_ONLY | inspect.Parameter.VAR_POSITIONAL:
                    raise ConfigurationError(
                        f"{kind.__name__} takes {name!r} by position only, which a component "
                        "cannot give. Let its constructor take it by name."
                    )
                case _:
                    named[name] = value
        return named

    def _to_config(self) -> CoagContextConfig:
        """Counters of ids are state and not part of it; the machine's clock is the default."""
        kind = type(self).__name__
        typed: dict[str, Any] = {
            "perceptual_state_schema": import_name(self.perceptual_state_schema)
        }
        further: dict[str, Any] = {}
        for name, value in self._named_arguments().items():
            where = f"{name} of {kind}"
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
        check_public(further, f"The component of {kind}")
        return CoagContextConfig(**typed, arguments=further)

    @classmethod
    def _from_config(cls, config: CoagContextConfig) -> Self:
        named = {name: from_part(part) for name, part in config.arguments.items()}
        typed = {
            "rendering": config.rendering,
            "budgets": config.budgets,
            "activity": config.activity,
            "dialogue": config.dialogue and load_context(config.dialogue),
            "clock": config.clock and config.clock.get(),
        }
        named |= {name: value for name, value in typed.items() if value is not None}
        parameters = inspect.signature(cls).parameters
        open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        unknown = sorted(set(named) - set(parameters))
        if unknown and not open_ended:
            raise ConfigurationError(
                f"This component gives {cls.__name__} {unknown}, which it does not take. Dump it "
                "again, or let the constructor take them."
            )
        context = cls(**named)
        schema = config.perceptual_state_schema
        if schema is not None and from_import_name(schema) is not context.perceptual_state_schema:
            raise ConfigurationError(
                f"This component is of a {cls.__name__} whose perceptual state is {schema!r}; now "
                f"it is {import_name(context.perceptual_state_schema)!r}. Dump the context again."
            )
        return context
