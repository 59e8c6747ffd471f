"""A domain of one's own: state, hook, projection, constraint. Its scripted model overfills."""

import asyncio

from autogen_agentchat.ui import Console
from pydantic import BaseModel

from coag import Candidate, CoagAgent, CoagContext, Percept, ScriptedModel, Verdict


class Tank(BaseModel, frozen=True):
    """What is perceived of the tank."""

    litres: int  # no default: what nobody has read is not known


class TankContext(CoagContext[Tank]):
    """Working memory of the agent that fills the tank."""

    def _initial_state(self) -> Tank:
        return Tank(litres=30)  # a first reading; here it would ask the gauge

    def _update_state_from_function_result(self, state: Tank, percept: Percept) -> Tank:
        return state if percept.is_error else Tank.model_validate(percept.data)

    def _project(self, candidate: Candidate, state: Tank) -> Tank:
        return Tank(litres=state.litres + (candidate.arguments or {}).get("litres", 0))


def no_overflow(candidate: Candidate, state: Tank, projection: Tank | None) -> Verdict:
    """100 litres and no more."""
    litres = (projection or state).litres
    return Verdict.allow() if litres <= 100 else Verdict.forbid(f"it would hold {litres} litres")


def greedy(request: object) -> dict[str, object]:
    """Wants the larger pour, else the smaller one, else to be done."""
    pours = [{"action": "pour", "arguments": {"litres": n}, "score": n / 100} for n in (50, 20)]
    full = {"action": "respond", "arguments": {"text": "Nothing more fits in."}, "score": 0.1}
    return {"situation": "There is room for more.", "candidates": [*pours, full]}


if __name__ == "__main__":

    def pour(litres: int) -> Tank:
        """Pours water into the tank; tells how much it holds then."""
        return Tank(litres=tank.state.litres + litres)

    tank, model = TankContext(), ScriptedModel(greedy)
    tap = CoagAgent(
        "tap", model, tools=[pour], model_context=tank, depth="compact", proposal="json"
    )
    tap.constraints.add(no_overflow)
    asyncio.run(Console(tap.run_stream(task="Fill the tank.")))
