"""Measures of a trace: what a run cost, what became of its actions, what its failures came from.

A `Measure` is a function of a `TraceTally`, which is what was counted of an episode. Tallies add
up, so that an episode is counted when it ends and never has to be read again. A domain that knows
more extends the tally and the measures.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import inf, isinf
from typing import Any, ClassVar, Literal, Self, TypeVar, cast

from pydantic import AliasChoices, ConfigDict, Field

from coag.proof import DomainKnowledge, diagnose
from coag.schema import (
    RESUMED,
    EvaluationOutcome,
    Failure,
    Intent,
    ModelCall,
    Note,
    ProposalOutcome,
    Receipt,
    ReceiptStatus,
    SelectionOutcome,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
    Value,
)

NOT_ATTRIBUTABLE = "not attributable"
"""For a failed run whose trace does not show the cause of its first failure."""
NO_FAILURE_FOUND = "no failure found"
"""The cause of a failed run in whose trace a diagnosis finds no failure."""
_UNKNOWN_ACTION = "action_exists"
"""The check that rejects candidates whose action does not exist."""

TallyT = TypeVar("TallyT", bound="TraceTally")


def _nowhere(text: str) -> object:
    """The place of a result in a domain whose results name none."""
    del text


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceEpisode:
    """A run that is over, as it can be measured from its trace."""

    records: tuple[TraceRecord, ...]
    """The run's trace, in order."""
    success: bool
    """Whether it succeeded, by the environment."""
    tools: frozenset[str] | None = None
    """External actions that exist and do what they promise; None where that is not known."""
    looks: frozenset[str] = frozenset()
    """Those of `tools` that only look and change nothing."""
    gadgets: frozenset[str] = frozenset()
    """External actions that exist and do not do what they promise."""
    shortest: int | None = None
    """The fewest actions to success; None where that is not known."""
    bound: int | None = None
    """How many actions were allowed."""
    domain: DomainKnowledge = field(default_factory=DomainKnowledge)
    """What a diagnosis may use of the domain."""
    where: Callable[[str], object] = _nowhere
    """From a result's text to where the agent then is; None where the text does not say it."""


# ---- counts ----


class Counts(Value):
    """Counts that add up field by field."""

    maxima: ClassVar[frozenset[str]] = frozenset()
    """Fields of which the larger value is taken instead of the sum."""

    def __add__(self, other: Self) -> Self:
        added: dict[str, Any] = {}
        for name in type(self).model_fields:
            pair = (getattr(self, name), getattr(other, name))
            known = [value for value in pair if value is not None]
            largest = name in self.maxima or len(known) < 2
            added[name] = max(known, default=None) if largest else _added(*known)
        return self.model_copy(update=added)


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        counts = Counter(cast("dict[str, int]", one))
        return dict(counts + Counter(cast("dict[str, int]", other)))
    total = one + other
    return round(total, 6) if isinstance(total, float) else total


class Figures(Counts):
    """Actions, model calls, tokens and decisions."""

    maxima = frozenset({"belief_error"})

    actions: int = 0
    """External actions that reached Execution, futile ones and looking included."""
    model_calls: int = 0
    """Requests to the model, failed ones included."""
    questions: int = 0
    """What the model was asked; a question that had to be repeated counts once."""
    unusable_answers: int = 0
    """Questions whose answer stayed unusable, so that a phase fell back; 0 for a plain agent."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the server took from its cache, where it says so."""
    seconds: float = 0.0
    """Time spent in turns."""
    decisions: dict[str, int] = Field(default_factory=dict[str, int])
    """How many actions were decided by whom: model, rank or only_survivor."""
    rejections: dict[str, int] = Field(default_factory=dict[str, int])
    """How many candidates each check or constraint rejected."""
    phantom_proposals: int = 0
    """Times that an action was wanted that does not exist."""
    phantom_attempts: int = 0
    """Those that reached Execution."""
    belief_error: int | None = None
    """Largest gap between a quantity that the agent states and the true one."""

    def decided_by(self) -> dict[str, float]:
        """The share of the actions that each decided, adding up to 1."""
        total = sum(self.decisions.values())
        return {who: round(count / total, 3) for who, count in sorted(self.decisions.items())}


