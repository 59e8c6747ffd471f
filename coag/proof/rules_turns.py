"""Rules on working memory, turns, cycles, model calls and ids; and those on plain runs."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, cast

from pydantic import ValidationError

from coag.context import CoagContext, CognitiveState, WorkingMemory
from coag.models import usage_of
from coag.schema import (
    PHASES,
    RESUMED,
    UNPERCEIVED,
    ExecutionOutcome,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Receipt,
    ReceiptStatus,
    Snapshot,
    SnapshotReason,
    TokenUsage,
    TurnEnd,
    TurnStart,
    parsed_arguments,
    phase_after,
)

from .findings import (
    HOOKED,
    Checker,
    Findings,
    Rule,
    RuleFinding,
    differences,
    fields_but,
    remark,
    same,
    same_json,
    shown,
)

# ---- Working memory: percepts and outcomes alone lead to what snapshots hold ----


_BY_PERCEIVING = frozenset(UNPERCEIVED)
"""Fields of a percept that are set when it is perceived."""
_QUEUED_ONLY = (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME, PerceptKind.IMPASSE)
"""Kinds that only an execution brings about."""
_REASONS_SINCE = 2
"""The version since which snapshots say why they were written."""


class StateRules(Checker):
    """Rebuilds working memory from percepts and outcomes, and compares snapshots with it.

    It is given a record after the other rules, which see in `memory` the state before.
    """

    def __init__(self, *, version: int, cut: bool, hooks: CoagContext[Any] | None = None) -> None:
        self.memory: WorkingMemory | None = None
        """The working memory before the record at hand; None as long as it is not known."""
        self.foreign = cut
        """Whether what is not in this trace led to the present state: a state was loaded, the
        run was forked, or its first records are gone."""
        self.uncertain = False
        """After a violation that leaves the memory uncertain, until the next snapshot."""
        self._old = version < _REASONS_SINCE
        self._hooks = hooks
        self._first = True
        self._ready = False
        self._remarked = self._old or cut

    @property
    def certain(self) -> WorkingMemory | None:
        """The working memory before the record at hand; None while it is not known for sure."""
        return None if self.uncertain else self.memory

    def end(self, *, finished: bool) -> Findings:
        """An unfinished cycle occurs only at the end of an unfinished run."""
        if finished and self.certain is not None and self.certain.in_cycle:
            stops = f"its last cycle stops after {self.certain.phase}"
            yield Rule.PHASE.says(f"The run has ended, but {stops}.")

    def on_snapshot(self, record: Snapshot) -> Findings:
        """A snapshot of a cycle's beginning is what the records before it lead to."""
        first, self._first = self._first, False
        if record.reason is not SnapshotReason.CYCLE:
            yield from self._begin_elsewhere(record, first=first)
            return
        self._ready = True
        yield from self._all_perceived("the next cycle")
        memory = self.certain
        if memory is None:
            yield from self._adopt(record)
            return
        if memory.in_cycle:
            begun = f"cycle {memory.cycle} has only reached {memory.phase}"
            yield Rule.SNAPSHOT.says(f"A snapshot says that a cycle begins, but {begun}.")
        difference = _memory_difference(memory, record, old=self._old)
        if difference is not None:
            ours, theirs = ("nothing" if one is None else shown(one) for one in difference[1:])
            says = f"The snapshot says that working memory's {difference[0]} is {theirs}"
            yield Rule.MEMORY.says(f"{says}; the records before it lead to {ours}.")
            yield from self._adopt(record)

    def _begin_elsewhere(self, record: Snapshot, *, first: bool) -> Findings:
        reason = record.reason
        if not first and reason is not SnapshotReason.LOADED:
            where = "is in the middle of the run; only its first one can be that"
            yield Rule.SNAPSHOT.says(f"A snapshot of reason {shown(reason)} {where}.")
        if reason is SnapshotReason.LOADED and not self._old:
            yield remark("A saved state was loaded here; what led to it is not in this trace.")
        self._ready = self._old  # version 1 does not always show a loaded state
        yield from self._adopt(record)
        begun = self.memory is not None and (self.memory.cycle or self.memory.queued)
        if reason is not SnapshotReason.OPENED or begun:
            self.foreign = True

    def _adopt(self, record: Snapshot) -> Findings:
        try:
            self.memory = WorkingMemory.model_validate(record.working_memory)
        except ValidationError as error:
            where = shown(".".join(map(str, error.errors(include_url=False)[0]["loc"])))
            self.uncertain = True
            yield Rule.SNAPSHOT.says(f"The snapshot's working memory cannot be read: {where}.")
            return
        self.uncertain = False
        cycle = self.memory.cycle
        if cycle != record.cycle:
            text = f"The snapshot is of cycle {record.cycle}"
            yield Rule.SNAPSHOT.says(f"{text}, its working memory of cycle {cycle}.")

    def on_percept(self, record: Percept) -> Findings:
        """What is perceived was brought by an execution or arrived, and changed what it may."""
        memory = self.memory
        if memory is None:
            if not self._remarked:
                self._remarked = True
                yield remark("The run does not begin with a snapshot, so this is not checked.")
            return
        yield from self._check_origin(record, memory)
        if record.state_patch is None:
            yield Rule.PERCEPT.says(f"Percept {shown(record.id)} does not say what it changed.")
            record = record.model_copy(update={"state_patch": {}})
        else:
            yield from check_patch(record)
        if self._hooks is not None and not self.uncertain:
            self._hooks.restore(memory)
            again = self._hooks.perceive(record.model_copy(update=UNPERCEIVED))
            for name in sorted(_BY_PERCEIVING):
                recorded, computed = getattr(record, name), getattr(again, name)
                if not same_json(recorded, computed):
                    named = f"Percept {shown(record.id)} is recorded with {name} {shown(recorded)}"
                    yield Rule.HOOK.says(f"{named}; the domain's hook gives {shown(computed)}.")
        open_ones = {one.intent_id for one in memory.unsettled}
        unknown = [one for one in record.settles if one not in open_ones]
        nothing = record.kind is PerceptKind.SETTLED and not record.settles
        if not self.uncertain and (unknown or nothing):
            what = shown(", ".join(unknown) or record.caused_by or "nothing")
            yield Rule.PERCEPT.says(
                f"Percept {shown(record.id)} settles {what}, whose outcome was not unknown."
            )
        self.memory = memory.perceive(record)

    def _check_origin(self, record: Percept, memory: WorkingMemory) -> Findings:
        waiting = next((one for one in memory.queued if one.id == record.id), None)
        if waiting is None:
            if record.kind in _QUEUED_ONLY and not self.uncertain:
                named = f"Percept {shown(record.id)}, a {record.kind} of {shown(record.source)}"
                yield Rule.PERCEPT.says(
                    f"{named}, was brought by no execution, or perceived before."
                )
            return
        brought = fields_but(waiting, _BY_PERCEIVING)
        for name, value in fields_but(record, _BY_PERCEIVING).items():
            if not same_json(brought[name], value):
                came = f"was brought with {name} {shown(brought[name])}"
                yield Rule.PERCEPT.says(
                    f"Percept {shown(record.id)} {came} and perceived with {shown(value)}."
                )

    def _all_perceived(self, before: str) -> Findings:
        memory = self.memory
        if memory is not None and memory.queued:
            if not self.uncertain:
                ids = ", ".join(shown(percept.id) for percept in memory.queued)
                text = "Brought by an execution and not perceived"
                yield Rule.PERCEPT.says(f"{text} before {before}: {ids}.")
            self.memory, self.uncertain = memory.model_copy(update={"queued": ()}), True

    def on_turn_end(self, record: TurnEnd) -> Findings:
        """A turn ends between cycles, with everything perceived."""
        yield from self._all_perceived("the turn's end")
        memory = self.certain
        if memory is not None and memory.in_cycle:
            where = f"in cycle {memory.cycle}, after its {memory.phase}"
            yield Rule.PHASE.says(f"The turn ends {where}.")

    def on_outcome(self, record: Outcome) -> Findings:
        """Outcomes come in the order of the phases, in cycles that count up by one."""
        begins = record.phase is Phase.RETRIEVAL
        if self.memory is None:
            self.memory, self.uncertain = WorkingMemory(activity=""), True
            yield Rule.SNAPSHOT.says("An outcome comes before the first snapshot.")
        if begins:
            yield from self._all_perceived("the next cycle")
            if not self._ready and not self.uncertain:
                yield Rule.SNAPSHOT.says(f"Cycle {record.cycle} does not begin with a snapshot.")
            self._ready = False
        expected = phase_after(self.memory.phase)
        cycle = self.memory.cycle + (expected is Phase.RETRIEVAL)
        if (record.phase, record.cycle) != (expected, cycle):
            if not (self.uncertain and self.memory.phase is None):
                here, due = (
                    f"{record.phase} of cycle {record.cycle}",
                    f"{expected} of cycle {cycle}",
                )
                yield Rule.PHASE.says(f"{here} is recorded where {due} must come next.")
            self._skip_to(record, self.memory)
        if isinstance(record, ExecutionOutcome):
            self._drop_strangers(self.memory)
        self.memory = self.memory.commit(record)

    def _skip_to(self, record: Outcome, memory: WorkingMemory) -> None:
        self.uncertain = True
        before = PHASES.index(record.phase) - 1
        changes: dict[str, Any] = {
            "phase": Phase.EXECUTION if before < 0 else PHASES[before],
            "cycle": record.cycle - (before < 0),
        }
        if record.cycle != memory.cycle:
            changes["cognitive_state"] = CognitiveState()
        self.memory = memory.model_copy(update=changes)

    def _drop_strangers(self, memory: WorkingMemory) -> None:
        """Drops evaluations of candidates that nobody proposed, which `CandidateRules` reports."""
        cognitive = memory.cognitive_state
        if cognitive.proposal is None or cognitive.evaluation is None:
            return
        known = {one.id for one in cognitive.proposal.candidates}
        judged = cognitive.evaluation.evaluations
        proposed = tuple(one for one in judged if one.candidate_id in known)
        if len(proposed) < len(judged):
            self.uncertain = True
            evaluation = cognitive.evaluation.model_copy(update={"evaluations": proposed})
            changed = cognitive.model_copy(update={"evaluation": evaluation})
            self.memory = memory.model_copy(update={"cognitive_state": changed})


