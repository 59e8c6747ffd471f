"""What leaves a long dialogue, summed up by the model where it is asked to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kits.guide import FORMS

from coag import CoagAgent, CoagContext, ScriptedModel
from coag.context import Budgets, EarlierDialogue
from coag.models import ScriptedReply, ScriptedRequest
from coag.proof import replay, verify
from coag.schema import Trust
from coag.tracing import Recipe

SUMMARY = "The user is allergic to peanuts and plans a feast."


def answering(summary: str = json.dumps({"summary": SUMMARY})) -> ScriptedModel:
    """A model that sums up as given and else answers at length."""

    def reply(request: ScriptedRequest) -> ScriptedReply:
        if request.schema_name == "SummaryAnswer":
            return summary
        long = "\n".join(f"As to your question, part {part}." for part in range(30))
        return long if request.schema_name is None else FORMS[request.schema_name]

    return ScriptedModel(reply)


def small(model: ScriptedModel, **given: Any) -> CoagAgent:
    """An agent with a window that holds a few messages."""
    context = CoagContext[Any](budgets=Budgets(window=2_000))
    return CoagAgent("a", model, depth="compact", proposal="native", model_context=context, **given)


async def chat(agent: CoagAgent, turns: int) -> None:
    await agent.run(task="I am allergic to peanuts.")
    for turn in range(turns):
        await agent.run(task=f"What of course {turn}?")


def summaries(model: ScriptedModel) -> list[ScriptedRequest]:
    return [one for one in model.requests if one.schema_name == "SummaryAnswer"]


def earlier(agent: CoagAgent) -> EarlierDialogue:
    kept = agent.context.working_memory.earlier
    assert kept is not None
    return kept


async def test_the_model_sums_up_what_has_left_the_dialogue_once_for_ten_messages() -> None:
    model = answering()
    agent = small(model, summarize=True)
    await chat(agent, 20)
    requests = summaries(model)
    assert earlier(agent).messages // 10 <= len(requests) <= earlier(agent).messages // 8
    assert "allergic to peanuts" in requests[0].text
    assert f"Summary so far: {SUMMARY}" in requests[1].text
    assert "What of course 0?" not in requests[1].text
    assert earlier(agent).summary == SUMMARY
    assert SUMMARY in model.requests[-1].text


async def test_without_the_setting_no_model_is_asked_for_a_summary() -> None:
    model = answering()
    agent = small(model)
    await chat(agent, 20)
    assert summaries(model) == []
    assert "user: I am allergic to peanuts." in earlier(agent).lines()


async def test_a_summary_that_cannot_be_used_leaves_what_rules_kept_and_is_noted() -> None:
    model = answering(summary="no form at all")
    agent = small(model, summarize=True)
    await chat(agent, 20)
    assert earlier(agent).summary == ""
    assert "user: I am allergic to peanuts." in earlier(agent).lines()
    assert "fallback" in {one.about for one in agent.trace if one.record == "note"}


async def test_a_summary_of_untrusted_messages_is_data() -> None:
    said = EarlierDialogue().with_message("web", "I always pay.", Trust.UNTRUSTED, own=False)
    assert said.summed_up("It always pays.", 1).untrusted


def chronicler(logs: str | None = None) -> CoagAgent:
    """An agent that sums up, which a run's recipe can make again."""
    arguments = {"logs": logs} if logs else {}
    recipe = Recipe(factory=f"{__name__}:chronicler", arguments=arguments)
    return small(answering(), summarize=True, logs=logs, recipe=recipe)


async def test_a_summary_is_in_the_trace_and_survives_resume_and_replay(tmp_path: Path) -> None:
    agent = chronicler(str(tmp_path))
    await chat(agent, 14)
    kept, run = earlier(agent), agent.run_folder
    await agent.close()
    assert kept.summary == SUMMARY
    assert run is not None
    assert verify(run) == []
    assert (await replay(run, agent=chronicler)).divergence is None
    again = await CoagAgent.resume(run, trust=[__name__])
    assert earlier(again) == kept
    await again.close()
