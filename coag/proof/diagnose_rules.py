"""The rules of a diagnosis: each looks for one sort of failure in a cycle, and says its cause."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isclose
from typing import Any, cast

from coag._util.secrets import REDACTED
from coag._util.text import comparable
from coag.schema import (
    DecidedBy,
    Evaluation,
    ExecutionStatus,
    Failure,
    GoalAssessment,
    ModelCall,
    Note,
    PerceptKind,
    Phase,
    Settlement,
    Verdict,
    record_id,
)
from coag.tracing import refusal_of

from .causes import Cause, Claim, Diagnosis, Evidence, Facts, ended, quoted, short, shown
from .diagnose_history import KnownRecord, ObservedCycle, ObservedFact, Return

DiagnosisRule = Callable[[ObservedCycle], Diagnosis | None]
"""From a cycle, and the run that it is of, to a failure and its cause; None where it has none."""

_DETOUR = 2
"""Actions by which a way must be longer than another one before it counts as worse: one step
away instead of one nearer."""
_TOLERANCE = 0.01
"""Scores that differ by less are the same."""
_CALL = 240
"""Characters of a candidate that are quoted."""


# ---- Recall: a record that fits did not come, or what came is not so ----


def changed_record(cycle: ObservedCycle) -> Diagnosis | None:
    """A recalled record has another content than the one that was written under its id."""
    for record in cycle.recalled:
        known = cycle.run.records.get(record.id)
        own = record_id(record.kind, record.scope, record.text) == record.id
        foreign = not record.provenance.run or REDACTED in record.text
        if not foreign and not (own if known is None else known.record.text == record.text):
            name = record.id[:8]
            came = ended(f"Record {name} came as {quoted(record.text)}")
            return cycle.failure(
                f"Recall brought record {name} with a content that is not its own.",
                Cause.WRONG_FACT,
                "A record's id follows from its text, and this text is another one.",
                *([] if known is None else [_existing(known)]),
                cycle.at(Phase.RETRIEVAL, came),
            )
    return None


def missed_record(cycle: ObservedCycle) -> Diagnosis | None:
    """A record exists that would have prevented what happened, and it was not recalled."""
    retrieval = cycle.summary.retrieval
    came = {record.id for record in cycle.recalled}
    for name, known in cycle.run.records.items():
        if retrieval is None or name in came or known.record.superseded_by is not None:
            continue
        lacks = (_for_want_of(one, cycle) for one in cycle.run.domain.record_claims(known.record))
        if failure := next(filter(None, lacks), ""):
            notes = (note.text for note in cycle.summary.notes if note.about == "memory")
            count, query = len(retrieval.records), quoted(retrieval.query, 80)
            return cycle.failure(
                failure,
                Cause.MISSED_RETRIEVAL,
                f"Record {name[:8]} says so, and it was not recalled. {next(notes, '')}".rstrip(),
                _existing(known),
                cycle.at(
                    Phase.RETRIEVAL, f"{count} records came, not this one; the query was {query}."
                ),
            )
    return None


def untrue_record(cycle: ObservedCycle) -> Diagnosis | None:
    """A recalled record says what is not so, and the agent followed it."""
    domain, now = cycle.run.domain, cycle.circumstances(cycle.claims)
    claims = [(one, claim) for one in cycle.recalled for claim in domain.record_claims(one)]
    refuted = [it for it in claims if domain.holds(it[1], now, remembered=True) is False]
    for suspects, why in (
        (refuted, "What was perceived, asked for or ruled contradicts it."),
        (claims, "Without it there is a way to the goal, and no percept confirms it."),
    ):
        wrong = [claim for _, claim in suspects]
        true = [claim for claim in cycle.claims if claim not in wrong]
        vetoed = suspects is refuted and any(_vetoed(claim, cycle) for claim in wrong)
        harmed = vetoed and bool(_harm_of_rejection(cycle, true))
        if harmed or (wrong and _misled(cycle, true, gave_up=suspects is claims)):
            record = suspects[0][0]
            return cycle.failure(
                _what_it_did(cycle),
                Cause.WRONG_FACT,
                f"It followed record {record.id[:8]}. {why}",
                cycle.at(Phase.RETRIEVAL, ended(f"Recalled: {quoted(record.text)}")),
                cycle.at(Phase.EXECUTION, _what_it_did(cycle)),
            )
    return None


def _misled(cycle: ObservedCycle, true: Sequence[Claim], *, gave_up: bool) -> bool:
    """Whether what it did makes sense only for one who believes more than these claims.

    Where `gave_up`, it only counts that it gave up, not that it took another way.
    """
    if cycle.response is not None:
        believed = cycle.remaining(cycle.claims)
        return believed in (0, inf) and cycle.has_way(true)
    return not gave_up and cycle.no_nearer(true) and not cycle.no_nearer(cycle.claims)


def _for_want_of(claim: Claim, cycle: ObservedCycle) -> str:
    """What went wrong because nobody remembered a claim; empty if nothing did."""
    domain, believed = cycle.run.domain, [*cycle.claims, claim]
    if domain.holds(claim, cycle.circumstances(()), remembered=True) is False:
        return ""
    vetoed = _vetoed(claim, cycle)
    if vetoed and _harm_of_rejection(cycle, believed):
        return ended(f"A candidate was rejected: {short(vetoed, _CALL)}")
    for returned in cycle.returns:
        after = domain.facts(returned.after)
        if returned.percept.is_error and after.get(claim.fact) == claim.value:
            return f"{returned.percept.source} failed."
    if cycle.wasted(believed) and _sensible_unruled(cycle):
        return f"{_what_it_did(cycle)} That leads away from the goal."
    return ""


def _sensible_unruled(cycle: ObservedCycle) -> bool:
    """Whether what it did brings the goal nearer for one who knows of no constraint."""
    projection = cycle.projection(cycle.chosen)
    if projection is None:
        return False
    now = replace(cycle.circumstances(cycle.claims), constraints=())
    before = cycle.run.domain.remaining(now)
    after = cycle.run.domain.remaining(replace(now, state=projection))
    return before is not None and after is not None and after < before


def _vetoed(claim: Claim, cycle: ObservedCycle) -> str:
    """Why a candidate was rejected, if for what a claim says; else empty."""
    for verdict in filter(None, (judged.rejected_by for judged in cycle.evaluations)):
        claims = cycle.run.domain.claims(verdict.reason)
        if any((one.fact, one.value) == (claim.fact, claim.value) for one in claims):
            return verdict.reason
    return ""


def _existing(known: KnownRecord) -> Evidence:
    text = ended(f"Record {known.record.id[:8]} says {quoted(known.record.text)}")
    return Evidence(seq=known.seq, cycle=known.cycle, phase=Phase.RETRIEVAL, text=text)


def _what_it_did(cycle: ObservedCycle) -> str:
    if cycle.response is not None:
        return f"It answered {quoted(cycle.response, 80)} and ended the turn."
    if not cycle.executed:
        return "It did nothing."
    done = cycle.executed[0]
    return ended(f"It did {done.action} {done.arguments or ''}".rstrip())


# ---- The model: no answer, a false situation, bad candidates, bad scores, a bad choice ----


def unusable_answer(cycle: ObservedCycle, phase: Phase | None) -> Diagnosis | None:
    """The model gave a phase nothing that could be used, or could not be asked."""
    calls = cycle.calls(phase)
    if not calls or calls[-1].error is None:
        return None

    def described(call: ModelCall) -> str:
        return ended(f"Attempt {call.attempt}: {call.error}; the answer: {quoted(call.raw, 60)}")

    return cycle.failure(
        f"{str(phase or 'the turn').capitalize()} got no answer that could be used.",
        Cause.UNUSABLE_ANSWER,
        ended(f"{len(calls)} model call(s) failed, the last one: {calls[-1].error}"),
        *(cycle.shown_by(call, described(call), phase) for call in calls),
    )


def false_situation(cycle: ObservedCycle) -> Diagnosis | None:
    """Reasoning says what the state, the goal or the memory contradict."""
    reasoning, domain = cycle.summary.reasoning, cycle.run.domain
    if reasoning is None or cycle.unanswered(Phase.REASONING):
        return None
    now = cycle.circumstances(cycle.claims)
    claims = domain.claims(reasoning.situation)
    false = [one for one in claims if domain.holds(one, now, remembered=False) is False]
    if false:
        text = f"It says {quoted(false[0].text)}, and what it was shown does not."
    elif reasoning.goal_status is not GoalAssessment.OPEN and cycle.has_way(cycle.claims):
        left = cycle.remaining(cycle.claims)
        text = f"It calls the goal {reasoning.goal_status}; {left:g} actions would reach it."
    else:
        return None
    situation = ended(f"The situation it gave: {quoted(reasoning.situation)}")
    return cycle.failure(
        "The situation was misunderstood.",
        Cause.FAULTY_REASONING,
        text,
        cycle.at(Phase.REASONING, situation),
    )


def invalid_proposal(cycle: ObservedCycle) -> Diagnosis | None:
    """Nothing was proposed, or what cannot or must not be done, and the run suffered from it."""
    proposal = cycle.summary.proposal
    if proposal is None or cycle.unanswered(Phase.PROPOSAL):
        return None
    if not proposal.candidates and proposal.proposed_by in ("model", "native"):
        return _invalid(cycle, "Nothing was proposed.", "The answer holds no candidate.")
    harm = _harm_of_rejection(cycle, cycle.claims)
    for judged in cycle.evaluations if harm else ():
        verdict, candidate = judged.rejected_by, cycle.candidate(judged.candidate_id)
        if verdict is not None and candidate is not None:
            if verdict.reason.startswith(_BROKEN):
                return broken_rule(cycle, candidate.action, verdict, Phase.EVALUATION)
            # These two check its form.
            ruled = verdict.constraint not in ("action_exists", "arguments")
            why = "The rule was in force." if ruled else "No such call can be made."
            reason = f"was rejected by {verdict.constraint}: {short(verdict.reason, _CALL)}"
            return _invalid(cycle, ended(f"{_named(judged, cycle)} {reason}"), f"{why} {harm}")
    return None


def _invalid(cycle: ObservedCycle, failure: str, why: str) -> Diagnosis:
    return cycle.failure(
        failure,
        Cause.INVALID_PROPOSAL,
        why,
        cycle.at(Phase.PROPOSAL, "Here it was proposed."),
        cycle.at(Phase.EVALUATION, failure),
    )


def _harm_of_rejection(cycle: ObservedCycle, claims: Sequence[Claim]) -> str:
    """In what a cycle suffered from its rejections, as a sentence; empty if it did not.

    A rejection is no failure where another candidate was carried out well instead.
    """
    survived = [judged.survived for judged in cycle.evaluations]
    if all(survived) or _failed(cycle):
        return ""
    if not any(survived):
        return "Nothing survived."
    if cycle.run.recurs(cycle):
        return "The cycle before was the same: the run comes no further."
    idle = cycle.projection(cycle.chosen) == cycle.state and cycle.has_way(claims)
    if idle or cycle.wasted(claims):
        return "What was done in its place brought the goal no nearer."
    return ""


def _failed(cycle: ObservedCycle) -> bool:
    """Whether what was executed failed; then that is the failure of the cycle."""
    sound = (ExecutionStatus.DONE, ExecutionStatus.NONE)
    return any(done.status not in sound for done in cycle.executed) or any(
        returned.percept.is_error for returned in cycle.returns
    )


def faulty_evaluation(cycle: ObservedCycle) -> Diagnosis | None:
    """The best score went to a candidate that is predicted to be worse than another one."""
    scored, candidates = _scored(cycle), cycle.summary.candidates
    if len(scored) < 2 or cycle.unanswered(Phase.EVALUATION):
        return None
    top = max(scored, key=lambda one: (one.rank(), one.candidate_id == cycle.chosen))
    ways = {one.candidate_id: _way(one, cycle) for one in scored}
    own = ways[top.candidate_id]
    best = min((way for way in ways.values() if way is not None), default=None)
    if own is None or best is None or own < best + _DETOUR or top.candidate_id != cycle.chosen:
        return None
    if candidates and top.candidate_id == candidates[0].candidate.id:
        return None  # Proposal, too, put it first: it is the plan that is long, not a score
    better = next(one for one in scored if ways[one.candidate_id] == best)
    text = (
        f"{_named(top, cycle)} got {top.score:g} and leaves {own:g} actions to the goal; "
        f"{_named(better, cycle)} got {better.score:g} and leaves {best:g}."
    )
    return cycle.failure(
        f"{_named(top, cycle)} was taken for the best.",
        Cause.FAULTY_EVALUATION,
        "The scores contradict the predicted effects.",
        cycle.at(Phase.EVALUATION, text),
    )


def bad_selection(cycle: ObservedCycle) -> Diagnosis | None:
    """The model chose a candidate whose score is not the best."""
    selection, scored = cycle.summary.selection, _scored(cycle)
    if selection is None or selection.decided_by is not DecidedBy.MODEL or selection.batch:
        return None
    chosen = next((one for one in scored if one.candidate_id == selection.candidate_id), None)
    if chosen is None:
        return None
    best = max(scored, key=lambda one: one.score or 0.0)
    if (chosen.score or 0.0) > (best.score or 0.0) - _TOLERANCE:
        return None
    text = (
        f"{_named(chosen, cycle)} with {chosen.score:g} was chosen over {_named(best, cycle)} "
        f"with {best.score:g}."
    )
    return cycle.failure(
        text,
        Cause.BAD_SELECTION,
        "The choice departs from the scores that it was shown.",
        cycle.at(Phase.EVALUATION, f"The best score, {best.score:g}, is another one's."),
        cycle.at(Phase.SELECTION, text),
    )


def early_answer(cycle: ObservedCycle) -> Diagnosis | None:
    """It answered although there was a way to the goal, and nothing above explains it."""
    if cycle.response is None or not cycle.has_way(cycle.claims):
        return None
    return cycle.failure(
        "It ended the turn with an answer; there was a way to the goal.",
        Cause.INVALID_PROPOSAL,
        "No better action was proposed.",
        cycle.at(Phase.PROPOSAL, "The candidates hold nothing better."),
    )


def _scored(cycle: ObservedCycle) -> list[Evaluation]:
    return [one for one in cycle.evaluations if one.survived and one.score is not None]


def _way(judged: Evaluation, cycle: ObservedCycle) -> float | None:
    """Actions to the goal after a candidate; an answer leaves the goal where it is."""
    candidate = cycle.candidate(judged.candidate_id)
    if candidate is not None and candidate.action == "respond":
        left = cycle.remaining(cycle.claims)
        return left if left in (None, 0, inf) else inf
    projection = judged.projection
    return None if projection is None else cycle.remaining(cycle.claims, projection)


def _named(judged: Evaluation, cycle: ObservedCycle) -> str:
    candidate = cycle.candidate(judged.candidate_id)
    if candidate is None:
        return judged.candidate_id
    return short(f"{candidate.action} {candidate.raw_arguments}", _CALL)


# ---- What came back: a failed tool, a lying sensor, or a world that has changed ----


def refused_at_last(cycle: ObservedCycle) -> Diagnosis | None:
    """What Evaluation had allowed was forbidden, or not approved, right before it was to run."""
    for done in cycle.executed:
        if done.status is ExecutionStatus.REFUSED and not done.internal:
            text = ended(short(done.result))
            cause: Cause | None = Cause.CHANGED_ENVIRONMENT
            why = "It was allowed in Evaluation: what the rule looks at changed since."
            if any(f": {words}" in done.result for words in _BROKEN):
                cause, why = None, _OWN_ERROR
            elif " approval: " in done.result:
                cause, why = Cause.INVALID_PROPOSAL, "The approver did not want it."
            return cycle.failure(text, cause, why, cycle.at(Phase.EXECUTION, text))
    return None


def contradictory_return(cycle: ObservedCycle) -> Diagnosis | None:
    """One and the same return says two things: its structured part and the state it led to."""
    for returned in cycle.returns:
        for name, value in returned.data.items():
            if _misread(cycle, name, value, returned):
                text = (
                    f"The return of {returned.percept.source} says {name} {shown(value)}, and "
                    f"the state that came of it {shown(returned.after[name])}."
                )
                return _misperceived(cycle, name, text, cycle.returned(returned, text))
    return None


def _misread(cycle: ObservedCycle, name: str, value: Any, returned: Return) -> bool:
    """Whether a part of the state has another value than its namesake in the return.

    Equal names alone show nothing: the state may hold such values by order, add them up or mean
    something else. So values of one JSON type are compared, and where the state did not change,
    or holds a list, only if at another time it took the value as it came.
    """
    before: Any = returned.before.get(name)
    after: Any = returned.after.get(name)
    if value == after or not _one_type(value, before, after):
        return False
    if returned.percept.is_error and before == after:
        return False  # a hook may leave out what failed
    if isinstance(value, list):
        collected = len(after) > min(len(before), len(cast("list[Any]", value)))
        return not collected and cycle.run.takes(cycle, returned.percept.source, name)
    if isinstance(value, str) and comparable(value) in comparable(after):
        return False
    if not isinstance(value, str | bool):
        made = (before + value, *(round(value, digits) for digits in range(5)))
        if any(isclose(one, after) for one in made):
            return False  # added up, or rounded
    return before != after or cycle.run.takes(cycle, returned.percept.source, name)


def _one_type(*values: Any) -> bool:
    """Whether all are texts, all numbers, all truth values or all lists."""
    kinds = {"float" if type(one) is int else type(one).__name__ for one in values}
    return len(kinds) == 1 and kinds <= {"str", "float", "bool", "list"}


def _misperceived(cycle: ObservedCycle, name: str, reason: str, *evidence: Evidence) -> Diagnosis:
    failure = f"What was perceived of {name} is not so."
    return cycle.failure(failure, Cause.MISPERCEPTION, reason, *evidence, fact=name)


def broken_tool(cycle: ObservedCycle) -> Diagnosis | None:
    """An action failed without a reason that lies in the world, or did nothing at all."""
    for returned in cycle.returns:
        percept = returned.percept
        if percept.kind is PerceptKind.UNKNOWN_OUTCOME:
            unknown = _unknown_outcome(cycle, returned)
            if unknown is not None:
                return unknown
        elif percept.kind is PerceptKind.SETTLED:
            continue
        elif percept.is_error and percept.failure is not Failure.DETERMINISTIC:
            text = ended(f"{percept.source} failed: {quoted(percept.content)}")
            why = "the tool failed. What it did before that is not known"
            return _not_executed(cycle, text, returned, why)
        elif not percept.is_error and _did_nothing(cycle, returned):
            text = f"{percept.source} reported success, and nothing changed."
            why = "the tool did not do it, or what it did was not perceived"
            return _not_executed(cycle, text, returned, why)
    for done in cycle.executed:
        if done.internal and done.status is ExecutionStatus.FAILED:
            return cycle.failure(
                ended(f"{done.action} failed: {quoted(done.result)}"),
                Cause.INVALID_PROPOSAL,
                "An action on the agent's own memory was called in a way that it refuses.",
                cycle.at(Phase.EXECUTION, ended(short(done.result))),
            )
    return None


def _unknown_outcome(cycle: ObservedCycle, returned: Return) -> Diagnosis | None:
    """An action that gave no answer; nothing if it was found out later that it happened."""
    percept = returned.percept
    became = cycle.run.settled(cycle, percept.caused_by)
    if became is Settlement.HAPPENED:
        return None
    if became is Settlement.DID_NOT_HAPPEN:
        text = ended(f"{percept.source} gave no answer: {quoted(percept.content)}")
        text += " Later it was found that it did not happen."
        return _not_executed(cycle, text, returned, "the tool did not do it")
    evidence = cycle.returned(returned, ended(short(percept.content)))
    return not_known(cycle, percept.source, evidence)


def not_known(cycle: ObservedCycle, action: str, evidence: Evidence) -> Diagnosis:
    """Of an action it is not known whether it had its effect."""
    return cycle.failure(
        f"It is not known whether {action} had its effect.",
        Cause.FAILED_EXECUTION,
        "It gave no answer, and the cycles after it do not show what became of it.",
        evidence,
    )


def _not_executed(cycle: ObservedCycle, text: str, returned: Return, why: str) -> Diagnosis:
    reason = f"Nothing that was perceived speaks against the action: {why}."
    return cycle.failure(text, Cause.FAILED_EXECUTION, reason, cycle.returned(returned, text))


def _did_nothing(cycle: ObservedCycle, returned: Return) -> bool:
    expected, facts = cycle.expected(returned), cycle.run.domain.facts
    before, after = facts(returned.before), facts(returned.after)
    changed = any(before.get(name, value) != value for name, value in after.items())
    happened = any(
        after.get(name) == value for name, value in expected.items() if before.get(name) != value
    )
    return bool(expected) and not changed and not happened


def never_answered(cycle: ObservedCycle) -> Diagnosis | None:
    """The run was interrupted while an action ran, and not resumed."""
    for intent, receipt in cycle.summary.effects:
        if cycle.summary.execution is None and receipt is None and not cycle.run.ahead:
            text = f"{intent.action} began here, and no record shows what came of it."
            return not_known(cycle, intent.action, cycle.shown_by(intent, text, Phase.EXECUTION))
    return None


def refused_by_the_world(cycle: ObservedCycle) -> Diagnosis | None:
    """An action failed for a reason in the world that nothing that was known showed."""
    for returned in cycle.returns:
        unknown = returned.percept.kind is PerceptKind.UNKNOWN_OUTCOME
        if not returned.percept.is_error or unknown:
            continue
        text = ended(f"{returned.percept.source} failed: {returned.why_failed}")
        cause, before = Cause.CHANGED_ENVIRONMENT, list[Evidence]()
        reason = "By what was perceived and remembered it should have worked."
        if _foreseen(cycle, returned):
            cause = Cause.FAULTY_EVALUATION
            reason = "Its projection said what would come of it, and it was valued all the same."
            before = [cycle.at(Phase.EVALUATION, "Here it survived, with its projection.")]
        elif cycle.no_nearer(cycle.claims):
            cause = Cause.INVALID_PROPOSAL
            reason = "The state showed already that it would bring nothing."
            before = [cycle.at(Phase.PROPOSAL, "Here it was proposed.")]
        return cycle.failure(text, cause, reason, *before, cycle.returned(returned, text))
    return None


def _foreseen(cycle: ObservedCycle, returned: Return) -> bool:
    """Whether what came of a failed action is just what its projection had said.

    A projection that was to bring the goal nearer did not say so: somebody else had been there.
    """
    states = (None, cycle.projection(cycle.chosen))
    left, after_it = (cycle.remaining(cycle.claims, state) for state in states)
    if left is not None and after_it is not None and after_it < left:
        return False
    expected, facts = cycle.expected(returned), cycle.run.domain.facts
    before, after = facts(returned.before), facts(returned.after)
    return any(before.get(name) != value for name, value in expected.items()) and all(
        after.get(name) == value for name, value in expected.items()
    )


def broken_turn(cycle: ObservedCycle) -> Diagnosis | None:
    """The turn was interrupted, and no record says why."""
    end = cycle.summary.turn_end
    if end is None or end.reason != "error":
        return None
    reason = "No record of this cycle shows what it came from."
    evidence = cycle.shown_by(end, short(end.response))
    return cycle.failure("The turn broke off.", None, reason, evidence)


# ---- Code of the developer that raised: a hook, a rule ----


_BROKEN = ("the rule itself ", "the rule returned ")
"""How the reason of a verdict begins where the rule could not judge; `NamedConstraint` says so."""
_OWN_ERROR = "Its own code is at fault: no part of the agent caused it."


def broken_hook(cycle: ObservedCycle) -> Diagnosis | None:
    """A hook raised, and with a state that is out of date nothing acts."""
    for note in cycle.summary.notes:
        if note.about == "hook":
            text = ended(short(note.text))
            return cycle.failure(text, None, _OWN_ERROR, cycle.shown_by(note, text))
    return None


def broken_rule(
    cycle: ObservedCycle,
    action: str,
    verdict: Verdict,
    phase: Phase | None,
    note: Note | None = None,
) -> Diagnosis:
    """A rule raised, was too slow or gave no verdict, and an action was refused because of that."""
    text = ended(f"{action} was refused by {verdict.constraint}: {short(verdict.reason, _CALL)}")
    evidence = cycle.shown_by(note, text) if phase is None else cycle.at(phase, text)
    return cycle.failure(text, None, _OWN_ERROR, evidence)


def refused_calls(cycle: ObservedCycle) -> Iterator[Diagnosis]:
    """The calls of a plain run that were refused because a rule could not judge."""
    for note in cycle.summary.notes:
        verdict = refusal_of(note)
        if verdict is not None and verdict.reason.startswith(_BROKEN):
            yield broken_rule(cycle, note.text.partition("(")[0], verdict, None, note)


# ---- Beliefs that a percept refutes ----


_DOUBT = "If not that, then the projection is wrong, or the tool."
"""Added for every prediction that did not come true: the trace does not show which it was."""
_ODD_NOW = "Later readings say again what was believed before."


def refuted_belief(cycle: ObservedCycle) -> Diagnosis | None:
    """What is perceived now is not what was believed, and no own action explains it."""
    for returned in cycle.returns:
        lonely = _lonely(cycle, returned) if cycle.run.domain.complete else None
        surprise = lonely or _surprise(cycle, returned, cycle.expected(returned))
        if surprise is not None:
            return surprise
    return None


def _lonely(cycle: ObservedCycle, returned: Return) -> Diagnosis | None:
    """A fact's first reading that every later one contradicts, and none of the own actions."""
    run = cycle.run
    for name, value in run.domain.facts(returned.after).items():
        later = [] if run.history(name) else run.later(name, cycle, returned.seq)
        if not later or later[0].failed or any(one.own or one.value == value for one in later):
            continue
        first = later[0]
        text = f"{name} is read as {shown(value)}."
        other = f"{name} is {shown(first.value)}."
        return _misperceived(
            cycle,
            name,
            f"{text} Every later reading says {shown(first.value)}.",
            cycle.returned(returned, text),
            Evidence(seq=first.seq, cycle=first.cycle, phase=None, text=other),
        )
    return None


