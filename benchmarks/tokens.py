"""What an agent sends in place of an AssistantAgent: prompt tokens over ten examples of a guide.

Each example has the structure and the arguments of one in AutoGen's AgentChat user guide, in other
words, with a scripted model that gives every contender the same calls and texts. Counted is all
that reaches the model, tools' schemas included, in estimated tokens (four bytes each): what counts
is how they compare. The script answers in an instant, so nothing here says how good an answer is.

    python benchmarks/tokens.py [--json]
"""

import argparse
import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import (
    DiGraphBuilder,
    GraphFlow,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)
from autogen_core import FunctionCall
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType

from coag import CoagAgent, ScriptedModel
from coag.models import ScriptedReply, ScriptedRequest

Agent = Callable[..., Any]
Line = str | Sequence[tuple[str, str]]
"""A text, or calls: each a tool's name and its arguments as JSON."""
CONTENDERS = ("stock", "compact", "full")
TARGET = 1.5
"""Times stock's tokens over all examples, compact."""

POEM = "\n".join(
    f"Leaf {number} lets go of its branch and lands on the wet road, red and late."
    for number in range(1, 17)
)
PLAN = "\n".join(
    f"Day {day}, {part}: walk to the {place}, eat there, and be back before the last bus."
    for day in (1, 2, 3)
    for part in ("morning", "noon", "evening", "night")
    for place in ("old harbour", "market hall", "upper temple")
)
PAGE = "\n".join(
    f"Player {number} scored {number * 7 % 40} points and took {number * 3 % 15} rebounds in "
    f"season {2006 + number % 2}."
    for number in range(1, 25)
)


def city_weather(city: str) -> str:
    """Tells the weather of a city."""
    return f"It is 23 degrees and sunny in {city}."


def web_search(query: str) -> str:
    """Finds information on the web."""
    return PAGE


def percentage_change(start: float, end: float) -> float:
    """The change from one number to another in percent."""
    return (end - start) / start * 100


def refund_flight(flight_id: str) -> str:
    """Refunds a flight."""
    return f"Flight {flight_id} refunded"


class Cast:
    """One model for all agents of an example; it knows them by their instructions."""

    def __init__(self, **lines: Sequence[Line]) -> None:
        self._lines = {name: deque(turns) for name, turns in lines.items()}
        self._calls = 0
        self.client = ScriptedModel(self.reply)

    def reply(self, request: ScriptedRequest) -> ScriptedReply:
        """The next line of the agent that asks."""
        if request.schema_name is not None:  # a phase that AssistantAgent does not have
            return {"situation": "The last message asks for the next step."}
        name = next(name for name in self._lines if instructions(name) in request.text)
        line = self._lines[name].popleft()
        if isinstance(line, str):
            return line
        calls: list[FunctionCall] = []
        for tool, arguments in line:
            self._calls += 1
            calls.append(FunctionCall(id=f"call-{self._calls}", name=tool, arguments=arguments))
        return calls


def instructions(name: str) -> str:
    """The instructions of an agent."""
    return f"You are {name}, and you do your part of the work with care. Be brief and exact."


async def quickstart(agent: Agent) -> Cast:
    """One agent with a tool, which reflects on what it returned."""
    cast = Cast(weather=[[("city_weather", '{"city": "New York"}')], "Sunny, at 23 degrees."])
    one = make(agent, "weather", cast, tools=[city_weather], reflect_on_tool_use=True)
    await one.run(task="How is the weather in New York?")
    return cast


async def search_tool(agent: Agent) -> Cast:
    """One agent with a search whose result is long."""
    cast = Cast(searcher=[[("web_search", '{"query": "AutoGen"}')], "It is a framework."])
    one = make(agent, "searcher", cast, tools=[web_search], reflect_on_tool_use=True)
    await one.run(task="Find information on AutoGen")
    return cast


