"""What messages do to the goal of the activity and to the trajectory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from kits.happenings import answered, asked, percept

from coag.awareness import Awareness, AwarenessSettings
from coag.awareness.activity import goal_text
from coag.schema import Outcome, Percept, PerceptKind

GO_ON = percept(PerceptKind.MESSAGE, "Continue.", source="user")


async def lived(*events: Percept | Outcome) -> Awareness:
    module = Awareness()
    for event in events:
        await module.observe(event)
    return module


def goals(module: Awareness) -> list[tuple[str, str]]:
    return [(one.description, one.status.value) for one in module.state.goals.goals]


def told(module: Awareness) -> list[str]:
    return [one.description for one in module.state.trajectory.transitions]


async def test_a_message_that_goes_on_with_an_answered_request_opens_its_goal_again() -> None:
    module = await lived(asked("Clean the room."), answered(), GO_ON)
    assert goals(module) == [("Clean the room.", "active")]
    assert module.goal is not None


async def test_a_goal_that_was_put_off_is_not_opened_by_whatever_is_said() -> None:
    module = await lived(asked("Book it."), answered(by="transfer_to_booker"), GO_ON)
    assert goals(module) == [("Book it.", "deferred")]


async def test_the_same_words_again_are_told_once() -> None:
    module = await lived(asked("Clean the room."), *[GO_ON] * 5)
    assert told(module).count("user says: Continue.") == 1
    other = percept(PerceptKind.MESSAGE, "Slower, please.", source="user")
    module = await lived(asked("Clean the room."), GO_ON, other, GO_ON)
    assert [one for one in told(module) if "says" in one] == [
        "user says: Continue.",
        "user says: Slower, please.",
        "user says: Continue.",
    ]


async def test_of_a_long_request_the_beginning_and_the_end_are_the_goal() -> None:
    request = f"These are the rules. {'Walls are hard. ' * 50}Now clean the north room."
    (goal,) = (await lived(asked(request))).state.goals.goals
    assert goal.description.startswith("These are the rules.")
    assert goal.description.endswith("Now clean the north room.")


@given(st.text(), st.integers(1, 40))
def test_a_goal_s_text_is_one_line_and_never_longer_than_its_limit(text: str, limit: int) -> None:
    settings = AwarenessSettings(goal_text=limit)
    found = goal_text(text, settings)
    assert "\n" not in found
    assert found == "(a request without text)" or 0 < len(found) <= limit
