"""Contexts as AutoGen components: what was given comes back, what was said does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from autogen_core import ComponentLoader, ComponentModel
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    HeadAndTailChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import AssistantMessage, LLMMessage, UserMessage
from hypothesis import given
from hypothesis import strategies as st
from kits.importable import (
    AtMost,
    Colour,
    Counter,
    FixedClock,
    Outer,
    PlainTank,
    ShownMessages,
    Tank,
    TankState,
    no_deletion,
)
from kits.processes import python
from pydantic import BaseModel, ConfigDict

from coag.context import Budgets, CoagContext, Rendering, from_part, nested_component, to_part
from coag.errors import ConfigurationError
from coag.models import ScriptedModel
from coag.schema import CountingIds, SteppingClock, SystemClock

HELLO: list[LLMMessage] = [
    UserMessage(content="hello", source="user"),
    AssistantMessage(content="hi", source="a"),
]
BUDGETS = st.none() | st.builds(Budgets, goal=st.integers(1, 900), state=st.integers(1, 900))
DIALOGUES = st.sampled_from(
    [
        lambda: None,
        UnboundedChatCompletionContext,
        lambda: UnboundedChatCompletionContext(HELLO),
        lambda: BufferedChatCompletionContext(2, HELLO),
        lambda: HeadAndTailChatCompletionContext(1, 2),
        ShownMessages,
    ]
)


def as_text(component: ComponentModel) -> str:
    return component.model_dump_json(exclude_none=True)


def again(context: CoagContext[Any]) -> CoagContext[Any]:
    """The context from its component's JSON; the component of the new one is the same."""
    text = as_text(context.dump_component())
    loaded = ComponentLoader.load_component(json.loads(text), expected=ChatCompletionContext)
    assert type(loaded) is type(context)
    assert as_text(loaded.dump_component()) == text
    return loaded


@given(
    size=st.none() | st.integers(),
    rendering=st.sampled_from([*Rendering, "growing"]),
    budgets=BUDGETS,
    colours=st.lists(st.sampled_from(Colour)).map(tuple) | st.lists(st.sampled_from(Colour)),
    rule=st.sampled_from([None, no_deletion, AtMost(3), {"a": [None, 1.5, True]}]),
    manual=st.none() | st.just(Path("manual.md")),
    dialogue=DIALOGUES,
    activity=st.text(min_size=1, max_size=5),
)
def test_every_round_trip_of_a_domain_context_is_equal(dialogue: Any, **given: Any) -> None:
    context = Tank(dialogue=dialogue(), **given)
    loaded = again(context)
    assert isinstance(loaded, Tank)
    own = ("size", "colours", "manual", "rule", "rendering", "budgets")
    assert [getattr(loaded, name) for name in own] == [getattr(context, name) for name in own]
    assert loaded.working_memory == context.working_memory
    assert type(loaded.dialogue_source) is type(context.dialogue_source)


@given(rendering=st.sampled_from(Rendering), budgets=BUDGETS)
def test_every_round_trip_of_a_plain_context_is_equal(
    rendering: Rendering, budgets: Budgets | None
) -> None:
    loaded = again(PlainTank(rendering=rendering, budgets=budgets))
    assert loaded.rendering is rendering
    assert loaded.budgets == (budgets or Budgets())
    assert loaded.perceptual_state_schema is TankState


def test_a_component_loads_in_another_process() -> None:
    text = as_text(CoagContext[Any](rendering="growing").dump_component())
    code = (
        "import json, sys; from autogen_core.model_context import ChatCompletionContext as C; "
        "print(C.load_component(json.loads(sys.argv[1])).rendering)"
    )
    assert python("-c", code, text).strip() == "growing"


async def test_neither_dialogue_nor_state_is_in_a_component() -> None:
    context = Tank(dialogue=UnboundedChatCompletionContext(), size=3)
    before = as_text(context.dump_component())
    await context.add_message(UserMessage(content="the secret word", source="user"))
    context.ids("percept")
    assert as_text(context.dump_component()) == before


