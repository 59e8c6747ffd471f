"""Every failure of a run has one cause: the earliest part that is at fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from pydantic import BaseModel, ConfigDict

from coag.agent import CoagAgent
from coag.compat import ConstrainedWorkbench, Recorder
from coag.context import AssistantState, CoagContext
from coag.cycle import rule
from coag.errors import CoagError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import Cause, Circumstances, Claim, Diagnosis, DomainKnowledge, diagnose
from coag.schema import (
    Candidate,
    EvaluationOutcome,
    Failure,
    ModelCall,
    OutputMode,
    Percept,
    PerceptKind,
    Phase,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    Settlement,
    TokenUsage,
    TraceRecord,
    Trust,
    TurnEnd,
    Verdict,
)

Answers = Mapping[str, ScriptedReply]
"""What a model says, by the field that only this phase's form has."""
FIELDS = ("situation", "candidates", "evaluations", "choice")


def candidate(action: str, arguments: str = "{}") -> dict[str, str]:
    """A candidate in a model's answer."""
    return {"reason": "", "action": action, "arguments": arguments, "expected_effect": ""}


SOUND: Answers = {
    "situation": {"situation": "All is well.", "risks": [], "goal_status": "open"},
    "candidates": {
        "candidates": [candidate("look"), candidate("respond", json.dumps({"text": "Done."}))]
    },
    "evaluations": {
        "evaluations": [
            {"candidate": 1, "reason": "", "score": 0.9},
            {"candidate": 2, "reason": "", "score": 0.2},
        ]
    },
    "choice": {"reason": "", "choice": 1},
}


def look() -> str:
    """Looks around."""
    return "nothing new"


async def run(
    tool: Callable[..., Any] = look,
    context: CoagContext[Any] | None = None,
    rules: Sequence[Any] = (),
    actions: int = 1,
    **answers: ScriptedReply,
) -> tuple[TraceRecord, ...]:
    """A turn of so many actions; `answers` replace some of the sound ones of the model."""

    def script(request: ScriptedRequest) -> ScriptedReply:
        fields = (request.schema or {}).get("properties", {})
        return {**SOUND, **answers}[next(name for name in FIELDS if name in fields)]

    agent = CoagAgent(
        "walker",
        ScriptedModel(script),
        tools=[tool],
        model_context=context,
        max_tool_iterations=actions,
        constraints=rules,
        memory=":memory:",
        depth="full",
        proposal="json",
        selection="model",
    )
    try:
        message = TextMessage(content="Look around.", source="user")
        await agent.on_messages([message], CancellationToken())
    except CoagError:
        pass  # the turn broke off; the trace says so
    trace = agent.trace
    await agent.close()
    return trace


def first(trace: Sequence[TraceRecord], **how: Any) -> Diagnosis:
    """The diagnosis of the earliest failure; what follows it may fail, too."""
    return diagnose(trace, **how)[0]


async def test_a_run_without_failure_has_no_diagnosis() -> None:
    assert diagnose(await run()) == []
    assert diagnose(()) == []


def says(text: str) -> Callable[[], str]:
    """A tool that returns a text."""

    def look() -> str:
        """Looks around."""
        return text

    return look


def fails(reason: str) -> Callable[[], str]:
    """A tool that raises."""

    def look() -> str:
        """Looks around."""
        raise OSError(reason)

    return look


