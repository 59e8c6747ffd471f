"""Sessions of our agent in the Agent Framework: stored, restored, let go, asked for approval."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from agent_framework import AgentResponse, AgentSession, Content, FileSessionStore, Message, tool
from agent_framework.exceptions import AgentInvalidRequestException
from kits.maf_client import Answer, AnsweringClient, call
from kits.purses import Purse, PurseContext, within_ten

from coag.cycle import ApprovalPolicy
from coag.errors import StateError, TurnInProgressError, UnknownNameError
from coag.integrations.agent_framework import MafCoagAgent
from coag.proof import verify
from coag.tracing import list_runs


class Till:
    """Agents that sell, and what was sold; each is a process of its own, as far as it knows."""

    def __init__(self, *, approval: bool = False) -> None:
        self.bought: list[int] = []

        def buy(price: int) -> str:
            """Buys something."""
            self.bought.append(price)
            return json.dumps({"price": price})

        self.buy = tool(buy, approval_mode="always_require" if approval else "never_require")

    def agent(self, *answers: Answer, **more: Any) -> tuple[MafCoagAgent, AnsweringClient]:
        client = AnsweringClient(*answers)
        given: dict[str, Any] = {
            "tools": [self.buy],
            "context": PurseContext,
            "constraints": [within_ten],
            "depth": "compact",
        }
        return MafCoagAgent(client, name="buyer", **{**given, **more}), client


def again(session: AgentSession) -> AgentSession:
    """The session as another process reads it."""
    return AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


def yes(request: Content, *, granted: bool = True) -> Message:
    return Message("user", [request.to_function_approval_response(granted)])


def said(client: AnsweringClient) -> str:
    return "\n".join(message.text for message in client.requests[-1])


# ---- state ----


@pytest.mark.parametrize("logged", [False, True])
async def test_a_session_is_continued_in_another_process(logged: bool, tmp_path: Path) -> None:
    logs = tmp_path / "logs" if logged else None
    with warnings.catch_warnings(action="ignore"):  # it is called experimental
        store = FileSessionStore(tmp_path / "sessions")
    till = Till()
    first, _ = till.agent([call(1, "buy", price=6)], "Bought.", logs=logs)
    session = first.create_session()
    await first.run("Buy something.", session=session)
    await store.set("it", session)
    await first.close()

    second, client = till.agent([call(2, "buy", price=5)], "It is too dear.", logs=logs)
    stored = await store.get("it")
    assert stored is not None
    response = await second.run("Once more.", session=stored)

    assert (response.text, till.bought) == ("It is too dear.", [6])
    assert "Buy something." in said(client)
    assert second.agent(stored).turn == 2
    await second.close()
    if logs is not None:
        (run,) = list_runs(logs)
        assert verify(run.path) == []


async def test_a_session_that_was_put_back_is_put_back_for_the_agent_too(tmp_path: Path) -> None:
    till = Till()
    agent, client = till.agent([call(1, "buy", price=1)], "One.", "Two.", "Other.", logs=tmp_path)
    session = agent.create_session()
    await agent.run("First.", session=session)
    before = again(session)
    await agent.run("Second.", session=session)

    await agent.run("Instead.", session=before)
    assert "Second." not in said(client)
    assert "First." in said(client)
    assert len(list(list_runs(tmp_path))) == 2
    await agent.close()


@pytest.mark.parametrize("stored", [False, True])
async def test_what_was_answered_and_not_stored_is_not_done_again(
    stored: bool, tmp_path: Path
) -> None:
    till = Till()
    agent, _ = till.agent(
        [call(1, "buy", price=2)], "One.", [call(2, "buy", price=3)], "Two.", logs=tmp_path
    )
    session = agent.create_session(session_id="s")
    before = again(session)
    await agent.run("First.", session=session)
    middle = again(session)
    await agent.run("Second.", session=session)
    await agent.close()

    lost, texts = (middle, ["Second."]) if stored else (before, ["First.", "Second."])
    restored, _ = till.agent("Three.", logs=tmp_path)
    answers = [(await restored.run(text, session=lost)).text for text in texts]
    assert answers == ["One.", "Two."][-len(texts) :]
    await restored.run("Third.", session=again(lost))
    assert restored.agent(lost).context.state == Purse(spent=5)
    await restored.close()
    assert till.bought == [2, 3]


@pytest.mark.parametrize(
    ("kept", "problem"),
    [
        ({"buyer": {"format": 2}}, "of format 2; this coag reads format 1"),
        ({"buyer": {"format": 0}}, "of format 0"),
        ({"buyer": {"turn": "many"}}, "is no state of an agent: turn"),
        ({"buyer": []}, "is no state of an agent"),
        ("nothing", "is no state of an agent"),
        ({"buyer": {"state": {"type": "Other"}}}, "This is no agent's state"),
    ],
)
async def test_a_state_of_another_version_or_none_is_refused(kept: Any, problem: str) -> None:
    till = Till()
    agent, client = till.agent([call(1, "buy", price=1)], "Bought.")
    session = agent.create_session()
    session.state["coag"] = kept
    with pytest.raises(StateError, match=problem):
        await agent.run("Buy.", session=session)
    assert (client.requests, till.bought, session.state["coag"]) == ([], [], kept)


async def test_messages_that_were_heard_and_its_own_are_left_out() -> None:
    agent, client = Till().agent("A.", "B.")
    session = agent.create_session()
    first = [
        Message("user", ["Hello."]),
        Message("assistant", ["x"], author_name="w", message_id="1"),
    ]
    answered = await agent.run(first, session=session)
    more = Message("assistant", ["new"], author_name="w", message_id="2")
    await agent.run([*first, *answered.messages, more], session=session)
    assert [said(client).count(text) for text in ("Hello.", "new")] == [1, 1]
    state = agent.agent(session).context.working_memory
    assert [one.content for one in state.dialogue] == ["Hello.", "x", "A.", "new", "B."]


async def test_its_own_texts_are_known_without_its_name_and_ids() -> None:
    agent, _ = Till().agent("A.", "B.")
    session = agent.create_session()
    hello = Message("user", ["Hello."], message_id="1")
    await agent.run([hello], session=session)
    shown = Message("assistant", ["A."], message_id="an id of the host's")
    other = Message("assistant", ["Another's."], message_id="2")
    await agent.run([hello, shown, other], session=session)
    state = agent.agent(session).context.working_memory
    assert [one.content for one in state.dialogue] == ["Hello.", "A.", "Another's.", "B."]


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_the_whole_conversation_may_come_with_an_answer_and_after_it(
    elsewhere: bool, tmp_path: Path
) -> None:
    till = Till(approval=True)
    agent, client = till.agent([call(1, "buy", price=2)], "Done.", "Bye.", logs=tmp_path)
    session = agent.create_session()
    asked_for = Message("user", ["Buy."], message_id="1")
    response = await agent.run([asked_for], session=session)
    if elsewhere:
        await agent.close()
        session = again(session)
        agent, client = till.agent("Done.", "Bye.", logs=tmp_path)
    answer = yes(response.user_input_requests[0])
    response = await agent.run([asked_for, answer], session=session)
    assert (response.text, till.bought) == ("Done.", [2])
    await agent.run([asked_for, *response.messages, Message("user", ["Bye!"])], session=session)
    await agent.close()
    assert [said(client).count(text) for text in ("Buy.", "Bye!")] == [1, 1]


async def test_sessions_that_are_idle_or_too_many_are_let_go() -> None:
    agent, client = Till().agent("A.", "B.", "C.", sessions=1)
    one, two = agent.create_session(), agent.create_session()
    await agent.run("I am Ann.", session=one)
    await agent.run("I am Bob.", session=two)
    with pytest.raises(UnknownNameError):
        agent.agent(one)
    await agent.run("Who am I?", session=one)
    assert "Ann" in said(client)
    assert "Bob" not in said(client)

    idle, _ = Till().agent("A.", idle_seconds=-1)
    await idle.run("Hello.", session=one)
    with pytest.raises(UnknownNameError):
        idle.agent(one)


async def test_runs_of_one_session_wait_for_each_other() -> None:
    agent, _ = Till().agent("A.", "B.")
    session = agent.create_session()
    both = await asyncio.gather(*(agent.run(text, session=session) for text in ("One.", "Two.")))
    assert [one.text for one in both] == ["A.", "B."]
    assert agent.agent(session).turn == 2


async def test_a_stream_that_is_left_ends_its_turn_and_the_next_goes_well(tmp_path: Path) -> None:
    till = Till()
    agent, _ = till.agent([call(1, "buy", price=1)], "Never.", "Well.", logs=tmp_path)
    session = agent.create_session()
    stream = agent.run("Buy.", session=session, stream=True)
    async with stream:
        async for _ in stream:
            break
    response = await agent.run("And now?", session=session)
    assert response.text == "Never."
    await agent.close()
    (run,) = list_runs(tmp_path)
    assert verify(run.path) == []


async def test_a_stream_that_is_left_and_still_referred_to_is_ended_by_the_next_run(
    tmp_path: Path,
) -> None:
    till = Till()
    agent, _ = till.agent([call(1, "buy", price=1)], "Well.", "Never.", logs=tmp_path)
    session = agent.create_session()
    stream = agent.run("Buy.", session=session, stream=True)
    async for _ in stream:
        break

    response = await asyncio.wait_for(agent.run("And now?", session=session), 30)
    assert response.text == "Well."
    with pytest.raises(TurnInProgressError, match="was left and ended by another turn"):
        await anext(aiter(stream))
    await agent.close()
    (run,) = list_runs(tmp_path)
    assert verify(run.path) == []


# ---- approval ----


async def test_a_person_is_asked_after_every_rule_and_answers_in_the_next_run() -> None:
    till = Till(approval=True)
    three = [call(1, "buy", price=11), call(2, "buy", price=2), call(3, "buy", price=3)]
    agent, _ = till.agent(three, "Done.")
    session = agent.create_session()
    response = await agent.run("Buy.", session=session)

    (asked,) = response.user_input_requests
    assert asked.function_call is not None
    assert json.loads(str(asked.function_call.arguments)) == {"price": 2}
    assert [one.type for one in response.messages[0].contents] == ["function_approval_request"]
    response = await agent.run(yes(asked), session=session)
    (asked,) = response.user_input_requests
    response = await agent.run(yes(asked, granted=False), session=session)
    assert (response.text, till.bought) == ("Done.", [2])


@pytest.mark.parametrize("granted", [True, False])
async def test_days_later_in_another_process_the_answer_is_taken(
    granted: bool, tmp_path: Path
) -> None:
    till = Till(approval=True)
    first, _ = till.agent([call(1, "buy", price=2)], logs=tmp_path)
    session = first.create_session()
    (asked,) = (await first.run("Buy.", session=session)).user_input_requests
    stored = again(session)
    await first.close()

    second, _ = till.agent("Done.", logs=tmp_path)
    asked = Content.from_dict(json.loads(json.dumps(asked.to_dict())))
    response = await second.run(yes(asked, granted=granted), session=stored)
    assert (response.text, till.bought) == ("Done.", [2] if granted else [])
    await second.close()
    (run,) = list_runs(tmp_path)
    assert verify(run.path) == []


async def test_a_session_that_is_let_go_while_it_waits_is_continued(tmp_path: Path) -> None:
    till = Till(approval=True)
    agent, _ = till.agent([call(1, "buy", price=2)], "Hi.", "Done.", logs=tmp_path, sessions=1)
    session = agent.create_session()
    (asked,) = (await agent.run("Buy.", session=session)).user_input_requests
    await agent.run("Hello.", session=agent.create_session())
    with pytest.raises(UnknownNameError):
        agent.agent(session)
    assert (await agent.run(yes(asked), session=session)).text == "Done."
    assert till.bought == [2]
    await agent.close()
    assert [verify(run.path) for run in list_runs(tmp_path)] == [[], []]


async def test_a_cancelled_run_can_be_tried_again_and_repeats_no_message(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Waits for ever."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    agent, client = Till().agent(
        [call(1, "wait")], "I was stopped.", tools=[wait], constraints=[], logs=tmp_path
    )
    session = agent.create_session()

    async def run() -> str:
        return (await agent.run("Wait.", session=session)).text

    running = asyncio.create_task(run())
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await run() == "I was stopped."
    assert said(client).count("Wait.") == 1
    await agent.close()
    (folder,) = list_runs(tmp_path)
    assert verify(folder.path) == []


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_answers_to_nothing_to_something_else_or_given_twice_run_nothing(
    elsewhere: bool, tmp_path: Path
) -> None:
    till = Till(approval=True)
    agent, client = till.agent([call(1, "buy", price=2)], "Done.", "Hello.", logs=tmp_path)
    session = agent.create_session()
    (asked,) = (await agent.run("Buy.", session=session)).user_input_requests
    if elsewhere:
        await agent.close()
        session = again(session)
    other = Content.from_function_call(call_id="x", name="buy", arguments='{"price": 9}')
    wrong = [
        (Content.from_function_approval_response(True, "unknown", other), "not waited for"),
        (
            Content.from_function_approval_response(True, asked.id or "", other),
            "the answer is about",
        ),
    ]
    for answer, problem in wrong:
        with pytest.raises(AgentInvalidRequestException, match=problem):
            await agent.run(Message("user", [answer]), session=session)
    twice = [yes(asked), yes(asked)]
    with pytest.raises(AgentInvalidRequestException, match="not waited for"):
        await agent.run(twice, session=session)
    with pytest.raises(AgentInvalidRequestException, match="waits for approval of buy"):
        await agent.run("Well?", session=session)
    assert (till.bought, len(client.requests)) == ([], 1)

    await agent.run(yes(asked), session=session)
    with pytest.raises(AgentInvalidRequestException, match="answered before"):
        await agent.run(yes(asked), session=session)
    assert (till.bought, len(client.requests)) == ([2], 2)
    assert (await agent.run("Thanks.", session=session)).text == "Hello."
    await agent.close()


async def test_an_older_session_gets_the_answer_that_was_given_and_no_other(tmp_path: Path) -> None:
    till = Till(approval=True)
    agent, _ = till.agent([call(1, "buy", price=2)], "Done.", logs=tmp_path)
    session = agent.create_session()
    (asked,) = (await agent.run("Buy.", session=session)).user_input_requests
    older = again(session), again(session)
    await agent.run(yes(asked), session=session)

    response = await agent.run(yes(asked), session=older[0])
    assert (response.text, till.bought) == ("Done.", [2])
    with pytest.raises(AgentInvalidRequestException, match="answered otherwise before"):
        await agent.run(yes(asked, granted=False), session=older[1])
    await agent.close()


async def test_without_a_run_folder_an_answer_elsewhere_is_refused_and_talk_continues() -> None:
    till = Till(approval=True)
    first, _ = till.agent([call(1, "buy", price=2)])
    session = first.create_session()
    (asked,) = (await first.run("Buy.", session=session)).user_input_requests
    stored = again(session)
    await first.close()
    second, _ = till.agent("Let us see.")
    with pytest.raises(AgentInvalidRequestException, match="not waited for"):
        await second.run(yes(asked), session=again(stored))
    assert (await second.run("And?", session=stored)).text == "Let us see."
    assert till.bought == []


async def test_what_a_lost_turn_was_given_is_heard_when_it_comes_again() -> None:
    till = Till(approval=True)
    first, _ = till.agent([call(1, "buy", price=2)])
    session = first.create_session()
    asked_for = Message("user", ["Buy."], message_id="1")
    await first.run([asked_for], session=session)
    await first.close()
    second, client = till.agent("Let us see.")
    await second.run([asked_for, Message("user", ["And?"])], session=again(session))
    assert [said(client).count(text) for text in ("Buy.", "And?")] == [1, 1]


async def test_a_policy_asks_besides_and_a_late_answer_is_a_no() -> None:
    till = Till()
    policy = ApprovalPolicy(actions=["buy"], wait_seconds=0.001)
    agent, _ = till.agent([call(1, "buy", price=2)], "It was not approved.", approval=policy)
    session = agent.create_session()
    (asked,) = (await agent.run("Buy.", session=session)).user_input_requests
    await asyncio.sleep(0.01)
    assert (await agent.run(yes(asked), session=session)).text == "It was not approved."
    assert till.bought == []


async def test_without_a_session_nobody_is_asked_and_nothing_is_run() -> None:
    till = Till(approval=True)
    agent, _ = till.agent([call(1, "buy", price=2)], "I may not.")
    assert (await agent.run("Buy.")).text == "I may not."
    assert till.bought == []


def test_a_request_outlives_the_loop_that_asked_it(tmp_path: Path) -> None:
    till = Till(approval=True)
    agent, _ = till.agent([call(1, "buy", price=2)], "Done.", logs=tmp_path)
    session = agent.create_session()

    async def run(given: str | Message) -> AgentResponse[Any]:
        return await agent.run(given, session=session)

    (asked,) = asyncio.run(run("Buy.")).user_input_requests
    assert asyncio.run(run(yes(asked))).text == "Done."
    assert till.bought == [2]
    asyncio.run(agent.close())
