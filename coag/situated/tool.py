"""Declaring an enhanced tool in plain Python: properties, signals, operations, and what runs on.

```python
class Pump(EnhancedTool):
    \"\"\"Pumps coolant into the circuit.\"\"\"

    protocol = "Open the valve only when `status` is `NOMINAL`."
    status = observable(Literal["OFF", "RAMPING", "NOMINAL"], "OFF", description="State.")
    pressure_nominal = signal("pump.pressure_nominal", "Pressure is stable.", payload={"psi": int})

    @operation(
        preconditions="`status` is `OFF`",
        check=lambda pump: pump.status == "OFF",
        effects="`status` becomes `RAMPING`",
        latency=5.0,
        completed_by="pump.pressure_nominal",
    )
    async def power_on(self) -> str:
        \"\"\"Starts the pump.\"\"\"
        self.status = "RAMPING"
        self.ramp()
        return "Pressure is building."

    @internal_operation
    async def ramp(self) -> None:
        await self.sleep(3)
        self.status = "NOMINAL"
        self.pressure_nominal.emit(psi=2500)
```

A tool is used through the `Workspace` that it is added to, on one event loop.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
)

from coag._util.text import in_a_line
from coag.errors import ConfigurationError, StateError
from coag.schema import Reconciliation

from .manual import render_manual
from .operations import DeclaredOperation, Fields, FieldType, ValueType, declared_operation
from .records import (
    NAME,
    SIGNAL_NAME,
    PropertyDescription,
    SignalDescription,
    SignalRecord,
    ToolDescription,
)

P = ParamSpec("P")
T = TypeVar("T")
ToolT = TypeVar("ToolT", bound="EnhancedTool")


# ---- What the place where a tool is does for it ----


class ToolPlace(Protocol):
    """The workspace, as its tools see it."""

    def add(self, tool: EnhancedTool, epoch: str | None = None) -> None:
        """Adds a tool; with an epoch where it continues one of its lives."""
        ...

    def remove(self, tool: str) -> None:
        """Removes a tool and ends what it runs."""
        ...


class ToolHost(Protocol):
    """What is done for one tool as long as it is in a workspace."""

    place: ToolPlace

    def now(self) -> datetime:
        """The time."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        ...

    def changed(self) -> None:
        """The properties have changed."""
        ...

    def emitted(self, name: str, data: Mapping[str, Any]) -> SignalRecord:
        """A signal is to be written."""
        ...

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Something is to run on by itself."""
        ...


# ---- Properties ----


class observable(Generic[T]):
    """A property that can be observed: checked when it is assigned, and read by agents.

    An assignment that changes the value raises the tool's revision. A change inside a list or
    dictionary is not seen: assign a new one.

    Args:
        kind: Its type, e.g. `int` or `Literal["OFF", "ON"]`; one that JSON can express.
        initial: The value at first.
        description: What it means in the world.
        minimum: The smallest number that is allowed.
        maximum: The largest one.
        unit: What it is measured in.

    Raises:
        ConfigurationError: The type has no JSON Schema, or the initial value does not fit it.
    """

    def __init__(
        self,
        kind: type[T] | object,
        initial: T,
        *,
        description: str = "",
        minimum: float | None = None,
        maximum: float | None = None,
        unit: str = "",
    ) -> None:
        self.name = ""
        self.description = description
        self.unit = unit
        self.kind = ValueType(kind, minimum, maximum)
        try:
            self.initial: tuple[T, Any] = self.kind.check(initial)
        except ValueError as error:
            raise ConfigurationError(
                f"A property cannot be {initial!r} at first: {error}"
            ) from error

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, tool: None, owner: type) -> Self: ...
    @overload
    def __get__(self, tool: EnhancedTool, owner: type) -> T: ...
    def __get__(self, tool: EnhancedTool | None, owner: type) -> Self | T:
        return self if tool is None else tool.state.values[self.name][0]

    def __set__(self, tool: EnhancedTool, value: T) -> None:
        try:
            checked = self.kind.check(value)
        except ValueError as error:
            raise ValueError(
                f"Property {self.name!r} of tool {tool.id!r} cannot be {value!r}: {error}"
            ) from error
        tool.state.assign(self.name, checked)


class PropertyValues:
    """The values of a tool's properties, as Python and as JSON, and how often they have changed."""

    def __init__(self, values: Mapping[str, tuple[Any, Any]]) -> None:
        self.values = dict(values)
        self.rev = 0
        self.host: ToolHost | None = None
        """Set while the tool is in a workspace."""

    def assign(self, name: str, value: tuple[Any, Any]) -> None:
        """Sets a property; the revision rises if its JSON has changed."""
        before = self.values[name][1]
        self.values[name] = value
        if before != value[1] or type(before) is not type(value[1]):
            self.rev += 1
            if self.host is not None:
                self.host.changed()

    def as_json(self) -> dict[str, Any]:
        """The properties as JSON."""
        return {name: shown for name, (_, shown) in self.values.items()}