MUTE = "I would rather not say."
FLY: ScriptedReply = {"candidates": [candidate("fly")]}
SHUT = '{"ok": false, "failure": "deterministic", "reason": "the door was shut"}'
WRONG = json.dumps({"fact": "A.", "supersedes": "nothing-of-this-name"})
SINGLE: dict[str, tuple[dict[str, Any], Cause, str, list[Phase]]] = {
    "no situation": ({"situation": MUTE}, Cause.UNUSABLE_ANSWER, "", [Phase.REASONING] * 2),
    "no candidates": ({"candidates": MUTE}, Cause.UNUSABLE_ANSWER, "", [Phase.PROPOSAL] * 2),
    "no choice": ({"choice": MUTE}, Cause.UNUSABLE_ANSWER, "", [Phase.SELECTION] * 2),
    "the earliest part counts": (
        {"situation": "Hm.", "candidates": FLY}, Cause.UNUSABLE_ANSWER, "", [Phase.REASONING] * 2,
    ),
    "no such action": ({"candidates": FLY}, Cause.INVALID_PROPOSAL, "fly", []),
    "broken arguments": (
        {"candidates": {"candidates": [candidate("look", '{"far": 1')]}},
        Cause.INVALID_PROPOSAL, "look", [],
    ),
    "nothing proposed": (
        {"candidates": {"candidates": []}}, Cause.INVALID_PROPOSAL, "Nothing was proposed", [],
    ),
    "a lower score": (
        {"choice": {"reason": "", "choice": 2}},
        Cause.BAD_SELECTION, "was chosen over", [Phase.EVALUATION, Phase.SELECTION],
    ),
    "a tool that raises": (
        {"tool": fails("no such device")}, Cause.FAILED_EXECUTION, "no such device", [],
    ),
    "a failure in the world": (
        {"tool": says(SHUT)}, Cause.CHANGED_ENVIRONMENT, "the door was shut", [],
    ),
    "memory called wrongly": (
        {"candidates": {"candidates": [candidate("tool_update_semantic_memory", WRONG)]}},
        Cause.INVALID_PROPOSAL, "tool_update_semantic_memory failed: ", [],
    ),
}  # fmt: skip


async def test_of_a_tool_that_raised_it_is_not_said_that_it_did_nothing() -> None:
    found = first(await run(fails("line went dead")))
    assert "What it did before that is not known" in found.reason
    assert "did not do it" not in str(found)


@pytest.mark.parametrize("name", SINGLE)
async def test_a_failure_has_the_part_of_the_cycle_that_it_comes_from(name: str) -> None:
    how, cause, failure, phases = SINGLE[name]
    found = first(await run(**how))
    assert (found.cycle, found.cause) == (1, cause)
    assert failure in found.failure
    assert found.evidence[0].seq > 0
    assert not phases or [evidence.phase for evidence in found.evidence] == phases


class Door(CoagContext[AssistantState]):
    """A hook that reads a number out of every return, and may read it wrongly."""

    def _update_state_from_function_result(
        self, state: AssistantState, percept: Percept
    ) -> AssistantState:
        return state.model_copy(update={"tool_calls": 7})


async def test_a_return_that_contradicts_the_state_it_leads_to_is_a_misperception() -> None:
    found = first(await run(says('{"ok": true, "tool_calls": 3}'), Door()))
    assert found.cause is Cause.MISPERCEPTION
    assert "3" in found.reason
    assert "7" in found.reason


class Ledger(BaseModel):
    """A state with the names of what a tool returns, and other things under them."""

    model_config = ConfigDict(frozen=True)

    paid: Mapping[str, float] = {}
    total: float = 30.0
    orders: tuple[str, ...] = ("B2",)
    name: str = "the shop"
    city: str = ""
    rate: float = 0.0
    refunded: bool = False
    vip: bool = True


class Books(CoagContext[Ledger]):
    """Keeps amounts by order, adds them up, rounds rates, and writes cities in small letters."""

    @property
    def perceptual_state_schema(self) -> type[Ledger]:
        return Ledger

    def _update_state_from_function_result(self, state: Ledger, percept: Percept) -> Ledger:
        got = json.loads(percept.content)
        return state.model_copy(
            update={
                "paid": {**state.paid, "A1": got["paid"]},
                "total": state.total + got["total"],
                "orders": (*state.orders, *got["orders"]),
                "city": got["city"].strip().lower(),
                "rate": round(got["rate"], 2),
                "refunded": True,
            }
        )


