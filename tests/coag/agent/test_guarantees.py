from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond
from kits.shops import open_shop
from kits.turns import say, traced

from coag import CoagAgent, CoagContext, Verdict
from coag.errors import ResumeError, StateError
from coag.schema import (
    Candidate,
    EvaluationOutcome,
    ExecutionOutcome,
    Percept,
    PerceptKind,
    Receipt,
)
from coag.tracing import Recipe

WISH = ("order", '{"pieces": 5}')


def shop(ordered: list[int]) -> Callable[..., Any]:
    async def order(pieces: int) -> str:
        """Orders pieces."""
        ordered.append(pieces)
        return "ordered"

    return order


def no_order(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.forbid("closed") if candidate.action == "order" else Verdict.allow()


async def until(agent: CoagAgent, word: str) -> AsyncGenerator[Any]:
    """The stream of a turn, left by the caller right after the event that begins so."""
    stream = agent.on_messages_stream(
        [TextMessage(content="Order some.", source="user")], CancellationToken()
    )
    async for item in stream:
        if str(getattr(item, "content", "")).startswith(word):
            break
    return stream


async def test_a_state_saved_in_the_middle_of_a_cycle_acts_under_no_fewer_constraints() -> None:
    ordered: list[int] = []
    first = CoagAgent(
        "a",
        brain(WISH),
        tools=[shop(ordered)],
        constraints=[no_order],
        depth="compact",
        proposal="json",
    )
    stream = await until(first, "Proposal")
    state = await first.save_state()
    await stream.aclose()
    second = CoagAgent(
        "a",
        brain(respond()),
        tools=[shop(ordered)],
        constraints=[no_order],
        depth="compact",
        proposal="json",
    )
    await second.load_state(state)
    await second.run(task="Go on.")
    assert ordered == []


async def test_an_action_that_ends_the_process_has_a_receipt_and_is_not_run_again() -> None:
    class StopError(BaseException):
        pass

    acted: list[int] = []

    async def order(pieces: int) -> str:
        """Orders pieces."""
        acted.append(pieces)
        raise StopError

    agent = CoagAgent("a", brain(WISH, respond()), tools=[order], depth="compact", proposal="json")
    with pytest.raises(StopError):
        await say(agent, "Order some.")
    await agent.run(task="Go on.")
    assert acted == [5]
    assert len(traced(agent, Receipt)) == 1
    kinds = [percept.kind for percept in traced(agent, Percept)]
    assert PerceptKind.UNKNOWN_OUTCOME in kinds


async def test_a_stream_that_is_left_acts_no_more() -> None:
    ordered: list[int] = []
    agent = CoagAgent(
        "a",
        brain(WISH, respond()),
        tools=[shop(ordered)],
        depth="compact",
        proposal="json",
        events="phases",
    )
    stream = await until(agent, "Selection")
    await agent.run(task="Something else.")
    await stream.aclose()
    assert ordered == []
    outcomes = [r for r in agent.trace if r.record == "outcome"]
    assert len(outcomes) % 6 == 0
    assert not any(isinstance(o, ExecutionOutcome) and o.intent_id for o in outcomes)


async def test_a_state_saved_while_a_tool_runs_does_not_run_it_again() -> None:
    acted: list[int] = []
    states: list[Any] = []

    async def order(pieces: int) -> str:
        """Orders pieces."""
        acted.append(pieces)
        states.append(await agent.save_state())
        return "ordered"

    agent = CoagAgent("a", brain(WISH, respond()), tools=[order], depth="compact", proposal="json")
    await agent.run(task="Order some.")
    other = CoagAgent("a", brain(respond()), tools=[order], depth="compact", proposal="json")
    await other.load_state(states[0])
    await other.run(task="Go on.")
    assert acted == [5]
    (unknown,) = [p for p in traced(other, Percept) if p.kind is PerceptKind.UNKNOWN_OUTCOME]
    assert [unknown.caused_by] == [pending["id"] for pending in states[0]["pending"]]
    assert unknown.arguments == {"pieces": 5}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"version": "9.0.0"}, "version '9.0.0'"),
        ({"type": "TeamState"}, "This is a TeamState"),
        ({"random": [3, "x", None]}, "cannot be loaded"),
        ({"detector": {"a": 1}}, "cannot be loaded"),
    ],
)
async def test_a_state_that_cannot_be_loaded_changes_nothing(
    fields: dict[str, Any], error: str
) -> None:
    agent = CoagAgent("a", brain(respond()), depth="compact", proposal="json")
    await agent.run(task="Hello.")
    before = await agent.save_state()
    other = await CoagAgent("b", brain(), depth="compact", proposal="json").save_state()
    with pytest.raises(StateError, match=error):
        await agent.load_state({**other, **fields})
    assert await agent.save_state() == before


async def test_a_resumption_that_fails_lets_go_of_the_trace(tmp_path: Path) -> None:
    recipe = Recipe(factory="kits.shops:open_shop", arguments={"unheard": "of"})
    agent = open_shop(str(tmp_path / "o.txt"), logs=tmp_path / "logs", recipe=recipe)
    await agent.run(task="Hello.")
    await agent.close()
    assert agent.run_folder is not None
    for _ in range(2):
        with pytest.raises(ResumeError, match=r"does not fit 'kits\.shops:open_shop'"):
            await CoagAgent.resume(agent.run_folder.path)


class Unreadable(CoagContext[Any]):
    """Loses its state with the first return of a tool."""

    def _update_state_from_function_result(self, state: Any, percept: Percept) -> Any:
        raise ValueError(f"no price in {percept.content!r}")


def buyer(ordered: list[int]) -> CoagAgent:
    return CoagAgent(
        "buyer",
        brain(WISH, WISH, respond()),
        tools=[shop(ordered)],
        model_context=Unreadable(),
        depth="compact",
        proposal="json",
    )


async def test_after_its_state_was_lost_an_agent_answers_but_acts_no_more() -> None:
    ordered: list[int] = []
    first, second = buyer(ordered), buyer(ordered)
    with pytest.raises(StateError, match="until it is reset"):
        await first.run(task="Order.")
    assert ordered == [5]
    await second.load_state(await first.save_state())
    for agent in (first, second):
        result = await agent.run(task="Order more.")
        assert result.messages[-1].to_text() == "Done."
        assert ordered == [5]
        rejected = {r.constraint for r in agent.context.working_memory.rejections}
        assert rejected <= {"state_is_current"}
    died = [one.rejected_by for r in traced(second, EvaluationOutcome) for one in r.evaluations]
    assert [verdict.constraint for verdict in died if verdict] == ["state_is_current"] * 2
    await second.on_reset(CancellationToken())
    assert second.context.working_memory.stale is None
