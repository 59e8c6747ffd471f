"""What the fields of the awareness state are made of: values that JSON carries there and back."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from coag.schema import well_formed


def _said(text: str) -> str:
    """The text, refused if it says nothing."""
    if not text.strip():
        raise ValueError("must not be empty or blank")
    return text


Text = Annotated[str, AfterValidator(well_formed)]
"""A text that UTF-8 can carry; a lone surrogate becomes `?`."""
Said = Annotated[Text, AfterValidator(_said)]
"""A text that says something: not empty, not blank."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
"""A number that JSON can carry."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
"""A number from 0 to 1."""
Amount = Annotated[Finite, Field(ge=0.0)]
"""How much of a resource, in the resource's own unit."""
Step = Annotated[int, Field(ge=0)]
"""A step of the awareness state, counted by `tick`."""
Plain = Text | int | Finite | bool | None
"""A scalar of JSON."""
Names = tuple[Said, ...]


def folded(text: str) -> str:
    """The text as it is compared: without case, each run of white space one space."""
    return " ".join(text.casefold().split())
