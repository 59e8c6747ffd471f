from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import ToolCallExecutionEvent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, ModelFamily, ModelInfo, RequestUsage
from autogen_core.tools import Workbench
from autogen_ext.models.replay import ReplayChatCompletionClient
from kits.importable import AtMost
from kits.mcp_client import QUICK, on_stdio

from coag.compat import ConstrainedWorkbench
from coag.compat.mcp import PinnedMcpWorkbench

pytestmark = pytest.mark.usefixtures("in_process")

_INFO = ModelInfo(
    vision=False,
    function_calling=True,
    json_output=False,
    family=ModelFamily.UNKNOWN,
    structured_output=False,
)


@pytest.fixture
async def bench() -> AsyncGenerator[PinnedMcpWorkbench]:
    workbench = PinnedMcpWorkbench(on_stdio(), limits=QUICK)
    yield workbench
    await workbench.stop()


def stock(workbench: Workbench, tool: str, **arguments: Any) -> AssistantAgent:
    """A stock agent that calls the tool and then answers."""
    call = FunctionCall(id="1", name=tool, arguments=json.dumps(arguments))
    usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
    calling = CreateResult(
        finish_reason="function_calls", content=[call], usage=usage, cached=False
    )
    client = ReplayChatCompletionClient([calling, "Done."], model_info=_INFO)
    return AssistantAgent("stock", client, workbench=workbench, reflect_on_tool_use=True)


def executed(result: TaskResult) -> tuple[str, bool | None]:
    events = [m for m in result.messages if isinstance(m, ToolCallExecutionEvent)]
    (done,) = events[0].content
    return done.content, done.is_error


async def test_an_agent_loaded_from_its_component_starts_the_server_itself() -> None:
    workbench = PinnedMcpWorkbench(on_stdio())
    loaded = Workbench.load_component(workbench.dump_component())
    assert executed(await stock(loaded, "add", a=1, b=2).run(task="Add.")) == ("3", False)
    text, _ = executed(await stock(loaded, "mixed").run(task="Look."))
    assert "1 x 1 pixels]\n[image]" in text  # and none of its bytes
    await loaded.stop()


async def test_a_guard_checks_the_tools_of_a_server(bench: PinnedMcpWorkbench) -> None:
    guarded = ConstrainedWorkbench(bench, constraints=[AtMost(5, names=("a", "b"))])
    done = await stock(guarded, "add", a=1, b=2).run(task="Add 1 and 2.")
    assert executed(done) == ("3", False)
    refused = await stock(guarded, "add", a=1, b=9).run(task="Add 1 and 9.")
    text, failed = executed(refused)
    assert failed
    assert "The rule 'AtMost' forbids it: ['b'] over 5. Nothing was done." in text
    again = Workbench.load_component(guarded.dump_component())
    assert isinstance(again, ConstrainedWorkbench)
