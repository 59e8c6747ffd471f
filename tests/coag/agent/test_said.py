"""What leaves a turn is judged, whatever ended the turn."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.base import Response
from autogen_agentchat.messages import HandoffMessage, ModelClientStreamingChunkEvent, TextMessage
from autogen_core import CancellationToken, FunctionCall
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from coag import Bounds, CoagAgent, ScriptedModel, Verdict
from coag.cycle import ApprovalPolicy, Budget
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import examine
from coag.schema import Candidate, Note

SECRET = "hunter2"


def no_secret(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    """The password is never said."""
    if candidate.action == "respond" and SECRET in str(candidate.arguments):
        return Verdict.forbid("it holds the password")
    return Verdict.allow()


async def look() -> str:
    """Looks."""
    return f"the password is {SECRET}"


def call(name: str) -> list[FunctionCall]:
    return [FunctionCall(id="1", name=name, arguments="{}")]


def blabbing(action: str) -> Any:
    """A model whose every word holds the secret, and that never answers well."""

    def answer(request: ScriptedRequest) -> ScriptedReply:
        candidates = [{"action": action, "arguments": {"text": SECRET} if action != "look" else {}}]
        return {"situation": f"I know {SECRET}.", "risks": [SECRET], "candidates": candidates}

    return answer


async def said(agent: CoagAgent) -> str:
    result = await agent.run(task="What is the password?")
    assert not examine(agent.trace).violations
    return result.messages[-1].to_text()


@pytest.mark.parametrize(
    ("action", "more", "text"),
    [
        ("respond", {}, "I stopped: in 3 cycles in a row no action was possible."),
        ("nothing", {}, "I stopped: in 3 cycles in a row no action was possible."),
        ("look", {"bounds": Bounds(cycles=2)}, "I stopped after 2 cycles without an answer."),
        ("look", {"budget": Budget(calls=2)}, "I stopped: the budget for this goal is used up."),
        (
            "look",
            {"max_tool_iterations": 1, "reflect_on_tool_use": False},
            "I stopped: the number of actions for this turn is used up.",
        ),
    ],
)
async def test_what_no_rule_lets_through_becomes_a_fixed_sentence(
    action: str, more: dict[str, Any], text: str
) -> None:
    agent = CoagAgent(
        "guard",
        ScriptedModel(blabbing(action)),
        tools=[look],
        constraints=[no_secret],
        depth="compact",
        proposal="json",
        **more,
    )
    if "max_tool_iterations" in more:
        assert SECRET not in await said(agent)
    else:
        assert await said(agent) == text
    notes = [r.text for r in agent.trace if isinstance(r, Note)]
    assert any("A text was not said. no_secret: it holds the password" in note for note in notes)


async def test_a_rule_that_raises_on_it_keeps_it_in() -> None:
    def needs_a_form(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return Verdict(allowed=bool(candidate.arguments["answer"]))  # type: ignore[index]

    class Form(BaseModel):
        answer: str

    agent = CoagAgent(
        "guard",
        ScriptedModel(blabbing("nothing")),
        constraints=[needs_a_form],
        output_content_type=Form,
        depth="compact",
        proposal="json",
    )
    assert await said(agent) == "I stopped: in 3 cycles in a row no action was possible."


async def test_where_every_answer_needs_approval_a_bound_says_its_fixed_sentence_only() -> None:
    agent = CoagAgent(
        "guard",
        ScriptedModel(blabbing("nothing")),
        approval=ApprovalPolicy(actions=["*"], exempt=[]),
        approve=lambda request: False,
        depth="compact",
        proposal="json",
    )
    assert await said(agent) == "I stopped: in 3 cycles in a row no action was possible."


WORDS = st.sampled_from([SECRET, f"It is {SECRET}.", "Nothing.", "look", f"{SECRET} look"])
REPLIES = st.lists(st.tuples(st.sampled_from(["text", "call", "both"]), WORDS), max_size=5)


@given(REPLIES, st.sampled_from([None, 1, 2]), st.booleans())
async def test_no_answer_holds_what_a_rule_forbids_whatever_a_model_does(
    replies: list[tuple[str, str]], iterations: int | None, streams: bool
) -> None:
    left = list(replies)

    def answer(request: ScriptedRequest) -> ScriptedReply:
        kind, word = left.pop(0) if left else ("text", SECRET)
        return word if kind == "text" else call("look" if "look" in word else word)

    agent = CoagAgent(
        "guard",
        ScriptedModel(answer),
        tools=[look],
        constraints=[no_secret],
        depth="compact",
        max_tool_iterations=iterations,
        model_client_stream=streams,
    )
    message = TextMessage(content="What is it?", source="user")
    async for item in agent.on_messages_stream([message], CancellationToken()):
        if isinstance(item, Response):
            assert SECRET not in item.chat_message.to_text()
        if isinstance(item, ModelClientStreamingChunkEvent):
            assert SECRET not in item.content
    assert not examine(agent.trace).violations


async def test_a_handoff_carries_no_call_whose_arguments_may_not_be_said() -> None:
    def note(text: str) -> str:
        """Notes a text."""
        return "noted"

    answers = iter(
        [
            [FunctionCall(id="1", name="note", arguments=f'{{"text": "{SECRET}"}}')],
            [FunctionCall(id="2", name="note", arguments='{"text": "a greeting"}')],
            call("transfer_to_boss"),
        ]
    )
    agent = CoagAgent(
        "clerk",
        ScriptedModel(lambda request: next(answers)),
        tools=[note],
        handoffs=["boss"],
        constraints=[no_secret],
        depth="compact",
    )
    message = (await agent.run(task="Hand over.")).messages[-1]
    assert isinstance(message, HandoffMessage)
    assert "a greeting" in str(message.context)
    assert SECRET not in str(message.context)
