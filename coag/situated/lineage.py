"""On whose behalf a call of an operation is made: what keeps delegation from going in circles.

A goal that an agent passes on has a lineage: the activities through which it came, the first one
first, each `AGENT/ACTIVITY`. Code hands it on with each call, in process by the context and over
MCP in `_meta`; no model sees or writes it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from coag._util.validation import first_error

LINEAGE_META = "coag.situated/lineage"
"""Where in `_meta` of a call its lineage is."""
_LINEAGE: TypeAdapter[tuple[str, ...]] = TypeAdapter(
    Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=32)]
)


class CallOrigin(NamedTuple):
    """Where the call comes from that is being run."""

    key: str | None = None
    """Its key; None for a call that is not remembered."""
    lineage: tuple[str, ...] = ()
    """The activities on whose behalf it is made; empty where the caller does not say."""


_UNKNOWN = CallOrigin()
_ORIGIN: ContextVar[CallOrigin] = ContextVar("origin", default=_UNKNOWN)


def current_call() -> CallOrigin:
    """The call in which, or by whose internal operations, something happens."""
    return _ORIGIN.get()


@contextmanager
def calling(origin: CallOrigin) -> Generator[None]:
    """What is called inside comes from there."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)


def lineage_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The lineage that a caller on another machine sent.

    Raises:
        ValueError: It is none, or too long.
    """
    sent = meta.get(LINEAGE_META, [])
    try:
        return _LINEAGE.validate_python(sent)
    except ValidationError as error:
        raise ValueError(f"{LINEAGE_META!r} is no lineage: {first_error(error)}") from error
