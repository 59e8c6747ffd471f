"""Our agent as an agent of the Agent Framework: runs, streams, tools, models, arguments."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest
from agent_framework import (
    Agent,
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    MCPStreamableHTTPTool,
    Message,
    SupportsAgentRun,
    tool,
)
from agent_framework.exceptions import AgentInvalidRequestException
from kits.maf_client import Answer, AnsweringClient, call
from kits.purses import Purse, PurseContext, within_ten
from PIL import Image
from pydantic import BaseModel

from coag import CoagContext
from coag.errors import ConfigurationError, UnknownNameError
from coag.integrations.agent_framework import MafCoagAgent, MemoryProvider
from coag.memory import LongTermMemory
from coag.proof import verify
from coag.schema import MemoryKind, Percept
from coag.store import HashEmbedder, InMemoryStore
from coag.tracing import list_runs

Next = Callable[[], Awaitable[None]]


class Shop:
    """A tool that writes down what was bought."""

    def __init__(self) -> None:
        self.bought: list[int] = []

    def buy(self, price: int) -> str:
        """Buys something."""
        self.bought.append(price)
        return json.dumps({"price": price})


def buyer(*answers: Answer, **more: Any) -> tuple[MafCoagAgent, AnsweringClient]:
    client = AnsweringClient(*answers)
    given: dict[str, Any] = {"context": PurseContext, "constraints": [within_ten], **more}
    return MafCoagAgent(client, "You buy.", name="buyer", depth="compact", **given), client


def kinds(response: AgentResponse[Any]) -> list[str]:
    return [one.type for message in response.messages for one in message.contents]


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_are_judged_run_and_shown_as_already_run(stream: bool, tmp_path: Path) -> None:
    shop = Shop()
    both = [call(1, "buy", price=6), call(2, "buy", price=5)]
    agent, client = buyer(both, "Bought one.", tools=[shop.buy], logs=tmp_path)
    session = agent.create_session()

    if stream:
        updates = agent.run("Buy two.", session=session, stream=True)
        async for update in updates:
            assert update.author_name == "buyer"
        response = await updates.get_final_response()
    else:
        response = await agent.run("Buy two.", session=session)

    assert isinstance(agent, SupportsAgentRun)
    assert (response.text, shop.bought) == ("Bought one.", [6])
    assert kinds(response) == ["function_call", "function_result", "text"]
    assert response.messages[0].contents[0].informational_only
    assert agent.agent(session).context.state == Purse(spent=6)
    assert all(one["tools"][0].declaration_only for one in client.options if one.get("tools"))
    await agent.close()
    assert [verify(folder.path) for folder in list_runs(tmp_path)] == [[]]


async def test_what_is_shown_is_chosen() -> None:
    shown: dict[str, set[str]] = {}
    for show in ("phases", "tools", "answer"):
        agent, _ = buyer([call(1, "buy", price=1)], "Done.", tools=[Shop().buy], show=show)
        shown[show] = set(kinds(await agent.run("Buy.", session=agent.create_session())))
    assert shown["answer"] == {"text"}
    assert shown["tools"] == {"text", "function_call", "function_result"}
    assert shown["phases"] == {*shown["tools"], "text_reasoning"}


@pytest.mark.parametrize("show", ["phases", "tools", "answer"])
async def test_usage_of_all_calls_of_a_turn_is_reported(show: str) -> None:
    agent, client = buyer([call(1, "buy", price=1)], "Done.", tools=[Shop().buy], show=show)
    client.used = {"input_token_count": 10, "output_token_count": 2, "total_token_count": 12}
    response = await agent.run("Buy.", session=agent.create_session())
    assert response.usage_details == {
        "input_token_count": 20,
        "output_token_count": 4,
        "total_token_count": 24,
    }


class SeveralMessages(AnsweringClient):
    """Answers in two messages and a silent one, after a tool that its service ran itself."""

    def _inner_get_response(self, *, stream: bool, **given: Any) -> Any:
        texts = [[call(1, "search")], [], ["It is open."], ["Go now."], []]
        messages = [
            Message("assistant", contents, message_id=f"m{number}")
            for number, contents in enumerate(texts)
        ]
        found = Content.from_function_result(call_id="c1", result="open")
        messages[1] = Message("tool", [found], message_id="m1")

        async def updates() -> AsyncGenerator[ChatResponseUpdate]:
            for one in messages:
                yield ChatResponseUpdate(
                    contents=one.contents, role=cast("Any", one.role), message_id=one.message_id
                )

        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=messages)

        return self._build_response_stream(updates()) if stream else answer()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_in_several_messages_is_whole(stream: bool) -> None:
    agent = MafCoagAgent(SeveralMessages(), name="guide", depth="compact")
    session = agent.create_session()
    if stream:
        response = await agent.run("Open?", stream=True, session=session).get_final_response()
    else:
        response = await agent.run("Open?", session=session)
    assert response.text == "It is open.\nGo now."


async def test_pictures_reach_the_model_and_broken_ones_are_refused() -> None:
    file = BytesIO()
    Image.new("RGB", (2, 2)).save(file, "GIF")
    uri = "data:image/gif;base64," + base64.b64encode(file.getvalue()).decode()
    agent, client = buyer("I see it.")
    session = agent.create_session()
    said = Message("user", ["What is it?", Content.from_uri(uri, media_type="image/gif")])

    await agent.run(said, session=session)
    sent = [one for message in client.requests[-1] for one in message.contents]
    assert [one.media_type for one in sent if one.type == "data"] == ["image/png"]

    broken = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")
    with pytest.raises(AgentInvalidRequestException, match="picture cannot be read"):
        await agent.run(Message("user", [broken]), session=session)
    assert len(client.requests) == 1


class Verdict(BaseModel):
    good: bool


async def test_an_answer_has_the_form_that_the_constructor_names() -> None:
    agent, client = buyer('{"good": true}', output_content_type=Verdict)
    response = await agent.run("Is it?", session=agent.create_session())
    assert response.value == Verdict(good=True)
    assert json.loads(response.text) == {"good": True}
    assert len(client.requests) == 1


async def test_only_a_users_own_words_are_trusted() -> None:
    agent, _ = buyer("Fine.")
    session = agent.create_session()
    labelled = Message(
        "user", ["b"], additional_properties={"security_label": {"integrity": "untrusted"}}
    )
    said = [
        Message("user", ["a"]),
        labelled,
        Message("assistant", ["c"], author_name="user"),
        Message("assistant", ["d"], author_name="writer"),
        Message("tool", [Content.from_function_result(call_id="1", result="not said")]),
    ]
    await agent.run(said, session=session)
    heard = [one for one in agent.agent(session).trace if isinstance(one, Percept)]
    assert [
        (one.source, one.trust.value, one.content) for one in heard if one.source != "cycle"
    ] == [
        ("user", "user", "a"),
        ("another user", "untrusted", "b"),
        ("another user", "untrusted", "c"),
        ("writer", "untrusted", "d"),
    ]


async def test_a_client_that_runs_tools_itself_gets_none_that_it_could_run() -> None:
    shop = Shop()
    host = FunctionTool(name="buy", description="", func=shop.buy)
    client = AnsweringClient(
        [call(1, "buy", price=11)],
        [call(2, "nothing")],
        "Bought nothing.",
        function_invocation_configuration={"additional_tools": [host]},
    )
    agent = MafCoagAgent(
        client, name="buyer", tools=[shop.buy], constraints=[within_ten], context=PurseContext,
        depth="compact",
    )  # fmt: skip
    response = await agent.run("Buy.", session=agent.create_session())
    assert (response.text, shop.bought) == ("Bought nothing.", [])


async def test_tools_bring_contents_or_raise_and_get_the_context_of_the_run() -> None:
    seen: list[Any] = []

    def look(ctx: FunctionInvocationContext) -> list[Content]:
        """Looks."""
        seen.append((ctx.session, ctx.kwargs["user"]))
        picture = Content.from_uri("data:image/png;base64,AAAA", media_type="image/png")
        return [Content.from_text("a cat"), picture]

    def fail() -> str:
        """Fails."""
        raise ValueError("no luck")

    agent, _ = buyer(
        [call(1, "look")],
        [call(2, "fail")],
        "Done.",
        tools=[tool(look), fail],
        constraints=[],
        context=CoagContext,
    )
    session = agent.create_session()
    response = await agent.run("Look.", session=session, function_invocation_kwargs={"user": "Ann"})
    results = [c for m in response.messages for c in m.contents if c.type == "function_result"]
    assert [one.result for one in results] == ["a cat\n[image]", "fail raised ValueError: no luck"]
    assert [bool(one.exception) for one in results] == [False, True]
    assert seen == [(session, "Ann")]


async def test_a_run_may_bring_tools_of_its_own() -> None:
    shop = Shop()
    agent, client = buyer([call(1, "buy", price=1)], "Done.", "Nothing to do it with.")
    session = agent.create_session()
    await agent.run("Buy.", session=session, tools=[shop.buy])
    await agent.run("Buy.", session=session)
    assert shop.bought == [1]
    assert "tools" not in client.options[-1]


async def test_middleware_of_agents_and_chats_is_called_and_that_of_functions_refused() -> None:
    called: list[str] = []

    class Around(AgentMiddleware):
        async def process(self, context: AgentContext, call_next: Next) -> None:
            called.append("agent")
            await call_next()

    class Chat(ChatMiddleware):
        async def process(self, context: ChatContext, call_next: Next) -> None:
            called.append("chat")
            await call_next()

    class Never(FunctionMiddleware):
        async def process(self, context: FunctionInvocationContext, call_next: Next) -> None:
            await call_next()

    agent, _ = buyer("Fine.", middleware=[Around(), Chat()])
    await agent.run("Hello.", session=agent.create_session())
    assert called == ["agent", "chat"]
    with pytest.raises(ConfigurationError, match="runs its tools itself"):
        buyer(middleware=[Never()])
    with pytest.raises(ConfigurationError, match="runs its tools itself"):
        await agent.run("Hello.", middleware=[Never()])


async def test_context_providers_show_what_they_know_as_untrusted_messages() -> None:
    memory = LongTermMemory(InMemoryStore(HashEmbedder()), scope="buyer")
    agent, client = buyer("It is green.", context_providers=[MemoryProvider(memory, min_score=0)])
    await agent.run("The door is green.", session=agent.create_session())
    kept = await memory.recall("door", kind=MemoryKind.EPISODIC, min_score=0)
    assert [one.record.text for one in kept.records] == ["The door is green."]
    client.answers.append("Green.")
    session = agent.create_session()
    await agent.run("What is the door?", session=session)
    heard = [one for one in agent.agent(session).trace if isinstance(one, Percept)]
    assert "The door is green." in heard[0].content
    assert heard[0].trust.value == "untrusted"


async def test_it_is_a_tool_of_a_stock_agent() -> None:
    shop = Shop()
    agent, _ = buyer([call(1, "buy", price=6)], "Bought.", tools=[shop.buy])
    triage = Agent(
        AnsweringClient([call(9, "buyer", task="Buy.")], "All done."), tools=[agent.as_tool()]
    )
    response = await triage.run("Buy something.")
    assert (response.text, shop.bought) == ("All done.", [6])


async def test_without_a_session_nothing_is_kept() -> None:
    agent, client = buyer("One.", "Two.")
    await agent.run("Hello.")
    await agent.run("And now?")
    assert "Hello." not in str([one.text for one in client.requests[-1]])
    with pytest.raises(UnknownNameError):
        agent.agent(AgentSession())


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"context": CoagContext[Any]()}, "a function that makes it"),
        ({"memory": "folder"}, "open it once"),
        ({"show": "all"}, "show='all'"),
        ({"handoffs": ["other"]}, "an orchestration"),
        ({"modules": []}, "a function that makes it"),
        ({"depht": "auto"}, "depht"),
        ({"tools": [{"type": "web_search"}]}, "run by the model's service"),
        ({"tools": [FunctionTool(name="later", func=None)]}, "only declared"),
    ],
)
def test_arguments_that_cannot_be_are_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises((ConfigurationError, TypeError), match=problem):
        buyer(**given)


async def test_what_cannot_be_had_for_one_run_is_refused() -> None:
    agent, client = buyer("Fine.")
    with pytest.raises(ConfigurationError, match="options"):
        await agent.run("Hello.", options={"temperature": 1.0})
    assert not client.requests


class Server(MCPStreamableHTTPTool):
    """An MCP server without a connection: its functions are known once it is connected."""

    async def connect(self, *, reset: bool = False) -> None:
        self.is_connected = True

    @property
    def functions(self) -> list[FunctionTool]:
        return self.given if self.is_connected else []

    given: list[FunctionTool]


async def test_tools_of_an_mcp_server_are_connected_asked_about_and_run() -> None:
    shop, server = Shop(), Server("shop", url="http://127.0.0.1:1/")
    server.given = [tool(shop.buy, approval_mode="always_require")]
    agent, _ = buyer([call(1, "buy", price=11)], [call(2, "buy", price=2)], "Done.", tools=server)
    session = agent.create_session()
    (asked,) = (await agent.run("Buy.", session=session)).user_input_requests
    assert shop.bought == []
    answer = Message("user", [asked.to_function_approval_response(True)])
    assert (await agent.run(answer, session=session)).text == "Done."
    assert shop.bought == [2]
