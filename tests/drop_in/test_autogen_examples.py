"""AutoGen's own examples of teams end alike when only the name of the agents' class is changed.

Each example has the structure, the arguments and the calls of one in AutoGen's AgentChat user
guide (its pages Teams, Swarm and GraphFlow), in other words, and with a scripted model in place
of OpenAI's. It is played with AssistantAgent and with CoagAgent by one script, and what a user
sees of it must be the same.
"""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import (
    MessageFilterAgent,
    MessageFilterConfig,
    PerSourceFilter,
)
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import (
    ExternalTermination,
    HandoffTermination,
    MaxMessageTermination,
    TextMentionTermination,
    TextMessageTermination,
)
from autogen_agentchat.messages import HandoffMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow, RoundRobinGroupChat, Swarm
from kits.guide import AgentClass, Cast, Ending, ending, same

# ---- Teams: the reflection pattern, stopping, going on, a team of one ----

PRIMARY = "You help with what is asked."
CRITIC = "You criticise what you read. Say APPROVE once it is good."
POEM = "A short poem about autumn, please."


def reflection(
    agent: AgentClass, cast: Cast, external: ExternalTermination | None = None
) -> RoundRobinGroupChat:
    primary = agent("primary", model_client=cast.client, system_message=PRIMARY)
    critic = agent("critic", model_client=cast.client, system_message=CRITIC)
    termination = TextMentionTermination("APPROVE")
    return RoundRobinGroupChat(
        [primary, critic],
        termination_condition=termination if external is None else external | termination,
    )


def reflecting() -> Cast:
    return Cast(
        {
            PRIMARY: ["Leaves fall.", "Red leaves fall on grass.", "Hojas rojas caen."],
            CRITIC: ["What colour have they?", "APPROVE", "APPROVE again."],
        }
    )


async def test_reflection_ends_when_the_critic_approves() -> None:
    async def example(agent: AgentClass) -> Ending:
        return ending(await reflection(agent, reflecting()).run(task=POEM))

    got = await same(example)
    assert got.speakers == ["user", "primary", "critic", "primary", "critic"]
    assert got.last == ("critic", "APPROVE")
    assert got.stop_reason == "Text 'APPROVE' mentioned"


async def test_a_reset_team_takes_a_new_task_and_streams_it() -> None:
    async def example(agent: AgentClass) -> Ending:
        cast = reflecting()
        team = reflection(agent, cast)
        first = ending(await team.run(task=POEM))
        await team.reset()
        *_, result = [item async for item in team.run_stream(task="Now in Spanish.")]
        assert isinstance(result, TaskResult)
        return first + ending(result)

    got = await same(example)
    assert got.speakers[5:] == ["user", "primary", "critic"]
    assert got.last == ("critic", "APPROVE again.")


async def test_a_team_stopped_from_outside_lets_the_speaker_finish_and_can_continue() -> None:
    async def example(agent: AgentClass) -> Ending:
        cast = reflecting()
        cast.may_answer.clear()
        external = ExternalTermination()
        team = reflection(agent, cast, external)
        run = asyncio.create_task(team.run(task=POEM))
        await cast.asked.wait()
        external.set()
        cast.may_answer.set()
        stopped = ending(await run)
        assert stopped.stop_reason == "External termination requested"
        assert stopped.last == ("primary", "Leaves fall.")
        return stopped + ending(await team.run())

    got = await same(example)
    assert got.speakers == ["user", "primary", "critic", "primary", "critic"]
    assert got.stop_reason == "Text 'APPROVE' mentioned"


LOOPED = "You count by your tool."


def increment_number(number: int) -> int:
    """Adds one to a number."""
    return number + 1