def _surprise(cycle: ObservedCycle, returned: Return, expected: Facts) -> Diagnosis | None:
    """A fact that is perceived otherwise than it was, and not because of the action."""
    domain = cycle.run.domain
    for name, value in domain.facts(returned.after).items():
        history = cycle.run.history(name)
        if not history or not (domain.complete or name in expected):
            continue
        last = history[-1]
        believed = expected.get(name, last.value)
        if value != believed and not _no_forecast(name, value, cycle, returned, expected):
            old = ObservedFact(last.cycle, last.seq, believed, own=name in expected)
            return _refuted(name, value, old, cycle, returned)
    return None


def _refuted(
    name: str, new: Any, old: ObservedFact, cycle: ObservedCycle, returned: Return
) -> Diagnosis:
    cause, reason = _explained(name, new, old, cycle, returned)
    text = f"{name} was {shown(old.value)} and is perceived as {shown(new)}."
    was = f"{name} was {shown(old.value)}."
    before = Evidence(seq=old.seq, cycle=old.cycle, phase=None, text=was)
    why = reason
    if old.own:
        text = f"{name} was expected to be {shown(old.value)} and is perceived as {shown(new)}."
        last = cycle.run.history(name)[-1].value
        unless = f"; it was {shown(last)}" if last != old.value else ""
        projected = f"The projection of what was chosen: {name} {shown(old.value)}{unless}."
        before = cycle.at(Phase.EVALUATION, projected)
        if cause is not Cause.MISPERCEPTION and not returned.percept.is_error:
            why = f"{reason} {_DOUBT}"
    misled = cycle.run.misled_by(name) if cause is Cause.CHANGED_ENVIRONMENT else None
    if misled is not None:
        why = f"It may follow from cycle {misled}, where {name} was misperceived."
    failure = text
    if returned.percept.is_error:
        failure = ended(f"{returned.percept.source} failed: {returned.why_failed}")
        why = f"{text} {why}"
    fact = name if reason == _ODD_NOW else ""
    evidence = (before, cycle.returned(returned, text))
    return replace(cycle.failure(failure, cause, why, *evidence, fact=fact), follows=misled)