async def test_a_state_that_means_something_else_by_a_name_is_no_misperception() -> None:
    bought = {"ok": True, "paid": 80.0, "total": 50.0, "orders": ["A1"], "name": "a chair"}
    more = {"city": " Rome", "rate": 1.2345, "refunded": 80.0, "vip": False}
    text = json.dumps({**bought, **more})
    assert diagnose(await run(says(text), Books(), actions=3)) == []


class Tank(BaseModel):
    """What is known of a car."""

    model_config = ConfigDict(frozen=True)

    fuel: int = 5
    dry: bool = False
    rain: bool = True
    seen: tuple[str, ...] = ("bridge",)


class Car(CoagContext[Tank]):
    """Drives on, of which its forward model knows the fuel, and one thing that will be seen."""

    def _update_state_from_function_result(self, state: Tank, percept: Percept) -> Tank:
        return Tank.model_validate({**state.model_dump(), **json.loads(percept.content)["now"]})

    def _project(self, candidate: Candidate, state: Tank) -> Tank | None:
        if candidate.action != "look":
            return None
        return state.model_copy(
            update={"fuel": 0, "dry": True, "rain": False, "seen": (*state.seen, "lake")}
        )


def looking(ok: bool, **now: Any) -> Callable[[], str]:
    """A tool that returns the present state."""

    def look() -> str:
        """Drives on, and looks."""
        failure = {} if ok else {"failure": "deterministic", "reason": "no fuel"}
        return json.dumps({"ok": ok, **failure, "now": now})

    return look


AS_PREDICTED: dict[str, Any] = {"fuel": 0, "dry": True, "rain": False, "seen": ["bridge", "lake"]}


async def test_what_a_projection_had_shown_or_not_shown_is_distinguished() -> None:
    foreseen = first(await run(looking(False, **AS_PREDICTED), Car()))
    assert foreseen.cause is Cause.FAULTY_EVALUATION
    assert "Its projection said what would come of it" in foreseen.reason
    grown = {**AS_PREDICTED, "rain": True, "seen": ["bridge", "hill", "lake"]}  # and only reset
    assert diagnose(await run(looking(True, **grown), Car())) == []
    unseen = first(await run(looking(True, **{**AS_PREDICTED, "seen": ["bridge"]}), Car()))
    assert "seen was expected to be" in unseen.failure
    trace = await run(looking(True, **{**AS_PREDICTED, "fuel": 3}), Car())
    found = first(trace)
    assert found.failure == "fuel was expected to be 0 and is perceived as 3."
    assert "projection is wrong, or the tool" in found.reason
    before = found.evidence[0]
    assert isinstance(trace[before.seq], EvaluationOutcome)
    assert "fuel 0; it was 5" in before.text


async def test_a_surprise_about_what_was_misperceived_before_may_only_follow_from_that() -> None:
    gauges = iter([(50, 5), (45, 45), (45, 45)])

    def look() -> str:
        """Drives on, and looks at the gauge."""
        says, shows = next(gauges)
        return json.dumps({"ok": True, "fuel": says, "now": {"fuel": shows}})

    lied, surprised = diagnose(await run(look, Car(), actions=2))[:2]
    assert (lied.cause, lied.follows) == (Cause.MISPERCEPTION, None)
    assert (surprised.cause, surprised.follows) == (Cause.CHANGED_ENVIRONMENT, lied.cycle)
    assert f"may follow from cycle {lied.cycle}" in surprised.reason


class Oven(DomainKnowledge):
    """Knows one sentence."""

    def claims(self, text: str) -> Sequence[Claim]:
        """What it says of the tools."""
        claimed = "no tool was called" in text
        return [Claim(fact="tool_calls", value=0, text=text)] if claimed else []


