"""`Judgment`: eight operations over routes and over what is kept in words, on one shared state.

`consult` advises and never decides: `report` reinforces what was done, also where something else
was advised, and counts that as an override. `reflect` and `flush` write down why; `resume` gives
it to the next agent or person; `synthesize` says where a pattern has no explanation yet. The
annotation index links each route pattern to the entry that says why it works and when it fails.

Trust bounds what a source can do (`SHARE` and `MOST_MOVED` in `reports`): one that is not trusted
moves an edge little, and at most so far in all; its dead ends warn, and never close.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coag.errors import JudgmentError

from .entries import (
    Annotation,
    annotations_of,
    handover,
    is_about,
    newest_first,
    waiting_for_insight,
)
from .graph import START, Capability, CapabilityGraph, words_of_task
from .patterns import biases_of
from .protocol import (
    TRUST_LEVELS,
    DeadEnd,
    Externalisation,
    Insight,
    JudgmentEntry,
    SelfProfile,
    TrustLevel,
)
from .reports import (
    advice_health,
    advised_before,
    counted,
    discovered,
    patterns_of,
    reflection_due,
    stored_graph,
    take_in,
    usual_net,
)
from .routing import Advice, Advising, advise
from .state import new_state
from .store import JudgmentStore

_CONSULTATIONS = 100
"""Stored consultations that are kept; the oldest go first."""
_LOOK = 3
"""Of the best advised capabilities, so many decide which entries are shown."""
_SHOWN = 5
"""Entries and annotations that a consultation shows."""
_FROM_ENTRY = 0.5
"""How much an entry on a task speaks for its capabilities."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consultation:
    """What judgment has to say before something is done."""

    id: str
    """To be given to `report`; empty where it was not stored."""
    task: str
    current: str
    advice: tuple[Advice, ...]
    """The best first."""
    entries: tuple[JudgmentEntry, ...]
    """Methods, reflections and insights on it."""
    dead_ends: tuple[DeadEnd, ...]
    """What is closed on it; those that cannot close are among them, as a warning."""
    annotations: tuple[Annotation, ...]
    problem: str = ""
    """What was wrong with the state's file, and what was used instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What a report did."""

    used: str
    changed: float
    """By how much the edge's weight changed."""
    override: bool
    """Whether something else was advised."""
    patterns: tuple[str, ...]
    """Names of patterns that were not there before."""
    reflect: str
    """Why a reflection is due; empty if none is."""
    problem: str = ""
    """As in a consultation."""


