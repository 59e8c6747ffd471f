"""What a domain's heuristic value does in Evaluation and Selection."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from kits.minds import make_mind, proposal, reasoning, scores
from pydantic import BaseModel

from coag.context import CoagContext
from coag.cycle.checks import batched
from coag.schema import Candidate, Phase


class Place(BaseModel):
    at: int = 0


class Line(CoagContext[Place]):
    """A line to walk along; the goal is far to the right."""

    def _project(self, candidate: Candidate, state: Place) -> Place:
        step = {"right": 1, "left": -1, "fly": 100}.get(candidate.action, 0)
        return Place(at=state.at + step)

    def _value(self, state: Place) -> float | None:
        return 0.5 * state.at


class Broken(Line):
    def _value(self, state: Place) -> float | None:
        raise ZeroDivisionError("no scale")


async def right() -> str:
    """Goes right."""
    return "gone"


async def left() -> str:
    """Goes left."""
    return "gone"


async def fly() -> str:
    """Flies far to the right."""
    return "flown"


async def outcomes_of(
    context: CoagContext[Any], judged: Any, *actions: str, **settings: Any
) -> dict[Phase, Any]:
    replies = {
        Phase.REASONING: reasoning(),
        Phase.PROPOSAL: proposal(*((action, "{}") for action in actions)),
        Phase.EVALUATION: judged,
        Phase.SELECTION: {"reason": "because", "choice": 1},
    }
    mind = make_mind(replies, tools=[right, left, fly], context=context, **settings)
    return await mind.live()


async def test_a_gain_is_limited() -> None:
    got = await outcomes_of(Line(), scores(0.5, 0.5), "fly", "left", selection="rank")
    assert got[Phase.EVALUATION].evaluations[0].gain == 1.0


async def test_a_value_that_raises_lets_nothing_pass() -> None:
    got = await outcomes_of(Broken(), scores(0.5), "right")
    (judged,) = got[Phase.EVALUATION].evaluations
    assert not judged.survived
    assert "value of the prediction raised ZeroDivisionError: no scale" in judged.rejected_by.reason


# ---- Which candidates are one batch ----


PARALLEL_DEPS = make_mind().deps
ONE_BY_ONE_DEPS = make_mind(parallel=False).deps
BATCHES = st.lists(st.sampled_from([None, "b1", "b2"]), max_size=5)


def candidates(batches: list[str | None]) -> list[Candidate]:
    return [
        Candidate(id=f"c{n}", action="a", raw_arguments="{}", batch=batch)
        for n, batch in enumerate(batches)
    ]


@given(BATCHES)
def test_a_batch_is_all_of_one_and_nothing_else(batches: list[str | None]) -> None:
    one = bool(batches) and batches[0] is not None and len(set(batches)) == 1
    assert batched(candidates(batches), PARALLEL_DEPS) == one
    assert not batched(candidates(batches), ONE_BY_ONE_DEPS)