def _memory_difference(
    memory: WorkingMemory, record: Snapshot, *, old: bool
) -> tuple[str, object, object] | None:
    """The first difference of a rebuilt memory from the recorded one, with both values."""
    ours, theirs = memory.to_json(), record.working_memory
    if ours == theirs:
        return None
    if old:  # fields that came later are not in it
        ours = {name: held for name, held in ours.items() if name in theirs}
    difference = next(differences(ours, theirs), None)
    if difference is None:
        return None
    try:  # fields within that came later have their defaults
        read = WorkingMemory.model_validate(theirs).to_json()
    except ValidationError:
        return difference
    return next(differences(ours, {name: it for name, it in read.items() if name in ours}), None)


def check_patch(record: Percept) -> Findings:
    """Only what a domain's hook reads changes the perceptual state."""
    if record.state_patch and record.kind not in HOOKED:
        changed = f"changed the perceptual state by {shown(record.state_patch)}"
        named = f"Percept {shown(record.id)}, a {record.kind}"
        yield Rule.PERCEPT.says(f"{named}, {changed}; messages and impasses may not.")


def is_closing(outcome: ExecutionOutcome) -> bool:
    """Whether an execution ends an interrupted cycle, and is neither an act nor an impasse."""
    return outcome.action is None and not outcome.batch and outcome.result != "impasse"


