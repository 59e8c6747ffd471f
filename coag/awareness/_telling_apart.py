"""Things of different types that go by one number or code: each gets a name of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ._names import is_code
from ._observation import ObservedEntity
from ._resolving import NameIndex


def told_apart(seen: Sequence[ObservedEntity], names: NameIndex) -> tuple[ObservedEntity, ...]:
    """What was noticed, under names that mean one thing each, before it goes into a world.

    Words mean the same whatever the type: a topic `Python` and a library `Python` are one thing.
    A number does not: where the world has an order `17`, a customer `17` is named `customer:17`.
    Topics and concepts (`EngineSettings.loose_types`) count as one type.

    Args:
        seen: What was noticed.
        names: Those of the world; nothing is learned.
    """
    new: dict[str, str] = {}
    return tuple(_named(one, names, new) if is_code(one.name) else one for one in seen)


def _named(seen: ObservedEntity, names: NameIndex, new: dict[str, str]) -> ObservedEntity:
    """The thing under the name that is its own; its type stands in `new` from now on."""

    def type_of(name: str) -> str | None:
        return names.type_of(name) or new.get(names.normal(name))

    own = f"{seen.type}:{seen.name.strip()}"
    known = type_of(seen.name)
    if type_of(own) is None and (known is None or names.go_together(known, seen.type)):
        new.setdefault(names.normal(seen.name), seen.type)
        return seen
    new.setdefault(names.normal(own), seen.type)
    return seen.model_copy(update={"name": own})
