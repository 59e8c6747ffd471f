"""Our agent behind AG-UI, in DevUI, in declarative workflows and with MCP, where installed."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_framework import MCPStdioTool, tool
from kits.maf_client import Answer, AnsweringClient, call
from kits.purses import Purse, PurseContext, within_ten

from coag.integrations.agent_framework import MafCoagAgent

# DevUI and declarative workflows say at their first use that they are experimental, or beta.
pytestmark = pytest.mark.filterwarnings("default")


def buy(price: int) -> str:
    """Buys something."""
    return json.dumps({"price": price})


def buyer(*answers: Answer, approval: bool = False, tools: Any = None) -> MafCoagAgent:
    bought = tool(buy, approval_mode="always_require" if approval else "never_require")
    return MafCoagAgent(
        AnsweringClient(*answers),
        name="buyer",
        tools=[tools or bought],
        context=PurseContext,
        constraints=[within_ten],
        depth="compact",
    )


@asynccontextmanager
async def client_of(app: Any) -> AsyncGenerator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", timeout=30
    ) as client:
        yield client


async def events(client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> list[Any]:
    """What the host streams in answer."""
    response = await client.post(path, json=dict(body))
    lines = [line[5:].strip() for line in response.text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def ag_ui(agent: MafCoagAgent) -> Any:
    host: Any = pytest.importorskip("agent_framework_ag_ui")
    app = pytest.importorskip("fastapi").FastAPI()
    host.add_agent_framework_fastapi_endpoint(
        app, agent, "/", single_user=True, snapshot_store=host.InMemoryAGUIThreadSnapshotStore()
    )
    return app


def run_of(number: int, messages: list[Any], **more: Any) -> dict[str, Any]:
    """A run as a client of AG-UI asks for it."""
    nothing: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return {"threadId": "t", "runId": f"r{number}", "messages": messages, **nothing, **more}


def said(number: int, text: str) -> dict[str, str]:
    return {"id": f"u{number}", "role": "user", "content": text}


async def test_behind_ag_ui_calls_are_shown_and_nothing_is_heard_twice() -> None:
    agent = buyer([call(1, "buy", price=6)], [call(2, "buy", price=5)], "One thing.", "Bye.")
    async with client_of(ag_ui(agent)) as client:
        found = await events(client, "/", run_of(1, [said(1, "Buy two things.")]))
        shown = [one["content"] for one in found if one["type"] == "TOOL_CALL_RESULT"]
        assert shown[0] == '{"price": 6}'
        assert "6 of 10 are spent already" in shown[1]
        (snapshot,) = [one for one in found if one["type"] == "MESSAGES_SNAPSHOT"]
        await events(client, "/", run_of(2, [*snapshot["messages"], said(2, "Bye!")]))
    (live,) = agent._sessions._live.values()  # pyright: ignore[reportPrivateUsage] - AG-UI keeps its sessions
    dialogue = [one.content for one in live.agent.context.working_memory.dialogue]
    assert dialogue == ["Buy two things.", "One thing.", "Bye!", "Bye."]


@pytest.mark.parametrize("granted", [True, False])
async def test_behind_ag_ui_a_person_is_asked_and_the_answer_is_passed_on(granted: bool) -> None:
    agent = buyer([call(1, "buy", price=6)], "Done.", approval=True)
    async with client_of(ag_ui(agent)) as client:
        found = await events(client, "/", run_of(1, [said(1, "Buy.")]))
        (snapshot,) = [one for one in found if one["type"] == "MESSAGES_SNAPSHOT"]
        (asked,) = found[-1]["outcome"]["interrupts"]
        answer = {"approved": granted}
        resume = [{"interruptId": asked["id"], "status": "resolved", "payload": answer}]
        await events(client, "/", run_of(2, snapshot["messages"], resume=resume))
    (live,) = agent._sessions._live.values()  # pyright: ignore[reportPrivateUsage] - AG-UI keeps its sessions
    assert live.agent.context.state == Purse(spent=6 if granted else 0)
    assert live.agent.context.working_memory.dialogue[-1].content == "Done."


async def test_in_devui_a_person_is_asked_and_the_answer_is_passed_on() -> None:
    agent = buyer([call(1, "buy", price=6)], "Done.", approval=True)
    server = pytest.importorskip("agent_framework_devui").DevServer(
        ui_enabled=False, auth_enabled=False
    )
    server._pending_entities = [agent]
    app = server.get_app()
    async with app.router.lifespan_context(app), client_of(app) as client:
        (entity,) = (await client.get("/v1/entities")).json()["entities"]
        about = {"metadata": {"agent_id": entity["id"]}}
        talk = (await client.post("/v1/conversations", json=about)).json()["id"]
        asking = {"metadata": {"entity_id": entity["id"]}, "stream": True, "conversation": talk}
        found = await events(client, "/v1/responses", {**asking, "input": "Buy."})
        (asked,) = [one for one in found if one["type"] == "response.function_approval.requested"]
        answer = {
            "type": "function_approval_response",
            "request_id": asked["request_id"],
            "approved": True,
            "function_call": asked["function_call"],
        }
        message = {"type": "message", "role": "user", "content": [answer]}
        found = await events(client, "/v1/responses", {**asking, "input": [message]})
        (result,) = [one for one in found if one["type"] == "response.function_result.complete"]
        assert result["output"] == '{"price": 6}'


async def test_a_declarative_workflow_runs_it_by_name() -> None:
    factory: Any = pytest.importorskip("agent_framework_declarative").WorkflowFactory
    agent = buyer([call(1, "buy", price=6)], "Done.")
    step = {"kind": "InvokeAzureAgent", "id": "one", "agent": {"name": "buyer"}}
    trigger = {"kind": "OnConversationStart", "id": "begin", "actions": [step]}
    workflow = factory(agents={"buyer": agent}).create_workflow_from_definition(
        {"kind": "Workflow", "trigger": trigger}
    )
    assert (await workflow.run("Buy.")).get_outputs() == ["Done."]


SHOP = """
from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def buy(price: int) -> dict[str, int]:
    return {"price": price}


server.run("stdio")
"""


async def test_tools_of_a_real_mcp_server_are_judged_and_run(tmp_path: Path) -> None:
    if not hasattr(pytest.importorskip("mcp"), "Client"):
        pytest.skip("MCP tools of the framework need mcp 2")
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    server = MCPStdioTool("shop", command=sys.executable, args=[str(tmp_path / "shop.py")])
    agent = buyer([call(1, "buy", price=6), call(2, "buy", price=5)], "Done.", tools=server)
    session = agent.create_session()
    try:
        await agent.run("Buy two things.", session=session)
        assert agent.agent(session).context.state == Purse(spent=6)
    finally:
        await agent.close()
        await server.close()
