"""The calls that rules count, kept in working memory so that they last.

An entry is made from a percept, as every change is: a tool's return, or an unknown outcome. A call
that is known to have done nothing does not count. So a batch, a resumed run and a loaded state
count alike.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from coag._util.secrets import REDACTED
from coag._util.text import comparable
from coag.schema import CountedFor, Percept, PerceptKind, Settlement, Value

COUNTED_LIMIT = 500
"""Calls of one action that are kept; of older ones it is only known that there were some."""
_VALUE = 80
"""Characters of a value that are kept; a longer one is kept as its hash."""


class CountedAction(Value):
    """A call that was made, or may have been."""

    intent_id: str
    action: str
    values: dict[str, str]
    """Its arguments, each as `counted_value` writes it."""
    goal_id: str
    memory_scope: str


def counted_value(value: Any) -> str:
    """A value as one text, the same for what counts as the same: 60 and 60.0, `Ann` and ` ann`."""
    if REDACTED in str(value):
        return REDACTED
    text = _canonical(value)
    if not isinstance(text, str):
        text = json.dumps(text, sort_keys=True, ensure_ascii=False, default=str)
    if len(text) > _VALUE:
        return f"sha256 {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"
    return text


def _canonical(value: Any) -> Any:
    if isinstance(value, str):
        return comparable(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_canonical(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {name: _canonical(one) for name, one in items if one is not None}
    return value


def counted_for(action: str, counted: Mapping[str, CountedFor]) -> frozenset[CountedFor]:
    """For what the calls of an action are counted; empty if nobody counts them."""
    return frozenset(how for name, how in counted.items() if fnmatchcase(action, name))


def with_call(
    done: tuple[CountedAction, ...], percept: Percept, goal_id: str, memory_scope: str
) -> tuple[tuple[CountedAction, ...], CountedAction | None]:
    """The calls after a percept of one, and the older one that had to go for it."""
    intent = percept.caused_by or percept.id
    if percept.kind is PerceptKind.SETTLED:
        gone = percept.settlement is Settlement.DID_NOT_HAPPEN
        return tuple(one for one in done if not (gone and one.intent_id == intent)), None
    rest = tuple(one for one in done if one.intent_id != intent)
    if percept.kind is PerceptKind.TOOL_RETURN and percept.is_error and not percept.counts:
        return rest, None
    arguments = percept.arguments or {}
    new = CountedAction(
        intent_id=intent,
        action=percept.source,
        values={n: counted_value(v) for n, v in arguments.items() if v is not None},
        goal_id=goal_id,
        memory_scope=memory_scope,
    )
    same = [one for one in rest if one.action == new.action]
    if len(same) < COUNTED_LIMIT:
        return (*rest, new), None
    return (*(one for one in rest if one is not same[0]), new), same[0]
