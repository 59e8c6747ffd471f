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
    InteractionProtocol,
    Observation,
    TransitionType,
    WorldModel,
)
from coag.errors import ConfigurationError, ObservationError
from coag.schema import SteppingClock, estimate_tokens


def _both() -> CompositeAdapter:
    return CompositeAdapter([CodingAdapter(), ConversationAdapter()])


def _engine(adapter: DomainAdapter | None = None) -> AwarenessEngine:
    return AwarenessEngine(adapter or _both(), clock=SteppingClock())


def test_types_and_patterns_bear_their_domain() -> None:
    adapter = _both()
    assert adapter.domain_name == "coding+conversation"
    assert "coding:file" in adapter.define_entity_types()
    assert "conversation:topic" in adapter.define_entity_types()
    assert "coding:imports" in adapter.define_relationship_types()
    assert "coding: scope creep" in [one.name for one in adapter.define_scan_patterns()]


def test_two_domains_share_goals_attention_and_one_event() -> None:
    engine = _engine()
    engine.step(
        {
            "coding": {"files": ["main.py"], "errors": ["KeyError"], "goals": ["Fix it"]},
            "conversation": {
                "topics": ["parsers"],
                "sentiment": "frustrated",
                "goals": ["Learn Python"],
            },
        }
    )
    state = engine.state
    assert [one.type for one in state.world.entities] == [
        "coding:file",
        "coding:error",
        "conversation:topic",
    ]
    assert [goal.description for goal in state.goals.goals] == ["Fix it", "Learn Python"]
    assert [item.description for item in state.attention.items] == [
        "Error: KeyError",
        "User sentiment: frustrated",
    ]
    (event,) = state.trajectory.transitions
    assert event.type is TransitionType.FAILURE
    assert event.description == "coding: Failed: KeyError; conversation: Beginning: {'parsers'}"


def test_a_domain_goes_on_from_its_own_view_of_the_common_state() -> None:
    engine = _engine()
    engine.step({"coding": {"errors": ["KeyError"]}, "conversation": {"topics": ["parsers"]}})
    engine.step({"coding": {"fixed": ["KeyError"]}})
    engine.step({"conversation": {"topics": ["pasta"]}})
    types = [one.type for one in engine.state.trajectory.transitions]
    assert types == [TransitionType.FAILURE, TransitionType.PROGRESS, TransitionType.PIVOT]
    text = engine.inject(500)
    assert "[resolved] KeyError" in text
    assert "ACTIVE TOPICS: pasta" in text
    assert text.count("ACTIVE GOALS") <= 1


def test_a_thing_that_two_domains_know_is_one_entity_with_two_views() -> None:
    engine = _engine()
    engine.step({"conversation": {"topics": ["Timeout"]}})
    text = engine.step({"coding": {"errors": ["timeout"]}})
    (entity,) = engine.state.world.entities
    assert entity.type == "conversation:topic"
    assert entity.state["coding:type"] == "error"
    assert "[unresolved] Timeout" in text
    assert "ACTIVE TOPICS: Timeout" in text


def test_each_domain_alone_and_in_company_sees_the_same() -> None:
    for adapter, turns in ((CodingAdapter(), CODING), (ConversationAdapter(), CONVERSATION)):
        alone = states_of(adapter, turns)[-1]
        engine = _engine()
        for turn in turns:
            engine.step({adapter.domain_name: turn.model_dump()})
        together = engine.state
        assert together.goals == alone.goals
        assert together.trajectory == alone.trajectory
        assert [one.description for one in together.attention.items] == [
            one.description for one in alone.attention.items
        ]
        assert [one.name for one in together.world.entities] == [
            one.name for one in alone.world.entities
        ]


def test_a_domain_is_given_the_world_that_it_would_have_alone() -> None:
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
    worlds: list[WorldModel] = []
    alone = _engine(Looking())
    together = _engine(CompositeAdapter([ConversationAdapter(), Looking()]))
    alone.step(turn)
    together.step({"coding": turn, "conversation": {"topics": ["parsers"]}})
    worlds.clear()
    alone.step({})
    together.step({"coding": {}})
    assert worlds[0] == worlds[1]


def test_the_state_is_the_json_and_gives_the_same_text() -> None:
    engine = _engine()
    engine.step({"coding": {"errors": ["KeyError"], "files": ["a.py"]}, "conversation": {}})
    restored = AwarenessState.model_validate_json(engine.state.model_dump_json())
    assert restored == engine.state
    assert _both().format_for_injection(restored, 300) == engine.inject(300)


@pytest.mark.parametrize("budget", [0, 10, 40, 80, 200, 1000])
def test_the_budget_holds_for_all_domains_together(budget: int) -> None:
    engine = _engine()
    for code, talk in zip(CODING, CONVERSATION, strict=True):
        engine.step({"coding": code.model_dump(), "conversation": talk.model_dump()})
    assert estimate_tokens(engine.inject(budget)) <= budget


def test_room_goes_to_the_domain_that_is_more_recent() -> None:
    engine = _engine()
    engine.step({"coding": {"files": ["a.py"]}, "conversation": {"topics": ["pasta"]}})
    bare = "<sagen>\nACTIVE TOPICS: pasta\n</sagen>"
    engine.step({"conversation": {"topics": ["pasta"]}})
    assert engine.inject(estimate_tokens(bare)) == bare
    engine.step({"coding": {"files": ["a.py"]}})
    engine.step({"coding": {"files": ["a.py"]}})
    assert engine.inject(11) == "<sagen>\nPROJECT:\n  files: a.py\n</sagen>"


def test_the_contract_is_the_strictest_of_all() -> None:
    class Careful(ConversationAdapter):
        def define_protocol_defaults(self) -> InteractionProtocol:
            return (
                super()
                .define_protocol_defaults()
                .model_copy(
                    update={
                        "mode": CollaborationMode.SUPERVISED,
                        "hard_constraints": ("never give medical advice",),
                    }
                )
            )

    protocol = CompositeAdapter([CodingAdapter(), Careful()]).define_protocol_defaults()
    assert protocol.mode is CollaborationMode.SUPERVISED
    assert protocol.hard_constraints == ("never give medical advice",)
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
    engine = _engine()
    before = engine.state
    with pytest.raises(ObservationError) as caught:
        engine.step(raw)
    assert caught.value.path == path
    assert engine.state is before


@pytest.mark.parametrize("parts", [[], [CodingAdapter()], [CodingAdapter(), CodingAdapter()]])
def test_less_than_two_different_domains_are_refused(parts: list[DomainAdapter]) -> None:
    with pytest.raises(ConfigurationError, match="two adapters or more"):
        CompositeAdapter(parts)


def test_an_input_of_no_domain_is_an_empty_step() -> None:
    engine = _engine()
    engine.step({})
    assert engine.state.step == 1
    assert engine.state.trajectory.transitions == ()
