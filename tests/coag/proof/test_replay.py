"""A run that is run again on its trace is the same, and where it is not, the place is found."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from kits import foragers
from kits.brains import brain, respond
from kits.crews import foreman
from kits.foragers import BITTER, Basket, foraged
from kits.porters import TASK, porter, scholar
from kits.ringers import ringer
from pydantic import BaseModel

from coag.agent import CoagAgent
from coag.cycle import ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Bounds, Budget
from coag.errors import ModelCallError, ResumeError, TraceError
from coag.memory import RuleChange, seed_procedures
from coag.models import Price, ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import Divergence, ReplayReport, replay
from coag.schema import Candidate, Percept, PerceptKind, SystemClock, Trust, Verdict
from coag.tracing import RunFolder, read_trace

Build = Callable[[Path | None], CoagAgent]
"""Builds an agent anew that keeps its logs in a folder."""


async def say(agent: CoagAgent, *texts: str) -> None:
    for text in texts:
        said = [TextMessage(content=text, source="user")]
        await agent.on_messages(said, CancellationToken())


async def run_of(agent: CoagAgent, *texts: str) -> RunFolder:
    await say(agent, *(texts or ("Go on.", "And again.")))
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder


def length(run: RunFolder) -> int:
    return sum(1 for _ in read_trace(run.trace_path))


def exists(path: Path) -> bool:
    return path.exists()


async def check_same(run: RunFolder, build: Build | None = None) -> ReplayReport:
    report = await replay(run, agent=None if build is None else lambda: build(None))
    assert report.divergence is None, str(report.divergence)
    assert report.records == length(run)
    return report


async def diverged(run: RunFolder, build: Build | None = None) -> Divergence:
    report = await replay(run, agent=None if build is None else lambda: build(None))
    assert report.divergence is not None
    return report.divergence


# ---- the same ----


@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_a_run_with_a_recipe_is_replayed_without_anything_else(
    depth: Any, tmp_path: Path
) -> None:
    log = tmp_path / "calls.txt"
    agent = porter(log=str(log), logs=str(tmp_path / "logs"), depth=depth)
    run = await run_of(agent, TASK, "Well done.")
    before = log.read_text(), run.trace_path.read_bytes()
    report = await check_same(run)
    assert report.remarks == ()
    assert (log.read_text(), run.trace_path.read_bytes()) == before


async def test_what_is_learned_is_learned_again_and_kept_nowhere(tmp_path: Path) -> None:
    run = await run_of(scholar(logs=str(tmp_path / "logs")), TASK)
    await check_same(run)


@pytest.mark.long
async def test_memory_on_a_disk_is_not_touched(tmp_path: Path) -> None:
    memory, log = str(tmp_path / "memory"), str(tmp_path / "calls.txt")
    agent = porter(log=log, logs=str(tmp_path / "logs"), memory=memory)
    run = await run_of(agent, TASK, "Well done.")
    shutil.rmtree(memory)
    await check_same(run)
    assert not exists(tmp_path / "memory")


@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_a_batch_is_replayed_in_the_order_in_which_it_ended(
    depth: Any, tmp_path: Path
) -> None:
    agent = foreman(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"), depth=depth)
    await check_same(await run_of(agent, TASK))


async def test_hooks_modules_and_constraints_run_again(tmp_path: Path) -> None:
    run = await foraged(tmp_path, told=(BITTER,))
    report = await check_same(run)
    assert report.remarks == ()


async def test_what_an_action_of_a_module_did_is_taken_from_the_trace(tmp_path: Path) -> None:
    log = tmp_path / "rung.txt"
    run = await run_of(ringer(log=str(log), logs=str(tmp_path / "logs")), "Ring.")
    before = log.read_text()
    report = await check_same(run)
    assert log.read_text() == before
    assert any("of a module" in remark for remark in report.remarks)


def look(where: str) -> str:
    """Looks somewhere."""
    return f"nothing in the {where}"


async def fail(where: str) -> str:
    """Fails somewhere."""
    raise OSError(f"no way to the {where}")


LOOK, FAIL = ("look", '{"where": "hall"}'), ("fail", '{"where": "hall"}')


class Finding(BaseModel):
    found: int


def formed(request: ScriptedRequest) -> ScriptedReply:
    if request.tools:
        return "I found three."
    return {"found": 3}


def calls(*names: str) -> list[FunctionCall]:
    return [FunctionCall(id=name, name=name, arguments='{"where": "hall"}') for name in names]


def wanders(request: ScriptedRequest) -> ScriptedReply:
    """Looks and fails at once, then answers; natively."""
    if not request.tools:
        return {"situation": "Calm.", "risks": [], "goal_status": "open"}
    return "Done." if "nothing in the hall" in request.text else calls("look", "fail")


def written_as_text(request: ScriptedRequest) -> ScriptedReply:
    if "nothing in the hall" in request.text:
        return "Done."
    return '{"name": "look", "arguments": {"where": "hall"}}'


BUILDS: dict[str, Build] = {
    "several candidates": lambda logs: CoagAgent(
        "a", brain([LOOK, FAIL, respond()], [FAIL, LOOK], respond()), tools=[look, fail],
        logs=logs, proposal="json",
    ),
    "ranked": lambda logs: CoagAgent(
        "a", brain([LOOK, respond()], respond()), tools=[look], logs=logs, proposal="json",
        selection="rank", minimum_score=0.3, enumerate_actions=True,
    ),
    "impasses": lambda logs: CoagAgent(
        "a", brain(("fly", "{}"), ("look", "no JSON")), tools=[look], logs=logs, proposal="json",
        bounds=Bounds(impasses=2),
    ),
    "native, streaming": lambda logs: CoagAgent(
        "a", ScriptedModel(wanders), tools=[look, fail], logs=logs, model_client_stream=True,
    ),
    "native, compact, calls as text": lambda logs: CoagAgent(
        "a", ScriptedModel(written_as_text), tools=[look], logs=logs, depth="compact",
    ),
    "structured answers": lambda logs: CoagAgent(
        "a", ScriptedModel(formed), logs=logs, depth="compact", output_content_type=Finding,
    ),
    "handoffs": lambda logs: CoagAgent(
        "a", brain(("transfer_to_b", "{}")), handoffs=["b"], logs=logs, proposal="json",
    ),
    "one tool a turn": lambda logs: CoagAgent(
        "a", brain(LOOK, FAIL), tools=[look, fail], logs=logs, proposal="json",
        max_tool_iterations=1, reflect_on_tool_use=False,
    ),
    "a budget": lambda logs: CoagAgent(
        "a", brain(LOOK), tools=[look], logs=logs, proposal="json", budget=Budget(calls=8),
        prices={"scripted": Price(prompt=1.0, completion=2.0)},
    ),
    "growing": lambda logs: CoagAgent(
        "a", brain(LOOK, respond()), tools=[look], logs=logs, proposal="json", system_message=None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BUILDS)
async def test_agents_of_many_kinds_are_the_same_when_they_are_built_again(
    name: str, tmp_path: Path
) -> None:
    run = await run_of(BUILDS[name](tmp_path))
    report = await check_same(run, BUILDS[name])
    assert report.remarks == ()


def faulty(request: ScriptedRequest, seen: list[int]) -> ScriptedReply:
    """Refuses schemas, then writes no JSON, then bad JSON, then what it should."""
    seen.append(1)
    if request.schema is not None:
        raise ValueError("no schemas here")
    return ("what?", '{"situation": "Calm", "risks": [], ', '{"choice": 1}')[len(seen) % 3]


async def test_refused_forms_repairs_and_unusable_answers_go_the_same_way(tmp_path: Path) -> None:
    seen: list[int] = []
    model = ScriptedModel(lambda request: faulty(request, seen))

    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", model, logs=logs, proposal="json", bounds=Bounds(impasses=3))

    run = await run_of(build(tmp_path))
    asked = len(seen)
    await check_same(run, build)
    assert len(seen) == asked


async def test_a_model_that_cannot_be_asked_ends_the_turn_again(tmp_path: Path) -> None:
    def broken(request: ScriptedRequest) -> ScriptedReply:
        raise ConnectionError(f"no line for {request.schema_name}")

    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", ScriptedModel(broken), logs=logs, proposal="json")

    agent = build(tmp_path)
    with pytest.raises(ModelCallError):
        await say(agent, "Go on.")
    with pytest.raises(ModelCallError):
        await say(agent, "Go on, please.")
    assert agent.run_folder is not None
    await agent.close()
    await check_same(agent.run_folder, build)


async def test_a_reader_who_leaves_ends_the_turn_at_the_same_place(tmp_path: Path) -> None:
    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", brain(LOOK, respond()), tools=[look], logs=logs, proposal="json")

    for read in range(1, 8):
        agent = build(tmp_path / str(read))
        said = [TextMessage(content="Go on.", source="user")]
        stream = agent.on_messages_stream(said, CancellationToken())
        for _ in range(read):
            await anext(stream, None)
        await stream.aclose()
        await say(agent, "And now?")
        assert agent.run_folder is not None
        await agent.close()
        await check_same(agent.run_folder, build)


async def test_a_cancelled_tool_is_cancelled_again(tmp_path: Path) -> None:
    token = CancellationToken()

    async def wait() -> str:
        """Waits."""
        token.cancel()
        await asyncio.Event().wait()
        return "waited"

    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", brain(("wait", "{}"), respond()), tools=[wait], logs=logs,
                         proposal="json")  # fmt: skip

    agent = build(tmp_path)
    said = [TextMessage(content="Go on.", source="user")]
    with pytest.raises(BaseException, match=r"^$"):
        await agent.on_messages(said, token)
    await say(agent, "And now?")
    assert agent.run_folder is not None
    await agent.close()
    await check_same(agent.run_folder, build)


# ---- approval ----


def asks(request: ApprovalRequest) -> ApprovalAnswer:
    if request.attempt == 1 and "attic" in json.dumps(request.arguments):
        return request.deny("Ada", "the attic is mine")
    return request.grant("Ada", "fine")


async def test_approvals_are_answered_as_they_were(tmp_path: Path) -> None:
    attic = ("look", '{"where": "attic"}')
    policy = ApprovalPolicy(risk={"look": "high", "*": "low"}, require={"high"})

    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", brain(attic, LOOK, LOOK, respond()), tools=[look], logs=logs,
                         proposal="json", approval=policy, approve=asks)  # fmt: skip

    await check_same(await run_of(build(tmp_path)), build)


# ---- from outside ----


def signal(number: int) -> Percept:
    return Percept(
        id=f"signal-{number}",
        at=SystemClock().now(),
        kind=PerceptKind.SIGNAL,
        source="bell",
        trust=Trust.UNTRUSTED,
        content="It rang.",
    )


def no_looking(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    del state, projection
    return Verdict.forbid("not now") if candidate.action == "look" else Verdict.allow("as you like")


async def test_changes_from_outside_are_taken_from_the_trace_and_told(tmp_path: Path) -> None:
    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", brain(LOOK, respond(), [LOOK, respond()], respond()), tools=[look],
                         logs=logs, proposal="json")  # fmt: skip

    agent = build(tmp_path)
    await say(agent, "Go on.")
    await agent.perceive(signal(1))
    agent.constraints.add(no_looking)
    change = RuleChange(operation="add", rule="Look twice.")
    agent.procedures.change_rule("reasoning", change, author="me", reason="Eyes.")
    await say(agent, "And now?")
    agent.constraints.remove("no_looking")
    await say(agent, "And now?")
    assert agent.run_folder is not None
    await agent.close()
    report = await check_same(agent.run_folder, build)
    told = " ".join(report.remarks)
    assert "The constraint no_looking was put in force from outside before cycle 3" in told
    assert "The constraint no_looking was taken out of force" in told
    assert "reasoning@2 was written from outside, by me" in told


async def test_a_state_that_was_loaded_is_loaded_again(tmp_path: Path) -> None:
    first = porter(log=str(tmp_path / "first.txt"))
    await say(first, TASK)
    second = porter(log=str(tmp_path / "second.txt"), logs=str(tmp_path / "logs"))
    await say(second, TASK)
    await second.load_state(await first.save_state())
    await check_same(await run_of(second, "Well done."))


# ---- not the same ----


async def test_a_changed_hook_is_found_at_the_percept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await foraged(tmp_path)

    def clumsy(self: Any, state: Basket, percept: Percept) -> Basket:
        return Basket(held=state.held, colours=(*state.colours, percept.source))

    monkeypatch.setattr(foragers.BasketContext, "_update_state_from_function_result", clumsy)
    found = await diverged(run)
    assert (found.record, found.cycle) == ("percept", 1)
    assert found.field.startswith("state_patch.")
    assert "hook reads the percept in another way" in found.meaning


async def test_a_changed_description_is_found_in_the_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await foraged(tmp_path)

    def changed(self: Any, state: Basket) -> str:
        return f"It holds {state.held} berries."

    monkeypatch.setattr(foragers.BasketContext, "_get_state_description", changed)
    found = await diverged(run)
    assert (found.record, found.phase, found.cycle) == ("model_call", "reasoning", 1)
    assert found.field.startswith("messages[")
    assert "berries" in found.replayed
    assert "berries" not in found.recorded


async def test_a_changed_constraint_is_found_in_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await foraged(tmp_path, depth="compact")

    def two_are_enough(candidate: Candidate, state: Basket, projection: Any) -> Verdict:
        del state, projection
        return Verdict.forbid("never") if candidate.action == "pick" else Verdict.allow()

    monkeypatch.setattr(foragers, "two_are_enough", two_are_enough)
    found = await diverged(run)
    assert (found.record, found.phase, found.cycle) == ("evaluation", "evaluation", 1)
    assert found.field.startswith("evaluations[0].verdicts[")


async def test_a_constraint_that_is_gone_is_found_in_the_first_retrieval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await foraged(tmp_path)

    def none(self: Any) -> tuple[()]:
        return ()

    monkeypatch.setattr(foragers.Ripeness, "constraints", none)
    found = await diverged(run)
    assert (found.record, found.field) == ("retrieval", "constraints[1]")
    assert found.recorded == '"nothing_green"'


async def test_a_changed_seed_of_a_procedure_is_found_at_once(tmp_path: Path) -> None:
    def build(logs: Path | None, text: str = "") -> CoagAgent:
        if not text:
            return CoagAgent("a", brain(respond()), logs=logs, proposal="json")
        seed = seed_procedures()["reasoning"]
        changed = seed.model_copy(update={"text": f"{seed.text}\n{text}"})
        return CoagAgent("a", brain(respond()), logs=logs, proposal="json",
                         procedures={"reasoning": changed})  # fmt: skip

    run = await run_of(build(tmp_path))
    report = await replay(run, agent=lambda: build(None, "Be quick."))
    assert report.divergence is not None
    assert report.divergence.seq == 0
    assert report.divergence.field == "procedures.versions.reasoning"


async def test_a_changed_tool_is_found_where_the_actions_are_listed(tmp_path: Path) -> None:
    def build(logs: Path | None, more: Sequence[Any] = ()) -> CoagAgent:
        return CoagAgent("a", brain(respond()), tools=[look, *more], logs=logs, proposal="json")

    run = await run_of(build(tmp_path))
    found = (await replay(run, agent=lambda: build(None, [fail]))).divergence
    assert found is not None
    assert (found.record, found.field) == ("actions", "specs[1]")


@pytest.mark.broken_trace("it edits the trace")
@pytest.mark.parametrize(
    ("where", "path", "value"),
    [
        ("outcome", ("situation",), "Another one."),
        ("percept", ("sets_goal",), False),
        ("intent", ("arguments",), {"stone": "lead"}),
        ("receipt", ("status",), "failed"),
        ("turn_end", ("response",), "Never."),
        ("written", ("content", "text"), "The stones were light."),
    ],
)
async def test_a_changed_value_in_the_trace_is_found(
    where: str, path: tuple[str, ...], value: Any, tmp_path: Path
) -> None:
    agent = porter(log=str(tmp_path / "calls.txt"), logs=str(tmp_path / "logs"))
    run = await run_of(agent, TASK)
    lines = [json.loads(line) for line in run.trace_path.read_text().splitlines()]
    place = next(n for n, line in enumerate(lines) if _is(line["body"], where, path))
    target = lines[place]["body"]
    for name in path[:-1]:
        target = target[name]
    target[path[-1]] = value
    run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = await diverged(run)
    assert found.seq >= place
    assert any("hash" in remark for remark in (await replay(run)).remarks)


def _is(body: Mapping[str, Any], where: str, path: tuple[str, ...]) -> bool:
    return body["record"] == where and path[0] in body and body[path[0]] is not None


# ---- what cannot be replayed ----


async def test_a_run_without_a_recipe_says_how_it_can_be_replayed(tmp_path: Path) -> None:
    run = await run_of(BUILDS["ranked"](tmp_path))
    with pytest.raises(ResumeError, match=r"no recipe.*replay\(run, agent=\.\.\.\)"):
        await replay(run)


async def test_an_agent_can_be_given_itself(tmp_path: Path) -> None:
    run = await run_of(BUILDS["ranked"](tmp_path))
    report = await replay(run.path, agent=BUILDS["ranked"](None))
    assert report.same


async def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"holds no run\.json"):
        await replay(tmp_path)