# ---- Turns, and the model calls within them ----


class TurnRules(Checker):
    """Turns begin and end in order, cycles are within them, and their answers are theirs."""

    def __init__(self, state: StateRules) -> None:
        self._state = state
        self._turn: int | None = None
        """The last turn that began; None if not known."""
        self._open: bool | None = None if state.foreign else False
        """Whether it is still open; None if not known."""
        self._bare = False
        """Whether nothing has happened in it yet."""
        self._response: str | None = None

    def end(self, *, finished: bool) -> Findings:
        """A finished run has finished its turns."""
        if finished and self._open and not self._bare:
            yield Rule.TURN.says(f"The run has ended in the middle of turn {self._turn}.")

    def on_percept(self, record: Any) -> None:
        """Something happened in the turn."""
        self._bare = False

    on_model_call = on_intent = on_percept

    def on_snapshot(self, record: Snapshot) -> None:
        """A loaded or forked state may be in the middle of another turn."""
        if record.reason == "loaded":
            self._turn = None  # turns are counted from the loaded state on
        if record.reason == "forked" and self._turn is None:
            self._open = None  # it continues a turn that began in its parent
        self._bare = self._bare and record.reason != "cycle"

    def on_turn_start(self, record: TurnStart) -> Findings:
        """Turns count up, one after the other."""
        turn, before = record.turn, self._turn
        again = self._bare and turn == before  # a crash took all but the turn's start
        if self._open and not again:
            yield Rule.TURN.says(f"Turn {turn} begins while turn {before} is open.")
        if before is not None and turn <= before and not again:
            yield Rule.TURN.says(f"Turn {turn} follows turn {before}.")
        elif before is not None and turn > before + 1:
            yield remark(
                f"Turn {turn} follows turn {before}: others were not recorded, or not begun."
            )
        yield from self._check_cycle(record)
        self._turn, self._open, self._bare, self._response = turn, True, True, None

    def on_turn_end(self, record: TurnEnd) -> Findings:
        """A turn ends that is open, with the agent's answer."""
        if self._open is False:
            yield Rule.TURN.says(f"Turn {record.turn} ends, and none is open.")
        elif self._turn is not None and record.turn != self._turn:
            yield Rule.TURN.says(f"Turn {record.turn} ends while turn {self._turn} is open.")
        yield from self._check_cycle(record)
        if self._open and not self._state.uncertain:
            response, answered = self._response, record.reason == "respond"
            if answered and response is None:
                text = f"Turn {record.turn} ends with an answer, but no action answered."
                yield Rule.TURN.says(text)
            interrupted = record.reason in ("cancelled", "error")
            if response is not None and not interrupted and not same(record.response, response):
                ended, answer = shown(record.response), shown(response)
                yield Rule.TURN.says(
                    f"Turn {record.turn} ends with {ended}; the answer was {answer}."
                )
        self._turn, self._open, self._bare = record.turn, False, False

    def _check_cycle(self, record: TurnStart | TurnEnd) -> Findings:
        memory = self._state.certain
        if memory is not None and record.cycle != memory.cycle:
            named = f"Turn {record.turn} names cycle {record.cycle}"
            yield Rule.TURN.says(f"{named} in cycle {memory.cycle}.")

    def on_outcome(self, record: Outcome) -> Findings:
        """Outcomes are within turns."""
        self._bare = False
        if self._open is False and not self._state.uncertain and not self._may_close(record):
            of_cycle = f"{record.phase} of cycle {record.cycle}"
            yield Rule.TURN.says(f"{of_cycle} is outside of any turn.")
        if isinstance(record, ExecutionOutcome) and record.response is not None:
            self._response = record.response

    def _may_close(self, record: Outcome) -> bool:
        """Outside of turns only the rest of a cycle that a loaded state was in is closed."""
        acts = isinstance(record, ExecutionOutcome) and not is_closing(record)
        return self._state.foreign and record.phase is not Phase.RETRIEVAL and not acts


