from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from autogen_core.model_context import (
    BufferedChatCompletionContext,
)
from autogen_core.models import SystemMessage, UserMessage
from kits.minds import NOW, arrived
from pydantic import BaseModel, ConfigDict, Field

from coag.context import (
    AssistantState,
    CoagContext,
    PhaseMaterial,
    SituatedContext,
    SituatedState,
    rebuild,
)
from coag.errors import PhaseViolation, StateError
from coag.schema import (
    Candidate,
    Failure,
    Percept,
    PerceptKind,
    Phase,
    RetrievalOutcome,
    Trust,
)


class RoomState(BaseModel):
    model_config = ConfigDict(frozen=True)

    place: str = "hall"
    door: str | None = None
    battery: int = 10


class RoomContext(CoagContext[RoomState]):
    def _update_state_from_function_result(self, state: RoomState, percept: Percept) -> RoomState:
        if percept.is_error:
            raise ValueError("no such place")
        return state.model_copy(update=percept.data)

    def _get_retrieval_query(self, state: RoomState) -> str:
        return f"in the {state.place}"

    def _project(self, candidate: Candidate, state: RoomState) -> RoomState | None:
        return state.model_copy(update={"place": (candidate.arguments or {})["to"]})


def tool_return(data: dict[str, Any], *, is_error: bool = False) -> Percept:
    return arrived(
        "went",
        kind=PerceptKind.TOOL_RETURN,
        source="go",
        trust=Trust.UNTRUSTED,
        data=data,
        is_error=is_error,
        failure=Failure.DETERMINISTIC if is_error else None,
    )


class Yard(BaseModel):
    model_config = ConfigDict(frozen=True)

    stones: list[int] = Field(default_factory=list[int])


class Shelf(BaseModel):
    model_config = ConfigDict(frozen=True)

    books: tuple[str, ...] = ("Emma",)
    tags: frozenset[str] = frozenset({"old"})
    rooms: tuple[RoomState, ...] = (RoomState(),)


class Pile(BaseModel):
    model_config = ConfigDict(frozen=True)

    yards: tuple[Yard, ...] = (Yard(),)


class Hall(RoomContext):
    """A domain of a domain."""


def test_the_state_is_what_the_class_names_in_brackets() -> None:
    assert RoomContext().perceptual_state_schema is RoomState
    assert isinstance(Hall().state, RoomState)
    assert SituatedContext[Any]().perceptual_state_schema is SituatedState
    assert CoagContext[Any]().perceptual_state_schema is AssistantState


def context_of(schema: type[BaseModel], first: Callable[[], BaseModel] | None = None) -> Any:
    class Context(CoagContext[Any]):
        @property
        def perceptual_state_schema(self) -> type[BaseModel]:
            return schema

        def _initial_state(self) -> BaseModel:
            return (first or schema)()

    return Context()


def test_what_can_be_changed_in_a_state_changes_nothing_and_what_cannot_is_not_copied() -> None:
    yard, shelf, pile = context_of(Yard), context_of(Shelf), context_of(Pile)
    yard.state.stones.append(1)
    pile.state.yards[0].stones.append(1)
    assert (yard.state, pile.state) == (Yard(), Pile())
    assert shelf.state is shelf.state


def test_what_was_perceived_since_an_outcome_was_foreseen_is_not_lost() -> None:
    context, outcome = RoomContext(), RetrievalOutcome(cycle=1, at=NOW, query="")
    context.foresee(outcome)
    context.perceive(tool_return({"place": "kitchen"}))
    context.commit(outcome)
    assert context.state.place == "kitchen"
    with pytest.raises(PhaseViolation):
        context.foresee(outcome)


def test_a_hook_that_raises_loses_no_percept_and_is_named() -> None:
    context = RoomContext()
    perceived = context.perceive(tool_return({}, is_error=True))

    assert context.state == RoomState()
    assert len(context.working_memory.percepts) == 1
    problem = perceived.hook_problem or ""
    assert "_update_state_from_function_result raised ValueError: no such place" in problem


async def test_a_state_that_a_hook_has_lost_stays_lost_until_it_is_reset() -> None:
    context = RoomContext()
    before = context.working_memory
    bad = context.perceive(tool_return({}, is_error=True))
    good = context.perceive(tool_return({"place": "kitchen"}))
    assert good.hook_problem is None
    assert context.working_memory.stale == bad.hook_problem
    assert rebuild(before, [bad, good]) == context.working_memory
    other = RoomContext()
    await other.load_state(await context.save_state())
    assert other.working_memory.stale == bad.hook_problem
    await other.clear()
    assert other.working_memory.stale is None


class Odd(BaseModel):
    door: str | None = "north"


class Bare(BaseModel):
    place: str


@pytest.mark.parametrize(
    ("schema", "first", "message"),
    [
        (Odd, lambda: Odd(door=None), r"Odd does not survive JSON: door.*None as its default"),
        (Bare, None, r"no initial state.*place.*Give every field a default"),
    ],
)
def test_a_first_state_that_cannot_be_is_refused_with_what_to_do(
    schema: type[BaseModel], first: Any, message: str
) -> None:
    with pytest.raises(StateError, match=message):
        context_of(schema, first)


async def test_within_a_cycle_it_gives_the_prompt_of_the_phase() -> None:
    context = CoagContext[Any]()
    context.commit(RetrievalOutcome(cycle=1, at=NOW, query="q"))
    material = PhaseMaterial(instructions={Phase.REASONING: "Think."}, forms={})
    context.build_prompt(Phase.REASONING, material)

    system, user = await context.get_messages()

    assert isinstance(system, SystemMessage)
    assert "Think." in system.content
    assert isinstance(user, UserMessage)


async def test_a_foreign_context_decides_which_messages_are_shown() -> None:
    context = CoagContext[Any](dialogue=BufferedChatCompletionContext(buffer_size=1))
    for text in ("one", "two"):
        await context.add_message(UserMessage(content=text, source="user"))
    await context.refresh_dialogue()
    prompt = context.build_prompt(Phase.REASONING, PhaseMaterial(instructions={}, forms={}))

    dialogue = next(s for s in prompt[1].sections if s.title == "Dialogue")
    assert dialogue.text == "user: two"


async def test_its_state_is_saved_and_loaded_whole() -> None:
    context, other = RoomContext(), RoomContext()
    await context.add_message(UserMessage(content="go on", source="user"))
    context.perceive(tool_return({"place": "kitchen"}))

    await other.load_state(await context.save_state())

    assert other.working_memory == context.working_memory
    assert other.state.place == "kitchen"


async def test_something_that_is_no_state_is_refused_with_its_keys() -> None:
    with pytest.raises(StateError, match=r"neither 'working_memory' nor 'messages'.*\['x'\]"):
        await CoagContext[Any]().load_state({"x": 1})
