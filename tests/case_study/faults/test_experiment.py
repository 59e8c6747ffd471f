"""Faults strike components of a real run, and a twin tells whether they did harm."""

from __future__ import annotations

import pytest

from case_study.faults import (
    PLAIN_CAUSES,
    STAGES,
    VARIANTS,
    AgentKind,
    Experiment,
    Fault,
    Ground,
    Injection,
    Tally,
    Trial,
    play,
    stage_of,
)
from coag.proof import Cause


async def _injections(ground: Ground, agent: AgentKind, each: int) -> list[Injection]:
    return [found async for found in Experiment(ground, 1, agent).inject(each)]


async def test_without_a_fault_nothing_goes_wrong(ground: Ground) -> None:
    for name in STAGES:
        trial = await play(stage_of(name, 5), None, ground)
        assert trial.tally.harm(Tally(actions=99, idle_turns=2)) == ()
        assert trial.struck == ()


@pytest.mark.long
async def test_every_component_breaks_and_its_breaking_does_harm(ground: Ground) -> None:
    found = await _injections(ground, "coag", 2)
    assert {one.fault.cause for one in found if one.harm} == set(Cause)
    assert all(one.trial.struck for one in found if one.harm)


@pytest.mark.long
async def test_a_plain_agent_has_fewer_components(ground: Ground) -> None:
    found = await _injections(ground, "baseline", 1)
    assert {one.fault.cause for one in found} == set(PLAIN_CAUSES)


async def test_the_same_fault_strikes_in_the_same_cycles(ground: Ground) -> None:
    fault = Fault(cause=Cause.FAILED_EXECUTION, variant="raises", cycle=2, cycles=1, seed=7)
    trials = [await play(stage_of("phantom-object", 3), fault, ground) for _ in range(2)]
    assert trials[0].struck == trials[1].struck == (2,)
    assert trials[0].tally == trials[1].tally


@pytest.mark.parametrize("cause", [Cause.MISPERCEPTION, Cause.MISSED_RETRIEVAL])
async def test_the_trace_does_not_name_the_fault(ground: Ground, cause: Cause) -> None:
    for variant in VARIANTS[cause][:3]:
        fault = Fault(cause=cause, variant=variant, cycle=1, cycles=9, seed=7)
        trial = await play(stage_of("sudden-wall", 3), fault, ground)
        assert trial.struck
        text, sound = _text(trial), _text(await play(stage_of("sudden-wall", 3), None, ground))
        assert variant not in text or variant in sound
        assert cause.value not in text


def _text(trial: Trial) -> str:
    return "".join(record.model_dump_json() for record in trial.records)
