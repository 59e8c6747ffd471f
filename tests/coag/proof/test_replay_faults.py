"""A run in which modules and hooks failed is replayed as it was, whatever they raised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.brains import brain, respond

from coag import CoagAgent, CoagContext
from coag.context import AssistantState
from coag.errors import StateError, TraceError
from coag.proof import replay, verify
from coag.schema import Candidate, Outcome, Percept, Phase, Section, Situation, Snapshot
from coag.tracing import RunFolder, read_trace

HALF = "half \ud800 of a character"


class Faulty:
    """A module that raises in one of its functions, or keeps a broken text.

    Args:
        where: The function.
    """

    name = "faulty"

    def __init__(self, where: str) -> None:
        self._where = where

    def _fail(self, where: str) -> None:
        if where == self._where:
            raise ValueError(HALF)

    async def observe(self, event: Percept | Outcome) -> None:
        self._fail("observe")

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        self._fail("contribute")
        return None

    def save_state(self) -> Mapping[str, Any]:
        self._fail("save_state")
        return {"kept": HALF}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self._fail("load_state")


class Wrong(CoagContext[AssistantState]):
    """A context one of whose hooks raises."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def _fail(self, where: str) -> None:
        if where == self._where:
            raise ValueError(HALF)

    def _update_state_from_function_result(
        self, state: AssistantState, percept: Percept
    ) -> AssistantState:
        self._fail("state")
        return state

    def _get_state_description(self, state: AssistantState) -> str:
        self._fail("description")
        return ""

    def _project(self, candidate: Candidate, state: AssistantState) -> AssistantState | None:
        self._fail("projection")
        return None


async def look() -> str:
    """Looks."""
    return HALF


def faulty(where: str, logs: Path | None = None) -> CoagAgent:
    return CoagAgent(
        "clerk",
        brain(("look", "{}"), respond("Done.")),
        tools=[look],
        modules=[Faulty(where)],
        model_context=Wrong(where),
        logs=logs,
        depth="compact",
        proposal="json",
    )


async def faulty_run(agent: CoagAgent) -> RunFolder:
    await agent.on_messages([TextMessage(content="Look.", source="user")], CancellationToken())
    run = agent.run_folder
    assert run is not None
    await agent.close()
    return run


@pytest.mark.parametrize("where", ["observe", "contribute", "save_state", "none", "projection"])
async def test_what_failed_fails_again_and_nothing_differs(tmp_path: Path, where: str) -> None:
    run = await faulty_run(faulty(where, tmp_path))
    assert verify(run) == []
    report = await replay(run, agent=lambda: faulty(where))
    assert report.divergence is None, ascii(report.divergence)


@pytest.mark.parametrize("where", ["description", "state"])
async def test_a_turn_that_a_hook_broke_off_breaks_off_again(tmp_path: Path, where: str) -> None:
    agent = faulty(where, tmp_path)
    with pytest.raises((ValueError, StateError), match="of a character"):
        await agent.on_messages([TextMessage(content="Look.", source="user")], CancellationToken())
    run = agent.run_folder
    assert run is not None
    await agent.close()
    report = await replay(run, agent=lambda: faulty(where))
    assert report.divergence is None, ascii(report.divergence)


async def test_a_run_begins_with_its_state_though_a_module_cannot_tell_its_own(
    tmp_path: Path,
) -> None:
    run = await faulty_run(faulty("save_state", tmp_path))
    first, second = list(read_trace(run.trace_path))[:2]
    assert isinstance(first.body, Snapshot)
    assert first.body.modules == {}
    assert second.body.record == "note"
    assert "faulty" in second.body.text


async def test_a_module_that_takes_no_state_up_is_named(tmp_path: Path) -> None:
    run = await faulty_run(faulty("load_state", tmp_path))
    with pytest.raises(TraceError, match=r"'modules' of the snapshot.*'faulty' does not take"):
        await replay(run, agent=lambda: faulty("load_state"))
    agent = faulty("load_state")
    with pytest.raises(StateError, match="Module 'faulty' does not take its state up"):
        await agent.load_state(await faulty("none").save_state())
