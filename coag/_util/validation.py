"""What pydantic found wrong, in one sentence."""

from __future__ import annotations

from pydantic_core import ValidationError


def first_error(error: ValidationError, whole: str = "") -> str:
    """The first error with its place, as in `items.0.name: Field required`.

    Args:
        error: What validation raised.
        whole: What to call the value as a whole; without it such an error has no place.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"])) or whole
    return f"{where}: {first['msg']}" if where else first["msg"]
