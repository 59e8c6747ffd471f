"""Lies for which somebody has to know the format well; see `kits.lies`."""

from __future__ import annotations

from copy import deepcopy

from coag.proof import Rule
from coag.schema import MemoryKind, record_id

from .lies import LIES, lie
from .tampering import Bodies, Body, where

ALL_LIES = LIES


def _outcome(bodies: Bodies, phase: str, cycle: int) -> Body:
    return bodies[where(bodies, "outcome", phase=phase, cycle=cycle)]


@lie(Rule.CANDIDATE)
def two_candidates_of_one_id(bodies: Bodies) -> None:
    one, other = _outcome(bodies, "proposal", 1)["candidates"]
    other["id"] = one["id"]


@lie(Rule.CANDIDATE)
def candidates_that_nobody_proposed(bodies: Bodies) -> None:
    _outcome(bodies, "proposal", 1)["proposed_by"] = "nobody"


@lie(Rule.CANDIDATE)
def candidates_that_reasoning_did_not_draft(bodies: Bodies) -> None:
    _outcome(bodies, "proposal", 1)["proposed_by"] = "draft"


@lie(Rule.SELECTION)
def nothing_evaluated_and_yet_something_done(bodies: Bodies) -> None:
    _outcome(bodies, "evaluation", 1)["evaluations"] = []


@lie(Rule.CANDIDATE)
def a_survivor_without_arguments(bodies: Bodies) -> None:
    _outcome(bodies, "evaluation", 1)["evaluations"][0]["arguments"] = None


@lie(Rule.CANDIDATE)
def arguments_that_were_never_json(bodies: Bodies) -> None:
    _outcome(bodies, "proposal", 1)["candidates"][0]["raw_arguments"] = "{{"


@lie(Rule.CANDIDATE)
def an_unknown_candidate_evaluated(bodies: Bodies) -> None:
    _outcome(bodies, "evaluation", 1)["evaluations"][1]["candidate_id"] = "nobody"


@lie(Rule.CONSTRAINT)
def a_verdict_of_a_stranger(bodies: Bodies) -> None:
    judged = _outcome(bodies, "evaluation", 1)["evaluations"][0]
    judged["verdicts"].append({"allowed": True, "reason": "", "constraint": "my_own"})


@lie(Rule.SELECTION)
def selected_and_decided_by_nobody(bodies: Bodies) -> None:
    _outcome(bodies, "selection", 1)["decided_by"] = None


@lie(Rule.SELECTION)
def the_only_survivor_ranked(bodies: Bodies) -> None:
    _outcome(bodies, "selection", 1)["decided_by"] = "rank"


@lie(Rule.SELECTION)
def alternatives_selected_as_a_batch(bodies: Bodies) -> None:
    both = [one["id"] for one in _outcome(bodies, "proposal", 2)["candidates"]]
    _outcome(bodies, "selection", 2)["batch"] = both


@lie(Rule.INTENT)
def an_intent_of_a_known_id(bodies: Bodies) -> None:
    first = bodies[where(bodies, "intent")]["id"]
    bodies[where(bodies, "intent", n=1)]["id"] = first


@lie(Rule.INTENT)
def an_intent_of_another_action(bodies: Bodies) -> None:
    bodies[where(bodies, "intent")]["action"] = "lift"


@lie(Rule.INTENT)
def an_intent_of_another_candidate(bodies: Bodies) -> None:
    bodies[where(bodies, "intent")]["candidate_id"] = "nobody"


