"""What travels between a client and a worker.

An envelope is the same in every version of the protocol; its body is read only after its version
was looked at. Bodies are JSON in ASCII, so that any text survives, lone surrogates included.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from coag.errors import ConfigurationError
from coag.schema import Value

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


class Item(Value):
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


class Describe(Value):
    """Asks who is there."""

    op: Literal["describe"] = "describe"


class Begin(Value):
    """Begins a turn, unless it is known already; answered like `Follow`."""

    op: Literal["begin"] = "begin"
    turn: str
    """Id of the turn, chosen by the client."""
    instance: str
    """The agent that is meant, so that one which has taken its place does not take the turn."""
    messages: tuple[dict[str, Any], ...]


class Follow(Value):
    """Asks what a turn has brought since."""

    op: Literal["follow"] = "follow"
    turn: str
    epoch: str
    """The epoch of the last progress that was received."""
    after: int
    """How many items of that epoch were received; those need not be kept any longer."""


class Cancel(Value):
    """Cancels a turn; answered when it has ended."""

    op: Literal["cancel"] = "cancel"
    turn: str


class Reset(Value):
    """Resets the agent."""

    op: Literal["reset"] = "reset"


class Pause(Value):
    """Pauses the agent, also within a turn."""

    op: Literal["pause"] = "pause"


class Resume(Value):
    """Lets the agent go on."""

    op: Literal["resume"] = "resume"


class SaveState(Value):
    """Asks for the agent's state."""

    op: Literal["save_state"] = "save_state"
    instance: str


class LoadState(Value):
    """Gives the agent a state."""

    op: Literal["load_state"] = "load_state"
    state: dict[str, Any]


class Close(Value):
    """Closes the agent; the next request makes a new one."""

    op: Literal["close"] = "close"
    instance: str


Operation = Reset | Pause | Resume | SaveState | LoadState | Close | Cancel
Request = Annotated[Describe | Begin | Follow | Operation, Field(discriminator="op")]


class Described(Value):
    """Who is there."""

    answer: Literal["described"] = "described"
    name: str
    description: str
    produces: tuple[str, ...]
    """Names of the types of message that the agent may answer with."""
    instance: str
    """Changes when another agent takes the place, one that knows nothing of the dialogue."""


class Progress(Value):
    """What a turn has brought. A response is its last item; one that failed ends in `Failed`."""

    answer: Literal["progress"] = "progress"
    epoch: str
    """Changes where the turn was taken up by another worker; numbering begins anew."""
    first: int
    """Number of the first item below, counted from 0."""
    items: tuple[Item, ...]
    """Empty where the turn goes on and has brought nothing new."""


class Working(Value):
    """The request was received and is being worked on; ask again under the same id."""

    answer: Literal["working"] = "working"


class Done(Value):
    """It is done."""

    answer: Literal["done"] = "done"
    instance: str


class Saved(Value):
    """The agent's state."""

    answer: Literal["saved"] = "saved"
    state: dict[str, Any]


class Failed(Value):
    """It could not be done."""

    answer: Literal["failed"] = "failed"
    failure: RemoteFailure


Answer = Annotated[
    Described | Progress | Working | Done | Saved | Failed, Field(discriminator="answer")
]

_REQUESTS: TypeAdapter[Request] = TypeAdapter(Request)
_ANSWERS: TypeAdapter[Answer] = TypeAdapter(Answer)


class VersionError(ValueError):
    """A body of another version of the protocol."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"The other side speaks version {version} of the protocol, this one {PROTOCOL}. "
            "Install the same version of coag on clients and workers."
        )


def read_request(envelope: CoagRequest) -> Request:
    """The body of a request.

    Raises:
        VersionError: It is of another version.
        ValueError: It is none.
    """
    return _REQUESTS.validate_python(_body(envelope))


def read_answer(envelope: CoagAnswer) -> Answer:
    """The body of an answer.

    Raises:
        VersionError: It is of another version.
        ValueError: It is none.
    """
    return _ANSWERS.validate_python(_body(envelope))


def body_of(value: Value) -> str:
    """A body as it travels.

    Raises:
        ConfigurationError: It holds something that is no JSON, e.g. in an agent's state.
    """
    try:
        return json.dumps(value.model_dump())
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"A {type(value).__name__} holds what JSON cannot: {error}. States and metadata of "
            "agents that work remotely must be JSON."
        ) from error


def size_of(envelope: CoagRequest | CoagAnswer) -> int:
    """Bytes of an envelope as it travels."""
    return len(envelope.model_dump_json())


def _body(envelope: _Envelope) -> Any:
    if envelope.v != PROTOCOL:
        raise VersionError(envelope.v)
    return json.loads(envelope.body)
