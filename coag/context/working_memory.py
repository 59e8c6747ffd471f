"""Working memory: a frozen value that percepts and outcomes change, and nothing else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from pydantic import Field

from coag._util.json_diff import diff_patch, merge_patch
from coag.errors import PhaseViolation, StateError
from coag.memory import CONCLUSION, MEMORY_ACTIONS
from coag.schema import (
    CountedFor,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    SparseValue,
    TokenUsage,
    TraceRecord,
    Trust,
    UnsettledAction,
    Value,
    one_line,
    phase_after,
    shown_text,
)

from .counted import CountedAction, counted_for, with_call
from .prompt_budgets import MemoryLimits

# ---- What was said before the dialogue that working memory keeps: in short, by rules ----


DIALOGUE = "dialogue"
"""The name by which all that was said before is asked for."""
CHARACTERS = 1_600
"""Characters of the notes that are kept, and of a summary that a model wrote."""
_NOTE = 200
"""Characters of one note."""
_SENTENCES = 40
"""Sentences of one message that are looked at."""
_END = re.compile(r"(?<=[.!?])\s+|\n+")
_OWN = re.compile(r"\b(?:i|i'm|i've|i'd|my|mine|me|we|we're|our|us)\b", re.IGNORECASE)
_LASTING = re.compile(
    r"\b(?:always|never|must|only|allerg\w*|prefer\w*|remember|call me|name|named|born|live|lives|"
    r"need|needs|want|wants|deadline|budget|vegan|vegetarian|hate|love|cannot|can't|don't|agreed|"
    r"decided|password|address|because)\b",
    re.IGNORECASE,
)
_EXACT = re.compile(r"\d|\b[A-Z][a-z]+ [A-Z][a-z]+")


class DialogueNote(Value):
    """One sentence of an earlier message that is worth keeping."""

    number: int
    """Which message it is from, counted from the first."""
    speaker: str
    text: str
    weight: int
    """How likely it matters later; the least likely go first."""


class EarlierDialogue(Value):
    """What left the dialogue: how much, and what of it is kept in short."""

    messages: int = 0
    untrusted: bool = False
    """True if somebody untrusted said some of it."""
    summary: str = ""
    """What a model made of the older part, where one was asked."""
    summarized: int = 0
    """Messages that the summary covers, the oldest ones."""
    remarks: tuple[DialogueNote, ...] = ()
    """What rules kept of the rest."""

    def lines(self) -> tuple[str, ...]:
        """The summary, then the remarks in the order in which they were made."""
        remarks = tuple(f"{one.speaker}: {one.text}" for one in self.remarks)
        return (self.summary, *remarks) if self.summary else remarks

    def with_message(
        self, speaker: str, text: str, trust: Trust, *, own: bool, characters: int = CHARACTERS
    ) -> EarlierDialogue:
        """The same with one more message that has left, the agent's `own` or another's.

        The remarks, with their speakers, may have so many characters.
        """
        number = self.messages + 1
        remarks = (*self.remarks, *_remarks(number, speaker, text, own=own))
        room = min(characters, CHARACTERS) - len(self.summary) // 2
        return self.model_copy(
            update={
                "messages": number,
                "untrusted": self.untrusted or trust is Trust.UNTRUSTED,
                "remarks": _worthiest(remarks, room),
            }
        )

    def summed_up(self, summary: str, messages: int) -> EarlierDialogue:
        """The same with a model's summary in place of the remarks on so many messages."""
        rest = tuple(one for one in self.remarks if one.number > messages)
        changes = {"summary": summary[:CHARACTERS], "summarized": messages, "remarks": rest}
        return self.model_copy(update=changes)


def _remarks(number: int, speaker: str, text: str, *, own: bool) -> Iterable[DialogueNote]:
    """The sentences of a message that may matter; of the agent's own ones the first."""
    sentences = [part.strip() for part in _END.split(text[:20_000]) if part.strip()]
    for place, sentence in enumerate(sentences[: 1 if own else _SENTENCES]):
        weight = 1 if place == 0 else 0
        if not own:
            weight += 2 * bool(_LASTING.search(sentence)) + bool(_EXACT.search(sentence))
            weight += 0 if sentence.endswith("?") else 2 * bool(_OWN.search(sentence))
        if weight:
            note = one_line(sentence, _NOTE)
            yield DialogueNote(number=number, speaker=speaker, text=note, weight=weight)


