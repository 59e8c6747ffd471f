"""How a place gets its agent: a new one, or the one whose worker died, from its run."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from autogen_agentchat.base import ChatAgent
from autogen_agentchat.messages import TextMessage

from coag.agent import CoagAgent
from coag.schema import TurnEnd
from coag.tracing import RunFolder, read_run

from ._journal import Begun, Journal, Opened
from ._places import AgentFactory, AgentPlace, make_agent

_LOST = (
    "The worker was replaced in the middle of the turn, and the agent kept no run to go on with "
    "(`logs` and `recipe` of a CoagAgent). What it did until then is unknown; it is not repeated."
)
_NEVER_BEGUN = (
    "The worker was replaced before the agent had begun the turn; nothing of it was done. "
    "Send the messages again."
)
_ANSWER_GONE = (
    "The worker was replaced after the agent had ended the turn and before its answer was kept. "
    "What it did stands, and it remembers it."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedAgent:
    """An agent in its place, and what became of the turn that its forerunner was in."""

    agent: ChatAgent
    instance: str
    """Stays the same where the dialogue goes on."""
    turn: str | None = None
    """The turn that the forerunner was in. This agent goes on with it, unless:"""
    answer: TextMessage | None = None
    """The turn had ended already, with this answer."""
    lost: str | None = None
    """It can neither go on nor be answered, for this reason."""


async def open_agent(
    factory: AgentFactory, place: AgentPlace, journal: Journal | None
) -> OpenedAgent:
    """The agent for a place.

    Raises:
        CoagError: It can be neither made nor taken up.
    """
    if journal is None:
        return OpenedAgent(agent=await make_agent(factory, place), instance=_new_instance())
    run = _run_to_go_on_with(place, journal)
    if run is not None:
        package = factory.__module__.partition(".")[0]
        return _after_resuming(await CoagAgent.resume(run, trust=[package]), journal)
    agent = await make_agent(factory, place)
    begun, opened = journal.begun, journal.opened
    if opened is not None and journal.settled and not opened.acted:
        return OpenedAgent(agent=agent, instance=opened.instance)
    instance = _new_instance()
    journal.write(Opened(instance=instance, past_runs=run_names(place.logs)))
    turn = begun and begun.turn
    return OpenedAgent(agent=agent, instance=instance, turn=turn, lost=_LOST if begun else None)


def run_names(logs: Path | None) -> tuple[str, ...]:
    """Names of the run folders in a folder."""
    if logs is None or not logs.is_dir():
        return ()
    return tuple(sorted(path.name for path in logs.iterdir() if RunFolder(path).exists))


def _run_to_go_on_with(place: AgentPlace, journal: Journal) -> Path | None:
    """The one run that holds the dialogue so far and can be built again."""
    opened = journal.opened
    if place.logs is None or opened is None or not (journal.settled and opened.acted):
        return None
    runs = [name for name in run_names(place.logs) if name not in opened.past_runs]
    if len(runs) != 1 or read_run(place.logs / runs[0]).recipe is None:
        return None
    return place.logs / runs[0]


def _after_resuming(agent: CoagAgent, journal: Journal) -> OpenedAgent:
    if journal.opened is None:
        raise AssertionError("Only a journal with a dialogue leads to a run.")
    instance, begun = journal.opened.instance, journal.begun
    if begun is None:
        return OpenedAgent(agent=agent, instance=instance)
    answer = None if agent.in_turn else _answer_in_trace(agent, begun)
    lost = None
    if not agent.in_turn and answer is None:
        lost = _NEVER_BEGUN if begun.turns_before == agent.turn else _ANSWER_GONE
    return OpenedAgent(agent=agent, instance=instance, turn=begun.turn, answer=answer, lost=lost)


def _answer_in_trace(agent: CoagAgent, begun: Begun) -> TextMessage | None:
    if begun.turns_before is None or TextMessage not in agent.produced_message_types:
        return None
    for record in reversed(agent.trace):
        if isinstance(record, TurnEnd) and record.turn == begun.turns_before + 1:
            if record.reason != "respond":
                return None
            metadata = {"ended_by": record.reason, "taken_from": "trace"}
            return TextMessage(content=record.response, source=agent.name, metadata=metadata)
    return None


def _new_instance() -> str:
    return uuid.uuid4().hex