async def long_talk(agent: Agent) -> Cast:
    """One agent that is asked five things one after the other."""
    cast = Cast(poet=[POEM, "It has sixteen lines.", POEM, "The second is as long.", "You too."])
    one = make(agent, "poet", cast)
    for task in ("Write a poem on autumn.", "How long is it?", "Another one.", "And this?", "Bye."):
        await one.run(task=task)
    return cast


async def facts(agent: Agent) -> Cast:
    """One agent with notes of AutoGen's own kind of memory, and a tool."""
    notes = ListMemory()
    for text in ("Weather is told in metric units.", "Recipes are vegan.", "Dates are ISO dates."):
        await notes.add(MemoryContent(content=text, mime_type=MemoryMimeType.TEXT))
    cast = Cast(helper=[[("city_weather", '{"city": "Oslo"}')], "23 degrees.", "Lentils."])
    one = make(agent, "helper", cast, tools=[city_weather], memory=[notes], max_tool_iterations=2)
    await one.run(task="How is the weather in Oslo?")
    await one.run(task="A recipe with broth, please.")
    return cast


async def reflection(agent: Agent) -> Cast:
    """A writer and a critic."""
    cast = Cast(primary=[POEM, POEM, POEM], critic=["Shorter lines.", "More colour.", "APPROVE"])
    members = [make(agent, name, cast) for name in ("primary", "critic")]
    team = RoundRobinGroupChat(members, termination_condition=TextMentionTermination("APPROVE"))
    await team.run(task="Write a poem about autumn.")
    return cast


async def travel_planning(agent: Agent) -> Cast:
    """Four agents of which each reads what the others wrote."""
    texts = {
        "planner": [PLAN],
        "local": ["Take the harbour first.\n" + PLAN[:1_200]],
        "language": ["Learn to say thank you.\n" + PLAN[:600]],
        "summary": [PLAN + "\nTERMINATE"],
    }
    cast = Cast(**texts)
    members = [make(agent, name, cast) for name in texts]
    team = RoundRobinGroupChat(members, termination_condition=TextMentionTermination("TERMINATE"))
    await team.run(task="Plan three days in Nepal for me.")
    return cast


async def selector(agent: Agent) -> Cast:
    """A planner, a searcher and an analyst; a model selects who speaks."""
    cast = Cast(
        planner=[
            "1. searcher: the season\n2. searcher: rebounds\n3. analyst: the change",
            "TERMINATE",
        ],
        searcher=[
            [("web_search", '{"query": "points"}')],
            "Player 5 had the most points.",
            [("web_search", '{"query": "rebounds"}')],
            "From 9 to 12 rebounds.",
        ],
        analyst=[[("percentage_change", '{"start": 9, "end": 12}')], "33 percent more."],
    )
    order = deque(["planner", "searcher", "searcher", "analyst", "planner"])
    tools = {"searcher": [web_search], "analyst": [percentage_change]}
    members = [
        make(agent, name, cast, tools=tools.get(name), reflect_on_tool_use=name in tools or None)
        for name in ("planner", "searcher", "analyst")
    ]
    team = SelectorGroupChat(
        members,
        model_client=cast.client,
        selector_func=lambda messages: order.popleft() if order else None,
        termination_condition=TextMentionTermination("TERMINATE") | MaxMessageTermination(25),
    )
    await team.run(task="Who scored most in 2006, and how did his rebounds change?")
    return cast


async def support_desk(agent: Agent) -> Cast:
    """Two agents that hand over to one another."""
    cast = Cast(
        travel=[[("transfer_to_refunder", "{}")], "All is done. TERMINATE"],
        refunder=[
            [("refund_flight", '{"flight_id": "507811"}')],
            [("transfer_to_travel", "{}")],
        ],
    )
    travel = make(agent, "travel", cast, handoffs=["refunder"])
    refunder = make(
        agent, "refunder", cast, handoffs=["travel"], tools=[refund_flight], max_tool_iterations=2
    )
    team = Swarm([travel, refunder], termination_condition=TextMentionTermination("TERMINATE"))
    await team.run(task="I need a refund for flight 507811.")
    return cast


