"""The protocol between clients and workers: limits, message types, requests and answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, get_args

from autogen_agentchat.messages import (
    AgentEvent,
    BaseAgentEvent,
    BaseChatMessage,
    ChatMessage,
    SelectorEvent,
    StructuredMessage,
)
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from coag.errors import ConfigurationError
from coag.schema import Value, from_import_name

GRPC_MARGIN = 64 * 1024
"""Bytes that gRPC's own limit is above ours: addresses and headers of a message."""


class RemoteLimits(Value):
    """Bounds of what travels, of waiting, and of what is kept. Times are seconds."""

    max_bytes: int = Field(default=4 * 1024 * 1024 - GRPC_MARGIN, ge=1_024)
    """Size of one message as it travels. Host, workers and clients must have the same."""
    patience: float = Field(default=15.0, gt=0)
    """How long a client waits for any sign of life before the call ends in an error."""
    resend: float = Field(default=5.0, gt=0)
    """How long a client waits before it sends a request again; the worker knows it by its id."""
    poll: float = Field(default=2.0, gt=0)
    """How long a worker lets a request wait before it answers that it is still at work."""
    cancel: float = Field(default=5.0, gt=0)
    """How long a client waits for a cancelled turn to end; after half of it, an agent that does
    not listen to its token is cancelled as a task."""
    lease: float = Field(default=60.0, gt=0)
    """A turn that nobody has asked about for so long is cancelled: its client is gone."""
    items: int = Field(default=1_000, ge=1)
    """Events of a turn that wait for the client; the agent pauses until it has taken some."""
    turns_kept: int = Field(default=20, ge=1)
    """Ended turns whose result is kept, per agent, to be given again."""
    ids_kept: int = Field(default=10_000, ge=1)
    """Ended turns that are at least known by id, so that none runs twice."""
    agents: int = Field(default=100, ge=1)
    """Agents of one type on a worker, one per key."""

    @model_validator(mode="after")
    def _waits_fit(self) -> Self:
        if not self.poll < self.resend <= self.patience:
            raise ValueError(
                f"poll ({self.poll}) must be below resend ({self.resend}), and resend not above "
                f"patience ({self.patience}): else a worker at work is taken for a dead one."
            )
        return self


# ---- AgentChat's messages as JSON and back, by the name of their type ----


Message = BaseAgentEvent | BaseChatMessage
"""Anything that an agent yields or is given."""

_STOCK: tuple[type[Message], ...] = (
    *(kind for union in (ChatMessage, AgentEvent) for kind in get_args(get_args(union)[0])),
    SelectorEvent,
)
"""AgentChat's own types."""


def load_message_type(name: str) -> type[Message]:
    """The type of message called `module:name`; for a content model, `StructuredMessage` of it."""
    value: Any = from_import_name(name)
    if isinstance(value, type) and issubclass(value, BaseAgentEvent | BaseChatMessage):
        return value
    if isinstance(value, type) and issubclass(value, BaseModel):
        return StructuredMessage[value]
    raise ConfigurationError(
        f"{name!r} is {value!r}: neither a type of message nor a pydantic model for its content."
    )


class MessageCodec:
    """Turns messages into JSON and back."""

    def __init__(self, types: Iterable[type[Message]] = ()) -> None:
        self._types = {kind.__name__: kind for kind in (*_STOCK, *types)}

    def extended(self, types: Iterable[type[Message]]) -> MessageCodec:
        """One that knows these types too."""
        return MessageCodec([*self._types.values(), *types])

    def dump(self, message: Message) -> dict[str, Any]:
        """A message as JSON, with the name of its type."""
        name = type(message).__name__
        self.known(name)
        return {"type": name, "message": dict(message.dump())}

    def load(self, dumped: Mapping[str, Any]) -> Message:
        """The message."""
        return self.known(str(dumped["type"])).load(dumped["message"])

    def load_chat(self, dumped: Mapping[str, Any]) -> BaseChatMessage:
        """The message, which must be one that agents send each other; errors as for `load`."""
        message = self.load(dumped)
        if not isinstance(message, BaseChatMessage):
            raise ValueError(f"{type(message).__name__} is an event, not a chat message.")
        return message

    def known(self, name: str) -> type[Message]:
        """The type of this name."""
        if name not in self._types:
            raise ConfigurationError(
                f"Messages of type {name!r} are not known here. Give message_types=[{name}] "
                "both where the agent is served and where it is used."
            )
        return self._types[name]


# ---- What travels between a client and a worker ----
#
# An envelope is the same in every version of the protocol; its body is read only after its
# version was looked at. Bodies are JSON in ASCII, so that any text survives, lone surrogates
# included.


PROTOCOL = 1
"""Version of the bodies. One that differs is answered with an error that names both."""

FailureKind = Literal[
    "raised", "replaced", "lost", "forgotten", "busy", "cancelled", "too_large", "version",
    "refused",
]  # fmt: skip
"""See `coag.errors.RemoteAgentError`."""


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    v: int = PROTOCOL
    """Version of the body."""
    id: str
    """Names the request. The same id sent again is the same request."""
    body: str
    """One of the bodies below, as JSON."""


