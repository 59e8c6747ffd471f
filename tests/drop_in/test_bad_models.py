"""Models that answer badly: every turn ends within its bounds, and the next one is whole."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import HandoffMessage
from autogen_core import FunctionCall
from kits.drop_in import (
    NATIVE,
    WAYS,
    Judgement,
    add,
    calls_in,
    check_reusable,
    form_of,
    results_in,
    run,
    way_name,
)
from kits.planned import BAD_ARGUMENTS, BAD_TEXTS, LONG, Planned, PlannedModel

from coag import CoagAgent
from coag.schema import ExecutionOutcome

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)
native = pytest.mark.parametrize("way", NATIVE, ids=way_name)
SHORT = [name for name, text in BAD_TEXTS.items() if text is not LONG]
"""Those of the bad texts that are soon looked through."""
CALLS = 130
"""Model calls of a turn at most: 20 cycles of up to four phases, some asked twice."""


async def ends(agent: CoagAgent, model: PlannedModel, text: str = "Go on.") -> Any:
    """The turn's answer; it ends with one, within its bounds and soon."""
    begun, asked = time.thread_time(), len(model.asked)
    result = await run(agent, text)
    assert len(model.asked) - asked <= CALLS
    assert time.thread_time() - begun < 20
    assert len(result.messages[-1].to_text()) < 300_000
    return result


@all_ways
@pytest.mark.parametrize("bad", BAD_TEXTS)
async def test_a_bad_answer_in_any_place_and_bad_ones_for_ever_cost_no_turn(
    way: dict[str, Any], bad: str
) -> None:
    for place in [0, *(range(4) if bad in SHORT else ())]:
        model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
        agent = CoagAgent("agent", model, tools=[add], **way)
        model.err(BAD_TEXTS[bad], skip=place, times=1 if place in range(1, 4) else -1)
        await ends(agent, model)
        if way["proposal"] == "json":
            executions = [r for r in agent.trace if isinstance(r, ExecutionOutcome)]
            assert all(len(r.model_dump_json()) < 20_000 for r in executions)
        await check_reusable(agent, model)


@all_ways
@pytest.mark.parametrize("when", ["json", "tools", "text"])
@pytest.mark.parametrize("bad", ["empty", "prose", "wrong_form", "null"])
async def test_one_sort_of_question_that_is_always_answered_badly_ends_the_turn(
    way: dict[str, Any], when: Any, bad: str
) -> None:
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    model.err(BAD_TEXTS[bad], when, times=-1)
    agent = CoagAgent("agent", model, tools=[add], **way)
    await ends(agent, model)
    await check_reusable(agent, model)


@all_ways
@pytest.mark.parametrize("times", [1, -1])
@pytest.mark.parametrize(
    "calls",
    [
        [],
        [FunctionCall(id="c", name="no_such_tool", arguments='{"q": 1}')],
        [FunctionCall(id="", name="", arguments="")],
        [FunctionCall(id="c", name="respond", arguments="{}")],
        [FunctionCall(id="c", name="respond", arguments='{"text": ["a"]}')],
        [FunctionCall(id="c", name="\ud800\x00", arguments="\ud800")],
        [FunctionCall(id=f"c{n}", name="add", arguments="{}") for n in range(50)],
        [FunctionCall(id="c", name="add", arguments='{"a": 1e999, "b": 2}')],
    ],
    ids=["none", "unknown", "nameless", "respond", "respond_badly", "surrogates", "many", "huge"],
)
async def test_calls_that_make_no_sense_cost_no_turn(
    way: dict[str, Any], calls: Sequence[FunctionCall], times: int
) -> None:
    model = PlannedModel().err(calls, times=times)
    agent = CoagAgent("agent", model, tools=[add], **way)
    result = await ends(agent, model)
    called, results = calls_in(result.messages), results_in(result.messages)
    assert [one.id for one in called] == [one.call_id for one in results]
    await check_reusable(agent, model)


@native
@pytest.mark.parametrize("times", [1, -1])
async def test_a_call_where_a_text_was_asked_for_costs_no_turn(
    way: dict[str, Any], times: int
) -> None:
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    model.err([FunctionCall(id="c", name="add", arguments='{"a": 1, "b": 2}')], "text", times)
    model.err([FunctionCall(id="c", name="add", arguments='{"a": 1, "b": 2}')], "json", times)
    agent = CoagAgent("agent", model, tools=[add], max_tool_iterations=1, **way)
    await ends(agent, model)
    await check_reusable(agent, model)


# ---- arguments ----


def added(numbers: list[tuple[int, int]]) -> Any:
    async def add(a: int, b: int) -> int:
        """Adds two numbers."""
        numbers.append((a, b))
        return a + b

    return add


@all_ways
@pytest.mark.parametrize("times", [1, 60])
@pytest.mark.parametrize("bad", BAD_ARGUMENTS)
async def test_bad_arguments_do_not_run_the_tool_and_the_turn_ends(
    way: dict[str, Any], bad: str, times: int
) -> None:
    numbers: list[tuple[int, int]] = []
    plan: list[Planned] = [("add", BAD_ARGUMENTS[bad])] * times
    model = PlannedModel("FINAL", *plan)
    agent = CoagAgent("agent", model, tools=[added(numbers)], **way)
    result = await ends(agent, model)
    if way["proposal"] == "native" and bad != "fenced":
        assert {one.is_error for one in results_in(result.messages)} == {True}
    assert numbers == [] or bad == "fenced"
    assert result.messages[-1].to_text() == "FINAL" or times > 1
    await check_reusable(agent, model)


@native
@pytest.mark.parametrize("bad", BAD_ARGUMENTS)
async def test_a_handoff_has_no_use_for_arguments_and_never_hangs(
    way: dict[str, Any], bad: str
) -> None:
    model = PlannedModel("FINAL", ("transfer_to_bob", BAD_ARGUMENTS[bad]))
    agent = CoagAgent("agent", model, handoffs=[Handoff(target="bob", message="Over!")], **way)
    result = await ends(agent, model)
    answer = result.messages[-1]
    assert isinstance(answer, HandoffMessage) or answer.to_text() == "FINAL"
    if bad in ("empty", "null"):
        assert isinstance(answer, HandoffMessage)
        assert answer.content == "Over!"
    await check_reusable(agent, model)


# ---- structured answers ----


@all_ways
@pytest.mark.parametrize("times", [1, -1])
@pytest.mark.parametrize("bad", SHORT)
async def test_a_structured_answer_never_hangs(way: dict[str, Any], bad: str, times: int) -> None:
    form = {"answer": "FINAL", "score": 1.0}
    model = PlannedModel("FINAL", forms={"Judgement": form, "respond": form})
    model.err(BAD_TEXTS[bad], times=times)
    agent = CoagAgent("agent", model, tools=[add], output_content_type=Judgement, **way)
    answer = (await ends(agent, model)).messages[-1]
    assert times == -1 or form_of(answer) == Judgement(answer="FINAL", score=1.0)
    model.faults.clear()
    result = await run(agent, "And now?")
    assert form_of(result.messages[-1]) == Judgement(answer="FINAL", score=1.0)
    assert model.violations == []


@pytest.mark.parametrize("text", ["one two", "x" * 2_000_000, "\x00", "{", "[/b] {x} %s"])
async def test_a_long_or_odd_answer_of_a_model_is_passed_on_unchanged(text: str) -> None:
    model = PlannedModel(text)
    agent = CoagAgent("agent", model)
    result = await ends(agent, model)
    assert result.messages[-1].to_text()[:1_000] == text[:1_000]
