"""Every failure of a run has one cause: the earliest part that is at fault."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from pydantic import BaseModel, ConfigDict

from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.context import AssistantState, CoagContext
from coag.errors import CoagError
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.proof import Cause, Circumstances, Claim, Diagnosis, Domain, diagnose
from coag.schema import (
    Candidate,
    EvaluationOutcome,
    Failure,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    Settlement,
    TraceRecord,
    Trust,
    TurnEnd,
    Verdict,
)

Answers = Mapping[str, ScriptedReply]
"""What a model says, by the field that tells the phases' forms apart."""
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
    **said: ScriptedReply,
) -> tuple[TraceRecord, ...]:
    """A turn of so many actions of an agent whose model says what is sound, but for `said`."""
    answers = {**SOUND, **said}

    def script(request: ScriptedRequest) -> ScriptedReply:
        asked = (request.schema or {}).get("properties", {})
        return answers[next(name for name in FIELDS if name in asked)]

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


async def test_a_phase_without_a_usable_answer_is_the_models() -> None:
    mute = "I would rather not say."
    for trace, phase in (
        (await run(situation=mute), Phase.REASONING),
        (await run(candidates=mute), Phase.PROPOSAL),
        (await run(choice=mute), Phase.SELECTION),
    ):
        found = first(trace)
        assert found.cause is Cause.UNUSABLE_ANSWER
        assert [evidence.phase for evidence in found.evidence] == [phase, phase]
        assert found.cycle == 1


async def test_the_earliest_part_at_fault_is_the_cause() -> None:
    bad: ScriptedReply = {"candidates": [candidate("fly")]}
    found = first(await run(situation="Hm.", candidates=bad))
    assert found.cause is Cause.UNUSABLE_ANSWER
    assert first(await run(candidates=bad)).cause is Cause.INVALID_PROPOSAL


async def test_a_candidate_that_dies_of_a_check_is_an_invalid_proposal() -> None:
    found = first(await run(candidates={"candidates": [candidate("look", '{"far": 1')]}))
    assert found.cause is Cause.INVALID_PROPOSAL
    assert "look" in found.failure


async def test_no_candidate_at_all_is_an_invalid_proposal() -> None:
    assert first(await run(candidates={"candidates": []})).cause is Cause.INVALID_PROPOSAL


async def test_choosing_a_lower_score_is_a_bad_selection() -> None:
    found = first(await run(choice={"reason": "", "choice": 2}))
    assert found.cause is Cause.BAD_SELECTION
    assert {evidence.phase for evidence in found.evidence} == {Phase.EVALUATION, Phase.SELECTION}


async def test_a_tool_that_raises_is_a_failed_execution() -> None:
    def look() -> str:
        """Looks around."""
        raise OSError("no such device")

    found = first(await run(look))
    assert found.cause is Cause.FAILED_EXECUTION
    assert "no such device" in found.failure
    assert found.evidence[0].seq > 0


async def test_a_failure_that_lies_in_the_world_is_a_changed_environment() -> None:
    def look() -> str:
        """Looks around."""
        return '{"ok": false, "failure": "deterministic", "reason": "the door was shut"}'

    found = first(await run(look))
    assert found.cause is Cause.CHANGED_ENVIRONMENT
    assert "the door was shut" in found.failure


class Door(CoagContext[AssistantState]):
    """A hook that reads a number out of every return, and may read it wrongly."""

    def _update_state_from_function_result(
        self, state: AssistantState, percept: Percept
    ) -> AssistantState:
        return state.model_copy(update={"tool_calls": 7})

    @property
    def perceptual_state_schema(self) -> type[AssistantState]:
        return AssistantState


async def test_a_return_that_contradicts_the_state_it_leads_to_is_a_misperception() -> None:
    def look() -> str:
        """Looks around."""
        return '{"ok": true, "tool_calls": 3}'

    found = first(await run(look, Door()))
    assert found.cause is Cause.MISPERCEPTION
    assert "3" in found.reason
    assert "7" in found.reason


class Tank(BaseModel):
    """What is known of a car."""

    model_config = ConfigDict(frozen=True)

    fuel: int = 5
    dry: bool = False
    rain: bool = True
    seen: tuple[str, ...] = ("bridge",)


