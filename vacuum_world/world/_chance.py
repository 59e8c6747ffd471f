"""Chance as a value: counted draws from seeded streams.

A stream is a seed and the number of draws made; the n-th draw is a hash of both. So a snapshot
carries its chance with it, the numbers are the same on every platform and Python version, and
one stream cannot shift another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from ._values import Value

T = TypeVar("T")


class Stream(Value):
    """One source of chance: its n-th number depends on nothing but seed and n."""

    seed: int
    """What tells this stream from others."""
    draws: int = 0
    """How many numbers have been drawn."""


class Streams(Value):
    """The world's three sources of chance, one per kind of dynamics."""

    obstacles: Stream
    """Which obstacles move, and to where."""
    dirt: Stream
    """Which cleaned cells turn dirty."""
    cleaning: Stream
    """Which cleanings fail, and how."""


def _hash(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size])


def stream_named(seed: int, name: str) -> Stream:
    """The stream that belongs to `name` in a world of this seed."""
    return Stream(seed=_hash(f"{seed}/{name}", 6))


def seeded_streams(seed: int) -> Streams:
    """Fresh streams for a world of this seed."""
    return Streams(
        obstacles=stream_named(seed, "obstacles"),
        dirt=stream_named(seed, "dirt"),
        cleaning=stream_named(seed, "cleaning"),
    )


def draw(stream: Stream) -> tuple[float, Stream]:
    """The next number in [0, 1), and the stream after it."""
    number = (_hash(f"{stream.seed}:{stream.draws}", 8) >> 11) / 2**53
    return number, Stream(seed=stream.seed, draws=stream.draws + 1)


def pick(stream: Stream, options: Sequence[T]) -> tuple[T, Stream]:
    """One of `options`, each as likely as the other, and the stream after the choice."""
    number, after = draw(stream)
    return options[int(number * len(options))], after


class Dice:
    """A stream that remembers where it is, for building worlds (the rules never use it)."""

    def __init__(self, seed: int, name: str) -> None:
        self._stream = stream_named(seed, name)

    def choice(self, options: Sequence[T]) -> T:
        """One of `options`."""
        chosen, self._stream = pick(self._stream, options)
        return chosen

    def sample(self, options: Sequence[T], count: int) -> tuple[T, ...]:
        """`count` different members of `options`, in the order drawn."""
        left = list(options)
        drawn: list[T] = []
        for _ in range(count):
            chosen = self.choice(range(len(left)))
            drawn.append(left.pop(chosen))
        return tuple(drawn)