async def test_a_domain_lets_reasoning_be_compared_with_the_state() -> None:
    reply: ScriptedReply = {"situation": "So far no tool was called.", "risks": []}
    trace = await run(situation=reply)
    assert diagnose(trace, domain=Oven()) == []
    began = next(i for i, record in enumerate(trace) if isinstance(record, RetrievalOutcome))
    percept = Percept(
        id="percept-000009",
        at=trace[0].at,
        kind=PerceptKind.PROPERTY_CHANGE,
        source="counter",
        trust="untrusted",  # pyright: ignore[reportArgumentType] - pydantic reads it
        content="",
        state_patch={"tool_calls": 4},
    )
    counted = (*trace[:began], percept, *trace[began:])
    found = first(counted, domain=Oven())
    assert found.cause is Cause.FAULTY_REASONING
    assert diagnose(counted) == []


def night(candidate: Candidate, state: BaseModel, projection: BaseModel | None) -> Verdict:
    """Be quiet."""
    loud = "loud" in candidate.raw_arguments or candidate.action == "sing"
    return Verdict.forbid("it is night") if loud else Verdict.allow()


SING = json.dumps({"text": "Sing loudly!"})
WISHES: ScriptedReply = {
    "candidates": [candidate("look"), candidate("respond", SING), candidate("respond", "{}")]
}
SCORES: ScriptedReply = {"evaluations": [{"candidate": 1, "reason": "", "score": 0.9}]}
WISHED: dict[str, Any] = {"candidates": WISHES, "evaluations": SCORES}


async def test_a_rejection_is_a_failure_only_where_the_cycle_suffers_from_it() -> None:
    well = await run(rules=[night], **WISHED)
    died = [one for r in well if isinstance(r, EvaluationOutcome) for one in r.evaluations]
    assert [one.survived for one in died] == [True, False, False]
    assert diagnose(well) == []
    (found,) = diagnose(await run(fails("the lamp is broken"), rules=[night], **WISHED))
    assert found.cause is Cause.FAILED_EXECUTION  # that of the action beside it
    assert "the lamp is broken" in found.failure
    found = first(await run(rules=[night], candidates={"candidates": [candidate("respond", SING)]}))
    assert found.cause is Cause.INVALID_PROPOSAL
    assert "it is night" in found.failure
    assert found.reason == "The rule was in force. Nothing survived."


async def test_a_rejection_that_recurs_is_a_failure_while_the_run_makes_no_progress() -> None:
    still = await run(rules=[night], **WISHED, actions=3)
    invalid = Cause.INVALID_PROPOSAL
    assert [(one.cycle, one.cause) for one in diagnose(still)] == [(2, invalid), (3, invalid)]
    assert "comes no further" in first(still).reason
    count = iter(range(9))

    def look() -> str:
        """Looks around."""
        return f"saw tree {next(count)}"

    assert diagnose(await run(look, rules=[night], **WISHED, actions=3)) == []


class Way(DomainKnowledge):
    """Knows that looking around leads nowhere."""

    def remaining(self, now: Circumstances) -> float | None:
        """As many actions as ever."""
        return 4


async def test_a_domain_says_whether_the_action_beside_a_rejection_was_of_use() -> None:
    trace = await run(looking(True, **AS_PREDICTED), Car(), rules=[night], **WISHED)
    assert diagnose(trace) == []
    found = first(trace, domain=Way())
    assert found.cause is Cause.INVALID_PROPOSAL
    assert "no nearer" in found.reason


async def test_sentences_are_cut_at_a_word_and_end_once() -> None:
    failure = first(await run(fails("a long story " * 400))).failure
    assert failure.endswith(("story…'", "long…'", " a…'"))
    assert len(failure) < 300


async def test_a_trace_that_begins_or_ends_in_the_middle_is_read() -> None:
    trace = await run()
    for cut in range(len(trace)):
        assert all(found.evidence for found in diagnose(trace[cut:]))
        assert all(found.evidence for found in diagnose(trace[:cut]))


