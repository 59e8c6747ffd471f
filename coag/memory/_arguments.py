"""Arguments of the memory actions, as the model gives them: small, bounded, without unions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coag.schema import Fact


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _Kept(_Arguments):
    """What goes into a memory of records."""

    scope: str = Field(
        default="", max_length=200, description="Whose memory to write to; left out, your own."
    )


class EpisodicArguments(_Kept):
    """What happened."""

    summary: str = Field(
        min_length=1, max_length=500, description="What happened, where and with what result."
    )
    type: str = Field(
        default="note", min_length=1, max_length=40, description="One word for the sort of event."
    )
    about: str = Field(default="", max_length=80, description="Thing or place it is about.")


class SemanticArguments(_Kept):
    """What holds."""

    fact: str = Field(
        min_length=1, max_length=500, description="One fact that will still hold later."
    )
    about: str = Field(default="", max_length=80, description="Thing or place it is about.")
    supersedes: str = Field(
        default="", max_length=40, description="Id of the remembered fact that it replaces."
    )
    attribute: str = Field(
        default="", max_length=80, description="Which property of that thing; with about and value."
    )
    value: str = Field(
        default="", max_length=200, description="What the property is; another one replaces it."
    )

    def as_fact(self) -> Fact | None:
        """The fact in parts; None if it is told in words only.

        Raises:
            ValueError: If only some of the parts are there.
        """
        if not self.attribute and not self.value:
            return None
        if not (self.about and self.attribute and self.value):
            raise ValueError(
                "Give about, attribute and value together, or neither of the last two."
            )
        return Fact(subject=self.about, attribute=self.attribute, value=self.value)


class ProceduralArguments(_Arguments):
    """How to act."""

    procedure: str = Field(description="Which procedure to change.")
    reason: str = Field(min_length=1, max_length=300, description="What went wrong or well.")
    operation: Literal["add", "replace", "remove"] = Field(
        description="What to do with a standing rule."
    )
    rule: str = Field(
        default="", max_length=300, description="The rule: one sentence in your own words."
    )
    number: int = Field(
        default=0, ge=0, le=99, description="Number of the rule to replace or remove."
    )


def json_schema(
    arguments: type[_Arguments], names: Mapping[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """The JSON schema of the arguments, without titles.

    Args:
        arguments: Whose schema.
        names: The values that a property may have, for those that are known only now. A property
            that may be left out and has no choice is not shown.
    """
    schema: dict[str, Any] = json.loads(_plain_schema(arguments))
    for name, values in (names or {}).items():
        if len(values) < 2 and name not in schema["required"]:
            del schema["properties"][name]
        else:
            schema["properties"][name]["enum"] = list(values)
    return schema


@cache
def _plain_schema(arguments: type[_Arguments]) -> str:
    """As JSON text: asked for in every cycle, and pydantic takes a millisecond to make it."""
    schema = arguments.model_json_schema()
    properties = {
        name: {key: value for key, value in property.items() if key != "title"}
        for name, property in sorted(schema["properties"].items(), key=_scope_last)
    }
    return json.dumps(
        {
            "type": "object",
            "properties": properties,
            "required": schema["required"],
            "additionalProperties": False,
        }
    )


def _scope_last(property: tuple[str, Any]) -> bool:
    return property[0] == "scope"
