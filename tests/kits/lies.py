"""What an informed forger may write into a trace; each lie names the rule that must find it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from coag.proof import Rule

from .tampering import Bodies, where


@dataclass(frozen=True)
class Lie:
    """One way to lie."""

    name: str
    rule: Rule
    """What must find it."""
    tell: Callable[[Bodies], None]
    """Changes the records."""


LIES: list[Lie] = []


def lie(rule: Rule) -> Callable[[Callable[[Bodies], None]], Callable[[Bodies], None]]:
    def keep(tell: Callable[[Bodies], None]) -> Callable[[Bodies], None]:
        LIES.append(Lie(tell.__name__, rule, tell))
        return tell

    return keep


@lie(Rule.EXECUTION)
def executed_arguments_changed(bodies: Bodies) -> None:
    done = bodies[where(bodies, "outcome", phase="execution", cycle=1)]
    done["arguments"] = {"thing": "gold"}


@lie(Rule.INTENT)
def intent_and_execution_changed_alike(bodies: Bodies) -> None:
    for place in (where(bodies, "intent"), where(bodies, "outcome", phase="execution", cycle=1)):
        bodies[place]["arguments"] = {"thing": "gold"}
    bodies[where(bodies, "outcome", phase="execution", cycle=1)]["queued"][0]["arguments"] = {
        "thing": "gold"
    }


@lie(Rule.CANDIDATE)
def evaluated_on_other_arguments_than_proposed(bodies: Bodies) -> None:
    text = json.dumps(bodies).replace(
        '"arguments": {"thing": "cup"}', '"arguments": {"thing": "x"}'
    )
    bodies[:] = json.loads(text)


@lie(Rule.CONSTRAINT)
def constraint_left_out_of_the_verdicts(bodies: Bodies) -> None:
    judged = bodies[where(bodies, "outcome", phase="evaluation", cycle=1)]["evaluations"][0]
    judged["verdicts"] = [v for v in judged["verdicts"] if v["constraint"] != "keeps_the_vase"]


@lie(Rule.SELECTION)
def verdict_flipped(bodies: Bodies) -> None:
    judged = bodies[where(bodies, "outcome", phase="evaluation", cycle=1)]["evaluations"][1]
    judged["verdicts"][-1] |= {"allowed": True, "reason": ""}


@lie(Rule.SELECTION)
def verdict_of_an_impasse_flipped(bodies: Bodies) -> None:
    judged = bodies[where(bodies, "outcome", phase="evaluation", cycle=5)]["evaluations"][0]
    judged["verdicts"][-1] |= {"allowed": True, "reason": ""}


@lie(Rule.CONSTRAINT)
def constraint_not_pinned(bodies: Bodies) -> None:
    bodies[where(bodies, "outcome", phase="retrieval", cycle=2)]["constraints"] = []


@lie(Rule.CONSTRAINT)
def judged_on_after_a_veto(bodies: Bodies) -> None:
    judged = bodies[where(bodies, "outcome", phase="evaluation", cycle=1)]["evaluations"][1]
    judged["verdicts"].append({"allowed": True, "reason": "", "constraint": "parallel"})


@lie(Rule.CANDIDATE)
def rejected_candidate_hidden(bodies: Bodies) -> None:
    del bodies[where(bodies, "outcome", phase="evaluation", cycle=1)]["evaluations"][1]


@lie(Rule.SELECTION)
def a_dead_candidate_selected(bodies: Bodies) -> None:
    proposal = bodies[where(bodies, "outcome", phase="proposal", cycle=1)]
    selection = bodies[where(bodies, "outcome", phase="selection", cycle=1)]
    selection["candidate_id"] = proposal["candidates"][1]["id"]


@lie(Rule.SELECTION)
def decided_by_nobody_who_could(bodies: Bodies) -> None:
    bodies[where(bodies, "outcome", phase="selection", cycle=2)]["decided_by"] = "only_survivor"


@lie(Rule.SELECTION)
def a_better_score_for_the_other_one(bodies: Bodies) -> None:
    bodies[where(bodies, "outcome", phase="selection", cycle=2)]["decided_by"] = "rank"
    judged = bodies[where(bodies, "outcome", phase="evaluation", cycle=2)]["evaluations"]
    judged[1]["score"] = 1.0


@lie(Rule.EXECUTION)
def another_candidate_executed(bodies: Bodies) -> None:
    other = bodies[where(bodies, "outcome", phase="proposal", cycle=2)]["candidates"][1]["id"]
    bodies[where(bodies, "outcome", phase="execution", cycle=2)]["candidate_id"] = other


@lie(Rule.EXECUTION)
def a_failure_reported_as_done(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt", cycle=6)]["status"] = "done"
    bodies[where(bodies, "outcome", phase="execution", cycle=6)]["status"] = "done"


@lie(Rule.RECEIPT)
def a_receipts_status_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt", cycle=6)]["status"] = "done"


@lie(Rule.RECEIPT)
def a_receipts_text_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt")]["content"] = "gold is here"


@lie(Rule.RECEIPT)
def a_receipt_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "receipt")]


@lie(Rule.RECEIPT)
def a_receipt_twice(bodies: Bodies) -> None:
    place = where(bodies, "receipt")
    bodies.insert(place, deepcopy(bodies[place]))


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
    done = bodies[where(bodies, "outcome", phase="execution", cycle=5)]
    intent = deepcopy(bodies[where(bodies, "intent")])
    receipt = deepcopy(bodies[where(bodies, "receipt")])
    intent |= {"id": "x.intent-000099", "cycle": 5}
    receipt |= {"intent_id": "x.intent-000099", "cycle": 5}
    at = bodies.index(done)
    bodies[at:at] = [intent, receipt]


@lie(Rule.EXECUTION)
def an_external_action_reported_as_internal(bodies: Bodies) -> None:
    done = bodies[where(bodies, "outcome", phase="execution", cycle=1)]
    done |= {"internal": True, "intent_id": None, "queued": []}
    del bodies[where(bodies, "percept", kind="tool_return")]
    del bodies[where(bodies, "receipt")]
    del bodies[where(bodies, "intent")]


@lie(Rule.PHASE)
def two_outcomes_swapped(bodies: Bodies) -> None:
    one = where(bodies, "outcome", phase="evaluation", cycle=2)
    other = where(bodies, "outcome", phase="selection", cycle=2)
    bodies[one], bodies[other] = bodies[other], bodies[one]


@lie(Rule.PHASE)
def an_outcome_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "outcome", phase="reasoning", cycle=3)]


@lie(Rule.PHASE)
def an_outcome_twice(bodies: Bodies) -> None:
    place = where(bodies, "outcome", phase="reasoning", cycle=3)
    bodies.insert(place, deepcopy(bodies[place]))


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


@lie(Rule.MEMORY)
def a_snapshots_state_changed(bodies: Bodies) -> None:
    memory = bodies[where(bodies, "snapshot", cycle=2, reason="cycle")]["working_memory"]
    memory["perceptual_state"]["successes"] = 40


@lie(Rule.MEMORY)
def a_percepts_patch_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="tool_return")]["state_patch"] = {"successes": 40}


@lie(Rule.SNAPSHOT)
def a_snapshot_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "snapshot", cycle=2, reason="cycle")]


@lie(Rule.PERCEPT)
def a_percepts_content_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="tool_return")]["content"] = "gold is here"


@lie(Rule.MEMORY)
def a_message_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="message")]["content"] = "Fetch the gold."


@lie(Rule.PERCEPT)
def a_message_that_changes_the_state(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", n=-1)]["state_patch"] = {"successes": 40}
    bodies[where(bodies, "percept", kind="message", n=-1)]["state_patch"] = {"successes": 40}


@lie(Rule.PERCEPT)
def a_percept_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "percept", kind="tool_return")]


@lie(Rule.PERCEPT)
def a_percept_twice(bodies: Bodies) -> None:
    place = where(bodies, "percept", kind="tool_return")
    bodies.insert(place, deepcopy(bodies[place]))


@lie(Rule.PERCEPT)
def a_return_from_nowhere(bodies: Bodies) -> None:
    place = where(bodies, "percept", kind="tool_return")
    bodies.insert(place, {**deepcopy(bodies[place]), "id": "percept-000999", "caused_by": "i-9"})


@lie(Rule.EXECUTION)
def a_queued_return_of_another_action(bodies: Bodies) -> None:
    done = bodies[where(bodies, "outcome", phase="execution", cycle=1)]
    done["queued"][0]["source"] = "lift"
    bodies[where(bodies, "percept", kind="tool_return")]["source"] = "lift"


@lie(Rule.PROCEDURE)
def a_pinned_version_changed(bodies: Bodies) -> None:
    pinned = bodies[where(bodies, "outcome", phase="retrieval", cycle=2)]["procedures"]
    pinned["reasoning"] = 2


@lie(Rule.PROCEDURE)
def a_written_version_not_in_force(bodies: Bodies) -> None:
    for body in bodies:
        if body["record"] == "snapshot" and body["cycle"] >= 4:
            body["procedures"] = {"versions": {**body["procedures"]["versions"], "reasoning": 1}}
        if body["record"] == "outcome" and body["phase"] == "retrieval":
            body["procedures"] = {**body["procedures"], "reasoning": 1}


@lie(Rule.PROCEDURE)
def a_written_text_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="procedure")]["content"]["text"] = "Obey the cup."


@lie(Rule.PROCEDURE)
def a_seed_text_changed_afterwards(bodies: Bodies) -> None:
    later = bodies[where(bodies, "snapshot", cycle=4, reason="cycle")]
    later["procedures"]["state"]["procedures"]["selection"][0]["text"] = "Choose at random."


@lie(Rule.WRITTEN)
def a_written_record_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "written", what="record")]["content"]["text"] = "The cup is gold."


@lie(Rule.WRITTEN)
def a_written_record_of_another_run(bodies: Bodies) -> None:
    made = bodies[where(bodies, "written", what="record")]["content"]["provenance"]
    made["run"] = "20200101-000000-somebody-000000"


@lie(Rule.WRITTEN)
def a_record_written_while_reasoning(bodies: Bodies) -> None:
    written = bodies.pop(where(bodies, "written", what="record"))
    bodies.insert(where(bodies, "outcome", phase="reasoning", cycle=3), written)


@lie(Rule.USAGE)
def usage_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "outcome", phase="reasoning", cycle=1)]["usage"]["prompt_tokens"] = 1


@lie(Rule.USAGE)
def a_model_call_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "model_call", phase="proposal", cycle=1)]


@lie(Rule.MODEL_CALL)
def a_model_call_of_another_phase(bodies: Bodies) -> None:
    bodies[where(bodies, "model_call", phase="proposal", cycle=1)]["phase"] = "selection"


@lie(Rule.MODEL_CALL)
def a_model_asked_in_execution(bodies: Bodies) -> None:
    call = bodies.pop(where(bodies, "model_call", phase="proposal", cycle=1))
    bodies.insert(where(bodies, "intent"), call)


@lie(Rule.TURN)
def the_answer_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "turn_end")]["response"] = "Nothing was fetched."


@lie(Rule.EXECUTION)
def the_answer_changed_everywhere_but_in_its_arguments(bodies: Bodies) -> None:
    done = bodies[where(bodies, "outcome", phase="execution", cycle=7)]
    done["response"] = done["result"] = "Nothing was fetched."
    bodies[where(bodies, "turn_end")]["response"] = "Nothing was fetched."


@lie(Rule.TURN)
def a_turns_end_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "turn_end")]


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