async def graph(agent: Agent) -> Cast:
    """A writer, two reviewers side by side, and one who puts it together."""
    cast = Cast(writer=[POEM], grammar=["Line 3 lacks a verb."], style=["Too long."], final=[POEM])
    writer, grammar, style, final = (
        make(agent, name, cast) for name in ("writer", "grammar", "style", "final")
    )
    builder = DiGraphBuilder()
    for one in (writer, grammar, style, final):
        builder.add_node(one)
    builder.add_edge(writer, grammar).add_edge(writer, style)
    builder.add_edge(grammar, final).add_edge(style, final)
    flow = GraphFlow([writer, grammar, style, final], graph=builder.build())
    await flow.run(task="Write a short paragraph about climate.")
    return cast


async def tool_loop(agent: Agent) -> Cast:
    """One agent that calls its tool several times in one turn."""
    rounds: list[Line] = [
        [("percentage_change", f'{{"start": {n}, "end": {n + 1}}}')] for n in range(1, 6)
    ]
    cast = Cast(counter=[*rounds, "Always upwards."])
    one = make(agent, "counter", cast, tools=[percentage_change], max_tool_iterations=10)
    await one.run(task="How much is each step from 1 to 6 in percent?")
    return cast


EXAMPLES: Mapping[str, Callable[[Agent], Awaitable[Cast]]] = {
    "quickstart, a tool": quickstart,
    "a search": search_tool,
    "five turns": long_talk,
    "notes and a tool": facts,
    "a tool in a loop": tool_loop,
    "reflection": reflection,
    "travel planning": travel_planning,
    "selector": selector,
    "swarm": support_desk,
    "graph": graph,
}


def make(agent: Agent, name: str, cast: Cast, **arguments: Any) -> Any:
    """An agent of an example."""
    settings = {key: value for key, value in arguments.items() if value is not None}
    return agent(name, model_client=cast.client, system_message=instructions(name), **settings)


def contender(name: str) -> Agent:
    """What makes the agents of a contender."""
    if name == "stock":
        return AssistantAgent
    depth: Any = name
    return lambda *args, **kwargs: CoagAgent(*args, depth=depth, proposal="native", **kwargs)


async def measure() -> dict[str, dict[str, tuple[int, int]]]:
    """Prompt tokens and requests of every contender in every example."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for title, play in EXAMPLES.items():
        found[title] = {}
        for name in CONTENDERS:
            client = (await play(contender(name))).client
            found[title][name] = (client.total_usage().prompt_tokens, client.calls)
    return found


def show(found: Mapping[str, Mapping[str, tuple[int, int]]]) -> None:
    """The table, and whether the target is met."""
    print(f"{'prompt tokens (requests)':26}" + "".join(f"{name:>16}" for name in CONTENDERS))
    sums: dict[str, int] = dict.fromkeys(CONTENDERS, 0)
    for title, by_name in found.items():
        cells = [f"{tokens:,} ({calls})" for tokens, calls in by_name.values()]
        print(f"{title:26}" + "".join(f"{cell:>16}" for cell in cells))
        for name, (tokens, _) in by_name.items():
            sums[name] += tokens
    print(f"{'all':26}" + "".join(f"{total:>16,}" for total in sums.values()))
    times = {name: total / sums["stock"] for name, total in sums.items()}
    print(f"{'times stock':26}" + "".join(f"{value:>16.2f}" for value in times.values()))
    verdict = "PASS" if times["compact"] <= TARGET else "FAIL"
    print(f"{verdict}: compact takes {times['compact']:.2f} times stock's (at most {TARGET}).")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    figures = asyncio.run(measure())
    print(json.dumps(figures)) if as_json else show(figures)


if __name__ == "__main__":
    main()