class Car(CoagContext[Tank]):
    """Drives on, of which its forward model knows the fuel, and one thing that will be seen."""

    @property
    def perceptual_state_schema(self) -> type[Tank]:
        return Tank

    def _update_state_from_function_result(self, state: Tank, percept: Percept) -> Tank:
        return Tank.model_validate({**state.model_dump(), **json.loads(percept.content)["now"]})

    def _project(self, candidate: Candidate, state: Tank) -> Tank | None:
        if candidate.action != "look":
            return None
        return state.model_copy(
            update={"fuel": 0, "dry": True, "rain": False, "seen": (*state.seen, "lake")}
        )


def told(ok: bool, **now: Any) -> Callable[[], str]:
    """A tool that tells what is the case now."""

    def look() -> str:
        """Drives on, and looks."""
        failure = {} if ok else {"failure": "deterministic", "reason": "no fuel"}
        return json.dumps({"ok": ok, **failure, "now": now})

    return look


async def test_a_failure_that_the_projection_had_shown_is_a_faulty_evaluation() -> None:
    seen = ["bridge", "lake"]
    found = first(await run(told(False, fuel=0, dry=True, rain=False, seen=seen), Car()))
    assert found.cause is Cause.FAULTY_EVALUATION
    assert "Its projection said what would come of it" in found.reason


async def test_knowledge_that_grows_and_what_was_only_reset_are_no_failures() -> None:
    seen = ["bridge", "hill", "lake"]
    assert diagnose(await run(told(True, fuel=0, dry=True, rain=True, seen=seen), Car())) == []


async def test_a_thing_that_was_to_be_seen_and_is_not_is_a_failure() -> None:
    found = first(await run(told(True, fuel=0, dry=True, rain=False, seen=["bridge"]), Car()))
    assert "seen was expected to be" in found.failure


async def test_a_prediction_that_fails_is_told_with_the_record_that_made_it() -> None:
    trace = await run(told(True, fuel=3, dry=True, rain=False, seen=["bridge", "lake"]), Car())
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


class Oven(Domain):
    """Knows one sentence."""

    def claims(self, text: str) -> Sequence[Claim]:
        """What it says of the tools."""
        said = "no tool was called" in text
        return [Claim(fact="tool_calls", value=0, text=text)] if said else []


async def test_a_domain_lets_reasoning_be_compared_with_the_state() -> None:
    said: ScriptedReply = {"situation": "So far no tool was called.", "risks": []}
    trace = await run(situation=said)
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


async def test_a_rejected_candidate_beside_one_that_was_done_well_is_no_failure() -> None:
    trace = await run(rules=[night], candidates=WISHES, evaluations=SCORES)
    died = [one for r in trace if isinstance(r, EvaluationOutcome) for one in r.evaluations]
    assert [one.survived for one in died] == [True, False, False]
    assert diagnose(trace) == []


async def test_where_the_action_beside_a_rejection_failed_that_is_the_failure() -> None:
    def look() -> str:
        """Looks around."""
        raise OSError("the lamp is broken")

    (found,) = diagnose(await run(look, rules=[night], candidates=WISHES, evaluations=SCORES))
    assert found.cause is Cause.FAILED_EXECUTION
    assert "the lamp is broken" in found.failure


async def test_where_nothing_survives_the_rejection_is_the_failure() -> None:
    found = first(await run(rules=[night], candidates={"candidates": [candidate("respond", SING)]}))
    assert found.cause is Cause.INVALID_PROPOSAL
    assert "it is night" in found.failure
    assert found.reason == "The rule was in force. Nothing survived."


async def test_a_rejection_that_recurs_while_the_run_stands_still_is_a_failure() -> None:
    trace = await run(rules=[night], candidates=WISHES, evaluations=SCORES, actions=3)
    assert [(one.cycle, one.cause) for one in diagnose(trace)] == [
        (2, Cause.INVALID_PROPOSAL),
        (3, Cause.INVALID_PROPOSAL),
    ]
    assert "comes no further" in first(trace).reason


async def test_a_rejection_that_recurs_while_the_run_goes_on_is_none() -> None:
    count = iter(range(9))

    def look() -> str:
        """Looks around."""
        return f"saw tree {next(count)}"

    trace = await run(look, rules=[night], candidates=WISHES, evaluations=SCORES, actions=3)
    assert diagnose(trace) == []


class Way(Domain):
    """Knows that looking around leads nowhere."""

    def remaining(self, now: Circumstances) -> float | None:
        """As many actions as ever."""
        return 4