async def test_a_team_of_one_uses_its_tool_until_it_answers_in_text() -> None:
    async def example(agent: AgentClass) -> Ending:
        counting = [[("increment_number", f'{{"number": {n}}}')] for n in range(5, 10)]
        cast = Cast({LOOPED: [*counting, "Five became ten."]})
        looped = agent(
            "looped_assistant",
            model_client=cast.client,
            tools=[increment_number],
            system_message=LOOPED,
        )
        team = RoundRobinGroupChat(
            [looped], termination_condition=TextMessageTermination("looped_assistant")
        )
        result = ending(await team.run(task="Count from 5 to 10."))
        await cast.client.close()
        return result

    got = await same(example)
    assert [result for _, _, result in got.done] == ["6", "7", "8", "9", "10"]
    assert got.last == ("looped_assistant", "Five became ten.")
    assert got.stop_reason == "Text message received from 'looped_assistant'"


# ---- Swarm: customer support with a person in the loop ----

TRAVEL = "You are the travel agent. flights_refunder refunds. Say TERMINATE when all is done."
REFUNDER = "You refund flights by their number. Hand over to the travel agent when it is done."


def refund_flight(flight_id: str) -> str:
    """Refunds a flight."""
    return f"Flight {flight_id} refunded"


async def customer_support(agent: AgentClass) -> Ending:
    cast = Cast(
        {
            TRAVEL: [
                [("transfer_to_flights_refunder", "{}")],
                "Your flight was refunded. TERMINATE",
            ],
            REFUNDER: [
                "What is the number of your flight?",
                [("transfer_to_user", "{}")],
                [("refund_flight", '{"flight_id": "507811"}')],
                [("transfer_to_travel_agent", "{}")],
            ],
        }
    )
    travel_agent = agent(
        "travel_agent",
        model_client=cast.client,
        handoffs=["flights_refunder", "user"],
        system_message=TRAVEL,
    )
    flights_refunder = agent(
        "flights_refunder",
        model_client=cast.client,
        handoffs=["travel_agent", "user"],
        tools=[refund_flight],
        system_message=REFUNDER,
    )
    termination = HandoffTermination(target="user") | TextMentionTermination("TERMINATE")
    team = Swarm([travel_agent, flights_refunder], termination_condition=termination)

    result = await team.run(task="I want my flight refunded.")
    shown = ending(result)
    last = result.messages[-1]
    while isinstance(last, HandoffMessage) and last.target == "user":
        task = HandoffMessage(source="user", target=last.source, content="507811")
        result = await team.run(task=task)
        shown += ending(result)
        last = result.messages[-1]
    return shown


async def test_customer_support_hands_over_asks_the_user_and_refunds() -> None:
    got = await same(customer_support)
    assert [(source, target) for source, target, _ in got.handoffs] == [
        ("travel_agent", "flights_refunder"),
        ("flights_refunder", "user"),
        ("user", "flights_refunder"),
        ("flights_refunder", "travel_agent"),
    ]
    assert ("flights_refunder", "refund_flight", "Flight 507811 refunded") in got.done
    assert got.last == ("travel_agent", "Your flight was refunded. TERMINATE")
    assert got.stop_reason == "Text 'TERMINATE' mentioned"


# ---- GraphFlow: a fan-out with a join, filters, a loop ----

DRAFT = "You draft a paragraph on the climate."
REVIEW = "You review the draft."
GRAMMAR = "You mend the grammar."
STYLE = "You mend the style."
FINAL = "You make one final version of both edits."
TASK = "A paragraph on the climate, please."


async def test_a_fan_out_is_joined_by_the_final_reviewer() -> None:
    seen: list[str] = []

    async def example(agent: AgentClass) -> Ending:
        cast = Cast(
            {
                DRAFT: ["It warm."],
                GRAMMAR: ["It warms."],
                STYLE: ["Warm it grows."],
                FINAL: ["Warmer it grows."],
            }
        )
        client = cast.client
        writer = agent("writer", model_client=client, system_message=DRAFT)
        editor1 = agent("editor1", model_client=client, system_message=GRAMMAR)
        editor2 = agent("editor2", model_client=client, system_message=STYLE)
        final_reviewer = agent("final_reviewer", model_client=client, system_message=FINAL)
        builder = DiGraphBuilder()
        builder.add_node(writer).add_node(editor1).add_node(editor2).add_node(final_reviewer)
        builder.add_edge(writer, editor1).add_edge(writer, editor2)
        builder.add_edge(editor1, final_reviewer).add_edge(editor2, final_reviewer)
        flow = GraphFlow(participants=builder.get_participants(), graph=builder.build())
        result = ending(await flow.run(task=TASK))
        seen.append(client.requests[-1].text)
        return result

    got = await same(example)
    assert got.speakers[:2] == ["user", "writer"]
    assert set(got.speakers[2:4]) == {"editor1", "editor2"}
    assert got.said[4] == ("final_reviewer", "Warmer it grows.")
    assert all("It warms." in text and "Warm it grows." in text for text in seen)