class ActionCounts(Counts):
    """What became of external actions."""

    acted: int = 0
    """External actions with a known result; looking does not count."""
    failed: int = 0
    """Those that failed and would have failed again."""
    false_affordances: int = 0
    """Actions on what does not exist, or does not do what it promises (a first trial is free)."""
    repeated_mistakes: int = 0
    """Actions that had failed before, in the same place."""
    setbacks: int = 0
    """Times that an action failed and that something followed."""
    unadapted: int = 0
    """Setbacks after which no action worked any more."""
    adaptation_actions: int = 0
    """Actions from setbacks to the next that worked, or to the end."""
    adaptation_seconds: float = 0.0
    """The same in seconds."""


class Blame(Counts):
    """What a diagnosis of the trace says of failures."""

    failures: int = 0
    """Failures that it finds, and failed runs in which it finds none."""
    attributed: int = 0
    """Those with exactly one cause."""
    failed_runs: int = 0
    """Runs that did not succeed."""
    causes: dict[str, int] = Field(default_factory=dict[str, int])
    """Failed runs by the cause of their first failure."""


class CallCounts(Counts):
    """What model calls took, beyond the tokens that figures hold."""

    seconds: float = 0.0
    """Time that the model took."""
    later_prompt_tokens: int = 0
    """Prompt tokens of every call of a cycle but its first."""
    later_cached_tokens: int = 0
    """Those of them that came from the server's cache."""


class TraceTally(Counts):
    """What is counted of one episode, or of several; it can be added up and stored."""

    model_config = ConfigDict(serialize_by_alias=True)

    figures: Figures = Field(default_factory=Figures)
    action_counts: ActionCounts = Field(
        default_factory=ActionCounts,
        validation_alias=AliasChoices("deeds", "action_counts"),
        serialization_alias="deeds",
    )
    """What became of actions; stored as `deeds`, as before."""
    blame: Blame = Field(default_factory=Blame)
    calls: CallCounts = Field(default_factory=CallCounts)
    detours: tuple[int, ...] = ()
    """For each episode, the actions beyond the fewest possible; all that it had for a failed
    one."""


def tally_of(episode: TraceEpisode, belief_error: int | None = None) -> TraceTally:
    """Everything that is counted of an episode from its trace."""
    known = None if episode.tools is None else episode.tools | episode.gadgets
    figures = figures_of(episode.records, known, belief_error)
    spent = figures.actions if episode.success else max(figures.actions, episode.bound or 0)
    return TraceTally(
        figures=figures,
        action_counts=action_counts_of(episode),
        blame=blame_of(episode),
        calls=_calls_of(episode.records),
        detours=(max(0, spent - (episode.shortest or 0)),),
    )


def blame_of(episode: TraceEpisode) -> Blame:
    """How many failures a diagnosis finds in an episode's trace, and how many have one cause."""
    faults = diagnose(episode.records, domain=episode.domain)
    attributed = sum(one.cause is not None for one in faults)
    if episode.success:
        return Blame(failures=len(faults), attributed=attributed)
    first = (faults[0].cause or NOT_ATTRIBUTABLE) if faults else NO_FAILURE_FOUND
    return Blame(
        failures=max(1, len(faults)), attributed=attributed, failed_runs=1, causes={str(first): 1}
    )


def _calls_of(records: Iterable[TraceRecord]) -> CallCounts:
    seconds, prompted, cached = 0.0, 0, 0
    cycle: int | None = None
    for record in records:
        if isinstance(record, ModelCall):
            seconds += record.seconds
            if record.cycle == cycle:
                prompted += record.usage.prompt_tokens
                cached += record.usage.cached_tokens
            cycle = record.cycle
    return CallCounts(
        seconds=round(seconds, 6), later_prompt_tokens=prompted, later_cached_tokens=cached
    )


