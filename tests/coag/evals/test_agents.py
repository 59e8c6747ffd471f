"""Your own agents and tasks as a domain."""

from __future__ import annotations

from pathlib import Path

import pytest
from autogen_agentchat.agents import AssistantAgent

from coag import CoagAgent
from coag.errors import ConfigurationError
from coag.evals import AgentTasks, Contender, Task, TaskRun, measure_again, run_evaluation
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest, scripted_answers


def says(text: str) -> ScriptedModel:
    """A model that always answers with a text."""

    def answer(request: ScriptedRequest) -> ScriptedReply:
        if request.schema is None:
            return text
        return scripted_answers([])(request)

    return ScriptedModel(answer)


def plain(folder: Path, model: str, seed: int) -> AssistantAgent:
    return AssistantAgent("plain", says("4" if seed else "5"))


def is_four(attempt: TaskRun) -> bool | str:
    return attempt.answer == "4" or f"said {attempt.answer} to seed {attempt.seed}"


SUM = Task("sum", lambda seed: f"What is 2 + 2? (seed {seed})", is_four)


def test_agents_run_tasks_and_their_answers_are_checked(tmp_path: Path) -> None:
    domain = AgentTasks([SUM], [Contender("plain", plain)])
    found = run_evaluation(domain, tmp_path / "a", seeds=2)
    failed, solved = found.trials
    assert (failed.outcome, failed.problem) == ("failure", "said 5 to seed 0")
    assert solved.success
    assert (solved.measures["tokens"] or 0) > 0
    assert found.plan.without_model == ("plain",)


def test_an_agent_that_writes_a_trace_is_measured_by_it_and_again(tmp_path: Path) -> None:
    async def deliberate(folder: Path, model: str, seed: int) -> CoagAgent:
        def answer(request: ScriptedRequest) -> ScriptedReply:
            fields = (request.schema or {}).get("properties", {})
            if "candidates" in fields:
                text = {"action": "respond", "arguments": '{"text": "4"}'}
                return {"candidates": [{**text, "reason": "", "expected_effect": ""}]}
            return {}

        return CoagAgent("agent", ScriptedModel(answer), logs=folder, max_tool_iterations=1)

    domain = AgentTasks([SUM], [Contender("coag", deliberate, asks_model=True)])
    from coag.evals import RunSettings

    found = run_evaluation(
        domain, tmp_path / "a", seeds=1, models=["m"], settings=RunSettings(keep="all")
    )
    (trial,) = found.trials
    assert "failures_attributed" in trial.measures
    assert (trial.measures["model_calls"] or 0) > 0
    assert trial.job.model == "m"
    again = measure_again(found.folder, domain)
    assert (again.measured, again.unchanged) == (1, 1)


def test_names_that_repeat_and_empty_evaluations_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="same name"):
        AgentTasks([SUM, SUM], [Contender("plain", plain)])
    with pytest.raises(ConfigurationError, match="at least one"):
        AgentTasks([], [Contender("plain", plain)])
