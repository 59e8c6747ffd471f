"""The same facts in either form give the same intention."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import ToolSchema
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from case_study.robot import VacuumContext
from case_study.tasks import task_text
from case_study.temperaments import (
    CLEAN,
    MOVE,
    TEMPERAMENTS,
    WORLD_ACTIONS,
    Facts,
    answer,
    facts_of,
)
from coag.context import PhaseMaterial
from coag.cycle import DeliberationAnswer, ProposalAnswer
from coag.models import ScriptedRequest, strict_schema, to_autogen
from coag.schema import (
    ActionSpec,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    Trust,
)
from vacuum_world.scenarios import SCENARIOS, build_scenario
from vacuum_world.world import DIRECTIONS, WorldState, clean, join, move, sense, state_line

AT = datetime(2026, 1, 1, tzinfo=UTC)
TOOLS: tuple[ToolSchema, ...] = tuple({"name": name} for name in sorted(WORLD_ACTIONS))
SPECS = tuple(ActionSpec(name=name, description="") for name in sorted(WORLD_ACTIONS))

TOLD_ALIKE = [name for name in SCENARIOS if name != "sensor-dropout"]
"""Where both kinds of agents are told the same. A context doubts a sensor that cannot be right; a
dialogue repeats what it told."""


class _History:
    """What happened in a world, told in the form of either agent."""

    def __init__(self, scenario: str, seed: int) -> None:
        setup = build_scenario(scenario, seed)
        self.world: WorldState = join(setup.world, "robot").state
        reading = sense(self.world, "r1")
        task = task_text(setup, reading)
        self.messages: list[LLMMessage] = [
            SystemMessage(content="You drive a robot."),
            UserMessage(content=task, source="user"),
        ]
        self.context = VacuumContext(reading=reading, work=setup.facts.dirty)
        self._say(task)

    def _say(self, text: str) -> None:
        self._perceive("user", text, kind=PerceptKind.MESSAGE)

    def _perceive(self, source: str, content: str, **fields: Any) -> None:
        told: dict[str, Any] = {"kind": PerceptKind.TOOL_RETURN, **fields}
        percept = Percept(
            id=self.context.ids("percept"),
            at=AT,
            source=source,
            trust=Trust.USER if source == "user" else Trust.UNTRUSTED,
            content=content,
            **told,
        )
        self.context.perceive(percept)

    def act(self, dice: random.Random) -> None:
        """Something happens, by chance."""
        if dice.random() < 0.25:
            name, arguments = CLEAN, dict[str, str]()
            step = clean(self.world, "r1")
        else:
            name, arguments = MOVE, {"direction": dice.choice(DIRECTIONS)}
            step = move(self.world, "r1", cast("Any", arguments["direction"]))
        self.world = step.state
        result = step.result.result
        text = f"{json.dumps(result.model_dump(mode='json'))}\n"
        text += state_line(sense(self.world, "r1"))
        self._tell_plain(name, arguments, text)
        self._tell_context(name, arguments, text, result.failure)

    def _tell_plain(self, name: str, arguments: dict[str, str], text: str) -> None:
        call = FunctionCall(id=str(len(self.messages)), name=name, arguments=json.dumps(arguments))
        done = FunctionExecutionResult(content=text, name=name, call_id=call.id, is_error=False)
        self.messages += [
            AssistantMessage(content=[call], source="robot"),
            FunctionExecutionResultMessage(content=[done]),
            UserMessage(content="Continue.", source="user"),
        ]

    def _tell_context(
        self, name: str, arguments: dict[str, str], text: str, failure: str | None
    ) -> None:
        cycle = self.context.working_memory.cycle + 1
        status = ExecutionStatus.DONE if failure is None else ExecutionStatus.FAILED
        outcomes: list[Outcome] = [
            RetrievalOutcome(cycle=cycle, at=AT, query=""),
            ReasoningOutcome(cycle=cycle, at=AT, situation=""),
            ProposalOutcome(cycle=cycle, at=AT),
            EvaluationOutcome(cycle=cycle, at=AT),
            SelectionOutcome(cycle=cycle, at=AT),
            ExecutionOutcome(
                cycle=cycle, at=AT, status=status, action=name, arguments=arguments, result=text
            ),
        ]
        for outcome in outcomes:
            self.context.commit(outcome)
        told = json.loads(text.partition("\n")[0])
        kind = None if failure is None else Failure(failure)
        self._perceive(
            name,
            text,
            data=told,
            arguments=arguments,
            is_error=failure is not None,
            failure=kind,
            caused_by="intent",
        )
        self._say("Continue.")

    def plain_request(self) -> ScriptedRequest:
        return ScriptedRequest(messages=tuple(self.messages), tools=TOOLS)

    def coag_request(
        self, form: type[ProposalAnswer] | type[DeliberationAnswer]
    ) -> ScriptedRequest:
        cycle = self.context.working_memory.cycle + 1
        self.context.commit(RetrievalOutcome(cycle=cycle, at=AT, query=""))
        material = PhaseMaterial(
            instructions={},
            forms={},
            actions=SPECS,
            description=self.context.describe(),
        )
        prompt = self.context.build_prompt(Phase.REASONING, material)
        return ScriptedRequest(
            messages=tuple(to_autogen(prompt)), json_output=True, schema=strict_schema(form)
        )


def _told_by_tool(reply: Any) -> tuple[str, str]:
    if isinstance(reply, str):
        return "respond", ""
    assert isinstance(reply, CreateResult)
    call = reply.content[0]
    assert isinstance(call, FunctionCall)
    return call.name, call.arguments


def _told_by_json(reply: Any) -> tuple[str, str]:
    first = reply["candidates"][0]
    return first["action"], "" if first["action"] == "respond" else first["arguments"]


def _alike(facts: Facts) -> Facts:
    """The facts without what a CoAG agent's state may know better: what is cleaned already."""
    return replace(facts, actions=frozenset(), cleaned=frozenset())


@pytest.mark.parametrize("temperament", TEMPERAMENTS)
@hypothesis_settings(max_examples=30)
@given(
    scenario=st.sampled_from(TOLD_ALIKE),
    seed=st.integers(0, 500),
    steps=st.integers(0, 4),
    chance=st.integers(0, 500),
)
def test_same_facts_give_the_same_intention_in_either_form(
    temperament: str, scenario: str, seed: int, steps: int, chance: int
) -> None:
    history, dice = _History(scenario, seed), random.Random(chance)
    for _ in range(steps):
        history.act(dice)
    intend = TEMPERAMENTS[temperament]
    plain, coag = history.plain_request(), history.coag_request(DeliberationAnswer)
    read, told = facts_of(plain), facts_of(coag)
    assert _alike(read) == _alike(told)
    assume(read.cleaned == told.cleaned)  # who knows better may want something else
    assert _told_by_tool(answer(plain, intend)) == _told_by_json(answer(coag, intend))


def test_proposal_ranks_up_to_four_candidates_without_scores() -> None:
    request = _History("energy-dilemma", 2).coag_request(ProposalAnswer)
    reply = cast("dict[str, Any]", answer(request, TEMPERAMENTS["impulsive"]))
    assert reply.keys() == {"candidates"}
    assert reply["candidates"][0]["action"] == CLEAN
    assert 1 < len(reply["candidates"]) <= 4
    assert "score" not in reply["candidates"][0]
