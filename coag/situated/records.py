"""What an enhanced tool and an agent tell each other: the same values in process and over MCP.

A property is read, a signal is an entry in an ordered log, an operation is acknowledged at once.
A notification carries none of these: it is a hint that there is something to read. Records of
signals have the shape of MCP Events (SEP-3415), so that a server may also push them.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from coag.schema import Moment, Percept, PerceptKind, Reconciliation, Value

NAME = r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*"
"""What a tool, an operation and a property may be called: words joined by single underscores."""
SIGNAL_NAME = r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*"
"""What a signal may be called, e.g. `pump.pressure_nominal`."""


class Wire(Value):
    """A value in camel case on the wire; unknown fields of newer versions are left out."""

    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, populate_by_name=True)


class SignalRecord(Wire):
    """One signal, as the log of its tool keeps it (thesis, 4.1.2), in the shape of SEP-3415."""

    event_id: str
    """Unique over all tools and restarts: `TOOL/EPOCH/NUMBER`."""
    name: str
    """What is said to have happened, e.g. `pump.pressure_nominal`."""
    timestamp: Moment
    """When it was emitted, by the clock of the tool's workspace."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The payload; it fits the schema that the tool declares."""
    cursor: str
    """The place in the log right behind this record."""
    rev: int
    """The revision that the tool's properties had reached when it was emitted."""
    cause: str | None = None
    """The key of the call that brought it about, where one did."""


class SignalPage(Wire):
    """The signals after a cursor, in order."""

    events: tuple[SignalRecord, ...] = ()
    cursor: str
    """Where to read on."""
    truncated: bool = False
    """True if signals after the given cursor are gone: the log was restarted, or keeps fewer."""


class PropertyReading(Wire):
    """The observable properties of a tool at one moment (thesis, 4.1.2: telemetry)."""

    tool: str
    """The tool's id."""
    epoch: str
    """Changes when the tool has lost its state, e.g. after a restart of its server."""
    rev: int
    """Grows with every change; a reading with a lower one of the same epoch is older."""
    properties: dict[str, Any] = Field(default_factory=dict)
    """The value of each, JSON, by its name."""
    cursor: str
    """The end of the signal log at that moment."""


class Acknowledgement(Wire):
    """The immediate answer to an operation (thesis, 4.1.3).

    What the operation leads to is seen in properties and signals.
    """

    accepted: bool
    """False if it was refused: a precondition does not hold. Nothing was done then."""
    message: str = ""
    """What the tool says, or why it refused."""
    data: Any = None
    """What the operation returns at once, where it returns a value (JSON)."""
    epoch: str
    rev: int
    """The revision that the properties have reached by it."""
    cursor: str
    """The end of the signal log when it was accepted; what it brings about comes behind."""
    repeated: bool = False
    """True if a call with this key was answered before; it was not run again."""


class OperationDescription(Wire):
    """One operation as its tool declares it (thesis, 4.2.2)."""

    name: str
    description: str = ""
    behavior: str = ""
    """What happens at once, and how the state is expected to change (chapter 4.2.2)."""
    preconditions: str = ""
    effects: str = ""
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the arguments."""
    latency: float | None = None
    """Seconds within which its effect is usually complete; None where it is immediate."""
    completed_by: str | None = None
    """The signal by which its effect is complete."""
    critical: bool = False
    """True if a wrong use cannot be undone."""
    read_only: bool = False


class PropertyDescription(Wire):
    """One observable property as its tool declares it (thesis, 4.2.2)."""

    name: str
    description: str = ""
    value_schema: dict[str, Any] = Field(default_factory=dict)
    """JSON Schema of the value: type, range or enumeration."""
    unit: str = ""


class SignalDescription(Wire):
    """One signal as its tool declares it (thesis, 4.2.2)."""

    name: str
    description: str = ""
    """When it is emitted."""
    payload: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    """JSON Schema of the payload."""


class ToolDescription(Wire):
    """What a tool says of itself: the entry of the catalogue (thesis, 4.1.1: discovery)."""

    id: str
    """Unique within an agent."""
    description: str
    """One line: what it is for."""
    category: str = ""
    version: str = "1"
    properties: tuple[PropertyDescription, ...] = ()
    signals: tuple[SignalDescription, ...] = ()
    operations: tuple[OperationDescription, ...] = ()
    has_manual: bool = True
    """False for a tool of a server that is not enhanced: it is used without a manual."""


class Catalogue(Wire):
    """The tools of a server."""

    tools: tuple[ToolDescription, ...] = ()


class CallStatus(Wire):
    """What a tool knows of a call by its key."""

    status: Reconciliation


def call_name(tool: str, operation: str) -> str:
    """The name of an operation as an action and as an MCP tool: `valve__open`."""
    return f"{tool}__{operation}"


def parts_of(name: str) -> tuple[str, str] | None:
    """The tool and the operation that `call_name` joined; None for another name."""
    tool, joined, operation = name.partition("__")
    return (tool, operation) if tool and joined and operation else None


# ---- Places in a signal log ----


class Cursor(NamedTuple):
    """A place in the log of a tool: `EPOCH:NUMBER`; the number is that of the record before it."""

    epoch: str
    number: int

    def __str__(self) -> str:
        return f"{self.epoch}:{self.number}"

    @classmethod
    def read(cls, text: str) -> Cursor:
        """The place that a text names; `ValueError` where it names none."""
        epoch, colon, number = text.rpartition(":")
        if not (epoch and colon and number.isdecimal()):
            raise ValueError(f"{text!r} is no cursor of a signal log; one looks like 'a1b2c3:17'")
        return cls(epoch, int(number))


# ---- Addresses of what a tool offers, as MCP resources ----


def properties_uri(tool: str) -> str:
    """Where the properties are read."""
    return f"tool://{tool}/properties"


def signals_uri(tool: str, after: str | None = None) -> str:
    """Where signals are read: all that are kept, or those after a cursor."""
    return f"tool://{tool}/signals" + (f"/{after}" if after else "")


def manual_uri(tool: str) -> str:
    """Where the manual is read."""
    return f"tool://{tool}/manual"


def call_uri(tool: str, key: str) -> str:
    """Where it is read what became of a call; the key's characters are escaped."""
    return f"tool://{tool}/calls/{quote(key, safe='')}"


def place_of(uri: str) -> tuple[str, str, str | None] | None:
    """What the addresses above name: a tool, what of it, and the cursor or key; None for others."""
    tool, *rest = uri.removeprefix("tool://").split("/", 2)
    if not uri.startswith("tool://") or not tool or not rest:
        return None
    return tool, rest[0], unquote(rest[1]) if rest[1:] else None


READ_MANUAL, READ_PROPERTIES = "read_manual", "read_properties"
READERS = {
    READ_MANUAL: "The manual of a tool: read it before you use the tool.",
    READ_PROPERTIES: "The observable properties of a tool now.",
}
"""Tools by which models read that are shown tools alone, and what each is for."""
CATALOGUE_URI = "tool://catalogue"
"""Where the descriptions of all tools of a server are read: a `Catalogue`."""
DELEGATES, DELEGATED = "agent", "delegated goal"
"""Categories: a tool that takes goals for an agent, and one that represents such a goal."""
FLOOD = "flood"
"""The reason of a gap for signals beyond what an inbox takes."""
KEY_META = "coag.situated/key"
"""Where in `_meta` of a call its key is."""


def is_flood(percept: Percept) -> bool:
    """Whether it says that signals were left out because there were too many."""
    data: Any = percept.data or {}
    return percept.kind is PerceptKind.GAP and data.get("reason") == FLOOD
