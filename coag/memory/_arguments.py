"""Arguments of the memory actions, as the model gives them: small, bounded, without unions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class EpisodicArguments(_Arguments):
    """What happened."""

    summary: str = Field(
        min_length=1, max_length=500, description="What happened, where and with what result."
    )
    type: str = Field(
        default="note", min_length=1, max_length=40, description="One word for the sort of event."
    )
    about: str = Field(default="", max_length=80, description="Thing or place it is about.")


class SemanticArguments(_Arguments):
    """What holds."""

    fact: str = Field(
        min_length=1, max_length=500, description="One fact that will still hold later."
    )
    about: str = Field(default="", max_length=80, description="Thing or place it is about.")
    supersedes: str = Field(
        default="", max_length=40, description="Id of the remembered fact that it replaces."
    )


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
    arguments: type[_Arguments], names: dict[str, Sequence[str]] | None = None
) -> dict[str, Any]:
    """The JSON schema of the arguments, without titles.

    Args:
        arguments: Whose schema.
        names: The values that a property may have, for those that are known only now.
    """
    schema: dict[str, Any] = json.loads(_plain_schema(arguments))
    for name, values in (names or {}).items():
        schema["properties"][name]["enum"] = list(values)
    return schema


@cache
def _plain_schema(arguments: type[_Arguments]) -> str:
    """As JSON text: asked for in every cycle, and pydantic takes a millisecond to make it."""
    schema = arguments.model_json_schema()
    properties = {
        name: {key: value for key, value in property.items() if key != "title"}
        for name, property in schema["properties"].items()
    }
    return json.dumps(
        {
            "type": "object",
            "properties": properties,
            "required": schema["required"],
            "additionalProperties": False,
        }
    )
