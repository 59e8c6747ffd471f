import re
import subprocess
import sys

import pytest

from benchmarks.awareness.paper import (
    CODING,
    CONVERSATION_RESTORED,
    checkpointed,
    coding_table,
    conversation_table,
    restored_table,
    states_of,
)
from case_study.awareness import CONVERSATION
from coag.awareness import (
    AwarenessState,
    CodingAdapter,
    ConversationAdapter,
    GoalStatus,
    TransitionType,
)
from coag.awareness.adapters import Analysis


def test_table_3_comes_out_as_the_paper_has_it() -> None:
    table = coding_table()
    assert table.ours == table.paper


def test_table_5_comes_out_as_the_paper_has_it() -> None:
    table = conversation_table()
    assert table.ours == table.paper


def test_table_12_comes_out_of_another_reading_of_the_same_messages() -> None:
    table = restored_table(CONVERSATION_RESTORED)
    assert table.ours == table.paper
    assert [turn.message for turn in CONVERSATION_RESTORED] == [
        turn.message for turn in CONVERSATION
    ]


def test_the_scenario_of_table_5_does_not_give_table_12() -> None:
    differing = {
        ours[0]: ours[1]
        for ours, paper in zip(
            restored_table(CONVERSATION).ours, restored_table(CONVERSATION).paper, strict=True
        )
        if ours != paper
    }
    assert differing == {
        "Goals (total / active)": "7 / 7",
        "Entities": "5",
        "Attention items": "3",
    }


@pytest.mark.parametrize("turns", [CONVERSATION, CONVERSATION_RESTORED])
@pytest.mark.parametrize("after", [0, 1, 2, 3, 4])
def test_a_restored_engine_ends_in_the_very_state_of_one_that_went_on(
    turns: tuple[Analysis, ...], after: int
) -> None:
    _, restored = checkpointed(ConversationAdapter(), turns, after=after)
    continuous = states_of(ConversationAdapter(), turns)[-1]
    # The new engine looks at the clock once less: its state is given.
    assert restored == continuous
    for budget in (0, 50, 300, 1000):
        text = ConversationAdapter().format_for_injection(restored, budget)
        assert text == ConversationAdapter().format_for_injection(continuous, budget)


def test_the_checkpoint_holds_what_section_6_7_counts() -> None:
    checkpoint, _ = checkpointed(ConversationAdapter(), CONVERSATION_RESTORED, after=2)
    state = AwarenessState.model_validate_json(checkpoint)
    assert len(state.goals.goals) == 4
    assert len(state.trajectory.transitions) == 2
    assert len(state.world.entities) == 4
    assert len(state.attention.items) == 1
    assert len(state.attention.scan_patterns) == 4
    assert state.self_model == type(state.self_model)()


def test_the_five_checks_across_sessions_of_section_6_7_pass() -> None:
    _, state = checkpointed(ConversationAdapter(), CONVERSATION, after=2)
    noticed = [item.description for item in state.attention.items]
    assert "Callback to earlier topic: {'Python', 'web scraping'}" in noticed
    assert "User sentiment: frustrated" in noticed
    assert TransitionType.PIVOT in [one.type for one in state.trajectory.transitions]
    active = [goal.description for goal in state.goals.goals if goal.status is GoalStatus.ACTIVE]
    assert {"Learn Python", "Build a web scraper"} <= set(active)
    assert state.world.get("Python") is not None


def test_python_is_a_concept_and_web_scraping_a_topic_after_turn_1() -> None:
    first = states_of(ConversationAdapter(), CONVERSATION)[0]
    assert [(one.name, one.type) for one in first.world.entities] == [
        ("Python", "concept"),
        ("web scraping", "topic"),
    ]


def test_injection_after_turn_3_has_the_structure_of_listing_1() -> None:
    state = states_of(ConversationAdapter(), CONVERSATION)[2]
    text = ConversationAdapter().format_for_injection(state, 300)
    lines = text.splitlines()
    headings = [line for line in lines if re.match(r"[A-Z ]+:", line)]
    assert (lines[0], lines[-1]) == ("<sagen>", "</sagen>")
    assert [line.partition(":")[0] for line in headings][:4] == [
        "ACTIVE GOALS",
        "ATTENTION",
        "ACTIVE TOPICS",
        "TRAJECTORY",
    ]
    for line in (
        "  [explicit] Learn Python (p=0.7)",
        "  [explicit] Build a web scraper (p=0.7)",
        "  [inferred] Answer: What library for scraping? (p=0.6)",
        "ACTIVE TOPICS: Python, web scraping",
        "  [progress] Continuing: {'Python', 'web scraping'}",
    ):
        assert line in lines
    assert any(line.startswith("  [opportunity] Callback to earlier topic") for line in lines)
    assert any(re.match(r"  \[transition\] Topic shift: {.+} -> {.+}$", line) for line in lines)
    assert any(re.match(r"  \[pivot\] Pivoted from {.+} to {.+}$", line) for line in lines)


def test_frustration_is_injected_with_its_urgency_as_in_section_6_4() -> None:
    state = states_of(ConversationAdapter(), CONVERSATION)[3]
    text = ConversationAdapter().format_for_injection(state, 300)
    assert "[threat] User sentiment: frustrated (urgency=0.8)" in text


def test_errors_stand_before_attention_and_the_project_as_in_table_4() -> None:
    text = CodingAdapter().format_for_injection(states_of(CodingAdapter(), CODING)[3], 500)
    headings = re.findall(r"^([A-Z ]+):", text, re.MULTILINE)
    assert headings[:5] == ["ACTIVE GOALS", "ERRORS", "ATTENTION", "PROJECT", "TRAJECTORY"]


def test_the_command_prints_the_tables_and_says_that_they_agree() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.awareness.paper"],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("every cell agrees") == 3
