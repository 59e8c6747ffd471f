"""Remote agents in AgentChat's teams, beside local ones."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import ChatAgent, Response, Team
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage, TextMessage
from autogen_agentchat.teams import (
    DiGraphBuilder,
    GraphFlow,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)
from autogen_core import CancellationToken
from kits.remote_agents import Puppet, Yielded, echoes
from kits.remote_stage import Stage

from coag.models import ScriptedModel


async def hands_over(
    messages: Sequence[BaseChatMessage], token: CancellationToken
) -> AsyncGenerator[Yielded, None]:
    del messages, token
    message = HandoffMessage(content="yours", source="first", target="second")
    yield Response(chat_message=message)


async def echoes_as_second(
    messages: Sequence[BaseChatMessage], token: CancellationToken
) -> AsyncGenerator[Yielded, None]:
    async for item in echoes(messages, token):
        if isinstance(item, Response):
            yield Response(chat_message=TextMessage(content="second", source="second"))


def members(swarm: bool) -> list[Puppet]:
    """Two agents, and none of them remote."""
    first = Puppet(hands_over if swarm else echoes, "first" if swarm else "puppet")
    if swarm:
        first.produces = (HandoffMessage,)
    return [first, Puppet(echoes_as_second, "second")]


def team_of(kind: str, agents: list[ChatAgent | Team]) -> Team:
    end = MaxMessageTermination(3)
    match kind:
        case "round robin":
            return RoundRobinGroupChat(agents, termination_condition=end)
        case "selector":
            chooser = ScriptedModel(lambda request: agents[request.number % 2].name)
            return SelectorGroupChat(
                agents, model_client=chooser, termination_condition=end, allow_repeated_speaker=True
            )
        case "swarm":
            alone = [agent for agent in agents if isinstance(agent, ChatAgent)]
            return Swarm(alone, termination_condition=end)
        case _:
            graph = DiGraphBuilder()
            first, second = (agent for agent in agents if isinstance(agent, ChatAgent))
            graph.add_node(first).add_node(second).add_edge(first, second)
            return GraphFlow([first, second], graph.build())


async def transcript(team: Team) -> list[tuple[str, str, str]]:
    result = await team.run(task="Begin.")
    lines = [(type(m).__name__, m.source, m.to_text()) for m in result.messages]
    await team.reset()
    again = await team.run(task="Begin.")
    assert [(type(m).__name__, m.source, m.to_text()) for m in again.messages] == lines
    return lines


@pytest.mark.parametrize("kind", ["round robin", "selector", "swarm", "graph"])
async def test_a_team_with_a_remote_agent_says_what_it_says_without(
    stage: Stage, kind: str
) -> None:
    here = await transcript(team_of(kind, [*members(kind == "swarm")]))
    local, far = members(kind == "swarm")
    stage.next = lambda: far
    await stage.serve()
    agents: list[ChatAgent | Team] = [local, await (await stage.connect()).agent("puppet")]
    assert await transcript(team_of(kind, agents)) == here


async def test_a_team_saves_and_loads_the_state_of_its_remote_agents(stage: Stage) -> None:
    await stage.serve()
    remote = await stage.connect()
    local = AssistantAgent("local", ScriptedModel(lambda request: "Yes."))
    team = RoundRobinGroupChat([await remote.agent("puppet"), local], max_turns=2)
    await team.run(task="Begin.")
    state = await team.save_state()
    await team.reset()
    assert stage.puppet.state == {"seen": 0}
    await team.load_state(state)
    assert stage.puppet.state == {"seen": 1}