async def test_filtered_agents_see_the_message_before_theirs_only() -> None:
    seen: list[str] = []

    async def example(agent: AgentClass) -> Ending:
        cast = Cast({DRAFT: ["Facts."], REVIEW: ["Better facts."], FINAL: ["A slide."]})
        client = cast.client
        researcher = agent("researcher", model_client=client, system_message=DRAFT)
        analyst = MessageFilterAgent(
            name="analyst",
            wrapped_agent=agent("analyst", model_client=client, system_message=REVIEW),
            filter=MessageFilterConfig(
                per_source=[PerSourceFilter(source="researcher", position="last", count=1)]
            ),
        )
        presenter = MessageFilterAgent(
            name="presenter",
            wrapped_agent=agent("presenter", model_client=client, system_message=FINAL),
            filter=MessageFilterConfig(
                per_source=[PerSourceFilter(source="analyst", position="last", count=1)]
            ),
        )
        builder = DiGraphBuilder()
        builder.add_node(researcher).add_node(analyst).add_node(presenter)
        builder.add_edge(researcher, analyst).add_edge(analyst, presenter)
        flow = GraphFlow(participants=builder.get_participants(), graph=builder.build())
        result = ending(await flow.run(task="Sum up the climate."))
        seen.append(client.requests[-1].text)
        return result

    got = await same(example)
    assert got.speakers[:4] == ["user", "researcher", "analyst", "presenter"]
    assert all("Better facts." in text for text in seen)
    assert not any("Sum up the climate." in text for text in seen)


async def test_a_conditional_loop_ends_on_approval_with_a_filtered_summary() -> None:
    async def example(agent: AgentClass) -> Ending:
        cast = Cast(
            {
                DRAFT: ["Bottles.", "Bottles and bags."],
                REVIEW: ["More of them, please.", "Good. APPROVE"],
                FINAL: ["Bottles and bags are approved."],
            }
        )
        client = cast.client
        generator = agent("generator", model_client=client, system_message=DRAFT)
        reviewer = agent("reviewer", model_client=client, system_message=REVIEW)
        summary = MessageFilterAgent(
            name="summary",
            wrapped_agent=agent("summary", model_client=client, system_message=FINAL),
            filter=MessageFilterConfig(
                per_source=[
                    PerSourceFilter(source="user", position="first", count=1),
                    PerSourceFilter(source="reviewer", position="last", count=1),
                ]
            ),
        )
        builder = DiGraphBuilder()
        builder.add_node(generator).add_node(reviewer).add_node(summary)
        builder.add_edge(generator, reviewer)
        builder.add_edge(
            reviewer, summary, condition=lambda message: "APPROVE" in message.to_model_text()
        )
        builder.add_edge(
            reviewer, generator, condition=lambda message: "APPROVE" not in message.to_model_text()
        )
        builder.set_entry_point(generator)
        flow = GraphFlow(
            participants=builder.get_participants(),
            graph=builder.build(),
            termination_condition=MaxMessageTermination(10),
        )
        return ending(await flow.run(task="How can there be less plastic?"))

    got = await same(example)
    assert got.speakers[:6] == [
        *("user", "generator", "reviewer", "generator", "reviewer", "summary")
    ]
    assert got.said[5] == ("summary", "Bottles and bags are approved.")
