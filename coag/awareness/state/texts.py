"""What the fields of the awareness state are made of: values that JSON carries there and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from coag.schema import folded, well_formed

Finite = Annotated[float, Field(allow_inf_nan=False)]
"""A number that JSON can carry."""
NOT_BLANK = r"\S"
"""Pattern of a text with something in it."""
Text = Annotated[str, StringConstraints(pattern="^")]
"""A text that UTF-8 can carry; one with a lone surrogate is refused."""
Said = Annotated[str, StringConstraints(pattern=NOT_BLANK)]
"""A text that says something: not empty, not blank."""


def _mended(given: object) -> object:
    """The text with lone surrogates replaced by `?`; anything else as it is."""
    return well_formed(given) if isinstance(given, str) else given


_MOST_BITS = 14_000


def _readable(number: int) -> int:
    if number.bit_length() > _MOST_BITS:
        raise ValueError("an integer of more than 4,200 digits cannot be read again from JSON")
    return number


Whole = Annotated[int, AfterValidator(_readable)]
"""An integer that JSON carries there and back."""
HeardText = Annotated[Text, BeforeValidator(_mended)]
"""A text from outside; a lone surrogate in it becomes `?`."""
Heard = Annotated[Said, BeforeValidator(_mended)]
"""A text from outside that says something; a lone surrogate in it becomes `?`."""
HeardPlain = Annotated[Text | Whole | Finite | bool | None, BeforeValidator(_mended)]
"""A scalar of JSON from outside."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""
Amount = Annotated[Finite, Field(ge=0.0)]
"""How much of a resource, in the resource's own unit."""
Step = Annotated[Whole, Field(ge=0)]
"""A step of the awareness state, counted by `tick`."""
Plain = Text | Whole | Finite | bool | None
"""A scalar of JSON."""
Names = tuple[Said, ...]


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without those that differ from an earlier one in case and spacing only."""
    kept: dict[str, str] = {}
    for text in texts:
        kept.setdefault(folded(text), text)
    return tuple(kept.values())