async def test_a_refusal_right_before_an_action_runs_is_reported_with_who_refused() -> None:
    actions: list[str] = []

    def not_twice(candidate: Candidate, state: BaseModel, projection: BaseModel | None) -> Verdict:
        actions.append(candidate.action)
        again = actions.count("look") > 1 and candidate.action == "look"
        return Verdict.forbid("once is enough") if again else Verdict.allow()

    found = first(await run(rules=[not_twice]))
    assert found.cause is Cause.CHANGED_ENVIRONMENT
    assert "once is enough" in found.failure
    assert "It was allowed in Evaluation" in found.reason


class Torn(Door):
    """A hook with an error in it."""

    def _update_state_from_function_result(
        self, state: AssistantState, percept: Percept
    ) -> AssistantState:
        raise KeyError("no_such")


@rule("look")
def crooked() -> str | None:
    """A rule with an error in it."""
    raise KeyError("nobody")


async def test_a_hook_that_raised_is_named_with_its_error() -> None:
    (found,) = diagnose(await run(says('{"ok": true, "tool_calls": 3}'), Torn()))
    assert found.cause is None
    assert "_update_state_from_function_result raised KeyError: 'no_such'" in found.failure


async def test_a_rule_that_raised_is_named_with_its_error() -> None:
    alone: ScriptedReply = {"candidates": [candidate("look")]}
    found = first(await run(rules=[crooked], candidates=alone))
    assert found.cause is None
    assert "look was refused by crooked: the rule itself raised KeyError" in found.failure


async def test_what_raised_in_a_guards_run_is_named_for_each_refusal() -> None:
    async with ConstrainedWorkbench([look], constraints=[crooked]) as tools:
        for _ in range(2):
            await tools.call_tool("look", {})
        found = diagnose(tools.records)
    assert [(one.cycle, one.cause) for one in found] == [(1, None), (2, None)]
    assert "the rule itself raised KeyError: 'nobody'" in found[1].failure
    async with ConstrainedWorkbench([look], context=Torn()) as tools:
        await tools.call_tool("look", {})
        await tools.call_tool("look", {})
        (one,) = diagnose(tools.records)
    assert "raised KeyError: 'no_such'" in one.failure


async def test_a_turn_that_broke_off_without_a_word_has_no_known_cause() -> None:
    trace = await run()
    end = trace[-1]
    assert isinstance(end, TurnEnd)
    broken = end.model_copy(update={"reason": "error", "response": "KeyError: 'shelf'"})
    (found,) = diagnose((*trace[:-1], broken))
    assert found.cause is None
    assert found.failure == "The turn broke off."
    assert "KeyError" in found.evidence[0].text


async def unknown_outcome(*later: Percept) -> list[TraceRecord]:
    """A run whose first action gave no answer."""
    trace = list(await run())
    place = next(
        n for n, one in enumerate(trace)
        if isinstance(one, Percept) and one.kind is PerceptKind.TOOL_RETURN
    )  # fmt: skip
    unknown = {"kind": PerceptKind.UNKNOWN_OUTCOME, "content": "It may have acted."}
    unknown |= {"is_error": True, "caused_by": "intent-1"}
    trace[place : place + 1] = [trace[place].model_copy(update=unknown), *later]
    return trace


def settled(became: Settlement) -> Percept:
    return Percept(
        id="percept-settled",
        at=datetime(2026, 11, 21, tzinfo=UTC),
        kind=PerceptKind.SETTLED,
        source="look",
        trust=Trust.UNTRUSTED,
        content="Found out.",
        caused_by="intent-1",
        settlement=became,
    )


