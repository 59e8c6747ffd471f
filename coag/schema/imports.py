"""Values by the name under which they are imported, for recipes and components."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MethodType
from typing import Any, Protocol, Self, cast, runtime_checkable

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError

from coag.errors import ConfigurationError

from .values import Value

# ---- Values that are described by the name under which they can be imported ----


_NAME = re.compile(r"(?P<module>[^\W\d][\w.]*):(?P<path>[^\W\d]\w*(?:\.[^\W\d]\w*)*)")
_MISSING = object()
_ALLOWED = "AUTOGEN_ALLOWED_PROVIDER_NAMESPACES"
"""AutoGen's own variable: packages, by comma, from which components may be loaded."""
_TRUST = "COAG_TRUST"
"""The variable that lists, by comma, modules from which runs may name code."""
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_OWN_PACKAGES = ("coag", "vacuum_world", "case_study")
HOSTED_FACTORY = "coag.distributed:build_again"
"""Builds a hosted agent by the factory that its argument `agent` names."""
_OWN_FACTORIES = (
    "case_study.runner:build_agent",
    "case_study.runner:build_plain_agent",
    HOSTED_FACTORY,
)
"""All of the project's own that a run may name: functions that only build agents."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_ALWAYS_ALLOWED = ("coag", "autogen_core", "autogen_agentchat", "autogen_ext", "__main__")


def import_name(value: object) -> str:
    """`module:qualname` of a function or class: what `from_import_name` gives it back by.

    Where a public package shows what one of its private modules defines, the name is the public
    one.

    Raises:
        ConfigurationError: It is a lambda, is made within a function, has no name, or something
            else has its name; the message says what to do.
    """
    module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        raise ConfigurationError(
            f"A {type(value).__name__} has no import name. Give a function or a class of a "
            "module; what needs settings can be a dataclass or a pydantic model."
        )
    if "<lambda>" in path:
        raise ConfigurationError(
            f"A lambda of {module} has no import name. Write it as a function of a module."
        )
    if "<locals>" in path:
        raise ConfigurationError(
            f"{path!r} of {module} is made within a function and cannot be imported. Move it to "
            "the top level of a module; what it closes over can be fields of a dataclass."
        )
    for home in _homes(module):
        try:
            found = _walk(sys.modules.get(home) or import_module(home), path)
        except ImportError:
            continue
        # Each look at a class method makes another object, which is equal to the last.
        if found is value or (isinstance(value, MethodType) and found == value):
            return f"{home}:{path}"
    raise ConfigurationError(
        f"{path!r} is not found in {module} under its own name. Give what the module has "
        "under that name, or set its __module__ and __qualname__ to where it is."
    )


def from_import_name(name: str) -> Any:
    """The value of an import name; its module is imported, which runs its code.

    Where the variable `AUTOGEN_ALLOWED_PROVIDER_NAMESPACES` is set, only modules of the packages
    that it lists, of AutoGen and of coag are imported, and the script itself.

    Raises:
        ConfigurationError: It is no import name, it is not allowed, or nothing has that name.
    """
    module, path = _parts(name)
    listed = os.environ.get(_ALLOWED)
    if listed is not None and not _within(module, (*_ALWAYS_ALLOWED, *_listed(listed))):
        raise ConfigurationError(
            f"{module!r} is not imported: {_ALLOWED}={listed!r} does not list it. Add its package "
            "there if you trust it."
        )
    try:
        found = _walk(import_module(module), path)
    except Exception as error:  # the module's own code, which may raise anything
        said = f"{module} raised {type(error).__name__}: {error}"
        if isinstance(error, ImportError):
            said = f"{error}."
        raise ConfigurationError(f"{name!r} cannot be imported: {said}") from error
    if found is _MISSING:
        raise ConfigurationError(f"{name!r} cannot be imported: {module} has no {path!r}.")
    return found


def _parts(name: str) -> tuple[str, str]:
    """Module and path of an import name."""
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise ConfigurationError(f"{name!r} is no import name: write 'module:name'.")
    return parts["module"], parts["path"]


def _listed(variable: str) -> Iterable[str]:
    return filter(None, (one.strip() for one in variable.split(",")))


def from_users_name(name: str) -> Any:
    """The value of an import name that the user gave or trusts, also of a module in this folder.

    As with `python -m`, except that the current folder is looked through last, and only where
    nothing else has the name: no file of a folder of runs takes the place of another module.

    Raises:
        ConfigurationError: As `from_import_name`; or it is Python's own.
    """
    module, _ = _parts(name)
    package = module.partition(".")[0]
    if package not in sys.modules and find_spec(package) is None:
        sys.path.append(str(Path.cwd()))
    found = from_import_name(name)
    check_own_code(found, name)
    return found


def from_run(name: str, trust: Iterable[str] = (), *, programs_own: bool = False) -> Any:
    """The value of an import name in a run, if the user trusts the name's module.

    A run may be a stranger's, and importing runs code. So nothing is imported but modules that
    the user named, and of the project's own packages nothing but the factories of its case study.

    Args:
        name: The import name.
        trust: Modules that the user named; a package includes its modules. Those of
            the variable `COAG_TRUST` are added.
        programs_own: Whether modules count as named that this program has imported already, or
            was started with; those of Python and of installed packages do not.

    Raises:
        ConfigurationError: It is not trusted, or there is no such thing.
    """
    module = check_trusted(name, trust, programs_own=programs_own)
    found = from_users_name(name)
    home: object = getattr(found, "__module__", None)
    trusted = isinstance(home, str) and (
        _within(home, _trusted(trust)) or sys.modules.get(home) is sys.modules[module]
    )
    if not trusted and name not in _OWN_FACTORIES:
        raise ConfigurationError(
            f"{name!r} is defined in {home!r}, which you did not name: add --trust {home} (in "
            f"Python trust=[{home!r}]) if you trust it."
        )
    return found


def check_trusted(name: str, trust: Iterable[str] = (), *, programs_own: bool = False) -> str:
    """The module of an import name that a run gives, if it may be imported; imports nothing.

    Raises:
        ConfigurationError: It may not; names the option that allows it.
    """
    module, _ = _parts(name)
    if is_own(module):
        if name not in _OWN_FACTORIES:
            raise ConfigurationError(f"{name!r} is no function that builds the agent of a run.")
        return module
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ConfigurationError(f"{name!r} is Python's own and no part of an agent.")
    if _within(module, _trusted(trust)) or (programs_own and _is_programs_own(module)):
        return module
    raise ConfigurationError(
        f"{name!r} is not imported, since importing runs code and a run may be a stranger's: add "
        f"--trust {module} (in Python trust=[{module!r}], or the variable {_TRUST}={module}) if "
        "you trust it."
    )


def is_own(module: str) -> bool:
    """Whether a module is of the project's own packages."""
    return _within(module, _OWN_PACKAGES)


