"""A domain made of your own agents and tasks.

A `Task` is a text and a check of the answer; a `Contender` is a name and a function that builds an
agent. `AgentTasks` is the domain of both, for `run_evaluation`.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from coag.errors import ConfigurationError
from coag.tracing import list_runs, read_trace

from .measures import TraceEpisode, causes_of, decisions_of, measures_of, tally_of
from .running import JobResult, RunSettings
from .trials import NO_MODEL, Job

_RESULT = "result.json"


class RunsTasks(Protocol):
    """What is evaluated: any AutoGen agent or team, or whatever runs a task as they do."""

    def run(self, *, task: Any = None) -> Awaitable[Any]:
        """Runs a task; the last of the result's `messages` is the answer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """How an agent got its answer, for checks that need more than the answer."""

    answer: str
    """Text of the last message."""
    seed: int
    messages: Sequence[Any]
    """All messages of the run."""
    agent: RunsTasks
    folder: Path
    """The folder that the agent was built with."""


Check = Callable[[TaskRun], bool | str]
"""Whether an attempt succeeded; a text says how it failed."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something that agents are asked to do."""

    name: str
    text: str | Callable[[int], str]
    """What the agent is asked; a function gets the seed, by which instances differ."""
    check: Check


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent that is compared."""

    name: str
    build: Callable[[Path, str, int], RunsTasks | Awaitable[RunsTasks]]
    """Builds the agent from a folder for its logs, the model's spec and the seed."""
    asks_model: bool = False
    """Whether it asks one of the models that the evaluation names; else it brings its own."""


class AgentTasks:
    """Tasks as scenarios, agents as contenders.

    Measures are counted from the trace where the agent writes one into its folder, as
    `CoagAgent(logs=folder)` does; else tokens come from the messages' usage.
    """

    def __init__(
        self, tasks: Sequence[Task], contenders: Sequence[Contender], *, name: str = "agents"
    ) -> None:
        self.name = name
        self._tasks = {task.name: task for task in tasks}
        self._contenders = {contender.name: contender for contender in contenders}
        if not tasks or not contenders:
            raise ConfigurationError("An evaluation needs at least one task and one contender.")
        if len(self._tasks) < len(tasks) or len(self._contenders) < len(contenders):
            raise ConfigurationError("Two tasks or two contenders have the same name.")

    @property
    def scenarios(self) -> Sequence[str]:
        """Names of the tasks."""
        return tuple(self._tasks)

    @property
    def contenders(self) -> Sequence[str]:
        """Names of the agents."""
        return tuple(self._contenders)

    def asks_model(self, contender: str) -> bool:
        """Whether a contender asks one of the plan's models."""
        return self._contenders[contender].asks_model

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        """Builds the agent, lets it run the task, and checks what it did."""
        task, contender = self._tasks[job.scenario], self._contenders[job.contender]
        spec = "" if job.model == NO_MODEL else settings.spec(job)
        built = contender.build(folder, spec, job.seed)
        agent = await built if inspect.isawaitable(built) else built
        text = task.text if isinstance(task.text, str) else task.text(job.seed)
        began = time.monotonic()
        try:
            messages = list((await agent.run(task=text)).messages)
            seconds = time.monotonic() - began
            answer = _text_of(messages[-1]) if messages else ""
            verdict = task.check(
                TaskRun(answer=answer, seed=job.seed, messages=messages, agent=agent, folder=folder)
            )
        finally:
            close = getattr(agent, "close", None)
            if close is not None:
                await close()
        success = verdict is True
        problem = "" if success else (verdict or f"answered {answer!r}")
        result = JobResult(success=success, problem=str(problem)[:500])
        result = result.model_copy(update=_measured(folder, success, messages, seconds))
        (folder / _RESULT).write_text(result.model_dump_json(), encoding="utf-8")
        return result

    def measure_again(self, job: Job, folder: Path) -> JobResult:
        """The stored result of a job, with the measures of its trace counted again."""
        path = folder / _RESULT
        if not path.is_file():
            return JobResult(success=False, finished=False, **_from_trace(folder, success=False))
        result = JobResult.model_validate_json(path.read_bytes())
        return result.model_copy(update=_from_trace(folder, success=result.success))


def _text_of(message: Any) -> str:
    to_text = getattr(message, "to_text", None)
    return str(to_text() if to_text is not None else getattr(message, "content", message))


def _measured(
    folder: Path, success: bool, messages: Sequence[Any], seconds: float
) -> dict[str, Any]:
    found = _from_trace(folder, success=success)
    if found:
        return found
    usages = [usage for m in messages if (usage := getattr(m, "models_usage", None)) is not None]
    prompt = sum(usage.prompt_tokens for usage in usages)
    completion = sum(usage.completion_tokens for usage in usages)
    measures = {
        "model_calls": float(len(usages)),
        "prompt_tokens": float(prompt),
        "completion_tokens": float(completion),
        "tokens": float(prompt + completion),
        "seconds": round(seconds, 3),
    }
    return {"measures": measures}


def _from_trace(folder: Path, *, success: bool) -> dict[str, Any]:
    tallies = [
        tally_of(
            TraceEpisode(
                records=tuple(e.body for e in read_trace(run.trace_path, lambda problem: None)),
                success=success,
            )
        )
        for run in list_runs(folder)
    ]
    if not tallies:
        return {}
    return {
        "measures": measures_of(tallies),
        "causes": causes_of(tallies),
        "decided_by": decisions_of(tallies),
    }