async def test_of_an_action_of_unknown_outcome_it_is_said_that_it_is_not_known() -> None:
    not_known = "It is not known whether look had its effect."
    found = first(await unknown_outcome())
    assert (found.cause, found.failure) == (Cause.FAILED_EXECUTION, not_known)
    assert found.evidence[0].text == "It may have acted."
    trace = await run()
    broke_off = next(n for n, one in enumerate(trace) if isinstance(one, Receipt))
    assert first(trace[:broke_off]).failure == not_known
    assert diagnose(await unknown_outcome(settled(Settlement.HAPPENED))) == diagnose(trace)
    found = first(await unknown_outcome(settled(Settlement.DID_NOT_HAPPEN)))
    assert found.cause is Cause.FAILED_EXECUTION
    assert "it was found that it did not happen" in found.failure


# ---- plain agents ----


def _plain(
    content: str,
    failure: Failure | None = None,
    status: ReceiptStatus = ReceiptStatus.FAILED,
    logs: Path | None = None,
    **arguments: object,
) -> Recorder:
    recorder = Recorder(logs, agent="plain")
    recorder.begin_turn()
    recorder.end(recorder.begin("look", arguments), status, content, failure)
    recorder.end_turn("respond", "Done.")
    return recorder


PLAIN: dict[str, tuple[tuple[Any, ...], dict[str, Any], Cause | None, str]] = {
    "no such tool": (
        ("Error: The tool 'look' is not found in any workbench.",), {},
        Cause.INVALID_PROPOSAL, "There is no such tool",
    ),
    "no object": (("wrong",), {"unparsed": "{"}, Cause.INVALID_PROPOSAL, "no JSON object"),
    "no answer": (("late", None, ReceiptStatus.UNKNOWN), {}, Cause.FAILED_EXECUTION, "no answer"),
    "cancelled": (("late", None, ReceiptStatus.CANCELLED), {}, Cause.FAILED_EXECUTION, "no answer"),
    "in the world": (("blocked", Failure.DETERMINISTIC), {}, None, "was not recorded"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_the_failure_of_a_plain_agents_call_is_attributed_as_far_as_the_trace_goes(
    name: str,
) -> None:
    call, arguments, cause, reason = PLAIN[name]
    (found,) = diagnose(_plain(*call, **arguments).records)
    assert (found.cycle, found.cause) == (1, cause)
    assert reason in found.reason
    assert ("not attributable" in str(found)) is (cause is None)
    assert ("It is not known whether" in found.failure) is (reason == "no answer")


def test_a_run_in_a_folder_may_be_named_by_its_path(tmp_path: Path) -> None:
    recorder = _plain("no line", Failure.TRANSIENT, logs=tmp_path)
    recorder.close()
    path = recorder.folder.path
    assert diagnose(path) == diagnose(str(path)) == diagnose(recorder.folder)
    assert [one.cause for one in diagnose(path)] == [Cause.FAILED_EXECUTION]
    assert diagnose(_plain("nothing new", status=ReceiptStatus.DONE).records) == []


def test_repeating_what_failed_is_an_invalid_proposal() -> None:
    recorder = Recorder(None, agent="plain")
    for content in ("blocked, battery 50", "blocked, battery 45", "drained"):
        recorder.begin_turn()
        attempt = recorder.begin("move", {"to": "north"})
        recorder.end(attempt, ReceiptStatus.FAILED, content, Failure.DETERMINISTIC)
    causes = [found.cause for found in diagnose(recorder.records)]
    assert causes == [None, Cause.INVALID_PROPOSAL, None]


def test_an_empty_answer_is_the_models() -> None:
    recorder = Recorder(None, agent="plain")
    recorder.begin_turn()
    call = {"at": recorder.clock.now(), "model": "m", "rung": OutputMode.TEXT, "messages": ()}
    rest = {"id": "call-1", "cycle": 1, "attempt": 1, "raw": " ", "usage": TokenUsage()}
    recorder.model_call(ModelCall.model_validate({**call, **rest}))
    (found,) = diagnose(recorder.records)
    assert found.cause is Cause.UNUSABLE_ANSWER