@lie(Rule.RECEIPT)
def a_receipt_of_another_cycle(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt")]["cycle"] = 9


@lie(Rule.RECEIPT)
def a_receipt_of_nothing(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt")]["intent_id"] = "i-9"


@lie(Rule.RECEIPT)
def a_known_end_reported_as_unknown(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt", cycle=6)]["status"] = "unknown"


@lie(Rule.EXECUTION)
def a_status_of_its_own(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 5)["status"] = "done"


@lie(Rule.EXECUTION)
def a_batch_that_the_outcome_does_not_mirror(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 1)
    names = ("candidate_id", "action", "arguments", "status", "internal", "intent_id", "result")
    done["batch"] = [{name: done[name] for name in names}]
    done["action"] = "lift"


@lie(Rule.EXECUTION)
def an_act_reported_as_refused(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 1)["status"] = "refused"


@lie(Rule.EXECUTION)
def an_intent_reported_as_internal(bodies: Bodies) -> None:
    bodies[where(bodies, "intent")]["internal"] = True


@lie(Rule.EXECUTION)
def an_outcome_of_another_action(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 3)["action"] = "respond"


@lie(Rule.EXECUTION)
def an_external_act_that_brought_nothing(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 1)["queued"] = []
    del bodies[where(bodies, "percept", kind="tool_return")]


@lie(Rule.PERCEPT)
def a_queued_percept_of_a_foreign_intent(bodies: Bodies) -> None:
    extra = deepcopy(_outcome(bodies, "execution", 1)["queued"][0])
    extra |= {"id": "percept-000777", "caused_by": "i-9", "kind": "signal"}
    _outcome(bodies, "execution", 1)["queued"].append(extra)


@lie(Rule.PERCEPT)
def a_percept_of_a_foreign_intent(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="message")]["caused_by"] = "i-9"


@lie(Rule.PERCEPT)
def a_percept_without_a_patch(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="tool_return")]["state_patch"] = None


@lie(Rule.EXECUTION)
def an_end_of_turn_without_an_answer(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 1)["ended_by"] = "fetch"


@lie(Rule.EXECUTION)
def an_answer_by_an_action_that_gave_none(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 7)["ended_by"] = "fetch"


@lie(Rule.EXECUTION)
def an_answer_that_is_not_what_was_done(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 7)["response"] = "Nothing is fetched."


@lie(Rule.EXECUTION)
def a_begun_action_of_which_no_outcome_tells(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 1)
    done |= {"status": "none", "candidate_id": None, "action": None, "arguments": None}
    done |= {"intent_id": None, "result": "The turn was cancelled.", "queued": []}
    del bodies[where(bodies, "percept", kind="tool_return")]


@lie(Rule.EXECUTION)
def the_run_cut_off_after_an_intent_and_sealed(bodies: Bodies) -> None:
    del bodies[where(bodies, "receipt") :]


@lie(Rule.PROCEDURE)
def a_version_pinned_at_the_end_that_never_was(bodies: Bodies) -> None:
    bodies[where(bodies, "outcome", n=-6)]["procedures"]["reasoning"] = 9


@lie(Rule.PROCEDURE)
def an_older_version_pinned(bodies: Bodies) -> None:
    _outcome(bodies, "retrieval", 6)["procedures"]["reasoning"] = 1


@lie(Rule.PROCEDURE)
def a_procedure_not_pinned(bodies: Bodies) -> None:
    del _outcome(bodies, "retrieval", 2)["procedures"]["reasoning"]


@lie(Rule.PROCEDURE)
def a_version_without_its_text(bodies: Bodies) -> None:
    snapshot = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]
    del snapshot["procedures"]["state"]


@lie(Rule.PROCEDURE)
def a_history_with_a_gap(bodies: Bodies) -> None:
    state = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]["procedures"]["state"]
    state["procedures"]["reasoning"][0]["version"] = 5


@lie(Rule.PROCEDURE)
def a_history_shorter_than_its_version(bodies: Bodies) -> None:
    state = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]["procedures"]["state"]
    state["procedures"]["reasoning"].pop()


@lie(Rule.PROCEDURE)
def a_history_that_is_none(bodies: Bodies) -> None:
    state = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]["procedures"]["state"]
    state["procedures"]["reasoning"] = "none"


@lie(Rule.PROCEDURE)
def versions_that_are_none(bodies: Bodies) -> None:
    bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]["procedures"]["versions"] = [1]


@lie(Rule.PROCEDURE)
def a_version_written_under_another_number(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="procedure")]["id"] = "reasoning@7"


@lie(Rule.PROCEDURE)
def a_version_written_that_was_there(bodies: Bodies) -> None:
    written = bodies[where(bodies, "written", what="procedure")]
    written["id"] = "reasoning@1"
    written["content"]["version"] = 1


@lie(Rule.WRITTEN)
def a_record_of_another_cycle(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="record")]["cycle"] = 2


@lie(Rule.WRITTEN)
def a_record_of_another_id(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="record")]["id"] = "0"


@lie(Rule.WRITTEN)
def a_record_that_is_none(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="record")]["content"] = {}