def _trusted(trust: Iterable[str]) -> tuple[str, ...]:
    """The modules that the user named, by argument or variable.

    Raises:
        ConfigurationError: Something is no name of a module.
    """
    given = (trust,) if isinstance(trust, str) else tuple(trust)
    named = (*given, *_listed(os.environ.get(_TRUST, "")))
    for one in named:
        if _MODULE.fullmatch(one) is None:
            raise ConfigurationError(
                f"{one!r} is no name of a module that could be trusted: write e.g. 'shop' or "
                "'shop.agents'."
            )
    return named


def _within(module: str, packages: Iterable[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in packages)


def _is_programs_own(module: str) -> bool:
    """Whether a module that is no installed package's runs here: imported, or as the script."""
    found = sys.modules.get(module) or (sys.modules["__main__"] if _is_script(module) else None)
    file = getattr(found, "__file__", None)
    return found is not None and _INSTALLED.isdisjoint(Path(file).parts if file else ())


def _is_script(module: str) -> bool:
    """Whether importing a module would load the very file that Python was started with."""
    main = sys.modules["__main__"]
    started = getattr(main, "__spec__", None)
    if started is not None:  # python -m
        return started.name == module
    file = getattr(main, "__file__", None)
    if file is None or "." in module:  # to look for a part of a package would import the package
        return False
    try:
        spec = find_spec(module)
        return spec is not None and spec.origin is not None and Path(spec.origin).samefile(file)
    except (OSError, ValueError):  # a file that is gone, a module without a spec
        return False


def check_own_code(found: object, name: str) -> None:
    """Refuses functions and classes of Python itself: none of them is a part of an agent.

    Otherwise a manipulated component or run could name `os:system` as a rule.

    Raises:
        ConfigurationError: It is one of them, also under another name.
    """
    home = getattr(found, "__module__", None)
    modules = [name.partition(":")[0], home if isinstance(home, str) else ""]
    if callable(found) and any(m.partition(".")[0] in sys.stdlib_module_names for m in modules):
        raise ConfigurationError(
            f"{name!r} is Python's own and no part of an agent. Name a function or a class of "
            "your own modules, or of a package."
        )


def provider_name(component: type) -> str:
    """The `provider` under which AutoGen loads a component class again, as itself.

    A class that inherits `component_provider_override` would be dumped as its parent; here only
    the class's own counts.

    Raises:
        ConfigurationError: It cannot be imported, or by a private path only.
    """
    provider = component.__dict__.get("component_provider_override")
    if not isinstance(provider, str):
        module, _, name = import_name(component).partition(":")
        if "." in name:
            raise ConfigurationError(
                f"{name!r} is defined within another class, from where no component can be loaded. "
                f"Move it to the top level of {module}."
            )
        provider = f"{module}.{name}"
    private = [part for part in provider.split(".") if part[:1] == "_" and part != "__main__"]
    if private:  # it may be gone with the next version
        raise ConfigurationError(
            f"The component {provider!r} has a private path ({private[0]!r}). Show the class in "
            "a public module, or set component_provider_override to its public path."
        )
    return provider


def _homes(module: str) -> Iterator[str]:
    """Where to look: the nearest public packages first if the module is a private one.

    So is every module within a package of ours: its face says what is public.
    """
    parts = module.split(".")
    public = next((n for n, part in enumerate(parts) if part.startswith("_")), len(parts))
    package = hasattr(sys.modules.get(module), "__path__")
    if public == len(parts) > 2 and parts[0] in _OWN_PACKAGES and not package:
        public -= 1
    for end in range(public, 0, -1) if public < len(parts) else ():
        yield ".".join(parts[:end])
    yield module


def _walk(found: object, path: str) -> Any:
    for part in path.split("."):
        found = getattr(found, part, _MISSING)
    return found


# ---- A value as JSON: by import name, and with the arguments that its class makes it from ----


_UNFIT = (PydanticUserError, PydanticSerializationError, ValidationError, TypeError, ValueError)

_HEAP_TYPE = 1 << 9
"""Python's flag of classes that are made by a class statement."""


@runtime_checkable
class Declarable(Protocol):
    """An object that gives the arguments it was made from, to be made from them again."""

    def to_arguments(self) -> Mapping[str, Any]:
        """What it was made from, as JSON.

        Raises:
            ConfigurationError: They are no JSON; the message says which, and what to do.
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
    """The value of an import name, or what that class makes of some arguments."""

    name: str = Field(pattern=r"^[^:\s]+:[^:\s]+$")
    """`module:qualname`."""
    arguments: dict[str, Any] | None = None
    """The class's arguments as JSON; None means the named value itself."""

    @classmethod
    def of(cls, value: object) -> Self:
        """How to get a value again.

        A function or class is described by its name. An object of a pydantic model or a dataclass
        by its class and its fields (`init=False` fields and private attributes are taken for
        its state and left out); a `Declarable` by its arguments; one of another class if it
        holds nothing.

        Raises:
            ConfigurationError: It cannot be described so that the same comes back.
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

        Only what `of` describes is made: a pydantic model, a dataclass, a `Declarable`, or an
        object that holds nothing. Any other class would be called with arguments that a file chose.

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
    """Whether a class is, or derives from, one that keeps what no attribute shows."""
    return any(not base.__flags__ & _HEAP_TYPE for base in kind.__mro__[:-1])


def _holds_nothing(value: object) -> bool:
    """Whether an object of a plain class has no attributes, nor what a built-in class keeps."""
    slots = getattr(type(value), "__slots__", ())
    return not _built_in(type(value)) and not slots and getattr(value, "__dict__", None) == {}


def _fields_of(value: object) -> dict[str, Any]:
    """What a value is made from, as it holds it."""
    if isinstance(value, Declarable):
        return dict(value.to_arguments())
    names: list[str] = []
    if isinstance(value, BaseModel):
        names = list(type(value).model_fields)
    elif dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value) if field.init]
    return {name: getattr(value, name) for name in names}


def _arguments_of(value: object) -> dict[str, Any]:
    """The same as JSON."""
    try:
        if isinstance(value, BaseModel) and not isinstance(value, Declarable):
            return value.model_dump(mode="json", round_trip=True, by_alias=True)
        if dataclasses.is_dataclass(value) and not isinstance(value, Declarable):
            dumped = TypeAdapter(type(value)).dump_python(value, mode="json")
            return {name: dumped[name] for name in _fields_of(cast("object", value))}
    except _UNFIT as error:
        raise ConfigurationError(
            f"The fields of a {type(value).__name__} are no JSON: {error}"
        ) from error
    if not isinstance(value, Declarable) and not _holds_nothing(value):
        raise ConfigurationError(
            f"A {type(value).__name__} holds values of which only itself knows. Make it a "
            "dataclass or a pydantic model, or an AutoGen component; or give a function."
        )
    return _fields_of(value)