def _worthiest(remarks: tuple[DialogueNote, ...], characters: int) -> tuple[DialogueNote, ...]:
    """The remarks that matter most, the newer of two alike, in so many characters."""
    retained: list[DialogueNote] = []
    for remark in sorted(remarks, key=lambda one: (-one.weight, -one.number)):
        characters -= len(remark.text) + len(remark.speaker) + 3
        if characters < 0:
            break
        retained.append(remark)
    return tuple(sorted(retained, key=lambda one: one.number))


# ---- Working memory: everything the agent holds about one activity now, as a value ----


DIALOGUE_LIMIT = 200
"""Messages kept in working memory, as far as `MemoryLimits.dialogue` allows; of older ones what
`EarlierDialogue` keeps."""
PAST_ACTIONS_LIMIT = 50
"""Executed actions kept in working memory, as far as `MemoryLimits.results` allows."""
REJECTIONS_LIMIT = 3
"""Cycles whose rejections are kept while nothing is done in the environment."""
PAST_RESULT_TEXT = 300
"""Characters of a result that stay where there is no room for the whole."""
TAINT_SOURCES = 50
"""Names of sources of untrusted text that are kept, and as many ids of records; the newest."""
TAINT_TEXT = 4_000
"""Characters of untrusted texts that are kept in all; the newest, each cut to a quarter of it."""


class Utterance(Value):
    """One message of the dialogue, somebody else's or the agent's own."""

    source: str
    own: bool
    """True for what the agent itself answered."""
    trust: Trust
    content: str
    at: datetime
    begins_turn: bool = False
    """True for the first message of a turn."""
    images: tuple[str, ...] = ()
    """Hashes of the images that came with it; the context keeps the images themselves."""
    shown_untrusted: bool = False
    """True for what the agent said after untrusted text was shown to it."""


class PastAction(Value):
    """An action that was executed in an earlier cycle, as the agent remembers it for now."""

    cycle: int
    action: str
    arguments: dict[str, Any]
    status: ExecutionStatus
    internal: bool
    result: str


class RejectedCandidate(Value):
    """A candidate of the previous cycle that did not survive, and why."""

    cycle: int
    action: str
    raw_arguments: str
    constraint: str
    reason: str


