"""The whole action space: the agent's own actions stay its own."""

from __future__ import annotations

from collections.abc import Sequence

from coag.cycle import GuardedActions
from coag.schema import ActionCall, ActionResult, ActionSpec, Phase


class Space:
    """External actions with these names."""

    problems = ("One workbench is down.",)

    def __init__(self, *names: str) -> None:
        self.names = names

    async def specs(self) -> Sequence[ActionSpec]:
        return [ActionSpec(name=name, description="A tool.") for name in self.names]

    async def execute(self, call: ActionCall) -> ActionResult:
        return ActionResult(content=f"the tool ran {call.action}")


class Notes:
    """Brings internal actions with these names."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def action_specs(self) -> Sequence[ActionSpec]:
        return [ActionSpec(name=name, description="Notes.", internal=True) for name in self.names]

    async def run_action(self, call: ActionCall) -> ActionResult:
        return ActionResult(content=f"noted {call.action}")


async def run(actions: GuardedActions, name: str, text: str = "") -> ActionResult:
    actions.enter(Phase.EXECUTION)
    return await actions.execute(ActionCall(id="i1", action=name, arguments={"text": text}))


async def test_no_tool_takes_over_an_action_of_the_agents_own() -> None:
    actions = GuardedActions(Space("respond", "note", "look"), [Notes("note")])
    specs = await actions.specs()
    assert {name: spec.internal for name, spec in specs.items()} == {
        "look": False,
        "note": True,
        "respond": True,
    }
    assert (await run(actions, "note")).content == "noted note"
    assert (await run(actions, "respond", "Hello.")).ends_turn
    assert (await run(actions, "look")).content == "the tool ran look"


async def test_no_module_takes_over_the_answer() -> None:
    actions = GuardedActions(None, [Notes("respond")])
    assert (await run(actions, "respond", "Hello.")).content == "Hello."


async def test_what_was_left_out_of_the_action_space_is_told() -> None:
    actions = GuardedActions(Space("respond"))
    await actions.specs()
    assert actions.problems == (
        "One workbench is down.",
        "A tool is named 'respond'; the agent's own action stays.",
    )
