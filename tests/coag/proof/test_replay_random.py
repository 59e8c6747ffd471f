"""Whatever a model says, the replay of the run is the same; whatever is changed in it, is found."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from coag.agent import CoagAgent
from coag.cycle import Bounds
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import ReplayReport, replay
from coag.tracing import RunFolder

ACTIONS: tuple[tuple[str, dict[str, str]], ...] = (
    ("look", {"where": "hall"}),
    ("fail", {"where": "roof"}),
    ("respond", {"text": "Done."}),
    ("tool_update_episodic_memory", {"summary": "It was calm."}),
    ("tool_update_semantic_memory", {"fact": "The hall is empty."}),
    (
        "tool_update_procedural_memory",
        {"procedure": "reasoning", "operation": "add", "rule": "Look.", "reason": "So."},
    ),
    ("fly", {}),
)
INPUTS = {
    "at",
    "seconds",
    "error_type",
    "model",
    "finish_reason",
    "usage_estimated",
    "environment",
    "created_at",
}
"""Fields that are no result of the agent's code, or are times."""


def look(where: str) -> str:
    """Looks somewhere."""
    return f"nothing in the {where}"


async def fail(where: str) -> str:
    """Fails somewhere."""
    raise OSError(f"no way to the {where}")


def scripted(choices: list[int]) -> ScriptedModel:
    """A model that answers as the numbers say, again from the first when they are used up."""
    calls: list[int] = []

    def think(request: ScriptedRequest) -> ScriptedReply:
        calls.append(1)
        number = choices[len(calls) % len(choices)]
        if number > 80:
            return "This is no JSON."
        if number > 77:
            raise ConnectionError("no line")
        first, second = ACTIONS[number % len(ACTIONS)], ACTIONS[(number // 7) % len(ACTIONS)]
        if request.tools:
            return [
                FunctionCall(id="x", name=n, arguments=json.dumps(a)) for n, a in (first, second)
            ]
        drafts = [
            {"action": n, "arguments": json.dumps(a), "score": number / 100}
            for n, a in (first, second)
        ]
        return {
            "situation": f"It is {number}.",
            "risks": [],
            "goal_status": "open",
            "candidates": drafts,
            "evaluations": [{"candidate": 1, "reason": "so", "score": number / 100}],
            "reason": "because",
            "choice": 1 + number % 2,
        }

    return ScriptedModel(think)


def built(model: ScriptedModel, kind: tuple[str, str], logs: Path | None) -> CoagAgent:
    depth, proposal = kind
    return CoagAgent(
        "a", model, tools=[look, fail], logs=logs, depth=depth, proposal=proposal,  # pyright: ignore[reportArgumentType]
        bounds=Bounds(cycles=3, impasses=2),
    )  # fmt: skip


async def run_of(choices: list[int], kind: tuple[str, str], logs: Path) -> RunFolder:
    agent = built(scripted(choices), kind, logs)
    for text in ("Go on.", "And now?"):
        messages = [TextMessage(content=text, source="user")]
        try:
            await agent.on_messages(messages, CancellationToken())
        except RuntimeError:  # the model could not be asked
            continue
    assert agent.run_folder is not None
    await agent.close()
    return agent.run_folder


def replayed(run: RunFolder, kind: tuple[str, str]) -> ReplayReport:
    return asyncio.run(replay(run, agent=lambda: built(scripted([1]), kind, None)))


KINDS = st.sampled_from([("full", "json"), ("compact", "json"), ("full", "native")])
CHOICES = st.lists(st.integers(0, 84), min_size=1, max_size=12)
QUICK = settings(
    max_examples=8,
    database=None,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)


@QUICK
@example(choices=[39], kind=("full", "native"))  # a fact and a rule of one answer
@given(choices=CHOICES, kind=KINDS)
def test_the_replay_of_a_random_run_never_diverges(
    choices: list[int], kind: tuple[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as logs:
        run = asyncio.run(run_of(choices, kind, Path(logs)))
        report = replayed(run, kind)
    assert report.divergence is None, str(report.divergence)
    assert report.remarks == ()


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all texts, numbers and truth values that the agent's code has computed."""
    whole = cast("dict[Any, Any]", value)
    for name, each in whole.items() if isinstance(value, dict) else enumerate(value):
        if name in INPUTS:
            continue
        if isinstance(each, dict | list):
            yield from leaves(each, (*path, name))
        elif isinstance(each, str | int | float):
            yield (*path, name)


@QUICK
@given(choices=CHOICES, kind=KINDS, data=st.data())
def test_a_random_change_of_what_code_computed_is_found(
    choices: list[int], kind: tuple[str, str], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as logs:
        run = asyncio.run(run_of(choices, kind, Path(logs)))
        lines = [json.loads(line) for line in run.trace_path.read_text().splitlines()]
        place = data.draw(st.integers(1, len(lines) - 1))
        body = lines[place]["body"]
        assume(body["record"] in ("outcome", "note", "turn_end", "intent", "written"))
        # What was recalled is an input; ids alone tell nothing.
        paths = [path for path in leaves(body) if path[0] not in ("record", "phase", "records")]
        *path, last = data.draw(st.sampled_from(paths))
        target = body
        for name in path:
            target = target[name]
        value = target[last]
        assume(not (isinstance(value, str) and last in _WORDS))
        target[last] = f"{value}!" if isinstance(value, str) else _other(value)
        run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        report = replayed(run, kind)
    # What is based on memory that the trace does not show is from the tape, as is reported; a
    # result then shows the difference in what came of it in working memory.
    based = any("based on records" in remark for remark in report.remarks)
    if report.divergence is None:
        assert based
        assert body["record"] == "written"
        return
    taken = body.get("phase") == "execution" and last == "result"
    assert taken or report.divergence.seq <= place


_WORDS = (
    "status", "record", "goal_status", "decided_by", "proposed_by", "kind", "trust", "what",
    "failure", "expires_at",
)  # fmt: skip
"""Fields that may hold some words only, so that with another one it is no trace any more."""


def _other(value: float) -> float | bool:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else value / 2 or 0.5
