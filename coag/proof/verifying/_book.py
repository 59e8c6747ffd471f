"""Where a check has come to, and what it has found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, cast

from coag.schema import Value
from coag.tracing import REDACTED

from ._violation import Remark, Rule, Violation

FOUND_KEPT = 1_000
"""Violations that are listed at most, and remarks: a hostile trace could have millions."""
_SHOWN = 120
"""Characters of a value in a sentence."""


@dataclass(slots=True)
class Book:
    """Collects what the rules find."""

    seq: int | None = None
    """Number of the record at hand."""
    cycle: int | None = None
    """The cycle it belongs to."""
    violations: list[Violation] = field(default_factory=list[Violation])
    remarks: list[Remark] = field(default_factory=list[Remark])
    unlisted: int = 0
    """Violations beyond those that are kept."""

    def violate(self, rule: Rule, text: str) -> None:
        """Notes that a rule is violated by the record at hand."""
        if len(self.violations) >= FOUND_KEPT:
            self.unlisted += 1
            return
        self.violations.append(Violation(rule=rule, seq=self.seq, cycle=self.cycle, text=text))

    def remark(self, text: str) -> None:
        """Notes what is no violation."""
        if len(self.remarks) < FOUND_KEPT:
            self.remarks.append(Remark(seq=self.seq, text=text))


Taking = Mapping[str, Callable[[Any], None]]
"""What to do with a record, by its `record`."""


class Checker(Protocol):
    """A few rules that belong together, and what they must remember."""

    @property
    def takes(self) -> Taking:
        """The records that these rules look at."""
        ...

    def end(self, *, finished: bool) -> None:
        """The trace ends here.

        Args:
            finished: Whether its run has ended, so that nothing may be left open.
        """
        ...


def shown(value: object) -> str:
    """A value as a sentence names it, cut."""
    text = repr(value.value if isinstance(value, Enum) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def same(left: object, right: object) -> bool:
    """Whether two values are equal as far as can be told: redacted ones cannot be compared."""
    return left == right or _redacted(left) or _redacted(right)


def same_json(left: object, right: object) -> bool:
    """As `same`, for JSON values part by part: a redacted text hides no other part."""
    return left == right or difference(left, right) is None


def difference(left: object, right: object, path: str = "") -> tuple[str, object, object] | None:
    """The first place at which two JSON values differ, with both values there.

    Redacted texts are taken for equal to anything.
    """
    if isinstance(left, dict) and isinstance(right, dict):
        ours, theirs = cast("dict[str, object]", left), cast("dict[str, object]", right)
        return _first([(f".{key}", ours.get(key), theirs.get(key)) for key in ours | theirs], path)
    if isinstance(left, list) and isinstance(right, list):
        one, other = cast("list[object]", left), cast("list[object]", right)
        if len(one) == len(other):
            return _first(
                [(f"[{n}]", *pair) for n, pair in enumerate(zip(one, other, strict=True))], path
            )
        return path.lstrip("."), one, other
    return _unlike(cast("object", left), right, path)


def _unlike(left: object, right: object, path: str) -> tuple[str, object, object] | None:
    equal = left == right and isinstance(left, bool) is isinstance(right, bool)
    return None if equal or _hidden(left) or _hidden(right) else (path.lstrip("."), left, right)


def _first(pairs: list[tuple[str, object, object]], path: str) -> tuple[str, object, object] | None:
    for step, left, right in pairs:
        if (found := difference(left, right, path + step)) is not None:
            return found
    return None


def _hidden(value: object) -> bool:
    return isinstance(value, str) and REDACTED in value


def _redacted(value: object) -> bool:
    return REDACTED in (value if isinstance(value, str) else repr(value))


def fields_but(value: Value, left_out: frozenset[str]) -> dict[str, Any]:
    """A value's fields without some."""
    return {name: held for name, held in value.__dict__.items() if name not in left_out}