def _no_forecast(
    name: str, value: Any, cycle: ObservedCycle, returned: Return, expected: Facts
) -> bool:
    """Whether a projection cannot have meant a fact so, in a domain that does not say.

    A list that holds more than was predicted is knowledge that has grown. A fact that stayed as
    it was, where other predictions of the action came true, was only reset: nothing is known of
    the new place before.
    """
    domain = cycle.run.domain
    if domain.complete:
        return False
    before, after = domain.facts(returned.before), domain.facts(returned.after)
    was, now = before.get(name), expected[name]
    if all(isinstance(one, list) for one in (was, now, value)):
        seen, meant, held = _items(value), _items(now), _items(was)
        return (meant - held) <= seen and not (held - meant) & seen
    others = (other for other in expected if other != name and before.get(other) != expected[other])
    return value == was and any(after.get(other) == expected[other] for other in others)


def _items(values: object) -> set[str]:
    return {json.dumps(one, sort_keys=True) for one in cast("list[object]", values)}


def _explained(
    name: str, new: Any, old: ObservedFact, cycle: ObservedCycle, returned: Return
) -> tuple[Cause, str]:
    """Whether a sensor lied, then or now, or the world has changed."""
    run = cycle.run
    history, later = run.history(name), run.later(name, cycle, returned.seq)
    before = history[-1].value
    if returned.data.get(name) == new:
        return Cause.CHANGED_ENVIRONMENT, "The action's own result says so too."
    other = next((one for one in later if one.value != new), None)
    if other is not None and other.value == old.value and not other.own:
        return Cause.MISPERCEPTION, _ODD_NOW
    if old.own and before == new:
        return Cause.FAILED_EXECUTION, "The action did not bring about what it was to bring."
    if _was_odd(new, before, history):
        return Cause.MISPERCEPTION, "The reading before is the odd one among those around it."
    unconfirmed = len(history) == 1 and not history[0].own
    if unconfirmed and later and not returned.percept.is_error:
        return Cause.MISPERCEPTION, "One reading alone said otherwise, and none says so again."
    if not run.domain.may_change(name, before, new, name in run.achieved):
        return Cause.MISPERCEPTION, "That does not change so by itself."
    return Cause.CHANGED_ENVIRONMENT, "Nothing that the agent did explains it, and it stays so."


def _was_odd(new: Any, believed: Any, history: Sequence[ObservedFact]) -> bool:
    """Whether an earlier observation agrees with the new one, and only few between them do not."""
    run = 0
    for seen in reversed(history):
        if seen.value == believed and not seen.own:
            run += 1
            continue
        return seen.value == new and run <= 3
    return False


RULES: Sequence[DiagnosisRule] = (
    changed_record,
    missed_record,
    untrue_record,
    partial(unusable_answer, phase=Phase.REASONING),
    false_situation,
    partial(unusable_answer, phase=Phase.PROPOSAL),
    invalid_proposal,
    partial(unusable_answer, phase=Phase.EVALUATION),
    faulty_evaluation,
    partial(unusable_answer, phase=Phase.SELECTION),
    bad_selection,
    early_answer,
    refused_at_last,
    broken_hook,
    contradictory_return,
    broken_tool,
    never_answered,
    refuted_belief,
    refused_by_the_world,
    broken_turn,
)
"""In the order in which the parts of a cycle work: the first that applies is the cause, what
comes behind it are its consequences."""
