"""What servers may say that no decent one says."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kits.mcp_client import answering
from kits.mcp_server import PIXEL

from coag.compat.mcp import McpLimits, McpServerError, McpToolResult, PinnedMcpWorkbench


def tool(name: str, description: str = "Does.", **schema: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object", **schema}}


async def called(result: Any, limits: McpLimits | None = None) -> McpToolResult:
    """What comes of a tool that returns this."""
    server = answering(list={"tools": [tool("a")]}, call=result)
    async with PinnedMcpWorkbench(server, limits=limits) as workbench:
        return await workbench.call_tool("a")


async def listed(limits: McpLimits, *tools: dict[str, Any], **more: Any) -> PinnedMcpWorkbench:
    async with PinnedMcpWorkbench(answering(list={"tools": tools, **more}), limits=limits) as bench:
        return bench


async def test_a_result_is_checked_by_the_servers_schema_in_bounded_time() -> None:
    shape = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
    tools = [{**tool("a"), "outputSchema": shape}]
    sound, hostile = {"x": "a" * 50_000}, {"x": "a" * 50_000 + "b"}
    errors: list[bool] = []
    for content in (sound, hostile):
        result: dict[str, Any] = {"content": [], "structuredContent": content}
        server = answering(list={"tools": tools}, call=result)
        async with PinnedMcpWorkbench(server) as workbench:
            errors.append((await workbench.call_tool("a")).is_error)
    assert errors == [False, True]


async def test_an_answer_that_is_no_mcp_leaves_open_what_was_done() -> None:
    result = await called({"content": "words"})
    assert (result.is_error, result.may_have_happened) == (True, True)
    assert "its answer is no MCP" in result.to_text()


async def test_an_error_of_the_protocol_is_a_clear_no() -> None:
    server = answering(list={"tools": [tool("a")]})
    async with PinnedMcpWorkbench(server) as workbench:
        result = await workbench.call_tool("a")
    assert (result.is_error, result.may_have_happened) == (True, False)
    assert "unheard of" in result.to_text()


@pytest.mark.parametrize("answers", [{}, {"list": {"tools": "many"}}])
async def test_a_server_that_lists_nothing_usable_is_an_error(answers: dict[str, Any]) -> None:
    workbench = PinnedMcpWorkbench(answering(**answers))
    with pytest.raises(McpServerError, match="did not list its tools"):
        await workbench.list_tools()
    await workbench.stop()


async def test_pages_without_end_are_read_up_to_the_bound() -> None:
    bench = await listed(McpLimits(tools=3), tool("a"), nextCursor="again")
    assert bench.left_out == ("Left out: a second tool with the name 'a'.",) * 2
    assert [schema["name"] for schema in await bench.list_tools()] == ["a"]
    await bench.stop()


async def test_odd_names_are_left_out() -> None:
    bench = await listed(McpLimits(), tool("a b"), tool("ok"), tool("ignore\nall"), tool(""))
    assert len(bench.left_out) == 3
    assert "'ignore\\nall' is no name" in bench.left_out[1]


async def test_texts_in_a_schema_are_cut_and_cleaned_but_values_are_not() -> None:
    long = "Obey.\u200b\U000e0041" + "y" * 90
    properties = {
        "description": {"description": long, "enum": [{"description": long}]},
        "x": {"anyOf": [{"title": long}]},
    }
    server = answering(list={"tools": [tool("a", long, properties=properties)]})
    async with PinnedMcpWorkbench(server, limits=McpLimits(description_characters=10)) as bench:
        (schema,) = await bench.list_tools()
    assert schema.get("description") == "Obey.yyyyy [cut]"
    shortened = cast("dict[str, Any]", schema.get("parameters"))["properties"]
    assert shortened["description"]["description"] == "Obey.yyyyy [cut]"
    assert shortened["description"]["enum"] == [{"description": long}]
    assert shortened["x"]["anyOf"] == [{"title": "Obey.yyyyy [cut]"}]


async def test_a_large_image_is_described_only() -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    result = await called({"content": [image]}, McpLimits(image_bytes=10))
    assert result.to_text() == "[image, image/png, 70 bytes: too large to be shown]"
    assert len(result.result) == 1


async def test_many_texts_share_one_bound_and_images_stay() -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    words = {"type": "text", "text": "words"}
    result = await called({"content": [words, words, image]}, McpLimits(text_characters=7))
    assert result.to_text().splitlines()[1:] == ["words", "wo", "[image]"]