async def test_a_domain_tells_whether_the_action_beside_a_rejection_was_of_use() -> None:
    car = Car()
    trace = await run(
        told(True, fuel=0, dry=True, rain=False, seen=["bridge", "lake"]),
        car,
        rules=[night],
        candidates=WISHES,
        evaluations=SCORES,
    )
    assert diagnose(trace) == []
    found = first(trace, domain=Way())
    assert found.cause is Cause.INVALID_PROPOSAL
    assert "no nearer" in found.reason


async def test_sentences_are_cut_at_a_word_and_end_once() -> None:
    def look() -> str:
        """Looks around."""
        raise OSError("a long story " * 400)

    failure = first(await run(look)).failure
    assert failure.endswith(("story…'", "long…'", " a…'"))
    assert len(failure) < 300


async def test_a_trace_that_begins_or_ends_in_the_middle_is_read() -> None:
    trace = await run()
    for cut in range(len(trace)):
        assert all(found.evidence for found in diagnose(trace[cut:]))
        assert all(found.evidence for found in diagnose(trace[:cut]))


def test_a_proposal_without_what_follows_is_no_failure(  # a run that was killed
) -> None:
    at = "2026-11-21T12:00:00Z"
    retrieval = RetrievalOutcome.model_validate({"cycle": 1, "at": at, "query": ""})
    proposal = ProposalOutcome.model_validate({"cycle": 1, "at": at}).model_copy(
        update={"candidates": (Candidate(id="c1", action="look"),)}
    )
    assert diagnose((retrieval, proposal)) == []


async def test_an_action_that_was_refused_right_before_it_ran_is_told_with_who_refused() -> None:
    asked: list[str] = []

    def not_twice(candidate: Candidate, state: BaseModel, projection: BaseModel | None) -> Verdict:
        asked.append(candidate.action)
        again = asked.count("look") > 1 and candidate.action == "look"
        return Verdict.forbid("once is enough") if again else Verdict.allow()

    found = first(await run(rules=[not_twice]))
    assert found.cause is Cause.CHANGED_ENVIRONMENT
    assert "once is enough" in found.failure
    assert "It was allowed in Evaluation" in found.reason


def test_a_run_in_a_folder_may_be_named_by_its_path(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, agent="plain")
    recorder.begin_turn()
    attempt = recorder.begin("look", {})
    recorder.end(attempt, ReceiptStatus.FAILED, "no line", Failure.TRANSIENT)
    recorder.end_turn("respond", "Done.")
    recorder.close()
    path = recorder.folder.path
    assert diagnose(path) == diagnose(str(path)) == diagnose(recorder.folder)
    assert [one.cause for one in diagnose(path)] == [Cause.FAILED_EXECUTION]


async def test_a_turn_that_broke_off_without_a_word_has_no_known_cause() -> None:
    trace = await run()
    end = trace[-1]
    assert isinstance(end, TurnEnd)
    broken = end.model_copy(update={"reason": "error", "response": "KeyError: 'shelf'"})
    (found,) = diagnose((*trace[:-1], broken))
    assert found.cause is None
    assert found.failure == "The turn broke off."
    assert "KeyError" in found.evidence[0].text


async def test_an_action_on_memory_that_was_called_wrongly_is_an_invalid_proposal() -> None:
    wrong = json.dumps({"fact": "A.", "supersedes": "nothing-of-this-name"})
    wish: ScriptedReply = {"candidates": [candidate("tool_update_semantic_memory", wrong)]}
    found = first(await run(candidates=wish))
    assert found.cause is Cause.INVALID_PROPOSAL
    assert found.failure.startswith("tool_update_semantic_memory failed: ")
    assert "called in a way that it refuses" in found.reason


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
    found = first(await unknown_outcome())
    assert found.cause is Cause.FAILED_EXECUTION
    assert found.failure == "It is not known whether look had its effect."
    assert "failed" not in found.failure
    assert found.evidence[0].text == "It may have acted."


async def test_what_was_found_out_of_an_action_later_counts() -> None:
    assert diagnose(await unknown_outcome(settled(Settlement.HAPPENED))) == diagnose(await run())
    found = first(await unknown_outcome(settled(Settlement.DID_NOT_HAPPEN)))
    assert found.cause is Cause.FAILED_EXECUTION
    assert "it was found that it did not happen" in found.failure


async def test_of_an_action_in_which_the_run_broke_off_it_is_said_that_it_is_not_known() -> None:
    trace = list(await run())
    place = next(n for n, one in enumerate(trace) if isinstance(one, Receipt))
    found = first(trace[:place])
    assert found.failure == "It is not known whether look had its effect."