class CallRules(Checker):
    """Models are asked by the phase at work, and what that uses is in its outcome.

    Counts of ids never go back, and are not behind the model calls that were numbered.
    """

    def __init__(self, state: StateRules, version: int) -> None:
        self._state = state
        self._tells_of_resuming = version > 1
        self._calls: list[ModelCall] = []
        """Those since the last outcome."""
        self._lost: RuleFinding | None = None
        """A missing usage, which is right if the cycle turns out to be interrupted."""
        self._counts: dict[str, int] = {}

    def on_snapshot(self, record: Snapshot) -> Findings:
        """Calls before it are of no outcome, and its counts cover the ids before it."""
        self._calls = []
        for kind, known in self._counts.items() if record.ids else ():
            if (count := record.ids.get(kind, 0)) < known:
                given = f"The snapshot says that {count} ids of {shown(kind)} had been given"
                yield Rule.SNAPSHOT.says(f"{given}; there were {known} before it.")
        self._counts |= record.ids

    def on_note(self, record: Note) -> None:
        """Calls before a resumption are of an interrupted phase, which begins again."""
        if record.about == RESUMED:
            self._calls = []

    def on_model_call(self, record: ModelCall) -> Findings:
        """The call is of the phase and the cycle at work; Retrieval asks for a summary."""
        if match := _CALL.fullmatch(record.id):  # nobody outside of the run numbers model calls
            self._counts["call"] = max(int(match[1]), self._counts.get("call", 0))
        memory = self._state.certain
        if memory is None:
            return
        self._calls.append(record)
        phase = phase_after(memory.phase)
        cycle = memory.cycle + (phase is Phase.RETRIEVAL)
        if phase is Phase.EXECUTION or (record.phase, record.cycle) != (phase, cycle):
            named = f"Call {shown(record.id)} is of {record.phase} in cycle {record.cycle}"
            yield Rule.MODEL_CALL.says(f"{named}; it was recorded in {phase} of cycle {cycle}.")

    def on_outcome(self, record: Outcome) -> Findings:
        """The outcome's usage is the sum of its calls."""
        calls, self._calls = self._calls, []
        self._lost = None if record.phase is Phase.RETRIEVAL else self._lost
        if self._state.certain is None:
            return
        used, of_cycle = usage_of(calls), f"{record.phase} of cycle {record.cycle}"
        again = 0 if record.usage == used else self._asked_again(record, calls)
        if again:
            calls = f"{again} model calls of {record.phase} in cycle {record.cycle}"
            why = "the phase was interrupted and begun again, or they were added"
            yield remark(f"{calls} are in no outcome: {why}.")
        elif record.usage != used:
            wrong = Rule.USAGE.says(
                f"{of_cycle} has the usage {_words(record.usage)}; its model calls used "
                f"{_words(used)}.",
                self.log.seq,
            )
            if record.usage.nothing:
                self._lost = self._lost or wrong
            else:
                yield wrong
        if isinstance(record, ExecutionOutcome) and self._lost is not None:
            if not is_closing(record):
                yield self._lost
            self._lost = None

    def _asked_again(self, record: Outcome, calls: list[ModelCall]) -> int:
        """How many first calls are in no outcome because a crash broke the phase off.

        Only traces of version 1 do not say that a run was resumed.
        """
        for number, call in enumerate(calls[1:], start=1):
            if self._tells_of_resuming:
                break
            if call.attempt == 1 and usage_of(calls[number:]) == record.usage:
                return number
        return 0