@dataclass(slots=True)
class _FigureCounter:
    known: frozenset[str] | None
    usage: TokenUsage = field(default_factory=TokenUsage)
    counts: Counter[str] = field(default_factory=Counter[str])
    questions: set[object] = field(default_factory=set[object])
    deliberates: bool = False
    seconds: float = 0.0
    turn_began: datetime | None = None
    previous: datetime | None = None
    """Time of the record before."""
    decisions: Counter[str] = field(default_factory=Counter[str])
    rejections: Counter[str] = field(default_factory=Counter[str])

    def take(self, record: TraceRecord) -> None:
        match record:
            case ModelCall():
                self.counts["model_calls"] += 1
                self.questions.add((record.cycle, record.phase) if record.phase else record.id)
                self.usage += record.usage
                self.counts["wanted"] += sum(self._unknown(c["name"]) for c in record.tool_calls)
            case Intent():
                self.counts["actions"] += 1
                self.counts["attempts"] += self._unknown(record.action)
            case ProposalOutcome():
                self.deliberates = True
            case EvaluationOutcome():
                rejected = [e.rejected_by.constraint for e in record.evaluations if e.rejected_by]
                self.rejections.update(rejected)
                self.counts["wanted"] += rejected.count(_UNKNOWN_ACTION)
            case SelectionOutcome() if record.decided_by is not None:
                self.decisions[record.decided_by.value] += 1
            case Note(about="fallback"):
                self.counts["unusable"] += 1
            case TurnStart():
                self.turn_began = record.at
            case TurnEnd() if self.turn_began is not None:
                self.seconds += (record.at - self.turn_began).total_seconds()
                self.turn_began = None
            case Note(about=about) if about == RESUMED and self.turn_began and self.previous:
                self.turn_began += record.at - self.previous  # no process played meanwhile
            case _:
                pass
        self.previous = record.at

    def _unknown(self, action: object) -> bool:
        return self.known is not None and action not in self.known


def figures_of(
    records: Iterable[TraceRecord], known: Iterable[str] | None, belief_error: int | None = None
) -> Figures:
    """The figures of a run.

    Args:
        records: Its trace, in order.
        known: Names of the tools that exist; None where that is not known.
        belief_error: The gap in its beliefs, measured elsewhere.
    """
    counter = _FigureCounter(known=None if known is None else frozenset(known))
    for record in records:
        counter.take(record)
    counts, decisions = counter.counts, counter.decisions
    if not counter.deliberates and counts["actions"]:
        decisions = Counter({"model": counts["actions"]})
    return Figures(
        actions=counts["actions"],
        model_calls=counts["model_calls"],
        questions=len(counter.questions),
        unusable_answers=counts["unusable"],
        prompt_tokens=counter.usage.prompt_tokens,
        completion_tokens=counter.usage.completion_tokens,
        cached_tokens=counter.usage.cached_tokens,
        seconds=round(counter.seconds, 3),
        decisions=dict(decisions),
        rejections=dict(counter.rejections),
        phantom_proposals=counts["wanted"],
        phantom_attempts=counts["attempts"],
        belief_error=belief_error,
    )


@dataclass(slots=True)
class _ActionCounter:
    episode: TraceEpisode
    counts: Counter[str] = field(default_factory=Counter[str])
    worked: int = 0
    place: object = None
    failures: set[tuple[str, object]] = field(default_factory=set[tuple[str, object]])
    gadget_uses: Counter[str] = field(default_factory=Counter[str])
    setback: datetime | None = None
    """Time of a failed action after which none has worked yet."""
    since: int = 0
    """Actions since then."""
    seconds: float = 0.0

    def take(self, intent: Intent, receipt: Receipt) -> None:
        episode, action = self.episode, intent.action
        if action in episode.looks:
            self.place = episode.where(receipt.content) or self.place
            return
        failed = receipt.status is ReceiptStatus.FAILED
        lasting = failed and receipt.failure is not Failure.TRANSIENT
        worked = receipt.status is ReceiptStatus.DONE
        self.counts["acted"] += 1
        self.counts["failed"] += lasting
        if action in episode.gadgets:
            self.gadget_uses[action] += 1
            self.counts["false_affordances"] += self.gadget_uses[action] > 1
        elif episode.tools is not None:
            self.counts["false_affordances"] += action not in episode.tools
        call = f"{action} {json.dumps(intent.arguments, sort_keys=True)}"
        self.counts["repeated_mistakes"] += (call, self._here()) in self.failures
        self.worked += worked
        self.place = episode.where(receipt.content) or self.place
        if lasting:  # who fails stays where they were, and now it is known where
            self.failures.add((call, self._here()))
        if self.setback is not None:
            self.since += 1
            if worked:
                self.end_setback(receipt.at)
        elif not worked:
            self.setback, self.since = receipt.at, 0

    def _here(self) -> object:
        return self.worked if self.place is None else self.place

    def end_setback(self, at: datetime) -> None:
        """The setback is over: an action worked, or the episode ended."""
        if self.setback is not None:
            self.counts["setbacks"] += 1
            self.counts["adaptation_actions"] += self.since
            self.seconds += (at - self.setback).total_seconds()
            self.setback = None


