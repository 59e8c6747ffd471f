"""The trajectory keeps what is recent and what stung."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coag.awareness import STICKY, Trajectory, Transition, TransitionType

transitions = st.lists(
    st.builds(
        Transition,
        step=st.integers(0, 100),
        type=st.sampled_from(TransitionType),
        description=st.just("x"),
    ),
    max_size=20,
).map(tuple)
kinds = st.lists(st.sampled_from(TransitionType), unique=True).map(tuple)


def went(*types: TransitionType) -> Trajectory:
    trajectory = Trajectory()
    for step, type in enumerate(types):
        trajectory = trajectory.record(Transition(step=step, type=type, description="x"))
    return trajectory


def test_failures_reversals_and_discoveries_outlast_the_window_and_progress_fades() -> None:
    progress = [TransitionType.PROGRESS] * 5
    trajectory = went(*TransitionType, *progress).compress()
    kept = [one.type for one in trajectory.transitions]
    assert kept == [
        TransitionType.REVERSAL,
        TransitionType.DISCOVERY,
        TransitionType.FAILURE,
        *progress,
    ]


def test_a_pivot_is_sticky_only_where_one_asks_for_it() -> None:
    types = (TransitionType.PIVOT, *[TransitionType.PROGRESS] * 5)
    assert TransitionType.PIVOT not in [one.type for one in went(*types).compress().transitions]
    trajectory = went(*types).model_copy(update={"sticky": (*STICKY, TransitionType.PIVOT)})
    assert trajectory.compress().transitions[0].type is TransitionType.PIVOT


def test_nothing_is_lost_within_the_window() -> None:
    trajectory = went(*[TransitionType.PROGRESS] * 5)
    assert trajectory.compress() is trajectory


@given(transitions, st.integers(0, 8), kinds)
def test_compression_keeps_the_recent_and_the_sticky_in_order_and_no_more(
    transitions: tuple[Transition, ...], window: int, sticky: tuple[TransitionType, ...]
) -> None:
    trajectory = Trajectory(transitions=transitions, window=window, sticky=sticky)
    compressed = trajectory.compress()
    first_recent = len(transitions) - window
    expected = [
        one for at, one in enumerate(transitions) if at >= first_recent or one.type in sticky
    ]
    assert list(compressed.transitions) == expected
    assert compressed.compress() == compressed


@given(transitions, st.integers(0, 8))
def test_compressing_after_each_step_ends_where_compressing_once_does(
    transitions: tuple[Transition, ...], window: int
) -> None:
    stepwise = at_once = Trajectory(window=window)
    for one in transitions:
        stepwise = stepwise.record(one).compress()
        at_once = at_once.record(one)
    assert stepwise == at_once.compress()
