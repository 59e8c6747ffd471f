"""Scripted answers: a script that gives them in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias, cast

from autogen_core import FunctionCall
from autogen_core.models import CreateResult
from pydantic import BaseModel, JsonValue, PlainSerializer, PlainValidator, TypeAdapter

from ._requests import ScriptedReply, ScriptedRequest

_Writable: TypeAlias = str | list[FunctionCall] | dict[str, JsonValue]
"""The answers that JSON can give back."""
_WRITABLE = TypeAdapter[list[_Writable]](list[_Writable])


def _written(answers: list[ScriptedReply | Exception]) -> Any:
    for number, answer in enumerate(answers, 1):
        if not isinstance(answer, str | list | dict):
            raise ValueError(
                f"answer {number} is a {type(answer).__name__}, and only texts, JSON objects and "
                "tool calls can be written down; give the model a function of a module instead"
            )
    return _WRITABLE.dump_python(cast("list[_Writable]", answers), mode="json")


@dataclass(slots=True)
class ScriptedAnswers:
    """A script that gives its answers in order, and raises an exception that is among them.

    It can be written down in a component where its answers are texts, JSON objects and tool
    calls. How many it has given is state: a loaded one begins with the first.
    """

    answers: Annotated[
        list[ScriptedReply | Exception],
        PlainValidator(_WRITABLE.validate_python),
        PlainSerializer(_written),  # after the validator, which would take its place
    ]
    """What it answers, in order."""
    given: int = field(default=0, init=False)
    """How many answers were given."""

    def __call__(self, request: ScriptedRequest) -> ScriptedReply:
        """The next answer.

        Raises:
            RuntimeError: There is none left; says what was asked.
        """
        if self.given == len(self.answers):
            asked = request.schema_name or "text"
            raise RuntimeError(
                f"All {len(self.answers)} scripted answers are used up; asked for {asked} "
                f"with {request.last_user_text[-200:]!r}."
            )
        reply = self.answers[self.given]
        self.given += 1
        if isinstance(reply, Exception):
            raise reply
        return reply


def scripted_answers(answers: Iterable[ScriptedReply | Exception]) -> ScriptedAnswers:
    """A script that gives these answers in order; an exception among them is raised.

    The script raises `RuntimeError` when there is no answer left, and says what was asked.
    """
    return ScriptedAnswers([_plain(answer) for answer in answers])


def _plain(answer: ScriptedReply | Exception) -> ScriptedReply | Exception:
    """The answer in the form that it is also loaded in; a value is the JSON that is sent."""
    if isinstance(answer, BaseModel) and not isinstance(answer, CreateResult):
        return answer.model_dump_json()
    return list(answer) if isinstance(answer, tuple) else answer
