"""What an informed forger may write into a trace; each lie names the rule that must find it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

from coag.proof import Rule
from coag.schema import MemoryKind, record_id

from .tampering import Bodies, Body, where


@dataclass(frozen=True)
class Lie:
    """One way to lie."""

    name: str
    rule: Rule
    """What must find it."""
    tell: Callable[[Bodies], None]
    """Changes the records."""


LIES: list[Lie] = []
Place = Callable[[Bodies], int]


def lie(rule: Rule) -> Callable[[Callable[[Bodies], None]], Callable[[Bodies], None]]:
    def keep(tell: Callable[[Bodies], None]) -> Callable[[Bodies], None]:
        LIES.append(Lie(tell.__name__, rule, tell))
        return tell

    return keep


# ---- Lies about one record: it says something else, is not there, or is there twice ----


def at(record: str, **fields: Any) -> Place:
    return lambda bodies: where(bodies, record, **fields)


def outcome(phase: str, cycle: int) -> Place:
    return at("outcome", phase=phase, cycle=cycle)


RETURN, MESSAGE = at("percept", kind="tool_return"), at("percept", kind="message")
RECORD, VERSION = at("written", what="record"), at("written", what="procedure")
SECOND, FOURTH = (at("snapshot", cycle=cycle, reason="cycle") for cycle in (2, 4))
evaluation, execution = partial(outcome, "evaluation"), partial(outcome, "execution")
proposal, retrieval = partial(outcome, "proposal"), partial(outcome, "retrieval")


def changed(rule: Rule, **lies: tuple[Place, str, dict[str, Any]]) -> None:
    """What is at a dotted path in a record has other fields."""
    for name, (place, path, fields) in lies.items():

        def tell(bodies: Bodies, place: Place = place, path: str = path, to: Body = fields) -> None:
            held: Any = bodies[place(bodies)]
            for key in filter(None, path.split(".")):
                held = held[int(key) if isinstance(held, list) else key]
            held |= to

        LIES.append(Lie(name, rule, tell))


def dropped(rule: Rule, **lies: Place) -> None:
    for name, place in lies.items():
        LIES.append(Lie(name, rule, lambda bodies, at=place: bodies.__delitem__(at(bodies))))


def doubled(rule: Rule, **lies: Place) -> None:
    for name, place in lies.items():

        def tell(bodies: Bodies, place: Place = place) -> None:
            bodies.insert(place(bodies), deepcopy(bodies[place(bodies)]))

        LIES.append(Lie(name, rule, tell))


changed(
    Rule.EXECUTION,
    executed_arguments_changed=(execution(1), "", {"arguments": {"thing": "gold"}}),
    a_status_of_its_own=(execution(5), "", {"status": "done"}),
    an_act_reported_as_refused=(execution(1), "", {"status": "refused"}),
    an_intent_reported_as_internal=(at("intent"), "", {"internal": True}),
    an_outcome_of_another_action=(execution(3), "", {"action": "respond"}),
    an_end_of_turn_without_an_answer=(execution(1), "", {"ended_by": "fetch"}),
    an_answer_by_an_action_that_gave_none=(execution(7), "", {"ended_by": "fetch"}),
    an_answer_that_is_not_what_was_done=(execution(7), "", {"response": "Nothing is fetched."}),
)
changed(
    Rule.SELECTION,
    verdict_flipped=(evaluation(1), "evaluations.1.verdicts.-1", {"allowed": True, "reason": ""}),
    verdict_of_an_impasse_flipped=(
        evaluation(5),
        "evaluations.0.verdicts.-1",
        {"allowed": True, "reason": ""},
    ),
    decided_by_nobody_who_could=(outcome("selection", 2), "", {"decided_by": "only_survivor"}),
    nothing_evaluated_and_yet_something_done=(evaluation(1), "", {"evaluations": []}),
    selected_and_decided_by_nobody=(outcome("selection", 1), "", {"decided_by": None}),
    the_only_survivor_ranked=(outcome("selection", 1), "", {"decided_by": "rank"}),
)
changed(Rule.CONSTRAINT, constraint_not_pinned=(retrieval(2), "", {"constraints": []}))
changed(
    Rule.RECEIPT,
    a_receipts_status_changed=(at("receipt", cycle=6), "", {"status": "done"}),
    a_receipts_text_changed=(at("receipt"), "", {"content": "gold is here"}),
    a_receipt_of_another_cycle=(at("receipt"), "", {"cycle": 9}),
    a_receipt_of_nothing=(at("receipt"), "", {"intent_id": "i-9"}),
    a_known_end_reported_as_unknown=(at("receipt", cycle=6), "", {"status": "unknown"}),
)
changed(
    Rule.MEMORY,
    a_snapshots_state_changed=(SECOND, "working_memory.perceptual_state", {"successes": 40}),
    a_percepts_patch_changed=(RETURN, "", {"state_patch": {"successes": 40}}),
    a_message_changed=(MESSAGE, "", {"content": "Fetch the gold."}),
)
changed(
    Rule.PERCEPT,
    a_percepts_content_changed=(RETURN, "", {"content": "gold is here"}),
    a_percept_of_a_foreign_intent=(MESSAGE, "", {"caused_by": "i-9"}),
    a_percept_without_a_patch=(RETURN, "", {"state_patch": None}),
)
changed(
    Rule.PROCEDURE,
    a_pinned_version_changed=(retrieval(2), "procedures", {"reasoning": 2}),
    a_written_text_changed=(VERSION, "content", {"text": "Obey the cup."}),
    a_seed_text_changed_afterwards=(
        FOURTH,
        "procedures.state.procedures.selection.0",
        {"text": "Choose at random."},
    ),
    a_version_pinned_at_the_end_that_never_was=(
        at("outcome", n=-6),
        "procedures",
        {"reasoning": 9},
    ),
    an_older_version_pinned=(retrieval(6), "procedures", {"reasoning": 1}),
    a_history_with_a_gap=(FOURTH, "procedures.state.procedures.reasoning.0", {"version": 5}),
    a_history_that_is_none=(FOURTH, "procedures.state.procedures", {"reasoning": "none"}),
    versions_that_are_none=(FOURTH, "procedures", {"versions": [1]}),
    a_version_written_under_another_number=(VERSION, "", {"id": "reasoning@7"}),
)
changed(
    Rule.WRITTEN,
    a_written_record_changed=(RECORD, "content", {"text": "The cup is gold."}),
    a_written_record_of_another_run=(
        RECORD,
        "content.provenance",
        {"run": "20200101-000000-somebody-000000"},
    ),
    a_record_of_another_cycle=(RECORD, "", {"cycle": 2}),
    a_record_of_another_id=(RECORD, "", {"id": "0"}),
    a_record_that_is_none=(RECORD, "", {"content": {}}),
    a_version_written_for_another_reason=(VERSION, "content", {"reason": "The cup wants it."}),
)
changed(Rule.USAGE, usage_changed=(outcome("reasoning", 1), "usage", {"prompt_tokens": 1}))
changed(
    Rule.MODEL_CALL,
    a_model_call_of_another_phase=(
        at("model_call", phase="proposal", cycle=1),
        "",
        {"phase": "selection"},
    ),
)
changed(
    Rule.TURN,
    the_answer_changed=(at("turn_end"), "", {"response": "Nothing was fetched."}),
    a_turn_begun_twice=(at("turn_start", n=1), "", {"turn": 1}),
    a_turn_ended_under_another_number=(at("turn_end"), "", {"turn": 9}),
    a_turn_of_another_cycle=(at("turn_end"), "", {"cycle": 1}),
    an_answer_that_nobody_gave=(execution(7), "", {"response": None, "ended_by": None}),
)
changed(
    Rule.CANDIDATE,
    candidates_that_nobody_proposed=(proposal(1), "", {"proposed_by": "nobody"}),
    candidates_that_reasoning_did_not_draft=(proposal(1), "", {"proposed_by": "draft"}),
    a_survivor_without_arguments=(evaluation(1), "evaluations.0", {"arguments": None}),
    arguments_that_were_never_json=(proposal(1), "candidates.0", {"raw_arguments": "{{"}),
    an_unknown_candidate_evaluated=(evaluation(1), "evaluations.1", {"candidate_id": "nobody"}),
)
changed(
    Rule.INTENT,
    an_intent_of_another_action=(at("intent"), "", {"action": "lift"}),
    an_intent_of_another_candidate=(at("intent"), "", {"candidate_id": "nobody"}),
)
changed(
    Rule.SNAPSHOT,
    a_run_opened_twice=(SECOND, "", {"reason": "opened"}),
    a_snapshot_whose_ids_go_back=(at("snapshot", n=3), "ids", {"candidate": 1}),
)
dropped(Rule.RECEIPT, a_receipt_dropped=at("receipt"))
dropped(Rule.PHASE, an_outcome_dropped=outcome("reasoning", 3))
dropped(Rule.SNAPSHOT, a_snapshot_dropped=SECOND)
dropped(Rule.PERCEPT, a_percept_dropped=RETURN)
dropped(Rule.USAGE, a_model_call_dropped=at("model_call", phase="proposal", cycle=1))
dropped(
    Rule.TURN,
    a_turns_end_dropped=at("turn_end"),
    a_cycle_outside_of_turns=at("turn_start", n=1),
)
doubled(Rule.RECEIPT, a_receipt_twice=at("receipt"))
doubled(Rule.PHASE, an_outcome_twice=outcome("reasoning", 3))
doubled(Rule.PERCEPT, a_percept_twice=RETURN)


# ---- Lies that more records tell ----


def _outcome(bodies: Bodies, phase: str, cycle: int) -> Body:
    return bodies[outcome(phase, cycle)(bodies)]


@lie(Rule.INTENT)
def intent_and_execution_changed_alike(bodies: Bodies) -> None:
    for place in (where(bodies, "intent"), where(bodies, "outcome", phase="execution", cycle=1)):
        bodies[place]["arguments"] = {"thing": "gold"}
    _outcome(bodies, "execution", 1)["queued"][0]["arguments"] = {"thing": "gold"}


@lie(Rule.CANDIDATE)
def evaluated_on_other_arguments_than_proposed(bodies: Bodies) -> None:
    text = json.dumps(bodies).replace(
        '"arguments": {"thing": "cup"}', '"arguments": {"thing": "x"}'
    )
    bodies[:] = json.loads(text)


@lie(Rule.CONSTRAINT)
def constraint_left_out_of_the_verdicts(bodies: Bodies) -> None:
    judged = _outcome(bodies, "evaluation", 1)["evaluations"][0]
    judged["verdicts"] = [v for v in judged["verdicts"] if v["constraint"] != "keeps_the_vase"]


@lie(Rule.CONSTRAINT)
def judged_on_after_a_veto(bodies: Bodies) -> None:
    judged = _outcome(bodies, "evaluation", 1)["evaluations"][1]
    judged["verdicts"].append({"allowed": True, "reason": "", "constraint": "parallel"})


@lie(Rule.CANDIDATE)
def rejected_candidate_hidden(bodies: Bodies) -> None:
    del _outcome(bodies, "evaluation", 1)["evaluations"][1]


@lie(Rule.SELECTION)
def a_dead_candidate_selected(bodies: Bodies) -> None:
    proposal = _outcome(bodies, "proposal", 1)
    selection = _outcome(bodies, "selection", 1)
    selection["candidate_id"] = proposal["candidates"][1]["id"]


@lie(Rule.SELECTION)
def a_better_score_for_the_other_one(bodies: Bodies) -> None:
    _outcome(bodies, "selection", 2)["decided_by"] = "rank"
    judged = _outcome(bodies, "evaluation", 2)["evaluations"]
    judged[1]["score"] = 1.0


@lie(Rule.EXECUTION)
def another_candidate_executed(bodies: Bodies) -> None:
    other = _outcome(bodies, "proposal", 2)["candidates"][1]["id"]
    _outcome(bodies, "execution", 2)["candidate_id"] = other


@lie(Rule.EXECUTION)
def a_failure_reported_as_done(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt", cycle=6)]["status"] = "done"
    _outcome(bodies, "execution", 6)["status"] = "done"


@lie(Rule.INTENT)
def an_intent_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "receipt")]
    del bodies[where(bodies, "intent")]


@lie(Rule.INTENT)
def a_second_intent(bodies: Bodies) -> None:
    place = where(bodies, "intent")
    again, receipt = deepcopy(bodies[place]), deepcopy(bodies[place + 1])
    again["id"] = receipt["intent_id"] = f"{again['id']}9"
    bodies[place + 2 : place + 2] = [again, receipt]


@lie(Rule.INTENT)
def an_intent_without_selection(bodies: Bodies) -> None:
    place = where(bodies, "intent")
    pair = bodies[place : place + 2]
    del bodies[place : place + 2]
    at = where(bodies, "outcome", phase="evaluation", cycle=1)
    bodies[at:at] = pair


@lie(Rule.INTENT)
def a_refusal_that_ran(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 5)
    intent = deepcopy(bodies[where(bodies, "intent")])
    receipt = deepcopy(bodies[where(bodies, "receipt")])
    intent |= {"id": "x.intent-000099", "cycle": 5}
    receipt |= {"intent_id": "x.intent-000099", "cycle": 5}
    at = bodies.index(done)
    bodies[at:at] = [intent, receipt]


@lie(Rule.EXECUTION)
def an_external_action_reported_as_internal(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 1)
    done |= {"internal": True, "intent_id": None, "queued": []}
    del bodies[where(bodies, "percept", kind="tool_return")]
    del bodies[where(bodies, "receipt")]
    del bodies[where(bodies, "intent")]


@lie(Rule.PHASE)
def two_outcomes_swapped(bodies: Bodies) -> None:
    one = where(bodies, "outcome", phase="evaluation", cycle=2)
    other = where(bodies, "outcome", phase="selection", cycle=2)
    bodies[one], bodies[other] = bodies[other], bodies[one]


@lie(Rule.MEMORY)
def a_cycle_dropped(bodies: Bodies) -> None:
    begin = where(bodies, "snapshot", cycle=2, reason="cycle")
    del bodies[begin : where(bodies, "snapshot", cycle=3, reason="cycle")]


@lie(Rule.MEMORY)
def a_cycle_dropped_and_the_rest_renumbered(bodies: Bodies) -> None:
    begin = where(bodies, "snapshot", cycle=2, reason="cycle")
    del bodies[begin : where(bodies, "snapshot", cycle=3, reason="cycle")]
    text = json.dumps(bodies[begin:])
    for cycle in range(3, 20):
        text = text.replace(f'"cycle": {cycle},', f'"cycle": {cycle - 1},')
    bodies[begin:] = json.loads(text)


@lie(Rule.PERCEPT)
def a_message_that_changes_the_state(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", n=-1)]["state_patch"] = {"successes": 40}
    bodies[where(bodies, "percept", kind="message", n=-1)]["state_patch"] = {"successes": 40}


@lie(Rule.PERCEPT)
def a_return_from_nowhere(bodies: Bodies) -> None:
    place = where(bodies, "percept", kind="tool_return")
    bodies.insert(place, {**deepcopy(bodies[place]), "id": "percept-000999", "caused_by": "i-9"})


@lie(Rule.EXECUTION)
def a_queued_return_of_another_action(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 1)
    done["queued"][0]["source"] = "lift"
    bodies[where(bodies, "percept", kind="tool_return")]["source"] = "lift"


@lie(Rule.PROCEDURE)
def a_written_version_not_in_force(bodies: Bodies) -> None:
    for body in bodies:
        if body["record"] == "snapshot" and body["cycle"] >= 4:
            body["procedures"] = {"versions": {**body["procedures"]["versions"], "reasoning": 1}}
        if body["record"] == "outcome" and body["phase"] == "retrieval":
            body["procedures"] = {**body["procedures"], "reasoning": 1}


@lie(Rule.WRITTEN)
def a_record_written_while_reasoning(bodies: Bodies) -> None:
    written = bodies.pop(where(bodies, "written", what="record"))
    bodies.insert(where(bodies, "outcome", phase="reasoning", cycle=3), written)


@lie(Rule.MODEL_CALL)
def a_model_asked_in_execution(bodies: Bodies) -> None:
    call = bodies.pop(where(bodies, "model_call", phase="proposal", cycle=1))
    bodies.insert(where(bodies, "intent"), call)


@lie(Rule.EXECUTION)
def the_answer_changed_everywhere_but_in_its_arguments(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 7)
    done["response"] = done["result"] = "Nothing was fetched."
    bodies[where(bodies, "turn_end")]["response"] = "Nothing was fetched."


@lie(Rule.TURN)
def the_run_cut_off_and_sealed(bodies: Bodies) -> None:
    del bodies[where(bodies, "percept", kind="tool_return", n=-1) + 1 :]


@lie(Rule.PHASE)
def the_run_cut_off_in_a_cycle_and_sealed(bodies: Bodies) -> None:
    del bodies[where(bodies, "outcome", phase="selection", cycle=8) :]


@lie(Rule.EXECUTION)
def an_act_reported_as_cancelled(bodies: Bodies) -> None:
    place = where(bodies, "outcome", phase="execution", cycle=3)
    done = bodies[place]
    done |= {"status": "none", "candidate_id": None, "action": None, "arguments": None}
    done |= {"internal": False, "result": "The turn was cancelled."}


@lie(Rule.CANDIDATE)
def two_candidates_of_one_id(bodies: Bodies) -> None:
    one, other = _outcome(bodies, "proposal", 1)["candidates"]
    other["id"] = one["id"]


@lie(Rule.CONSTRAINT)
def a_verdict_of_a_stranger(bodies: Bodies) -> None:
    judged = _outcome(bodies, "evaluation", 1)["evaluations"][0]
    judged["verdicts"].append({"allowed": True, "reason": "", "constraint": "my_own"})


@lie(Rule.SELECTION)
def alternatives_selected_as_a_batch(bodies: Bodies) -> None:
    both = [one["id"] for one in _outcome(bodies, "proposal", 2)["candidates"]]
    _outcome(bodies, "selection", 2)["batch"] = both


@lie(Rule.INTENT)
def an_intent_of_a_known_id(bodies: Bodies) -> None:
    first = bodies[where(bodies, "intent")]["id"]
    bodies[where(bodies, "intent", n=1)]["id"] = first


@lie(Rule.EXECUTION)
def a_batch_that_the_outcome_does_not_mirror(bodies: Bodies) -> None:
    done = _outcome(bodies, "execution", 1)
    names = ("candidate_id", "action", "arguments", "status", "internal", "intent_id", "result")
    done["batch"] = [{name: done[name] for name in names}]
    done["action"] = "lift"


@lie(Rule.EXECUTION)
def an_external_act_that_brought_nothing(bodies: Bodies) -> None:
    _outcome(bodies, "execution", 1)["queued"] = []
    del bodies[where(bodies, "percept", kind="tool_return")]


@lie(Rule.PERCEPT)
def a_queued_percept_of_a_foreign_intent(bodies: Bodies) -> None:
    extra = deepcopy(_outcome(bodies, "execution", 1)["queued"][0])
    extra |= {"id": "percept-000777", "caused_by": "i-9", "kind": "signal"}
    _outcome(bodies, "execution", 1)["queued"].append(extra)


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
def a_procedure_not_pinned(bodies: Bodies) -> None:
    del _outcome(bodies, "retrieval", 2)["procedures"]["reasoning"]


@lie(Rule.PROCEDURE)
def a_version_without_its_text(bodies: Bodies) -> None:
    snapshot = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]
    del snapshot["procedures"]["state"]


@lie(Rule.PROCEDURE)
def a_history_shorter_than_its_version(bodies: Bodies) -> None:
    state = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]["procedures"]["state"]
    state["procedures"]["reasoning"].pop()


@lie(Rule.PROCEDURE)
def a_version_written_that_was_there(bodies: Bodies) -> None:
    written = bodies[where(bodies, "written", what="procedure")]
    written["id"] = "reasoning@1"
    written["content"]["version"] = 1


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
def a_record_recalled_otherwise(bodies: Bodies) -> None:
    record = deepcopy(bodies[where(bodies, "written", what="record")]["content"])
    record["text"] = "The cup is gold."
    _outcome(bodies, "retrieval", 8)["records"] = [{"record": record, "score": 0.5}]


@lie(Rule.SNAPSHOT)
def a_cycle_begun_within_a_cycle(bodies: Bodies) -> None:
    snapshot = deepcopy(bodies[where(bodies, "snapshot", cycle=2, reason="cycle")])
    bodies.insert(where(bodies, "outcome", phase="selection", cycle=2), snapshot)


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


@lie(Rule.EXECUTION)
def a_cycle_closed_in_a_turn_that_was_answered(bodies: Bodies) -> None:
    for phase in ("selection", "execution"):
        body = _outcome(bodies, phase, 5)
        body["reason" if phase == "selection" else "result"] = "The turn was cancelled."


@lie(Rule.SNAPSHOT)
def a_snapshot_behind_the_calls_before_it(bodies: Bodies) -> None:
    for body in bodies:
        if body["record"] == "snapshot" and body["ids"].get("call"):
            body["ids"]["call"] = 1