class Taint(Value):
    """The untrusted text that an activity was shown; what is concluded since is untrusted too."""

    sources: tuple[str, ...] = ()
    """Tools, senders, sensors, modules and records' origins that it came from."""
    records: tuple[str, ...] = ()
    """Ids of the untrusted records that were recalled."""
    texts: tuple[str, ...] = ()
    """The newest untrusted texts, among them the agent's own answers since."""

    def with_shown(
        self, sources: Iterable[str] = (), *, records: Iterable[str] = (), text: str = ""
    ) -> Taint:
        """The taint with more text, sources and records; itself where nothing of it is new."""
        named = tuple(dict.fromkeys((*self.sources, *sources)))[-TAINT_SOURCES:]
        recalled = tuple(dict.fromkeys((*self.records, *records)))[-TAINT_SOURCES:]
        texts = self.texts
        new = text.strip()[: TAINT_TEXT // 4]
        if new and new not in texts:
            texts = (*texts, new)
            while sum(map(len, texts)) > TAINT_TEXT:
                texts = texts[1:]
        after = Taint(sources=named, records=recalled, texts=texts)
        return self if after == self else after


def _with_recalled(taint: Taint, recalled: RetrievalOutcome) -> Taint:
    """The taint after the recalled records, and those on the tip of the tongue."""
    for hit in recalled.records:
        record, origin = hit.record, hit.record.provenance
        if origin.trust is Trust.UNTRUSTED:
            shown = () if origin.source_kind == CONCLUSION else (origin.source,)
            sources = (*shown, *origin.shown)
            taint = taint.with_shown(sources, records=[record.id], text=shown_text(hit))
    for felt in recalled.felt:
        if felt.trust is Trust.UNTRUSTED:
            taint = taint.with_shown(records=[felt.id], text=felt.cue)
    return taint


def is_untrusted(percept: Percept) -> bool:
    """Whether a percept brings untrusted text from outside.

    An impasse does not: it is the cycle's own report on what the agent proposed.
    """
    return percept.trust is Trust.UNTRUSTED and percept.kind is not PerceptKind.IMPASSE


class GoalCost(Value):
    """What has been spent on the goal."""

    usage: TokenUsage = TokenUsage()
    seconds: float = 0.0
    """From the end of Retrieval to the end of Execution, of every cycle."""


_CALLS = (PerceptKind.TOOL_RETURN, PerceptKind.UNKNOWN_OUTCOME, PerceptKind.SETTLED)
"""Kinds of percepts that report on a call."""


class CognitiveState(Value):
    """The outcomes of the current cycle: one field per phase, None until it has been committed."""

    retrieval: RetrievalOutcome | None = None
    reasoning: ReasoningOutcome | None = None
    proposal: ProposalOutcome | None = None
    evaluation: EvaluationOutcome | None = None
    selection: SelectionOutcome | None = None
    execution: ExecutionOutcome | None = None

    @property
    def thought(self) -> str:
        """What the model thought in this cycle, where its client separates that."""
        proposed = "" if self.proposal is None else self.proposal.thought
        return proposed or ("" if self.reasoning is None else self.reasoning.thought)


class WorkingMemory(SparseValue):
    """Everything the agent holds about one activity now (CoALA §4.1; CoAG A.1).

    A frozen value: `perceive` and `commit` give the next one. It dumps to JSON and loads to an
    equal value, and a run's working memory is rebuilt from its trace by applying the same two
    functions to the recorded percepts and outcomes.
    """

    SPARSE = frozenset({"counted", "done", "forgotten"})

    activity: str
    goal: str = ""
    goal_trust: Trust = Trust.USER
    """Trust of the source that set the goal."""
    goal_open: bool = False
    """False before the first message and after an answer; the next message sets a new goal."""
    cycle: int = 0
    phase: Phase | None = None
    """The phase committed last; None before the first cycle."""
    perceptual_state: dict[str, Any] = Field(default_factory=dict)
    """The picture of the environment as JSON without nulls; only percepts change it."""
    stale: str | None = None
    """Why the perceptual state is out of date: the domain's hook could not read a percept. None
    while it is not. No later percept corrects it; a reset does, or another state that is loaded."""
    cognitive_state: CognitiveState = CognitiveState()
    spent: GoalCost = GoalCost()
    """What the current goal has cost so far."""
    dialogue: tuple[Utterance, ...] = ()
    percepts: tuple[Percept, ...] = ()
    """What has arrived since the last action; the current cycle deliberates on it."""
    deeds: tuple[PastAction, ...] = ()
    rejections: tuple[RejectedCandidate, ...] = ()
    """What Evaluation rejected in the previous cycle, and in the two before it if nothing has been
    done in the environment since."""
    queued: tuple[Percept, ...] = ()
    """Percepts that an execution brought and that are yet to be perceived."""
    unsettled: tuple[UnsettledAction, ...] = ()
    """External actions whose outcome is not known; each stays until a percept settles it."""
    goal_id: str = ""
    """Tells this goal from every other, the same words at another time included."""
    tainted_by: Taint | None = None
    """The untrusted text that was shown since the activity began; None if there was none."""
    memory_scope: str = ""
    """Whom the agent serves, where the domain knows people apart; empty if nobody is known."""
    earlier: EarlierDialogue | None = None
    """What was said before the dialogue that is kept; None while all of it is."""
    limits: MemoryLimits = MemoryLimits()
    """How much is kept."""
    counted: dict[str, CountedFor] = Field(default_factory=dict[str, CountedFor])
    """The actions that rules in force count, by patterns of their names."""
    done: tuple[CountedAction, ...] = ()
    """The calls of these since they are counted, those of unknown outcome among them."""
    forgotten: dict[str, str] = Field(default_factory=dict[str, str])
    """Actions of which older calls are not kept any more, with the goal of the last of these."""

    @property
    def in_cycle(self) -> bool:
        """True between the first and the last phase of a cycle."""
        return self.phase is not None and self.phase is not Phase.EXECUTION

    def said_by_user(self) -> tuple[str, ...]:
        """What the user said, as far as it is kept: the goal first, if it is his."""
        goal = (self.goal,) if self.goal and self.goal_trust is Trust.USER else ()
        texts = (one.content for one in self.dialogue if one.trust is Trust.USER and not one.own)
        return tuple(dict.fromkeys((*goal, *texts)))

    def perceive(self, percept: Percept) -> WorkingMemory:
        """The working memory after `percept`, whose `state_patch` must be set.

        Raises:
            StateError: The percept carries no state change yet; give it to the context.
        """
        if percept.state_patch is None:
            raise StateError(
                f"Percept {percept.id!r} has no state_patch. Give it to CoagContext.perceive, "
                "which asks the domain's hook what it changes."
            )
        brought = any(waiting.id == percept.id for waiting in self.queued)
        return self._served(percept.memory_scope, keep_open_turn=brought)._taking(percept)

    def of_another(self, percept: Percept) -> bool:
        """Whether a percept shows the outcome of an action done for somebody else."""
        scopes = {one.memory_scope for one in self.unsettled if one.intent_id == percept.caused_by}
        settled = percept.kind is PerceptKind.SETTLED
        return settled and bool(scopes) and scopes.isdisjoint(("", self.memory_scope))

    def leaves_person(self, event: Percept | Outcome) -> bool:
        """Whether, after an event, the agent does not serve its present person any more."""
        scope = event.memory_scope if isinstance(event, Percept | RetrievalOutcome) else None
        return bool(self.memory_scope) and scope is not None and scope != self.memory_scope

    def _taking(self, percept: Percept) -> WorkingMemory:
        arrived = () if self.of_another(percept) else (percept,)
        changes: dict[str, Any] = {
            "percepts": (*self.percepts, *arrived)[-self.limits.percepts :],
            "queued": tuple(waiting for waiting in self.queued if waiting.id != percept.id),
        }
        if percept.kind is PerceptKind.UNKNOWN_OUTCOME or percept.settles:
            changes["unsettled"] = self._unsettled_after(percept)
        if percept.kind in _CALLS and counted_for(percept.source, self.counted):
            changes |= self._counting(percept)
        if is_untrusted(percept):
            changes["tainted_by"] = (self.tainted_by or Taint()).with_shown(
                [percept.source], text=percept.content
            )
        if percept.hook_problem is not None:
            changes["stale"] = self.stale or percept.hook_problem
        if percept.state_patch:
            changes["perceptual_state"] = merge_patch(self.perceptual_state, percept.state_patch)
        if percept.kind is PerceptKind.MESSAGE:
            own = percept.trust is Trust.DEVELOPER  # what the agent said in an earlier life
            said = Utterance(
                source=percept.source,
                own=own,
                trust=percept.trust,
                content=percept.content,
                at=percept.at,
                begins_turn=percept.begins_turn,
                images=tuple(percept.images),
            )
            shown = percept.model_copy(update={"images": {}})
            changes |= _saying(self, said) | ({"goal_open": False} if own else {})
            changes["percepts"] = (*self.percepts, shown)[-self.limits.percepts :]
        if percept.sets_goal:
            # From what is in the trace alone: a resumed or replayed goal is the same one.
            about = f"{percept.at.isoformat()} {percept.id} {percept.source} {percept.content}"
            changes |= {
                "goal": percept.content,
                "goal_trust": percept.trust,
                "goal_open": True,
                "goal_id": hashlib.sha256(about.encode(errors="surrogatepass")).hexdigest()[:32],
                "spent": GoalCost(),
                "done": tuple(
                    one for one in self.done if counted_for(one.action, self.counted) - {"goal"}
                ),
            }
        return self.model_copy(update=changes)

    def _counting(self, percept: Percept) -> dict[str, Any]:
        done, gone = with_call(self.done, percept, self.goal_id, self.memory_scope)
        older = {} if gone is None else {gone.action: gone.goal_id}
        return {"done": done, "forgotten": {**self.forgotten, **older}}

    def _served(self, scope: str | None, *, keep_open_turn: bool) -> WorkingMemory:
        """Working memory for another person: without what was said, found and done for the last.

        Actions of unknown outcome stay, or they could be done twice; so do the names of untrusted
        sources. The request of an open turn stays where an action brought the person.
        """
        if scope is None or scope == self.memory_scope:
            return self
        if not self.memory_scope:  # nobody was known: the speaker is the one who is known now
            return self.model_copy(update={"memory_scope": scope})
        retained = keep_open_turn and self.goal_open
        started = [n for n, one in enumerate(self.dialogue) if one.begins_turn or one.own]
        first = started[-1] + self.dialogue[started[-1]].own if started else 0
        open_turn = self.dialogue[first:] if retained else ()
        goal, texts = self.goal, {one.content for one in open_turn}
        if open_turn and goal not in texts:  # of an earlier turn that failed
            goal = open_turn[0].content
        return self.model_copy(
            update={
                "memory_scope": scope,
                "dialogue": open_turn,
                "goal": goal if retained else "",
                "goal_open": retained,
                "percepts": (),
                "deeds": (),
                "earlier": None,
                "rejections": (),
                "tainted_by": self.tainted_by and Taint(sources=self.tainted_by.sources),
                "cognitive_state": self.cognitive_state if self.in_cycle else CognitiveState(),
            }
        )

    def _unsettled_after(self, percept: Percept) -> tuple[UnsettledAction, ...]:
        unsettled = tuple(one for one in self.unsettled if one.intent_id not in percept.settles)
        if percept.kind is not PerceptKind.UNKNOWN_OUTCOME:
            return unsettled
        started = UnsettledAction(
            intent_id=percept.caused_by or percept.id,
            action=percept.source,
            arguments=percept.arguments or {},
            cycle=self.cycle,
            memory_scope=self.memory_scope,
        )
        return (*(one for one in unsettled if one.intent_id != started.intent_id), started)

    def commit(self, outcome: Outcome) -> WorkingMemory:
        """The working memory after a phase's outcome.

        Raises:
            PhaseViolation: The outcome's phase or cycle is not the one that must come next.
        """
        expected = phase_after(self.phase)
        cycle = self.cycle + 1 if expected is Phase.RETRIEVAL else self.cycle
        if outcome.phase is not expected or outcome.cycle != cycle:
            raise PhaseViolation(
                f"{outcome.phase} of cycle {outcome.cycle} cannot be committed: "
                f"{expected} of cycle {cycle} must come next."
            )
        if isinstance(outcome, RetrievalOutcome):
            served = self._served(outcome.memory_scope, keep_open_turn=True)
            if served is not self:
                return served.commit(outcome)
            cognitive = CognitiveState(retrieval=outcome)
            counted = outcome.counted or self.counted
        else:
            cognitive = self.cognitive_state.model_copy(update={outcome.phase.value: outcome})
            counted = self.counted
        earlier = self.earlier
        if earlier is not None and isinstance(outcome, RetrievalOutcome) and outcome.summary:
            earlier = earlier.summed_up(outcome.summary, outcome.summarized)
        changes: dict[str, Any] = {
            "cycle": cycle,
            "phase": outcome.phase,
            "cognitive_state": cognitive,
            "spent": self._spent_with(outcome),
            "tainted_by": self._tainted_by(outcome),
            "earlier": earlier,
            "counted": counted,
        }
        if isinstance(outcome, ExecutionOutcome):
            changes |= self._after_execution(outcome)
        return self.model_copy(update=changes)

    def _tainted_by(self, outcome: Outcome) -> Taint | None:
        """The taint after what a phase was shown, or what an action of its own brought.

        The actions of memory return what the agent wrote itself; those of modules, anything.
        """
        tells = isinstance(outcome, RetrievalOutcome | ExecutionOutcome)
        if not tells and not outcome.untrusted_from:
            return self.tainted_by
        taint = self.tainted_by or Taint()
        if outcome.untrusted_from:
            taint = taint.with_shown(outcome.untrusted_from)
        if isinstance(outcome, RetrievalOutcome):
            taint = _with_recalled(taint, outcome)
        if isinstance(outcome, ExecutionOutcome):
            for done in outcome.executed:
                own = done.action in MEMORY_ACTIONS or done.result == outcome.response
                if done.internal and done.result and not own:
                    taint = taint.with_shown([done.action], text=done.result)
            if outcome.response is not None and taint != Taint():
                taint = taint.with_shown(text=outcome.response)
        return None if taint == Taint() else taint

    def _spent_with(self, outcome: Outcome) -> GoalCost:
        seconds = 0.0
        started = self.cognitive_state.retrieval
        if isinstance(outcome, ExecutionOutcome) and started is not None:
            seconds = max(0.0, (outcome.at - started.at).total_seconds())
        if not seconds and outcome.usage.nothing:
            return self.spent
        usage = self.spent.usage + outcome.usage
        return GoalCost(usage=usage, seconds=self.spent.seconds + seconds)

    def _after_execution(self, outcome: ExecutionOutcome) -> dict[str, Any]:
        done = tuple(
            PastAction(
                cycle=outcome.cycle,
                action=one.action,
                arguments=one.arguments or {},
                status=one.status,
                internal=one.internal,
                result=one.result,
            )
            for one in outcome.executed
        )
        past = (*self.deeds, *done)[-PAST_ACTIONS_LIMIT:]
        changes: dict[str, Any] = {
            "percepts": (),
            "queued": (*self.queued, *outcome.queued),
            "rejections": _rejections(self, acted=any(not one.internal for one in done)),
            "deeds": _within(past, self.limits.results),
        }
        if outcome.response is None:
            return changes
        answer = Utterance(
            source="self",
            own=True,
            trust=Trust.DEVELOPER,
            content=outcome.response,
            at=outcome.at,
            shown_untrusted=self.tainted_by is not None,
        )
        return changes | _saying(self, answer) | {"goal_open": False}

    def to_json(self) -> dict[str, Any]:
        """This working memory as JSON; `WorkingMemory.model_validate` loads it back."""
        return self.model_dump(mode="json", exclude_none=True)

    def diff(self, later: WorkingMemory) -> dict[str, Any]:
        """What changed until `later`, as a JSON merge patch over `to_json`."""
        return diff_patch(self.to_json(), later.to_json())


def _rejections(memory: WorkingMemory, *, acted: bool) -> tuple[RejectedCandidate, ...]:
    """What was rejected now and, unless something was done, not long before."""
    proposal, evaluation = memory.cognitive_state.proposal, memory.cognitive_state.evaluation
    candidates = {one.id: one for one in proposal.candidates} if proposal else {}
    new = tuple(
        RejectedCandidate(
            cycle=memory.cycle,
            action=candidates[judged.candidate_id].action,
            raw_arguments=candidates[judged.candidate_id].raw_arguments,
            constraint=judged.rejected_by.constraint,
            reason=judged.rejected_by.reason,
        )
        for judged in (evaluation.evaluations if evaluation and proposal else ())
        if judged.rejected_by is not None
    )
    again = {(gone.action, gone.raw_arguments) for gone in new}
    retained = (
        gone
        for gone in memory.rejections
        if gone.cycle > memory.cycle - REJECTIONS_LIMIT
        and (gone.action, gone.raw_arguments) not in again
    )
    return new if acted else (*retained, *new)


def _saying(memory: WorkingMemory, message: Utterance) -> dict[str, Any]:
    """The dialogue with one more message, and what becomes of the oldest ones."""
    dialogue = (*memory.dialogue, message)
    size, first = sum(len(one.content) for one in dialogue), 0
    while first < len(dialogue) - 1 and (
        size > memory.limits.dialogue or len(dialogue) - first > DIALOGUE_LIMIT
    ):
        size -= len(dialogue[first].content)
        first += 1
    if not first:
        return {"dialogue": dialogue}
    earlier = memory.earlier or EarlierDialogue()
    for one in dialogue[:first]:
        speaker = "you" if one.own else one.source
        earlier = earlier.with_message(
            speaker, one.content, one.trust, own=one.own, characters=memory.limits.prompt // 3
        )
    return {"dialogue": dialogue[first:], "earlier": earlier}


def _within(actions: tuple[PastAction, ...], characters: int) -> tuple[PastAction, ...]:
    """The actions, the results of the older ones cut, so that all have so many characters."""
    if sum(len(past.result) for past in actions) <= characters:
        return actions
    retained: list[PastAction] = []
    for number, past in enumerate(reversed(actions)):
        characters -= len(past.result)
        if characters < 0 and number and len(past.result) > PAST_RESULT_TEXT:
            note = f"[the rest of {len(past.result):,} characters is not kept]"
            cut = f"{past.result[:PAST_RESULT_TEXT]}\n{note}"
            retained.append(past.model_copy(update={"result": cut}))
        else:
            retained.append(past)
    return tuple(reversed(retained))


def rebuild(start: WorkingMemory, records: Iterable[TraceRecord]) -> WorkingMemory:
    """The working memory that `start` becomes by a trace's percepts and outcomes, in order.

    Needs no domain code: what a percept changes is written in it.
    """
    memory = start
    for record in records:
        if record.record == "percept":
            memory = memory.perceive(record)
        elif record.record == "outcome":
            memory = memory.commit(record)
    return memory
