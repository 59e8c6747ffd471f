"""A value as JSON: by import name, and with the arguments that its class makes it from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol, Self, cast, runtime_checkable

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError

from coag.errors import ConfigurationError

from ._import_names import check_own_code, from_import_name, import_name
from ._value import Value

_UNFIT = (PydanticUserError, PydanticSerializationError, ValidationError, TypeError, ValueError)

_HEAP_TYPE = 1 << 9
"""Python's flag of classes that are made by a class statement."""


@runtime_checkable
class Declarable(Protocol):
    """An object that tells what it was made from, and is made from it again; without its state."""

    def to_arguments(self) -> Mapping[str, Any]:
        """What it was made from, as JSON.

        Raises:
            ConfigurationError: It cannot be told; names what, and says what to do.
        """
        ...

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """One like it.

        Raises:
            ConfigurationError: Something that the arguments name does not exist any more.
        """
        ...


class Imported(Value):
    """What stands under an import name, or what the class there makes of some arguments."""

    name: str = Field(pattern=r"^[^:\s]+:[^:\s]+$")
    """`module:qualname`."""
    arguments: dict[str, Any] | None = None
    """The class's arguments as JSON; None means what stands under the name itself."""

    @classmethod
    def of(cls, value: object) -> Self:
        """How to get a value again.

        A function or class is told of by its name. An object of a pydantic model or a dataclass
        by its class and its fields (`init=False` fields and private attributes are taken for
        its state and left out); a `Declarable` by what it tells; one of another class if it
        holds nothing.

        Raises:
            ConfigurationError: It cannot be told of so that the same comes back.
        """
        if hasattr(value, "__qualname__"):
            check_own_code(value, name := import_name(value))
            return cls(name=name)
        kind = type(value)
        described = cls(name=import_name(kind), arguments=_arguments_of(value))
        made = described.get()
        if type(made) is kind and _fields_of(made) == _fields_of(value):
            return described
        raise ConfigurationError(
            f"A {kind.__name__} does not come back from its fields as it was. Keep what it is in "
            "fields that JSON can give back, and its state in fields of its own (init=False)."
        )

    def get(self) -> Any:
        """The value; its module is imported, which runs its code.

        Only what `of` tells of is made: a pydantic model, a dataclass, a `Declarable`, or an
        object that holds nothing. Any other class would be called with whatever stands in a file.

        Raises:
            ConfigurationError: There is no such thing, it is Python's own, or it is not made
                from such arguments.
        """
        found = from_import_name(self.name)
        check_own_code(found, self.name)
        if self.arguments is None:
            return found
        if not isinstance(found, type):
            raise ConfigurationError(f"{self.name!r} is no class and takes no arguments.")
        try:
            return _make(cast("type[Any]", found), self.arguments)
        except _UNFIT as error:
            raise ConfigurationError(
                f"{self.name!r} cannot be made from {self.arguments!r}: {error}"
            ) from error


def _make(kind: type[Any], arguments: Mapping[str, Any]) -> Any:
    if issubclass(kind, Declarable):
        return kind.from_arguments(arguments)
    if issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind):
        return TypeAdapter(kind).validate_python(dict(arguments))
    if arguments or _built_in(kind):
        raise TypeError("of classes, only pydantic models and dataclasses are made from arguments")
    made = kind()
    if not _holds_nothing(made):
        raise TypeError(f"a {kind.__name__} holds values of which only itself knows")
    return made


def _built_in(kind: type) -> bool:
    """Whether a class is, or derives from, one that keeps what no attribute tells of."""
    return any(not base.__flags__ & _HEAP_TYPE for base in kind.__mro__[:-1])


def _holds_nothing(value: object) -> bool:
    """Whether an object of a plain class has no attributes, nor what a built-in class keeps."""
    slots = getattr(type(value), "__slots__", ())
    return not _built_in(type(value)) and not slots and getattr(value, "__dict__", None) == {}


def _fields_of(value: object) -> dict[str, Any]:
    if isinstance(value, Declarable):
        return dict(value.to_arguments())
    names: list[str] = []
    if isinstance(value, BaseModel):
        names = list(type(value).model_fields)
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.init]
    return {name: getattr(value, name) for name in names}


def _arguments_of(value: object) -> dict[str, Any]:
    if isinstance(value, Declarable):
        return dict(value.to_arguments())
    try:
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json", round_trip=True, by_alias=True)
        if dataclasses.is_dataclass(value):
            dumped = TypeAdapter(type(value)).dump_python(value, mode="json")
            return {name: dumped[name] for name in _fields_of(cast("object", value))}
    except _UNFIT as error:
        raise ConfigurationError(
            f"The fields of a {type(value).__name__} are no JSON: {error}"
        ) from error
    if not _holds_nothing(value):
        raise ConfigurationError(
            f"A {type(value).__name__} holds values of which only itself knows. Make it a "
            "dataclass or a pydantic model, or an AutoGen component; or give a function."
        )
    return {}
