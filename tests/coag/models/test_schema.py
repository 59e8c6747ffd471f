"""Schemas as strict structured output wants them."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Generic, TypeVar

import jsonschema
import pytest
from pydantic import BaseModel, Field

from coag.models import response_format, strict_schema

T = TypeVar("T")


class Kind(StrEnum):
    A = "a"
    B = "b"


class Part(BaseModel):
    title: str = Field(default="none", max_length=9, description="What it is called.")
    default: int = 3


class Whole(BaseModel):
    parts: list[Part] = Field(default_factory=list[Part], max_length=5)
    kind: Kind = Field(default=Kind.A, description="Which kind.")
    chosen: Part | None = None


class Free(BaseModel):
    inner: dict[str, Any]


class Box(BaseModel, Generic[T]):
    content: T


def test_every_field_is_required_no_other_allowed_and_references_stand_alone() -> None:
    schema = strict_schema(Whole)
    assert schema["required"] == ["parts", "kind", "chosen"]
    assert schema["additionalProperties"] is False
    part = schema["$defs"]["Part"]
    assert part["required"] == ["title", "default"]
    assert part["additionalProperties"] is False
    title = {"description": "What it is called.", "maxLength": 9, "type": "string"}
    assert part["properties"] == {"title": title, "default": {"type": "integer"}}
    assert schema["properties"]["kind"] == {"$ref": "#/$defs/Kind"}
    assert schema["properties"]["chosen"]["anyOf"][0] == {"$ref": "#/$defs/Part"}


def test_dumped_value_is_valid_under_the_schema() -> None:
    value = Whole(parts=[Part()], chosen=Part())
    jsonschema.validate(value.model_dump(mode="json"), strict_schema(Whole))


def test_free_dictionary_is_refused_by_its_place() -> None:
    with pytest.raises(ValueError, match=r"Free\.inner is a free dictionary"):
        strict_schema(Free)


def test_response_format_has_a_name_that_servers_accept() -> None:
    form = response_format(Box[Kind])
    assert form["type"] == "json_schema"
    assert form["json_schema"]["name"] == "Box_Kind_"
    assert form["json_schema"]["strict"] is True