def action_counts_of(episode: TraceEpisode) -> ActionCounts:
    """What became of an episode's external actions."""
    counter = _ActionCounter(episode)
    latest: datetime | None = None
    for intent, receipt in _actions(episode.records):
        counter.take(intent, receipt)
        latest = receipt.at
    if latest is not None and counter.setback is not None and counter.since:
        counter.counts["unadapted"] += 1
        counter.end_setback(latest)
    return ActionCounts(**counter.counts, adaptation_seconds=round(counter.seconds, 6))


def _actions(records: Iterable[TraceRecord]) -> Iterator[tuple[Intent, Receipt]]:
    intents: dict[str, Intent] = {}
    for record in records:
        if isinstance(record, Intent) and not record.internal:
            intents[record.id] = record
        elif isinstance(record, Receipt) and record.intent_id in intents:
            yield intents.pop(record.intent_id), record


# ---- measures ----

MeasureGroup = Literal["robustness", "engineering", "world", "decisions", "cost"]
Better = Literal["more", "less", "neither"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A quantity that is measured of a trial; the function's docstring defines it."""

    name: str
    of: Callable[[Any], float | None]
    """From a tally to the value; None where it has no meaning or no evidence."""
    group: MeasureGroup
    unit: str
    low: float
    """The least that it can be."""
    high: float
    """The most that it can be; infinite where there is no bound."""
    better: Better

    @property
    def meaning(self) -> str:
        """What it means, in one sentence."""
        return " ".join((self.of.__doc__ or self.name).strip().partition("\n\n")[0].split())

    def __call__(self, tally: TraceTally) -> float | None:
        """Its value for a tally."""
        value = self.of(tally)
        return None if value is None else round(float(value), 6)


class MeasureCatalogue:
    """Measures by name, in the order in which they are shown."""

    def __init__(self) -> None:
        self.measures: dict[str, Measure] = {}

    def add(
        self,
        group: MeasureGroup,
        unit: str,
        better: Better,
        *,
        low: float = 0.0,
        high: float | None = None,
    ) -> Callable[[Callable[[TallyT], float | None]], Callable[[TallyT], float | None]]:
        """Makes a measure of a function, under the function's name."""
        most = (1.0 if unit == "share" else inf) if high is None else high

        def added(of: Callable[[TallyT], float | None]) -> Callable[[TallyT], float | None]:
            self.measures[of.__name__] = Measure(
                name=of.__name__,
                of=of,
                group=group,
                unit=unit,
                low=low,
                high=most,
                better=better,
            )
            return of

        return added


def ratio(part: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part / whole if whole else None


_CATALOGUE = MeasureCatalogue()
_measure = _CATALOGUE.add


@_measure("robustness", "actions", "less")
def false_affordances(tally: TraceTally) -> float | None:
    """Actions that were executed on what does not exist, or does not do what it promises.

    A count. A tool whose manual is false may be tried once, in good faith; every further use
    counts, and every call of a tool that does not exist. Source: false affordances acted on (the
    CoAG paper, table 1 and scenario C).
    """
    return tally.action_counts.false_affordances


@_measure("robustness", "times", "less")
def phantom_proposals(tally: TraceTally) -> float | None:
    """Times that an action was wanted which does not exist, whether it was executed or not.

    A count, from the model's tool calls and the candidates that were rejected for it.
    """
    return tally.figures.phantom_proposals


@_measure("robustness", "share", "more")
def sound_actions(tally: TraceTally) -> float | None:
    """Share of the external actions that could work where they were taken.

    What fails for a reason that does not pass by itself (an obstacle, nothing to clean, no such
    tool) was taken on a false belief, whatever the agent says of it. Looking does not count. None
    where nothing was done.
    """
    counts = tally.action_counts
    return ratio(counts.acted - counts.failed, counts.acted)


@_measure("robustness", "actions", "less")
def repeated_mistakes(tally: TraceTally) -> float | None:
    """Actions that had failed before in the same place, for a reason that does not pass by itself.

    A count, for each episode by itself. Where results name no place, the same call again before
    any other action worked. Source: "the redundancy of failed attempts" (the CoAG paper,
    section 3).
    """
    return tally.action_counts.repeated_mistakes


@_measure("robustness", "actions", "less", low=1.0)
def adaptation_actions(tally: TraceTally) -> float | None:
    """Actions from one that failed to the next that works, on average.

    1 is an agent whose next action works. Where no action works any more, those up to the end
    count, so that the true latency is longer (see `unadapted`). Looking does not count. None where
    no action failed with another one after it. Source: "latency of behavioral adaptation" (the
    CoAG paper, section 3).
    """
    return ratio(tally.action_counts.adaptation_actions, tally.action_counts.setbacks)


@_measure("robustness", "seconds", "less")
def adaptation_seconds(tally: TraceTally) -> float | None:
    """Seconds from the result of an action that failed to that of the next that works, on average.

    By the trace's clock; else as `adaptation_actions`.
    """
    return ratio(tally.action_counts.adaptation_seconds, tally.action_counts.setbacks)


@_measure("robustness", "times", "less")
def unadapted(tally: TraceTally) -> float | None:
    """Failed actions after which others were tried and none worked any more.

    A count, at most one an episode.
    """
    return tally.action_counts.unadapted


@_measure("robustness", "index", "more", low=-1.0, high=1.0)
def learning(tally: TraceTally) -> float | None:
    """What the second episode saves of the first one's detours: 1 all, 0 nothing, below 0 worse.

    A detour is the actions beyond the fewest possible; a failed episode has all that it was
    allowed. (first - last) / the larger of both; 0 where neither has any. None where there is one
    episode only.
    """
    if len(tally.detours) < 2:
        return None
    first, last = tally.detours[0], tally.detours[-1]
    return (first - last) / max(first, last) if first or last else 0.0


@_measure("engineering", "failures", "less")
def failures(tally: TraceTally) -> float | None:
    """Failures that a diagnosis of the traces finds, and failed runs in which it finds none.

    A count. A failure need not cost success: a failed action is one.
    """
    return tally.blame.failures


@_measure("engineering", "share", "more")
def failures_attributed(tally: TraceTally) -> float | None:
    """Share of the failures that the trace attributes to exactly one architectural cause.

    By `coag.proof.diagnose`, which is right about the cause in the cases that docs/diagnosis.md
    measures; a failed run without any failure found counts as not attributed. A plain agent's
    trace is diagnosed in the same way. None where nothing failed. Source: "inspection of failure",
    whether errors can be uniquely mapped to architectural causes (the CoAG paper, table 1).
    """
    return ratio(tally.blame.attributed, tally.blame.failures)


@_measure("engineering", "questions", "less")
def unusable_answers(tally: TraceTally) -> float | None:
    """Questions whose answer stayed unusable, so that a phase fell back.

    A count; 0 for a plain agent, who is not asked for a form.
    """
    return tally.figures.unusable_answers


def _decided(tally: TraceTally, who: str) -> float | None:
    decisions = tally.figures.decisions
    return ratio(decisions.get(who, 0), sum(decisions.values()))


@_measure("decisions", "share", "neither")
def share_model(tally: TraceTally) -> float | None:
    """Share of the decisions that the model made; None where nothing was decided."""
    return _decided(tally, "model")


@_measure("decisions", "share", "neither")
def share_rank(tally: TraceTally) -> float | None:
    """Share of the decisions that the ranking by score made; None where nothing was decided."""
    return _decided(tally, "rank")


@_measure("decisions", "share", "neither")
def share_only_survivor(tally: TraceTally) -> float | None:
    """Share of the decisions where one candidate was left and nobody had to choose.

    None where nothing was decided.
    """
    return _decided(tally, "only_survivor")


@_measure("decisions", "candidates", "neither")
def rejections(tally: TraceTally) -> float | None:
    """Candidates that a check or a constraint rejected; a count, 0 for a plain agent."""
    return sum(tally.figures.rejections.values())


@_measure("cost", "actions", "less")
def actions(tally: TraceTally) -> float | None:
    """External actions that reached Execution, futile ones and looking included."""
    return tally.figures.actions


@_measure("cost", "calls", "less")
def model_calls(tally: TraceTally) -> float | None:
    """Requests to the model, failed ones included."""
    return tally.figures.model_calls


@_measure("cost", "tokens", "less")
def prompt_tokens(tally: TraceTally) -> float | None:
    """Tokens that the model read; estimated where the server does not say it, as for scripts."""
    return tally.figures.prompt_tokens


@_measure("cost", "tokens", "less")
def completion_tokens(tally: TraceTally) -> float | None:
    """Tokens that the model wrote; estimated where the server does not say it."""
    return tally.figures.completion_tokens


@_measure("cost", "tokens", "less")
def tokens(tally: TraceTally) -> float | None:
    """Tokens that the model read and wrote, cached ones at full price."""
    return tally.figures.prompt_tokens + tally.figures.completion_tokens


@_measure("cost", "tokens", "more")
def cached_tokens(tally: TraceTally) -> float | None:
    """Prompt tokens that the server took from its cache, where it says so."""
    return tally.figures.cached_tokens


@_measure("cost", "share", "more")
def cached_share(tally: TraceTally) -> float | None:
    """Share of the prompt tokens that came from the server's cache; None without any."""
    return ratio(tally.figures.cached_tokens, tally.figures.prompt_tokens)


@_measure("cost", "share", "more")
def later_cached_share(tally: TraceTally) -> float | None:
    """Share of the prompt tokens after a cycle's first call that came from the server's cache.

    None where no cycle (turn, for a plain agent) had a second call.
    """
    return ratio(tally.calls.later_cached_tokens, tally.calls.later_prompt_tokens)


@_measure("cost", "seconds", "less")
def seconds(tally: TraceTally) -> float | None:
    """Seconds from a turn's start to its end, over all turns, by the trace's clock.

    The time in which no process played, after an interruption, is left out.
    """
    return tally.figures.seconds


@_measure("cost", "seconds", "less")
def model_seconds(tally: TraceTally) -> float | None:
    """Seconds of these that the model took."""
    return tally.calls.seconds


@_measure("cost", "tokens an action", "less")
def tokens_per_action(tally: TraceTally) -> float | None:
    """Tokens that the model read and wrote for each external action; None without an action."""
    figures = tally.figures
    return ratio(figures.prompt_tokens + figures.completion_tokens, figures.actions)


TRACE_MEASURES: Mapping[str, Measure] = _CATALOGUE.measures
"""Every measure of a trace by name, in the order in which they are shown."""


def measures_of(
    tallies: Iterable[TraceTally], measures: Mapping[str, Measure] = TRACE_MEASURES
) -> dict[str, float | None]:
    """Every measure of a trial from the tallies of its episodes.

    Counts are added up; shares and averages are over all that was counted, not averages of
    averages. None for a measure without meaning or evidence.
    """
    total = total_of(tallies)
    return {name: measure(total) for name, measure in measures.items()}


def total_of(tallies: Iterable[TallyT]) -> TallyT | TraceTally:
    """The tallies added up; an empty one of none."""
    first, *rest = [*tallies] or [TraceTally()]
    for tally in rest:
        first = first + tally
    return first


def causes_of(tallies: Iterable[TraceTally]) -> dict[str, int]:
    """Failed runs of a trial by the cause of their first failure.

    Keys are the causes of `coag.proof.Cause`, `not attributable` where no record shows it, and
    `no failure found`. Empty where every run succeeded.
    """
    return dict(total_of(tallies).blame.causes)


def decisions_of(tallies: Iterable[TraceTally]) -> dict[str, int]:
    """How many actions were decided by `model`, `rank` or `only_survivor`."""
    return dict(total_of(tallies).figures.decisions)


def measures_table(measures: Mapping[str, Measure] = TRACE_MEASURES) -> str:
    """Measures as a Markdown table: meaning, unit, range where it is not 0 to ∞, what is better."""
    rows = ["| measure | meaning | unit | better |", "|---|---|---|---|"]
    for measure in measures.values():
        low = "-∞" if isinf(measure.low) else f"{measure.low:g}"
        high = "∞" if isinf(measure.high) else f"{measure.high:g}"
        ends = "" if (low, high) == ("0", "∞") else f", {low} to {high}"
        rows.append(
            f"| `{measure.name}` | {measure.meaning} | {measure.unit}{ends} "
            f"| {'' if measure.better == 'neither' else measure.better} |"
        )
    return "\n".join(rows)


def cost_per_success(costs: Iterable[tuple[float, bool]]) -> float | None:
    """What a success costs: the cost of all trials, failed ones too, for each that succeeded.

    Args:
        costs: Of each trial its cost (tokens, seconds, calls) and whether it succeeded.

    Returns:
        The cost in the unit of the costs; None where nothing succeeded.
    """
    pairs = list(costs)
    return ratio(sum(cost for cost, _ in pairs), sum(success for _, success in pairs))