class CoagRequest(_Envelope):
    """From a client to an agent's host."""

    reply_to: str
    """Agent type of the client's mailbox."""


class CoagAnswer(_Envelope):
    """From an agent's host to a client's mailbox."""

    worker: str
    """Which worker answers."""


class TurnItem(Value):
    """Something that a turn brought: an event, or the response that ends it."""

    message: dict[str, Any]
    """The message; see `MessageCodec`."""
    response: bool = False
    """True for the response."""
    inner: tuple[int | dict[str, Any], ...] | None = None
    """Inner messages of the response: the turn's event of that number, or one never sent."""


class RemoteFailure(Value):
    """Why there is no result."""

    kind: FailureKind
    problem: str
    error_type: str = ""
    """Name of the type that was raised."""


class RemoteRefusal(Exception):
    """Ends a request in a failure that no agent raised."""

    def __init__(self, kind: FailureKind, problem: str) -> None:
        super().__init__(problem)
        self.failure = RemoteFailure(kind=kind, problem=problem)


def failure_of(error: BaseException) -> RemoteFailure:
    """What is sent of an exception: its type's name and its text."""
    if isinstance(error, RemoteRefusal):
        return error.failure
    kind = "cancelled" if isinstance(error, asyncio.CancelledError) else "raised"
    problem = str(error) or "(no message)"
    return RemoteFailure(kind=kind, problem=problem[:10_000], error_type=type(error).__name__)


class BeginTurn(Value):
    """Begins a turn, unless it is known already; answered like `FollowTurn`."""

    op: Literal["begin"] = "begin"
    turn: str
    """Id of the turn, chosen by the client."""
    instance: str
    """The agent that is meant, so that one which has taken its place does not take the turn."""
    messages: tuple[dict[str, Any], ...]


class FollowTurn(Value):
    """Asks what a turn has brought since."""

    op: Literal["follow"] = "follow"
    turn: str
    epoch: str
    """The epoch of the last progress that was received."""
    after: int
    """How many items of that epoch were received; those need not be kept any longer."""


class Operation(Value):
    """Anything else that a client may ask of an agent.

    `cancel` ends a turn and is answered when it has ended; `pause` works within a turn, too;
    `close` closes the agent, and the next request makes a new one.
    """

    op: Literal[
        "describe", "cancel", "reset", "pause", "resume", "save_state", "load_state", "close"
    ]
    turn: str | None = None
    """The turn to cancel."""
    instance: str | None = None
    """The agent whose state is to be saved, or which is to be closed."""
    state: dict[str, Any] | None = None
    """The state to load."""


Request = BeginTurn | FollowTurn | Operation


class AgentDescription(Value):
    """Who is there."""

    answer: Literal["described"] = "described"
    name: str
    description: str
    produces: tuple[str, ...]
    """Names of the types of message that the agent may answer with."""
    instance: str
    """Changes when another agent takes the place, one that knows nothing of the dialogue."""


class TurnProgress(Value):
    """What a turn has brought; a response is its last item, a failure is `RequestFailed`."""

    answer: Literal["progress"] = "progress"
    epoch: str
    """Changes where another worker took over the turn; numbering restarts."""
    first: int
    """Number of the first item below, counted from 0."""
    items: tuple[TurnItem, ...]
    """Empty where the turn still runs and has brought nothing new."""


class StillWorking(Value):
    """The request was received and is being worked on; ask again under the same id."""

    answer: Literal["working"] = "working"


class OperationDone(Value):
    """It is done."""

    answer: Literal["done"] = "done"
    instance: str


class RemoteState(Value):
    """The agent's state."""

    answer: Literal["saved"] = "saved"
    state: dict[str, Any]


class RequestFailed(Value):
    """It could not be done."""

    answer: Literal["failed"] = "failed"
    failure: RemoteFailure


Answer = Annotated[
    AgentDescription | TurnProgress | StillWorking | OperationDone | RemoteState | RequestFailed,
    Field(discriminator="answer"),
]

_REQUESTS: TypeAdapter[Request] = TypeAdapter(Request)
_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)


def read_request(envelope: CoagRequest) -> Request:
    """The body of a request."""
    return _REQUESTS.validate_python(_body(envelope))


def read_answer(envelope: CoagAnswer) -> Answer:
    """The body of an answer; errors as for `read_request`."""
    return _ANSWERS.validate_python(_body(envelope))


def _body(envelope: _Envelope) -> Any:
    if envelope.v != PROTOCOL:
        raise RemoteRefusal(
            "version",
            f"The other side speaks version {envelope.v} of the protocol, this one {PROTOCOL}. "
            "Install the same version of coag on clients and workers.",
        )
    return json.loads(envelope.body)


def body_of(value: Value) -> str:
    """A body as it travels."""
    try:
        fields = value.model_dump().items()
        return json.dumps({name: field for name, field in fields if field is not None})
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"A {type(value).__name__} holds what JSON cannot: {error}. States and metadata of "
            "agents that work remotely must be JSON."
        ) from error


def size_of(envelope: CoagRequest | CoagAnswer) -> int:
    """Bytes of an envelope as it travels."""
    return len(envelope.model_dump_json())
