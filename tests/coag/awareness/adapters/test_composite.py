"""Several domains on one state: each sees what it would see alone, and one budget holds for all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.awareness.paper import CODING, states_of
from case_study.awareness import CONVERSATION
from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    CodingAdapter,
    CollaborationMode,
    CompositeAdapter,
    ConversationAdapter,
    DomainAdapter,
    InjectionBlock,
    InjectionItem,
    InteractionProtocol,
    Observation,
    WorldModel,
    load_state,
)
from coag.awareness.adapters import Analysis
from coag.errors import ConfigurationError, ObservationError
from coag.schema import SteppingClock, estimate_tokens


def engine_of(adapter: DomainAdapter) -> AwarenessEngine:
    return AwarenessEngine(adapter, clock=SteppingClock())


def both() -> AwarenessEngine:
    return engine_of(CompositeAdapter([CodingAdapter(), ConversationAdapter()]))


def test_two_domains_share_goals_attention_and_one_event() -> None:
    engine = both()
    code = {"files": ["main.py"], "errors": ["KeyError"], "goals": ["Fix it"]}
    talk = {"topics": ["parsers"], "sentiment": "frustrated", "goals": ["Learn Python"]}
    engine.step({"coding": code, "conversation": talk})
    state, adapter = engine.state, engine.adapter
    assert adapter.domain_name == "coding+conversation"
    types = ["coding:file", "coding:error", "conversation:topic"]
    assert [one.type for one in state.world.entities] == types
    assert set(types) <= set(adapter.define_entity_types())
    assert "coding:imports" in adapter.define_relationship_types()
    assert "coding: scope creep" in [one.name for one in adapter.define_scan_patterns()]
    assert [goal.description for goal in state.goals.goals] == ["Fix it", "Learn Python"]
    items = [item.description for item in state.attention.items]
    assert items == ["Error: KeyError", "User sentiment: frustrated"]
    (event,) = state.trajectory.transitions
    assert event.type.value == "failure"
    assert event.description == "coding: Failed: KeyError; conversation: Beginning: {'parsers'}"


def test_a_domain_continues_from_its_own_view_of_the_common_state() -> None:
    engine = both()
    engine.step({"coding": {"errors": ["KeyError"]}, "conversation": {"topics": ["parsers"]}})
    engine.step({"coding": {"fixed": ["KeyError"]}})
    engine.step({"conversation": {"topics": ["pasta"]}})
    types = [one.type.value for one in engine.state.trajectory.transitions]
    assert types == ["failure", "progress", "pivot"]
    text = engine.inject(500)
    assert "[resolved] KeyError" in text
    assert "ACTIVE TOPICS: pasta" in text
    engine.step({})
    assert (engine.state.step, len(engine.state.trajectory.transitions)) == (4, 3)
    restored = load_state(engine.state.model_dump_json())
    assert both().adapter.format_for_injection(restored, 300) == engine.inject(300)


def test_a_thing_that_two_domains_know_is_one_entity_with_two_views() -> None:
    engine = both()
    engine.step({"conversation": {"topics": ["Timeout"]}})
    text = engine.step({"coding": {"errors": ["timeout"]}})
    (entity,) = engine.state.world.entities
    assert (entity.type, entity.state["coding:type"]) == ("conversation:topic", "error")
    assert "[unresolved] Timeout" in text
    assert "ACTIVE TOPICS: Timeout" in text


@pytest.mark.parametrize(
    ("adapter", "turns"), [(CodingAdapter(), CODING), (ConversationAdapter(), CONVERSATION)]
)
def test_each_domain_alone_and_in_company_sees_the_same(
    adapter: DomainAdapter, turns: tuple[Analysis, ...]
) -> None:
    alone, engine = states_of(adapter, turns)[-1], both()
    for turn in turns:
        engine.step({adapter.domain_name: turn.model_dump()})
    together = engine.state
    assert (together.goals, together.trajectory) == (alone.goals, alone.trajectory)
    texts = ([one.description for one in each.attention.items] for each in (together, alone))
    names = ([one.name for one in each.world.entities] for each in (together, alone))
    assert next(texts) == next(texts)
    assert next(names) == next(names)


def test_a_domain_is_given_the_world_that_it_would_have_alone() -> None:
    worlds: list[WorldModel] = []

    class Looking(CodingAdapter):
        def parse_observation(
            self, raw: Mapping[str, object], state: AwarenessState
        ) -> Observation:
            worlds.append(state.world)
            return super().parse_observation(raw, state)

    turn = {
        "files": ["a.py"],
        "errors": ["KeyError"],
        "relationships": [{"source": "a.py", "type": "raises", "target": "KeyError"}],
    }
    alone = engine_of(Looking())
    together = engine_of(CompositeAdapter([ConversationAdapter(), Looking()]))
    alone.step(turn)
    together.step({"coding": turn, "conversation": {"topics": ["parsers"]}})
    worlds.clear()
    alone.step({})
    together.step({"coding": {}})
    assert worlds[0] == worlds[1]


def test_the_budget_holds_for_all_domains_and_goes_to_the_more_recent() -> None:
    engine = both()
    for code, talk in zip(CODING, CONVERSATION, strict=True):
        engine.step({"coding": code.model_dump(), "conversation": talk.model_dump()})
    for budget in (0, 10, 40, 80, 200, 1000):
        assert estimate_tokens(engine.inject(budget)) <= budget
    engine, bare = both(), "<sagen>\nACTIVE TOPICS: pasta\n</sagen>"
    engine.step({"coding": {"files": ["a.py"]}, "conversation": {"topics": ["pasta"]}})
    engine.step({"conversation": {"topics": ["pasta"]}})
    assert engine.inject(estimate_tokens(bare)) == bare
    for _ in range(2):
        engine.step({"coding": {"files": ["a.py"]}})
    assert engine.inject(11) == "<sagen>\nPROJECT:\n  files: a.py\n</sagen>"


def test_blocks_of_one_heading_become_one_and_an_item_is_shown_once() -> None:
    class Shared(ConversationAdapter):
        def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
            items = (InjectionItem(text=self.name), InjectionItem(text="both"))
            return (InjectionBlock(heading="SHARED", priority=1, items=items),)

    class Also(Shared):
        name = "also"

    text = engine_of(CompositeAdapter([Shared(), Also()])).inject(500)
    assert text.startswith("<sagen>\nSHARED:\n  conversation\n  both\n  also\n")


def test_the_contract_is_the_strictest_of_all() -> None:
    rule = "never give medical advice"

    class Careful(ConversationAdapter):
        protocol = InteractionProtocol(
            style="friendly, adaptive",
            mode=CollaborationMode.SUPERVISED,
            hard_constraints=(rule,),
        )

    protocol = CompositeAdapter([CodingAdapter(), Careful()]).define_protocol_defaults()
    assert (protocol.mode, protocol.hard_constraints) == (CollaborationMode.SUPERVISED, (rule,))
    assert protocol.style == "precise, technical; friendly, adaptive"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"gardening": {}}, "gardening"),
        ({"coding": ["a.py"]}, "coding"),
        ({"coding": {"files": [""]}}, "coding.files[0]"),
    ],
)
def test_wrong_input_is_refused_with_its_domain(raw: dict[str, object], path: str) -> None:
    engine = both()
    before = engine.state
    with pytest.raises(ObservationError) as caught:
        engine.step(raw)
    assert caught.value.path == path
    assert engine.state is before


@pytest.mark.parametrize("parts", [[], [CodingAdapter()], [CodingAdapter(), CodingAdapter()]])
def test_less_than_two_different_domains_are_refused(parts: list[DomainAdapter]) -> None:
    with pytest.raises(ConfigurationError, match="two adapters or more"):
        CompositeAdapter(parts)
