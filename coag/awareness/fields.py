"""The types of the fields of states and observations: values that JSON carries there and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from coag._util.text import well_formed
from coag.schema import folded

NOT_BLANK = r"\S"
_MOST_BITS = 14_000


def _readable(number: int) -> int:
    if number.bit_length() > _MOST_BITS:
        raise ValueError("an integer of more than 4,200 digits cannot be read again from JSON")
    return number


def _repaired(given: object) -> object:
    return well_formed(given) if isinstance(given, str) else given


Finite = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, AfterValidator(_readable)]
Text = Annotated[str, StringConstraints(pattern="^")]
"""A text that UTF-8 can carry; one with a lone surrogate is refused."""
NonBlank = Annotated[str, StringConstraints(pattern=NOT_BLANK)]
"""A text that is not blank."""
Names = tuple[NonBlank, ...]
Scalar = Text | Whole | Finite | bool | None
"""A scalar of JSON."""
ForeignText = Annotated[Text, BeforeValidator(_repaired)]
"""A text from outside; a lone surrogate in it becomes `?`."""
Foreign = Annotated[NonBlank, BeforeValidator(_repaired)]
"""A text from outside that is not blank; a lone surrogate in it becomes `?`."""
ForeignScalar = Annotated[Text | Whole | Finite | bool | None, BeforeValidator(_repaired)]
"""A scalar of JSON from outside."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""
Amount = Annotated[Finite, Field(ge=0.0)]
"""How much of a resource, in the resource's own unit."""
Step = Annotated[Whole, Field(ge=0)]
"""A step of the awareness state, counted by `tick`."""


def occurs_in_row(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether there are words wanted, and these occur among the others in a row."""
    starts = range(len(words) - len(wanted) + 1)
    return bool(wanted) and any(words[at : at + len(wanted)] == wanted for at in starts)


def distinct(texts: Iterable[str]) -> tuple[str, ...]:
    """The texts without those that differ from an earlier one in case and spacing only."""
    values: dict[str, str] = {}
    for text in texts:
        values.setdefault(folded(text), text)
    return tuple(values.values())