@lie(Rule.WRITTEN)
def a_record_that_no_action_wrote(bodies: Bodies) -> None:
    content = bodies[where(bodies, "written", what="record")]["content"]
    content["text"] = "The cup is gold."
    content["id"] = record_id(MemoryKind.SEMANTIC, content["scope"], content["text"])
    bodies[where(bodies, "written", what="record")]["id"] = content["id"]


@lie(Rule.WRITTEN)
def a_fact_written_as_an_event(bodies: Bodies) -> None:
    content = bodies[where(bodies, "written", what="record")]["content"]
    content["kind"] = "episodic"
    content["id"] = record_id(MemoryKind.EPISODIC, content["scope"], content["text"])
    bodies[where(bodies, "written", what="record")]["id"] = content["id"]


@lie(Rule.WRITTEN)
def a_version_written_for_another_reason(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="procedure")]["content"]["reason"] = "The cup wants it."


@lie(Rule.WRITTEN)
def a_record_recalled_otherwise(bodies: Bodies) -> None:
    record = deepcopy(bodies[where(bodies, "written", what="record")]["content"])
    record["text"] = "The cup is gold."
    _outcome(bodies, "retrieval", 8)["records"] = [{"record": record, "score": 0.5}]


@lie(Rule.SNAPSHOT)
def a_cycle_begun_within_a_cycle(bodies: Bodies) -> None:
    snapshot = deepcopy(bodies[where(bodies, "snapshot", cycle=2, reason="cycle")])
    bodies.insert(where(bodies, "outcome", phase="selection", cycle=2), snapshot)


@lie(Rule.SNAPSHOT)
def a_run_opened_twice(bodies: Bodies) -> None:
    bodies[where(bodies, "snapshot", cycle=2, reason="cycle")]["reason"] = "opened"


@lie(Rule.SNAPSHOT)
def a_snapshot_of_another_cycle(bodies: Bodies) -> None:
    bodies[0]["cycle"] = 9


@lie(Rule.SNAPSHOT)
def a_snapshot_of_no_memory(bodies: Bodies) -> None:
    bodies[where(bodies, "snapshot", cycle=2, reason="cycle")]["reason"] = "loaded"
    bodies[where(bodies, "snapshot", cycle=2)]["working_memory"] = {}


@lie(Rule.SNAPSHOT)
def a_run_without_any_snapshot(bodies: Bodies) -> None:
    bodies[:] = [body for body in bodies if body["record"] != "snapshot"]


@lie(Rule.PHASE)
def a_turn_ended_within_a_cycle(bodies: Bodies) -> None:
    end = bodies.pop(where(bodies, "turn_end"))
    bodies.insert(where(bodies, "outcome", phase="selection", cycle=7), end)


@lie(Rule.TURN)
def a_turn_begun_twice(bodies: Bodies) -> None:
    bodies[where(bodies, "turn_start", n=1)]["turn"] = 1


@lie(Rule.TURN)
def a_turn_ended_under_another_number(bodies: Bodies) -> None:
    bodies[where(bodies, "turn_end")]["turn"] = 9


@lie(Rule.TURN)
def a_turn_of_another_cycle(bodies: Bodies) -> None:
    bodies[where(bodies, "turn_end")]["cycle"] = 1


@lie(Rule.TURN)
def an_answer_that_nobody_gave(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 7)
    done |= {"response": None, "ended_by": None}


@lie(Rule.TURN)
def a_cycle_outside_of_turns(bodies: Bodies) -> None:
    del bodies[where(bodies, "turn_start", n=1)]


@lie(Rule.EXECUTION)
def a_cycle_closed_in_a_turn_that_was_answered(bodies: Bodies) -> None:
    for phase in ("selection", "execution"):
        body = _outcome(bodies, phase, 5)
        body["reason" if phase == "selection" else "result"] = "The turn was cancelled."


@lie(Rule.SNAPSHOT)
def a_snapshot_whose_ids_go_back(bodies: Bodies) -> None:
    bodies[where(bodies, "snapshot", n=3)]["ids"]["candidate"] = 1


@lie(Rule.SNAPSHOT)
def a_snapshot_behind_the_calls_before_it(bodies: Bodies) -> None:
    for body in bodies:
        if body["record"] == "snapshot" and body["ids"].get("call"):
            body["ids"]["call"] = 1
