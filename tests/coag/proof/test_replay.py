"""A run that is run again on its trace is the same, and where it is not, the place is found."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken, FunctionCall
from kits import foragers
from kits.brains import brain, respond
from kits.crews import foreman
from kits.foragers import Basket, foraged
from kits.porters import TASK, porter, scholar
from kits.ringers import ringer
from kits.runs import Bodies, Build, check_same, closed, edited, records, run_of, say
from pydantic import BaseModel

from coag.agent import CoagAgent
from coag.cycle import ApprovalAnswer, ApprovalPolicy, ApprovalRequest, Bounds, Budget
from coag.errors import ModelCallError, ResumeError, TraceError
from coag.memory import RuleChange, seed_procedures
from coag.memory.consolidation import AtEvent, AtTime, IntentionModule, Intentions
from coag.memory.dynamics import MemoryDynamics
from coag.models import Price, ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import replay
from coag.proof.tape import Divergence
from coag.schema import Candidate, Percept, PerceptKind, SystemClock, Trust, Verdict
from coag.tracing import RunFolder


async def diverged(run: RunFolder, build: Callable[[], CoagAgent] | None = None) -> Divergence:
    report = await replay(run, agent=build)
    assert report.divergence is not None
    return report.divergence


# ---- the same ----


async def test_what_the_recipe_opened_for_a_replay_is_closed_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await foraged(tmp_path)
    opened = list[foragers.Patch]()

    class OpenedPatch(foragers.Patch):
        def __init__(self) -> None:
            super().__init__()
            opened.append(self)

    monkeypatch.setattr(foragers, "Patch", OpenedPatch)
    await check_same(run)
    assert [patch.closed for patch in opened] == [1]


@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_a_run_with_a_recipe_is_replayed_without_anything_else(
    depth: Any, tmp_path: Path
) -> None:
    log, memory = tmp_path / "calls.txt", tmp_path / "memory"
    agent = porter(log=str(log), logs=str(tmp_path / "logs"), memory=str(memory), depth=depth)
    run = await run_of(agent, TASK, "Well.")
    shutil.rmtree(memory)
    before = log.read_text(), run.trace_path.read_bytes()
    assert (await check_same(run)).remarks == ()
    assert (log.read_text(), run.trace_path.read_bytes()) == before
    assert "memory" not in os.listdir(tmp_path)


async def test_what_is_learned_computed_by_hooks_or_run_in_a_batch_comes_again(
    berries: RunFolder, tmp_path: Path
) -> None:
    assert (await check_same(berries)).remarks == ()
    await check_same(await run_of(scholar(logs=str(tmp_path / "logs")), TASK))
    for depth in ("full", "compact"):
        log, logs = str(tmp_path / "calls.txt"), str(tmp_path / depth)
        await check_same(await run_of(foreman(log=log, logs=logs, depth=depth), TASK))


async def test_what_an_action_of_a_module_did_is_taken_from_the_trace(tmp_path: Path) -> None:
    log = tmp_path / "rung.txt"
    run = await run_of(ringer(log=str(log), logs=str(tmp_path / "logs")), "Ring.")
    before = log.read_text()
    report = await check_same(run)
    assert log.read_text() == before
    assert any("of a module" in remark for remark in report.remarks)


async def test_a_reminder_that_arrived_comes_again_and_none_that_waits_now(tmp_path: Path) -> None:
    dynamics = MemoryDynamics("plain", path=tmp_path / "dynamics.sqlite3", owner="clerk")
    intentions = Intentions(dynamics)

    def clerk(logs: Path | None) -> CoagAgent:
        return CoagAgent(
            "clerk", ScriptedModel(written), tools=[look], proposal="json", depth="compact",
            modules=[IntentionModule(intentions)], logs=logs,
        )  # fmt: skip

    intentions.add("Call Bert", AtEvent(event="look"))
    run = await run_of(clerk(tmp_path / "logs"), "Look.", "Again.")
    percepts = [one for one in records(run) if isinstance(one, Percept)]
    assert [one.data["text"] for one in percepts if one.kind is PerceptKind.REMINDER] == [
        "Call Bert"
    ]
    late = intentions.add("Call Carl", AtTime(at=SystemClock().now()))
    await check_same(run, clerk)
    assert intentions.pending() == (late,)
    dynamics.close()


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
    return "I found three." if request.tools else {"found": 3}


def wanders(request: ScriptedRequest) -> ScriptedReply:
    """Looks and fails at once, then answers; natively."""
    if not request.tools:
        return {"situation": "Calm.", "risks": [], "goal_status": "open"}
    wanted = [FunctionCall(id=n, name=n, arguments='{"where": "hall"}') for n in ("look", "fail")]
    return "Done." if "nothing in the hall" in request.text else wanted


def written_as_text(request: ScriptedRequest) -> ScriptedReply:
    if "nothing in the hall" in request.text:
        return "Done."
    return '{"name": "look", "arguments": {"where": "hall"}}'


def written(request: ScriptedRequest) -> ScriptedReply:
    there = "nothing in the hall" in request.text
    action, given = ("respond", {"text": "Done."}) if there else ("look", {"where": "hall"})
    return {"situation": "Calm.", "candidates": [{"action": action, "arguments": given}]}


def asks(request: ApprovalRequest) -> ApprovalAnswer:
    if request.attempt == 1 and "attic" in json.dumps(request.arguments):
        return request.deny("Ada", "the attic is mine")
    return request.grant("Ada", "fine")


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
    "approvals": lambda logs: CoagAgent(
        "a", brain(("look", '{"where": "attic"}'), LOOK, LOOK, respond()), tools=[look], logs=logs,
        proposal="json", approve=asks,
        approval=ApprovalPolicy(risk={"look": "high", "*": "low"}, require={"high"}),
    ),
}  # fmt: skip


def looker(logs: Path | None, *then: Any, tools: Any = (look,), **how: Any) -> CoagAgent:
    """An agent that looks, and then gives the answers of `then`."""
    model = brain(LOOK, *(then or (respond(),)))
    return CoagAgent("a", model, tools=list(tools), logs=logs, proposal="json", **how)


@pytest.mark.filterwarnings("ignore:The model 'scripted' answered with a text that is a call")
@pytest.mark.parametrize("name", BUILDS)
async def test_agents_of_many_kinds_are_the_same_when_they_are_built_again(
    name: str, tmp_path: Path
) -> None:
    report = await check_same(await run_of(BUILDS[name](tmp_path)), BUILDS[name])
    assert report.remarks == ()


async def test_refused_forms_repairs_and_unusable_answers_go_the_same_way(tmp_path: Path) -> None:
    seen: list[int] = []

    def faulty(request: ScriptedRequest) -> ScriptedReply:
        """Refuses schemas, then writes no JSON, then bad JSON, then what it should."""
        seen.append(1)
        if request.schema is not None:
            raise ValueError("no schemas here")
        return ("what?", '{"situation": "Calm", "risks": [], ', '{"choice": 1}')[len(seen) % 3]

    def build(logs: Path | None) -> CoagAgent:
        bounds = Bounds(impasses=3)
        return CoagAgent("a", ScriptedModel(faulty), logs=logs, proposal="json", bounds=bounds)

    run = await run_of(build(tmp_path))
    requests = len(seen)
    await check_same(run, build)
    assert len(seen) == requests


async def test_a_model_that_cannot_be_asked_ends_the_turn_again(tmp_path: Path) -> None:
    def broken(request: ScriptedRequest) -> ScriptedReply:
        raise ConnectionError(f"no line for {request.schema_name}")

    def build(logs: Path | None) -> CoagAgent:
        return CoagAgent("a", ScriptedModel(broken), logs=logs, proposal="json")

    agent = build(tmp_path)
    for text in ("Go on.", "Go on, please."):
        with pytest.raises(ModelCallError):
            await say(agent, text)
    await check_same(await closed(agent), build)


async def test_a_reader_who_leaves_ends_the_turn_at_the_same_place(tmp_path: Path) -> None:
    for read in range(1, 8):
        agent = looker(tmp_path / str(read))
        messages = [TextMessage(content="Go on.", source="user")]
        stream = agent.on_messages_stream(messages, CancellationToken())
        for _ in range(read):
            await anext(stream, None)
        await stream.aclose()
        await check_same(await run_of(agent, "And now?"), looker)


async def test_a_cancelled_tool_is_cancelled_again(tmp_path: Path) -> None:
    token = CancellationToken()

    async def wait() -> str:
        """Waits."""
        token.cancel()
        await asyncio.Event().wait()
        return "waited"

    def build(logs: Path | None) -> CoagAgent:
        model = brain(("wait", "{}"), respond())
        return CoagAgent("a", model, tools=[wait], logs=logs, proposal="json")

    agent = build(tmp_path)
    with pytest.raises(BaseException, match=r"^$"):
        await agent.on_messages([TextMessage(content="Go on.", source="user")], token)
    await check_same(await run_of(agent, "And now?"), build)


@pytest.mark.parametrize("asked", ["ReasoningAnswer", "ProposalAnswer"])
async def test_a_turn_that_is_cancelled_while_a_phase_is_asked_for_is_cancelled_there_again(
    asked: str, tmp_path: Path
) -> None:
    """Replays of such turns diverged: the call had cancelled itself, and not the turn."""
    token = CancellationToken()

    def build(logs: Path | None) -> CoagAgent:
        def interrupt(request: ScriptedRequest) -> None:
            if request.schema_name == asked:
                token.cancel()

        model = brain(LOOK, respond(), before=interrupt)
        return CoagAgent("a", model, tools=[look], logs=logs, proposal="json")

    agent = build(tmp_path)
    with pytest.raises(BaseException, match=r"^$"):
        await agent.on_messages([TextMessage(content="Go on.", source="user")], token)
    await check_same(await run_of(agent, "And now?"), build)


# ---- from outside ----


def no_looking(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    return Verdict.forbid("not now") if candidate.action == "look" else Verdict.allow("as you like")


async def test_changes_from_outside_are_taken_from_the_trace_and_remarked(tmp_path: Path) -> None:
    def build(logs: Path | None) -> CoagAgent:
        return looker(logs, respond(), [LOOK, respond()], respond())

    agent = build(tmp_path)
    await say(agent, "Go on.")
    signal = Percept(
        id="signal-1",
        at=SystemClock().now(),
        kind=PerceptKind.SIGNAL,
        source="bell",
        trust=Trust.UNTRUSTED,
        content="It rang.",
    )
    await agent.perceive(signal)
    agent.constraints.add(no_looking)
    change = RuleChange(operation="add", rule="Look twice.")
    agent.procedures.change_rule("reasoning", change, author="me", reason="Eyes.")
    await say(agent, "And now?")
    agent.constraints.remove("no_looking")
    remarks = " ".join((await check_same(await run_of(agent, "And now?"), build)).remarks)
    assert "The constraint no_looking was put in force from outside before cycle 3" in remarks
    assert "The constraint no_looking was taken out of force" in remarks
    assert "reasoning@2 was written from outside, by me" in remarks


async def test_a_state_that_was_loaded_is_loaded_again(tmp_path: Path) -> None:
    first = porter(log=str(tmp_path / "first.txt"))
    await say(first, TASK)
    second = porter(log=str(tmp_path / "second.txt"), logs=str(tmp_path / "logs"))
    await say(second, TASK)
    await second.load_state(await first.save_state())
    await check_same(await run_of(second, "Well done."))


# ---- not the same ----


def clumsy(self: Any, state: Basket, percept: Percept) -> Basket:
    return Basket(held=state.held, colours=(*state.colours, percept.source))


def described(self: Any, state: Basket) -> str:
    return f"It holds {state.held} berries."


def two_are_enough(candidate: Candidate, state: Basket, projection: Any) -> Verdict:
    return Verdict.forbid("never") if candidate.action == "pick" else Verdict.allow()


def none(self: Any) -> tuple[()]:
    return ()


CHANGED: list[tuple[Any, str, Any, tuple[str, str | None, str]]] = [
    (foragers.BasketContext, "_update_state_from_function_result", clumsy,
     ("percept", None, "state_patch.")),
    (foragers.BasketContext, "_get_state_description", described,
     ("model_call", "reasoning", "messages[")),
    (foragers, "two_are_enough", two_are_enough, ("evaluation", "evaluation", "evaluations[")),
    (foragers.Ripeness, "constraints", none, ("retrieval", "retrieval", "constraints[1]")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("owner", "name", "changed", "expected"), CHANGED, ids=[each[1] for each in CHANGED]
)
async def test_changed_code_of_the_domain_is_found_where_it_first_matters(
    owner: Any,
    name: str,
    changed: Any,
    expected: tuple[str, str | None, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = await foraged(tmp_path, depth="compact" if owner is foragers else "full")
    monkeypatch.setattr(owner, name, changed)
    found = await diverged(run)
    record, phase, field = expected
    assert (found.record, found.cycle) == (record, 1)
    assert phase in (None, found.phase)
    assert found.field.startswith(field)
    assert found.recorded != found.replayed
    assert not found.meaning.startswith("The code of the agent")
    assert found.meaning in str(found)


async def test_a_changed_seed_or_tool_is_found_where_it_first_shows(tmp_path: Path) -> None:
    run = await run_of(looker(tmp_path))
    seed = seed_procedures()["reasoning"]
    changed = {"reasoning": seed.model_copy(update={"text": f"{seed.text}\nBe quick."})}
    found = await diverged(run, lambda: looker(None, procedures=changed))
    assert (found.seq, found.field) == (0, "procedures.versions.reasoning")
    found = await diverged(run, lambda: looker(None, tools=(look, fail)))
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
    where: str, path: tuple[str, ...], value: Any, own_stones: RunFolder
) -> None:
    places: list[int] = []

    def change(bodies: Bodies) -> None:
        has = (n for n, it in enumerate(bodies) if it["record"] == where and it.get(path[0]))
        places.append(next(has))
        target = bodies[places[0]]
        for name in path[:-1]:
            target = target[name]
        target[path[-1]] = value

    run = edited(own_stones, change)
    assert (await diverged(run)).seq >= places[0]
    assert any("hash" in remark for remark in (await replay(run)).remarks)


# ---- what cannot be replayed ----


async def test_a_run_without_a_recipe_needs_its_agent(tmp_path: Path) -> None:
    run = await run_of(BUILDS["ranked"](tmp_path))
    with pytest.raises(ResumeError, match=r"no recipe.*replay\(run, agent=\.\.\.\)"):
        await replay(run)
    assert (await replay(run.path, agent=BUILDS["ranked"](None))).same
    with pytest.raises(TraceError, match=r"holds no run\.json"):
        await replay(tmp_path)