_CALL = re.compile(r"call-(\d{6,12})")


def _words(usage: TokenUsage) -> str:
    cost = f", cost {usage.cost:g}" if usage.cost else ""
    return (
        f"{usage.calls} calls, {usage.prompt_tokens} + {usage.completion_tokens} tokens "
        f"({usage.cached_tokens} cached){cost}"
    )


# ---- The trace of an agent that calls its tools without deliberation ----


_UNKNOWN = (ReceiptStatus.UNKNOWN, ReceiptStatus.CANCELLED)


class PlainRules(Checker):
    """Turns in order and no phases; every action was asked for and allowed, and has one receipt."""

    def __init__(self, *, cut: bool) -> None:
        self._cut = cut
        self._turn: int | None = None
        self._in_turn = False
        self._open: dict[str, Intent] = {}
        self._ended: dict[str, Receipt] = {}
        self._known: set[str] = set()
        self._wanted: Counter[str] | None = None
        """Tool calls of this turn's answers that were not run yet; None without model calls."""
        self._allowed: dict[str, bool] = {}
        """Whether the rules let a call pass, by its id, as they were asked last."""

    def end(self, *, finished: bool) -> Findings:
        """Whatever was begun has its receipt; an agent that raised has not ended its turn."""
        if finished and self._in_turn:
            yield remark(f"The run has ended in the middle of turn {self._turn}.")
        for intent in self._open.values():
            text = f"Intent {shown(intent.id)} ({intent.action}) has no receipt."
            yield Rule.RECEIPT.says(text) if finished else remark(text)

    def on_turn_start(self, record: TurnStart) -> Findings:
        """Turns count up by one."""
        if self._in_turn:
            yield Rule.TURN.says(f"Turn {record.turn} begins while turn {self._turn} is open.")
        if self._turn is not None and record.turn != self._turn + 1:
            yield Rule.TURN.says(f"Turn {record.turn} follows turn {self._turn}.")
        self._turn, self._in_turn, self._wanted = record.turn, True, None

    def on_turn_end(self, record: TurnEnd) -> Findings:
        """A turn ends that is open."""
        if not self._in_turn and self._turn is not None:
            yield Rule.TURN.says(f"Turn {record.turn} ends, and none is open.")
        elif self._turn not in (None, record.turn):
            yield Rule.TURN.says(f"Turn {record.turn} ends while turn {self._turn} is open.")
        self._turn, self._in_turn = record.turn, False

    def on_model_call(self, record: ModelCall) -> Findings:
        """A call is of its turn and of no phase; its tool calls may be run, each once."""
        named = f"Call {shown(record.id)}"
        if record.phase is not None:
            text = f"{named} is of the phase {record.phase}; a plain agent has none."
            yield Rule.MODEL_CALL.says(text)
        if self._turn is not None and record.cycle != self._turn:
            yield Rule.MODEL_CALL.says(f"{named} names turn {record.cycle} in turn {self._turn}.")
        self._wanted = Counter() if self._wanted is None else self._wanted
        for call in record.tool_calls:
            self._wanted[_call_key(str(call.get("name", "")), call.get("arguments"))] += 1

    def on_outcome(self, record: Outcome) -> Findings:
        """There are none."""
        text = f"A plain agent has no phases, and here is a {record.phase} outcome."
        yield Rule.PHASE.says(text)

    def on_note(self, record: Note) -> None:
        """The rules have judged a call."""
        call, verdicts = record.details.get("call"), record.details.get("verdicts")
        if record.about == "constraint" and isinstance(call, str) and isinstance(verdicts, list):
            self._allowed[call] = all(map(_allows, cast("list[object]", verdicts)))

    def on_intent(self, record: Intent) -> Findings:
        """What is run was asked for by a model, and let pass by the rules."""
        named = f"Intent {shown(record.id)} ({record.action})"
        if record.id in self._known:
            yield Rule.INTENT.says(f"There are two intents {shown(record.id)}.")
        self._known.add(record.id)
        self._open[record.id] = record
        if record.candidate_id is not None and not self._allowed.pop(record.candidate_id, False):
            text = f"{named} was begun, and the rules did not let it pass before."
            yield Rule.CONSTRAINT.says(text)
        if self._wanted is None:
            return
        key = _call_key(record.action, record.arguments)
        if not self._wanted[key]:
            with_these = f"{named} with {shown(record.arguments)}"
            yield Rule.INTENT.says(f"{with_these} was asked for by no model call of its turn.")
        self._wanted[key] -= 1

    def on_receipt(self, record: Receipt) -> Findings:
        """A receipt ends an intent of its turn."""
        intent = self._open.pop(record.intent_id, None)
        if intent is None:
            has = "has its receipt already" if record.intent_id in self._known else "is not there"
            if not self._cut:
                text = f"A receipt is of intent {shown(record.intent_id)}, which {has}."
                yield Rule.RECEIPT.says(text)
        elif intent.candidate_id is not None:  # under guard: what it returns is perceived
            self._ended[intent.id] = record
        else:
            yield from check_same_cycle(record, intent)

    def on_percept(self, record: Percept) -> Findings:
        """A return is perceived once, as its receipt has it."""
        yield from check_patch(record)
        if record.kind is not PerceptKind.TOOL_RETURN:
            return
        receipt = self._ended.pop(record.caused_by or "", None)
        if receipt is None:
            named = f"Percept {shown(record.id)} is the return of {shown(record.caused_by)}"
            yield Rule.PERCEPT.says(f"{named}, which has not ended, or was perceived before.")
        elif not same(record.content, receipt.content) or receipt.status in _UNKNOWN:
            says = f"The receipt of {shown(receipt.intent_id)} says {receipt.status}"
            content, perceived = shown(receipt.content), shown(record.content)
            yield Rule.RECEIPT.says(f"{says}, {content}; what is perceived of it {perceived}.")


def check_same_cycle(record: Receipt, intent: Intent) -> Findings:
    """A receipt is of its intent's cycle."""
    if record.cycle != intent.cycle:
        of = f"The receipt of {shown(intent.id)} is of cycle {record.cycle}"
        yield Rule.RECEIPT.says(f"{of}, its intent of cycle {intent.cycle}.")


def _allows(verdict: object) -> bool:
    return isinstance(verdict, dict) and cast("dict[str, object]", verdict).get("allowed") is True


def _call_key(action: str, arguments: object) -> str:
    """A call as it can be compared, however it is written."""
    parsed = parsed_arguments(arguments) if isinstance(arguments, str) else arguments
    return f"{action} {json.dumps(parsed, sort_keys=True)}"
