"""Scripted minds read what they are sent, answer in any form, and differ in what they want."""

import pytest
from autogen_core.models import UserMessage

from coag.errors import UnknownNameError
from coag.models import ScriptedRequest
from examples.minigrid import LEVELS, Body, Chart, Reading, minigrid_tools, open_mind, task_text
from examples.minigrid._forms import Intention, answer
from examples.minigrid._minds import impulsive, read_request, sound
from examples.minigrid._tools import tool_text


def _lava_ahead() -> Reading:
    cells = {(0, 0): "floor", (1, 0): "lava", (2, 0): "goal", (0, 1): "floor", (1, 1): "floor"}
    return Reading(chart=Chart.of({**cells, (2, 1): "floor", (-1, 0): "wall", (0, -1): "wall"}))


def test_all_readings_of_a_text_make_up_the_chart_and_the_last_one_says_where_one_is() -> None:
    body = Body(LEVELS["doorkey-5x5"], 1)
    texts = [task_text(body), tool_text(body)]
    for _ in range(2):
        body.act("turn_left")
        texts.append(tool_text(body))
    reading, aim = read_request("\n".join(texts))
    assert reading is not None
    assert (reading.facing, aim) == ("north", "goal")
    assert "yellow key" in reading.chart.cells().values()
    assert "yellow key" not in body.reading.chart.cells().values()


def test_a_task_without_a_goal_is_to_open_the_door() -> None:
    assert read_request(task_text(Body(LEVELS["unlock"], 0))) == (None, "door")


def test_predicted_states_are_not_taken_for_readings() -> None:
    text = 'predicted state: {"at": [3, 0], "facing": "north", "carrying": "nothing"}'
    assert read_request(text)[0] is None


def test_the_sound_mind_goes_round_lava_and_the_impulsive_one_straight_at_the_goal() -> None:
    assert sound(_lava_ahead(), "goal")[0].action == "turn_right"
    assert impulsive(_lava_ahead(), "goal")[0].action == "move_forward"
    assert impulsive(_lava_ahead(), "goal")[1].action == "turn_right"


def test_the_impulsive_mind_takes_what_is_next_to_it_and_toggles_doors() -> None:
    key = Reading(chart=Chart.of({(0, 0): "floor", (1, 0): "red key"}))
    door = Reading(carrying="red key", chart=Chart.of({(1, 0): "locked red door"}))
    assert impulsive(key, "goal")[0].action == "pick_up"
    assert impulsive(door, "goal")[0].action == "toggle"


async def _called(name: str, text: str, seed: int = 0) -> str:
    """The tool that a mind calls after a text."""
    mind = open_mind(name, seed=seed)
    said = [UserMessage(content=text, source="user")]
    result = await mind.create(said, tools=minigrid_tools(Body(LEVELS["empty"], 0)))
    return result.content if isinstance(result.content, str) else result.content[0].name


async def test_a_mind_that_sees_nothing_looks() -> None:
    assert await _called("sound", "Task: get to the goal.") == "look"


async def test_a_mind_answers_once_the_episode_is_over() -> None:
    over = Reading(over="success").line()
    assert (await _called("impulsive", over)).endswith("Over: success.")


async def test_a_fallible_mind_is_of_one_mind_in_one_situation_and_a_noisy_one_is_not() -> None:
    text = f"Task: get to the goal.\n{_lava_ahead().line()}"
    fallible = open_mind("fallible", seed=3)
    noisy = open_mind("noisy", seed=3)
    said = [UserMessage(content=text, source="user")]
    tools = minigrid_tools(Body(LEVELS["empty"], 0))
    for mind, kinds in ((fallible, 1), (noisy, 2)):
        answers = [str((await mind.create(said, tools=tools)).content) for _ in range(20)]
        assert len({"forward" in each for each in answers}) == kinds


async def test_some_seeds_of_a_fallible_mind_fail_in_a_situation_and_some_do_not() -> None:
    text = f"Task: get to the goal.\n{_lava_ahead().line()}"
    called = [await _called("fallible", text, seed) for seed in range(20)]
    assert set(called) == {"move_forward", "turn_right"}


def _asked(schema: dict[str, object], text: str = "") -> ScriptedRequest:
    return ScriptedRequest(
        messages=(UserMessage(content=text, source="user"),),
        json_output=True,
        schema={"properties": schema},
    )


_WANTED = (Intention("toggle", "The door."), Intention("turn_left", "To look."))
_LISTED = "1. turn_left {} - a\n2. toggle {} - b\n3. drop {} - c"


def test_answers_take_the_form_that_is_asked_for() -> None:
    drafted = answer(_asked({"situation": {}, "candidates": {}}), "Here.", _WANTED)
    assert isinstance(drafted, dict)
    assert drafted["situation"] == "Here."
    assert [each["action"] for each in drafted["candidates"]] == ["toggle", "turn_left"]
    assert [each["score"] for each in drafted["candidates"]] == [0.9, 0.75]
    judged = answer(_asked({"evaluations": {}}, _LISTED), "Here.", _WANTED)
    assert isinstance(judged, dict)
    assert [each["score"] for each in judged["evaluations"]] == [0.75, 0.9, 0.6]
    assert answer(ScriptedRequest(messages=()), "Here.", _WANTED) == "Here."


def test_of_equal_scores_the_mind_selects_what_it_wants_most() -> None:
    chosen = answer(_asked({"choice": {}}, _LISTED), "Here.", _WANTED)
    assert isinstance(chosen, dict)
    assert chosen["choice"] == 2
    scored = _LISTED.replace(" - a", " - a\n   score 0.95: x").replace(
        " - b", " - b\n   score 0.9: y"
    )
    chosen = answer(_asked({"choice": {}}, scored), "Here.", _WANTED)
    assert isinstance(chosen, dict)
    assert chosen["choice"] == 1


def test_a_mind_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(UnknownNameError, match="impulsive"):
        open_mind("wise")