async def test_the_first_messages_of_a_nested_context_come_back_as_messages() -> None:
    loaded = again(CoagContext[Any](dialogue=BufferedChatCompletionContext(5, HELLO)))
    assert await loaded.get_messages() == HELLO


def test_a_clock_with_settings_comes_back_and_the_machines_is_the_default() -> None:
    assert again(CoagContext[Any](clock=FixedClock())).clock == FixedClock()
    plain = CoagContext[Any]().dump_component()
    assert "clock" not in plain.config
    context = CoagContext[Any](ids=CountingIds(), clock=SystemClock())
    assert context.dump_component().config == plain.config


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (lambda: Tank(rule=lambda: 1), "rule of Tank.*lambda"),
        (lambda: Tank(rule=Counter()), "rule of Tank.*Counter"),
        (lambda: Tank(rule={"$import": "x"}), "rule of Tank.*key"),
        (lambda: Tank(rule=float("nan")), "rule of Tank.*float"),
        (lambda: Tank(rule={1, 2}), "rule of Tank.*set"),
        (lambda: Tank(rule={"api_key": "correct-horse"}), "secret, at 'rule.api_key'"),
        (lambda: Tank(rule="http://me:word@host/"), "secret, at 'rule'"),
        (lambda: CoagContext[Any](clock=SteppingClock()), "SteppingClock"),
        (Outer.Inner, "within another class"),
    ],
)
def test_what_cannot_be_written_down_is_refused_by_name(context: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        context().dump_component()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"perceptual_state_schema": "kits.importable:Answer"}, "is 'kits.importable:Answer'"),
        ({"arguments": {"depth": 3}}, "depth"),
    ],
)
def test_a_component_that_the_class_does_not_fit_any_more_is_refused(
    changed: dict[str, Any], message: str
) -> None:
    component = PlainTank().dump_component()
    component.config |= changed
    with pytest.raises(ConfigurationError, match=message):
        ChatCompletionContext.load_component(component)


JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(Colour)
    | st.just(no_deletion)
    | st.builds(AtMost, st.integers())
    | st.just(Path("a/b")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text().filter(lambda key: not key.startswith("$")), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(JSON)
def test_every_argument_comes_back_as_it_was(value: Any) -> None:
    written = json.loads(json.dumps(to_part(value, "it")))
    assert from_part(written) == value
    assert to_part(from_part(written), "it") == written


class Guard(BaseModel):
    """A model with functions in its fields."""

    model_config = ConfigDict(frozen=True)

    rules: tuple[Any, ...] = ()
    names: frozenset[str] = frozenset()


@given(st.frozensets(st.text()), st.lists(st.sampled_from([no_deletion, AtMost(2)])))
def test_a_model_with_functions_comes_back(names: frozenset[str], rules: list[Any]) -> None:
    guard = Guard(rules=tuple(rules), names=names)
    assert from_part(json.loads(json.dumps(to_part(guard, "it")))) == guard


def test_a_model_with_a_lambda_is_refused_by_its_field() -> None:
    with pytest.raises(ConfigurationError, match=r"rules of it.*lambda"):
        to_part(Guard(rules=(lambda: 1,)), "it")


def test_a_component_among_the_arguments_is_nested_or_refused_with_its_place() -> None:
    loaded = from_part(to_part({"client": BufferedChatCompletionContext(3)}, "it"))
    assert isinstance(loaded["client"], BufferedChatCompletionContext)
    with pytest.raises(ConfigurationError, match=r"model_client=.*lambda"):
        nested_component(ScriptedModel(lambda request: ""), "model_client=")


class Positional(CoagContext[Any]):
    """A context that takes something by its place only."""

    def __init__(self, shelf: str, /) -> None:
        super().__init__()
        self.shelf = shelf


def test_what_a_constructor_takes_by_place_only_cannot_be_written_down() -> None:
    with pytest.raises(ConfigurationError, match="Positional takes 'shelf' by position only"):
        Positional("upper").dump_component()


def test_what_is_no_model_is_not_built_from_arguments() -> None:
    with pytest.raises(ConfigurationError, match=r"'kits\.importable:no_deletion' is no pydantic"):
        from_part({"$build": "kits.importable:no_deletion", "arguments": {}})