class Judgment(JudgmentStore):
    """What an agent has learned about how to go about its work, in a file that others may share.

    Args:
        path: The state's file, made with the first change; None for RAM.
        now: Gives the time, with its zone.
    """

    # ---- Before and after something is done ----

    def init(
        self,
        manifest: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        *,
        anew: bool = False,
    ) -> None:
        """Begins a judgment with the capabilities of a manifest; see `CapabilityGraph`.

        Args:
            manifest: What there is; None for a judgment that discovers its capabilities.
            anew: Whether an existing judgment is replaced.

        Raises:
            ConfigurationError: The manifest is wrong.
            JudgmentError: There is a judgment already, or it cannot be written.
        """
        state = new_state()
        if manifest is not None:
            joined = not isinstance(manifest, Mapping) or manifest.get("edges") is None
            state["graph"] = stored_graph(CapabilityGraph.from_manifest(manifest), joined=joined)
        self._file.begin(state, anew=anew)

    def discover(self, capabilities: Mapping[str, str | Capability]) -> tuple[str, ...]:
        """Takes in capabilities by name, each with a description; gives those that are new."""
        if not set(capabilities) - set(self._parts()[1].capabilities):
            return ()
        with self._file.changing() as state:
            return discovered(state, capabilities)

    def consult(
        self,
        task: str,
        *,
        current: str = START,
        among: Sequence[str] | None = None,
        store: bool = False,
    ) -> Consultation:
        """What could be used next for a task, and what is known about it.

        Args:
            task: What is to be done, in words.
            current: The capability that was used last; `START` at the beginning.
            among: The capabilities that can be chosen; None for all that may follow.
            store: Whether the probabilities are stored, to be found again by the id: for
                who cannot keep the answer, as between two commands.

        Raises:
            UnknownNameError: A capability is not known.
            JudgmentError: The state cannot be read, or with `store` not written.
        """
        state, graph, entries = self._parts()
        words = words_of_task(task)
        patterns = patterns_of(state)
        now = Advising(context=_context(graph, task, entries), biases=biases_of(patterns))
        # An edge that is made here is of this graph in RAM only.
        advice = tuple(advise(graph, current, now, among=among))
        near = {one.capability for one in advice[:_LOOK]}
        found = [one for one in entries if is_about(one, words, near)]
        said = [one for one in found if not isinstance(one, DeadEnd | SelfProfile)]
        made = Consultation(
            id="",
            task=task,
            current=current,
            advice=advice,
            entries=tuple(newest_first(said)[:_SHOWN]),
            dead_ends=tuple(one for one in found if isinstance(one, DeadEnd) and not one.reopened),
            annotations=tuple(
                one
                for one in annotations_of(patterns, entries)
                if {current, *near} & set(one.pattern.route)
            )[:_SHOWN],
            problem=self.problem,
        )
        return self._stored(made) if store else made

    def _stored(self, made: Consultation) -> Consultation:
        with self._file.changing() as state:
            state["consulted"] = state.get("consulted", 0) + 1
            name = f"c{state['consulted']}"
            shares = {one.capability: one.probability for one in made.advice}
            state["consultations"].append({"id": name, "current": made.current, "shares": shares})
            del state["consultations"][:-_CONSULTATIONS]
        return dataclasses.replace(made, id=name)

    def report(
        self,
        used: str,
        reward: float,
        *,
        cost: float = 0.0,
        current: str = START,
        consultation: Consultation | str | None = None,
        drawn: bool = False,
        source: str = "agent",
        trust: TrustLevel = "user",
    ) -> Reported:
        """Takes in what was done and what it brought. What is reported is stored on return.

        Args:
            used: The capability that was used, whether it was advised or not.
            reward: 0 for nothing, 1 for all that was wanted.
            cost: 0 for nothing, 1 for all that there was to spend.
            current: What was used before it; taken from the consultation where there is one.
            consultation: What was advised before, or its id. The probability that it gave what
                was used is kept with the report.
            drawn: Whether it was drawn by the probabilities of the consultation (`choose`): only
                such choices can judge another policy, see `choices`.
            source: Who judges the result.
            trust: How far the source is trusted.

        Raises:
            ConfigurationError: A number is out of range, or a capability is not known.
            JudgmentError: The consultation is not known, or the state cannot be written. Nothing
                was changed.
        """
        if trust not in TRUST_LEVELS:
            raise JudgmentError(f"trust must be one of {', '.join(TRUST_LEVELS)}, not {trust!r}.")
        step: dict[str, Any] = {
            "at": self._now().isoformat(),
            "used": used,
            "reward": reward,
            "cost": cost,
            "source": source,
            "trust": trust,
        }
        with self._file.changing() as state:
            problem, shares = self.problem, dict[str, float]()
            if isinstance(consultation, Consultation):
                current = consultation.current
                shares = {one.capability: one.probability for one in consultation.advice}
            elif consultation is not None:
                current, shares = advised_before(state, consultation)
            usual = usual_net(state["steps"], current, used)
            step["from"] = current
            if shares:
                best = max(shares, key=lambda name: shares[name])
                step |= {"shares": shares, "override": used != best, "drawn": drawn}
            take_in(state, step)
            new = counted(state, step)
            due = reflection_due(state["health"], reward - cost, usual, new)
        override, moved = step.get("override", False), step["moved"]
        return Reported(
            used=used, changed=moved, override=override, patterns=new, reflect=due, problem=problem
        )

    # ---- What is kept in words ----

    def flush(self, thoughts: Externalisation) -> str:
        """Writes down what is in the head, before a context is cut; it is on the disk on return.

        Raises:
            JudgmentError: As for `reflect`.
        """
        return self.reflect(thoughts)[0]

    def resume(self, task: str = "") -> str:
        """What the next agent or person reads first, as text: data, never an instruction.

        Args:
            task: What is to be done; what concerns it comes first.
        """
        _, graph, entries = self._parts()
        text = handover(task, entries, self.annotations(), graph)
        return f"{self.problem}\n{text}" if self.problem else text

    def synthesize(self, insight: Insight | None = None) -> tuple[str, ...]:
        """Writes an insight down, if there is one; gives what waits for an explanation.

        That is patterns that nobody has explained, and capabilities with several entries from
        which no insight was drawn.
        """
        if insight is not None:
            self.reflect(insight)
        return tuple(waiting_for_insight(self.annotations(), self._parts()[2]))

    def status(self) -> dict[str, Any]:
        """What there is, in numbers, and how well the advice was followed and paid."""
        state, graph, entries = self._parts()
        counts: dict[str, int] = {}
        for one in entries:
            counts[one.operation] = counts.get(one.operation, 0) + 1
        dead = [one for one in entries if isinstance(one, DeadEnd)]
        return {
            "path": None if self._file.path is None else str(self._file.path),
            "capabilities": len(graph.capabilities),
            "edges_used": sum(one.tries > 0 for one in graph.edges()),
            "entries": counts,
            "closed": sum(one.closes for one in dead),
            "warnings": sum(not one.closes and not one.reopened for one in dead),
            "reopened": sum(bool(one.reopened) for one in dead),
            "patterns": len(state["patterns"]),
            "unexplained": sum(not one.entry for one in self.annotations()),
            "advice": advice_health(state["health"]),
            "problem": self.problem,
        }


# ---- Advice ----


def _context(
    graph: CapabilityGraph, task: str, entries: Iterable[JudgmentEntry]
) -> dict[str, float]:
    """How much a task speaks for each capability: by its words, and by what was learned of it."""
    context, words = graph.relevance(task), words_of_task(task)
    for one in entries:
        counts = one.origin.trust != "untrusted" and not isinstance(one, DeadEnd | SelfProfile)
        if counts and words and is_about(one, words):
            for name in one.capabilities:
                if name in graph.capabilities:
                    context[name] = min(1.0, context.get(name, 0.0) + _FROM_ENTRY)
    return context
