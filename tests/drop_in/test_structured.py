"""Answers in a form: always of the type, in every way, after tools, in teams."""

from __future__ import annotations

import json
from typing import Any

import pytest
from autogen_agentchat.base import ChatAgent, Team
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.messages import StructuredMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from kits.drop_in import WAYS, Judgement, Part, Report, add, form_of, run, way_name, within
from kits.planned import PlannedModel
from pydantic import BaseModel

from coag import CoagAgent

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
REPORT = Report(title="t", parts=[Part(label="a"), Part(label="b", weight=2)])
VALUES: list[BaseModel] = [Judgement(answer="yes", score=0.5), REPORT]


def formed(value: BaseModel, *plan: Any, says: str | None = None, **info: Any) -> PlannedModel:
    """A model that gives the value in every form that it is asked for."""
    fields = value.model_dump(mode="json")
    forms = {type(value).__name__: fields, "respond": fields}
    return PlannedModel(json.dumps(fields) if says is None else says, *plan, forms=forms, **info)


@all_ways
@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("says", [None, "I think so."], ids=["json", "prose"])
async def test_the_answer_is_of_the_type(
    way: dict[str, Any], value: BaseModel, says: str | None
) -> None:
    model = formed(value, ("add", {"a": 1, "b": 2}), says=says)
    agent = CoagAgent("agent", model, tools=[add], output_content_type=type(value), **way)
    for _ in range(2):
        answer: Any = (await run(agent)).messages[-1]
        assert type(answer).__name__ == f"StructuredMessage[{type(value).__name__}]"
        assert form_of(answer) == value
    assert model.violations == []


@all_ways
@pytest.mark.parametrize("plan", [[], [("add", {"a": 1, "b": 2})]], ids=["alone", "after_tool"])
async def test_a_format_says_how_it_reads(way: dict[str, Any], plan: list[Any]) -> None:
    agent = CoagAgent(
        "agent",
        formed(VALUES[0], *plan),
        tools=[add],
        output_content_type=Judgement,
        output_content_type_format="A={answer} S={score}",
        **way,
    )
    assert (await run(agent)).messages[-1].to_text() == "A=yes S=0.5"


@all_ways
async def test_a_model_that_knows_no_schema_gives_it_too(way: dict[str, Any]) -> None:
    model = formed(VALUES[0], structured_output=False)
    agent = CoagAgent("agent", model, output_content_type=Judgement, **way)
    assert form_of((await run(agent)).messages[-1]) == VALUES[0]


async def test_a_team_takes_it_unregistered_and_others_read_it() -> None:
    other = PlannedModel("Read. TERMINATE")
    agents: list[ChatAgent | Team] = [
        CoagAgent("one", formed(VALUES[0]), output_content_type=Judgement),
        CoagAgent("two", other),
    ]
    ends = TextMentionTermination("TERMINATE")
    result = await within(RoundRobinGroupChat(agents, termination_condition=ends).run(task="Go."))
    assert any(isinstance(m, StructuredMessage) for m in result.messages)
    assert "yes" in other.heard
