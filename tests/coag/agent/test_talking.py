"""Talking to an agent without knowing AutoGen."""

from __future__ import annotations

from kits.brains import brain, respond

from coag.agent import CoagAgent, Remark, talk


async def look() -> str:
    """Looks."""
    return "nothing"


async def stumble() -> str:
    """Fails."""
    raise OSError("a stone")


async def test_a_sentence_per_phase_and_the_answer_last() -> None:
    agent = CoagAgent(
        "scout", brain(("look", "{}"), respond("All is calm.")), tools=[look], proposal="json"
    )
    remarks = [remark async for remark in talk(agent, "Look.")]
    assert remarks[0] == Remark(text="Retrieval: 0 record(s) recalled.")
    assert [r.text for r in remarks[5:7]] == [
        "Execution: look was called.",
        "Execution: it returned.",
    ]
    assert remarks[-1] == Remark(text="All is calm.", ended_by="respond")


async def test_a_failed_call_is_told() -> None:
    agent = CoagAgent(
        "scout", brain(("stumble", "{}"), respond()), tools=[stumble], proposal="json"
    )
    remarks = [remark async for remark in talk(agent, "Go.")]
    assert "Execution: it failed." in [remark.text for remark in remarks]


async def test_the_bound_that_ended_a_turn_is_told() -> None:
    agent = CoagAgent("scout", brain(("fly", "{}")), proposal="json")
    remarks = [remark async for remark in talk(agent, "Fly.")]
    assert remarks[-1].ended_by == "impasses"
