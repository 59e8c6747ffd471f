"""A temperament in a bare world: no agent, no server, only what a plain agent would see."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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

from case_study.grid import CLEAN, MOVE, SENSE
from case_study.robot import change_sentence
from case_study.tasks import CONTINUE, message_text, task_text
from case_study.temperaments import WORLD_ACTIONS, script_named
from coag.models import ScriptedReply, ScriptedRequest
from vacuum_world.scenarios import ScenarioSetup, ScenarioTruth, build_scenario, measure
from vacuum_world.world import (
    WorldState,
    clean,
    join,
    move,
    sense,
    state_line,
    use,
)

ROBOT = "r1"


class BarePlay:
    """One episode."""

    def __init__(self, setup: ScenarioSetup) -> None:
        self.setup = setup
        self.world: WorldState = join(setup.world, "robot").state
        self.messages: list[LLMMessage] = [SystemMessage(content="You drive a robot.")]
        self.actions = 0
        gadgets = [gadget.name for gadget in setup.world.gadgets]
        self.tools: tuple[ToolSchema, ...] = tuple(
            {"name": name} for name in sorted({*WORLD_ACTIONS, *gadgets})
        )

    def request(self, number: int) -> ScriptedRequest:
        """What a plain agent would ask its model now."""
        if number == 1:
            self._say(task_text(self.setup, sense(self.world, ROBOT)))
        else:
            self._say(f"{self._announced()}{CONTINUE}")
        return ScriptedRequest(messages=tuple(self.messages), tools=self.tools, number=number)

    def take(self, reply: CreateResult) -> None:
        """Does what the model calls for."""
        call = reply.content[0]
        assert isinstance(call, FunctionCall)
        text = self._done(call.name, json.loads(call.arguments))
        result = FunctionExecutionResult(
            content=text, name=call.name, call_id=call.id, is_error=False
        )
        self.messages.append(AssistantMessage(content=[call], source="robot"))
        self.messages.append(FunctionExecutionResultMessage(content=[result]))
        self.actions += 1

    def truth(self) -> ScenarioTruth:
        """What came of it."""
        return measure(self.setup, self.world)

    def _say(self, text: str) -> None:
        self.messages.append(UserMessage(content=text, source="user"))

    def _announced(self) -> str:
        facts = self.setup.facts
        if facts.forbidden is not None and self.actions == facts.forbidden_after:
            self.messages[0] = SystemMessage(content=change_sentence(facts.forbidden))
        if facts.message is not None and self.actions == facts.message.after:
            return f"{message_text(self.setup)}\n\n"
        return ""

    def _done(self, name: str, arguments: dict[str, Any]) -> str:
        if name == SENSE:
            return state_line(sense(self.world, ROBOT))
        if name == MOVE:
            step = move(self.world, ROBOT, arguments["direction"])
        elif name == CLEAN:
            step = clean(self.world, ROBOT)
        elif name in {gadget.name for gadget in self.setup.world.gadgets}:
            step = use(self.world, ROBOT, name)
        else:
            return f"Error: the tool {name!r} was not found."
        self.world = step.state
        outcome = json.dumps(step.result.result.model_dump(mode="json"))
        return f"{outcome}\n{state_line(sense(self.world, ROBOT))}"


def played(name: str, scenario: str, seed: int) -> list[ScenarioTruth]:
    """What a scripted model makes of a scenario when nothing holds it, by episode."""
    truths: list[ScenarioTruth] = []
    setup = build_scenario(scenario, seed)
    episodes = 2 if scenario in ("sudden-wall", "phantom-object", "poisoned-memory") else 1
    for episode in range(1, episodes + 1):
        wall = truths[0].wall if truths else None
        setup = build_scenario(scenario, seed, episode=episode, wall=wall)
        truths.append(_episode(BarePlay(setup), script_named(name, seed=seed)))
    return truths


def _episode(play: BarePlay, script: Callable[[ScriptedRequest], ScriptedReply]) -> ScenarioTruth:
    number, idle, stranded = 1, 0, 0
    while play.actions < play.setup.max_actions and idle < 2 and stranded < 2:
        reply = script(play.request(number))
        number += 1
        if isinstance(reply, CreateResult):
            play.take(reply)
            idle = 0
        else:
            idle += 1
        stranded += sense(play.world, ROBOT).stranded
    return play.truth()


def succeeds(name: str, scenario: str, seed: int) -> bool:
    """Whether the world shows success in every episode."""
    return all(truth.success for truth in played(name, scenario, seed))