# ---- Signals ----


class signal:
    """A signal that a tool emits: `self.NAME.emit(FIELD=VALUE)`.

    Args:
        name: How agents know it, e.g. `pump.pressure_nominal`.
        description: When it is emitted.
        payload: The type of each field that it carries.

    Raises:
        ConfigurationError: The name has other characters, or a type has no JSON Schema.
    """

    def __init__(
        self, name: str, description: str = "", *, payload: Mapping[str, Any] | None = None
    ) -> None:
        if not re.fullmatch(SIGNAL_NAME, name):
            raise ConfigurationError(
                f"A signal cannot be called {name!r}: take letters, digits and underscores, in "
                "parts joined by dots, as in 'pump.pressure_nominal'."
            )
        self.name = name
        self.description = description
        self.payload = Fields({field: FieldType(kind) for field, kind in (payload or {}).items()})

    @overload
    def __get__(self, tool: None, owner: type) -> Self: ...
    @overload
    def __get__(self, tool: EnhancedTool, owner: type) -> Emitter: ...
    def __get__(self, tool: EnhancedTool | None, owner: type) -> Self | Emitter:
        return self if tool is None else Emitter(tool, self)


class Emitter:
    """A signal of one tool, which it can emit."""

    def __init__(self, tool: EnhancedTool, declared: signal) -> None:
        self._tool = tool
        self._name = declared.name
        self._payload = declared.payload

    def emit(self, **payload: Any) -> SignalRecord:
        """Writes the signal into the log of the tool, with the revision of its properties now.

        Raises:
            ValueError: The payload does not fit what was declared.
            StateError: The tool is in no workspace.
        """
        try:
            data = self._payload.as_json(payload)
        except ValueError as error:
            raise ValueError(
                f"Signal {self._name!r} of tool {self._tool.id!r} cannot carry {payload!r}: {error}"
            ) from error
        return self._tool.host.emitted(self._name, data)


# ---- What runs on by itself ----


def internal_operation(
    work: Callable[Concatenate[ToolT, P], Coroutine[Any, Any, None]],
) -> Callable[Concatenate[ToolT, P], None]:
    """Makes a coroutine method run on by itself when it is called, until it ends or is ended.

    It is ended when its tool is removed. Signals that it emits have the cause of the call that
    started it.

    Raises:
        ConfigurationError: The method is not `async def`: it would hold up its caller instead.
    """
    if not inspect.iscoroutinefunction(work):
        raise ConfigurationError(
            f"{work.__qualname__} runs on by itself only if it is `async def`: write it so, or "
            "leave @internal_operation away."
        )

    @functools.wraps(work)
    def start(tool: ToolT, *args: P.args, **kwargs: P.kwargs) -> None:
        host = tool.host
        host.start(work.__name__, work(tool, *args, **kwargs))

    return start


# ---- Tools ----


