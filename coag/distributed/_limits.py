"""What is bounded between a client and a worker, and where the bounds are."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from coag.schema import Value

GRPC_MARGIN = 64 * 1024
"""Bytes that gRPC's own limit is above ours: addresses and headers of a message."""


class Limits(Value):
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
    """A turn that nobody has asked after for so long is cancelled: its client is gone."""
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
