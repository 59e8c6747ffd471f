"""What an adapter has that writes five members only, what is shown of a state, and its caches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    CodingAdapter,
    CompositeAdapter,
    ConversationAdapter,
    DomainAdapter,
    InteractionProtocol,
    Observation,
    Resource,
)
from coag.schema import SteppingClock


class Kitchen(DomainAdapter):
    """A domain whose raw input is an observation already."""

    name = "kitchen"
    patterns = (("smoke", "Something burns."),)

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        return Observation.parse(raw)


def engine_of(adapter: DomainAdapter) -> AwarenessEngine:
    return AwarenessEngine(adapter, clock=SteppingClock())


def test_modules_are_shown_in_the_order_of_the_paper() -> None:
    text = engine_of(Kitchen()).step(
        {
            "event": {"type": "discovery", "description": "salt is out"},
            "assumptions": ["the oven is on"],
            "unknowns": ["who buys salt"],
            "attention_items": [{"type": "threat", "description": "smoke", "urgency": 0.9}],
            "goals": [{"description": "Cook"}],
        }
    )
    headings = "ACTIVE GOALS, ATTENTION, UNKNOWNS, ASSUMPTIONS, TRAJECTORY, WATCHING FOR, PROTOCOL"
    assert ", ".join(re.findall(r"^([A-Z ]+):", text, re.MULTILINE)) == headings
    assert "  [threat] smoke (urgency=0.9)\n" in text


def test_goals_show_what_they_serve_and_wait_for_and_ended_ones_for_a_while() -> None:
    engine = engine_of(Kitchen())
    text = engine.step(
        {
            "goals": [
                {"description": "Dinner", "priority": 1, "completion_criteria": "all have eaten"},
                {"description": "Shop", "parent": "Dinner"},
                {"description": "Cook", "depends_on": ["Shop"]},
                {"description": "Sing"},
            ],
            "goal_changes": [{"goal": "Sing", "status": "deferred"}],
        }
    )
    assert "  [explicit] Dinner (p=1.0, done when: all have eaten)\n" in text
    assert "  [explicit] Shop (p=0.5, part of: Dinner)\n" in text
    assert "WAITING GOALS:\n  [blocked] Cook (waits for: Shop)\n  [deferred] Sing\n" in text
    for number in range(5):
        goal = f"Wash plate {number}"
        change = {"goal": goal, "status": "completed"}
        engine.step({"goals": [{"description": goal}], "goal_changes": [change]})
    assert re.findall(r"\[completed\] Wash plate (\d)", engine.inject(500)) == ["2", "3", "4"]


def test_resources_and_hard_constraints_are_shown_and_a_budget_is_no_less_than_nothing() -> None:
    engine = engine_of(Kitchen())
    engine.update(Observation(resources=(Resource(name="gas", capacity=10, remaining=2.5),)))
    protocol = InteractionProtocol(hard_constraints=("no knives for children",))
    state = engine.state.model_copy(update={"protocol": protocol})
    text = Kitchen().format_for_injection(state, 500)
    assert text.startswith("<sagen>\nHARD CONSTRAINTS:\n  - no knives for children\n")
    assert "\nRESOURCES: gas 2.5 of 10\n" in text
    with pytest.raises(ValueError, match="-5"):
        Kitchen().format_for_injection(state, -5)


def test_of_thousands_of_goals_the_foremost_are_shown_and_all_others_counted() -> None:
    goals = [{"description": f"Goal {n}", "priority": n / 2000} for n in range(2000)]
    text = engine_of(Kitchen()).step({"goals": goals}, 60)
    assert "Goal 1999" in text
    listed = text.count("[explicit]")
    assert f"[{2000 - listed + 2} more left out]" in text  # the scan pattern and the mode, too


# ---- caches ----


def _talk(names: list[str]) -> dict[str, object]:
    return {"topics": names, "questions": ["Why?"]}


def _work(names: list[str]) -> dict[str, object]:
    return {"files": names, "errors": names[:1], "fixed": names[1:]}


def _both(names: list[str]) -> dict[str, object]:
    return {"coding": _work(names), "conversation": _talk(names)}


def _composite() -> DomainAdapter:
    return CompositeAdapter([CodingAdapter(), ConversationAdapter()])


@pytest.mark.parametrize(
    ("new", "raw"), [(ConversationAdapter, _talk), (CodingAdapter, _work), (_composite, _both)]
)
@given(
    turns=st.lists(
        st.tuples(
            st.booleans(),
            st.lists(st.sampled_from(["Ada", "parser", "KeyError", "pasta", "a.py"]), max_size=3),
        ),
        max_size=8,
    )
)
def test_an_adapter_of_two_engines_does_for_each_what_its_own_one_would(
    new: Callable[[], DomainAdapter],
    raw: Callable[[list[str]], dict[str, object]],
    turns: list[tuple[bool, list[str]]],
) -> None:
    common = new()
    sharing = [engine_of(common) for _ in range(2)]
    alone = [engine_of(new()) for _ in range(2)]
    for which, names in turns:
        assert sharing[which].step(raw(names)) == alone[which].step(raw(names))
        assert sharing[which].state == alone[which].state