class EnhancedTool:
    """A tool with a state of its own that says when it changes; subclass it to declare one.

    Agents perceive its properties and signals, use its operations and read its manual (thesis,
    4.1). The first paragraph of the subclass's docstring is the tool's line in the catalogue.

    Args:
        id: How this tool is called in its workspace; the class's name in small letters, or its
            `id`, if not given.
    """

    id: str = ""
    description: ClassVar[str] = ""
    """What it is for, in one line; the docstring's first paragraph where it is empty."""
    category: ClassVar[str] = ""
    version: ClassVar[str] = "1"
    protocol: ClassVar[str] = ""
    """Section 3 of the manual, Markdown: what must never be done, in which order, after what."""
    compare_and_set: ClassVar[bool] = False
    """Whether operations take `if_rev` and `if_value`, and are refused where these do not hold."""

    declared: ClassVar[Declared]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.declared = _declarations(cls)

    def __init__(self, id: str | None = None) -> None:
        # by default the class's name in words: ReliefValve is relief_valve
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__)
        self.id = id or self.id or words.lower()
        if not re.fullmatch(NAME, self.id):
            raise ConfigurationError(
                f"A tool cannot be called {self.id!r}: take words of letters and digits joined "
                "by single underscores, as in 'relief_valve'."
            )
        self.state = PropertyValues(
            {name: one.initial for name, one in self.declared.properties.items()}
        )

    @property
    def host(self) -> ToolHost:
        """What the tool's place does for it; `StateError` where it is in no workspace."""
        if self.state.host is None:
            raise StateError(
                f"Tool {self.id!r} is in no workspace (it was not added, or was removed): it can "
                "neither emit signals nor run operations. Add it: workspace.add(tool)."
            )
        return self.state.host

    @property
    def workspace(self) -> ToolPlace:
        """Where the tool is; it may add other tools to it, and remove them."""
        return self.host.place

    def now(self) -> datetime:
        """The time of the workspace's clock."""
        return self.host.now()

    async def sleep(self, seconds: float) -> None:
        """Waits, in the time of the workspace's clock."""
        await self.host.sleep(seconds)

    def added(self) -> None:
        """Called when the tool has been added to a workspace: may start what runs by itself."""

    def became_of(self, key: str) -> Reconciliation | None:
        """What became of a call of an earlier process, for a tool that keeps what it was asked.

        None, as here, where it keeps nothing.
        """
        del key
        return None

    def manual(self) -> str:
        """The manual: generated from the declarations and `protocol`."""
        return render_manual(self.describe(), self.protocol)

    def describe(self) -> ToolDescription:
        """What the tool says of itself."""
        return ToolDescription(
            id=self.id,
            description=self.description or _first_paragraph(type(self)),
            category=self.category,
            version=self.version,
            properties=tuple(
                PropertyDescription(
                    name=name,
                    description=in_a_line(one.description),
                    value_schema=one.kind.schema,
                    unit=one.unit,
                )
                for name, one in self.declared.properties.items()
            ),
            signals=tuple(
                SignalDescription(
                    name=name,
                    description=in_a_line(one.description),
                    payload=one.payload.schema,
                )
                for name, one in self.declared.signals.items()
            ),
            operations=tuple(
                one.describe(compare_and_set=self.compare_and_set)
                for one in self.declared.operations.values()
            ),
        )


class Declared(NamedTuple):
    """What a class of tools declares, by name and in order."""

    properties: Mapping[str, observable[Any]]
    signals: Mapping[str, signal]
    operations: Mapping[str, DeclaredOperation]


def _declarations(owner: type[EnhancedTool]) -> Declared:
    """What a class and its bases declare; `ConfigurationError` where that cannot work together."""
    members: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        members |= vars(base)
    properties: dict[str, observable[Any]] = {
        name: one for name, one in members.items() if isinstance(one, observable)
    }
    signals = _signals(owner, members)
    operations = {
        name: found for name, member in members.items() if (found := declared_operation(member))
    }
    for name in (*properties, *operations):
        if not re.fullmatch(NAME, name):
            raise ConfigurationError(
                f"{owner.__name__}.{name}: a property or operation is called by words of letters "
                "and digits joined by single underscores, as in 'open_valve'."
            )
        if hasattr(EnhancedTool, name) or name == "state":
            raise ConfigurationError(
                f"{owner.__name__}.{name}: this name is used by EnhancedTool itself. Take another."
            )
    for name, one in operations.items():
        ends = one.says.completed_by
        if ends is not None and ends not in signals:
            raise ConfigurationError(
                f"{owner.__name__}.{name} is completed by signal {ends!r}, which the "
                f"tool does not declare. Its signals: {', '.join(signals) or 'none'}."
            )
    return Declared(properties, signals, operations)


def _signals(owner: type[EnhancedTool], members: Mapping[str, Any]) -> dict[str, signal]:
    signals: dict[str, signal] = {}
    for name, one in members.items():
        if isinstance(one, signal) and signals.setdefault(one.name, one) is not one:
            raise ConfigurationError(
                f"{owner.__name__}.{name} is a second signal {one.name!r}: give it another name."
            )
    return signals


def _first_paragraph(owner: type[EnhancedTool]) -> str:
    for base in owner.__mro__:
        if base is EnhancedTool:
            break
        if base.__doc__:
            return in_a_line(base.__doc__.strip().partition("\n\n")[0])
    raise ConfigurationError(
        f"Tool class {owner.__name__} does not say what it is for: give it a docstring or a "
        "`description`."
    )


EnhancedTool.declared = Declared({}, {}, {})
