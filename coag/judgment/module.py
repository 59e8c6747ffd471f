"""`JudgmentModule`: judgment as a cognitive module of an agent.

It follows what the cycle perceives, proposes and executes. Before a proposal it shows what paid
and what is closed, as data. In Evaluation a dead end forbids the candidates that match it. What was
executed is reported with its outcome, whatever was advised. A call that keeps failing becomes a
dead end by itself, which reopens when its tool has another version or its time is over.
"""

from __future__ import annotations

import json
from asyncio import to_thread
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from coag._util.validation import module_state
from coag.errors import RecordStoreError
from coag.schema import (
    ActionSpec,
    Candidate,
    Constraint,
    ExecutionOutcome,
    ExecutionStatus,
    Failure,
    MemoryKind,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    Provenance,
    Record,
    RetrievalOutcome,
    Section,
    Situation,
    Trust,
    Value,
    Verdict,
    one_line,
    record_id,
)

from .bridge import Consultation, Judgment
from .graph import START
from .protocol import (
    DateReached,
    DeadEnd,
    JudgmentEntry,
    ModelSaysYes,
    Origin,
    Reopen,
    VersionChanged,
    World,
)

_TEXT = 200
"""Characters of a failure's text that a dead end keeps."""
_ADVISED = 5
"""Capabilities that a section shows."""
_MOST_SAVED = 50_000
"""Characters of what was learned that go into a run's snapshots."""
_MOST_ARGUMENTS = 10_000
"""Characters of a call that can be closed; longer ones would fill the file."""
_FAILED = "it failed"
"""How the reason of a dead end begins that the module closed by itself."""
_LAST = datetime.max.replace(tzinfo=UTC)
_SKIPPED = ("respond",)
"""Actions that are no capability: they end the turn."""


class _Readable(Protocol):
    @property
    def readable(self) -> tuple[str, ...]: ...


class JudgmentMemory(Protocol):
    """What the module needs of a long-term memory; `LongTermMemory` is one."""

    @property
    def scopes(self) -> _Readable:
        """Whose records it finds: an entry's record of another scope is another agent's."""
        ...

    async def remember(
        self,
        kind: MemoryKind,
        text: str,
        *,
        provenance: Provenance,
        type: str = "note",
        derived_from: Sequence[str] = (),
    ) -> Any:
        """Stores a text durably; what it gives has the `record`."""
        ...

    async def find(self, kind: MemoryKind, name: str) -> Record | None:
        """The record of an id, or None."""
        ...


class _ActivityState(Value):
    """What the module keeps of its activity."""

    current: str = START
    closed: tuple[str, ...] = ()
    """Ids of the dead ends in force; only where `learned` was too much to save."""
    learned: Mapping[str, Any] | None = None
    """What was known, so that a replay knows no more; None where that was too much to save."""


@dataclass(frozen=True, slots=True)
class DeadEndRule:
    """Forbids the candidates that match a dead end.

    A candidate that matches one that is open again passes, with a remark in the trace.
    """

    name: str
    dead_ends: Sequence[DeadEnd]
    """As they are when the cycle begins, those that were reopened in this run included."""

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Judges an action by its name and arguments."""
        del state, projection
        remarks: list[str] = []
        for one in self.dead_ends:
            if not one.matches(candidate.action, candidate.arguments or {}):
                continue
            if one.closes:
                until = " or ".join(map(str, one.reopen)) or "somebody reopens it"
                return Verdict.forbid(
                    f"{one.topic} is a dead end since {one.origin.at:%Y-%m-%d}: {_why(one)}. "
                    f"It is closed until {until}."
                )
            remarks.append(
                f"the dead end {one.topic!r} is open again: {one.reopened}"
                if one.reopened
                else f"{one.origin.source} warns, and is not trusted: {one.why_closed}"
            )
        return Verdict.allow("; ".join(remarks))


class JudgmentModule:
    """Lets an agent learn from what paid, and not try again what is known to fail.

    Give it as `CoagAgent(..., modules=[JudgmentModule("judgment.json")])`. The state is shared:
    several agents, runs and `coag judgment` may use one file at once.

    What a tool returns can close only calls of that tool with the same arguments, and only by
    failing; what texts say closes nothing.

    Args:
        path: The state's file; None keeps it in RAM, as long as the module.
        versions: Versions of tools by the name of the action, for conditions to reopen; a
            function is asked at every cycle. Other names are looked up among installed packages.
        close_after: Failures of one call, over all runs, after which it becomes a dead end. Only
            failures count that would come again (`Failure.DETERMINISTIC`). 0 closes nothing.
        reopen_after: For how long such a dead end is closed at most.
        ask: Asks a model a question with yes or no as answers, for conditions of that sort; asked
            once a run at most. None asks nothing.
        memory: Where entries are written as records, too; a record that is revoked or forgotten
            there takes its entry with it, and all that was derived from it.
        name: The module's name in logs and prompts.

    Raises:
        ValueError: `close_after` or `reopen_after` is negative.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        versions: Mapping[str, str] | Callable[[str], str | None] | None = None,
        close_after: int = 2,
        reopen_after: timedelta = timedelta(days=30),
        ask: Callable[[str], Awaitable[bool]] | None = None,
        memory: JudgmentMemory | None = None,
        name: str = "judgment",
    ) -> None:
        if close_after < 0:
            raise ValueError(f"close_after is how many failures close, 0 for none: {close_after!r}")
        if reopen_after < timedelta():
            raise ValueError(f"reopen_after is how long a call stays closed: {reopen_after!r}")
        self.name = name
        self.judgment = Judgment(path)
        self._versions = versions or {}
        self._close_after = close_after
        self._reopen_after = reopen_after
        self._ask = ask
        self._memory = memory
        self._detached = False
        self._forget()

    def _forget(self) -> None:
        self._current = START
        self._consulted: Consultation | None = None
        self._goal = ""
        self._answers: dict[str, bool] = {}
        self._reopened: dict[str, DeadEnd] = {}

    def _version_of(self, name: str) -> str | None:
        given = self._versions
        known = given(name) if callable(given) else given.get(name)
        if known is not None:
            return known
        try:
            return version(name)
        except (PackageNotFoundError, ValueError):
            return None

    # ---- What it sees ----

    def actions_listed(self, specs: Sequence[ActionSpec]) -> None:
        """Takes in what can be done now, tools of MCP servers included."""
        self.judgment.discover(
            {one.name: one.description for one in specs if one.name not in _SKIPPED}
        )

    async def observe(self, event: Percept | Outcome) -> None:
        """Follows percepts and outcomes: conditions that hold, failures, and what paid.

        Raises:
            JudgmentError: The state cannot be read or written; the turn continues without.
            RecordStoreError: The memory cannot be reached.
        """
        match event:
            case Percept():
                await self._perceived(event)
            case RetrievalOutcome():
                await self._look(event.at)
            case ProposalOutcome():
                self._consult([one.action for one in event.candidates])
            case ExecutionOutcome():
                await to_thread(self._executed, event)
            case _:
                pass

    async def _perceived(self, percept: Percept) -> None:
        # Constraints are fixed when the next cycle begins.
        seen = {"source", "kind", "content", "trust"}
        await self._look(percept.at, percept.model_dump(mode="json", include=seen))
        if percept.kind is not PerceptKind.TOOL_RETURN or not self._close_after:
            return
        call = _call(percept.source, percept.arguments or {})
        failed = percept.failure is Failure.DETERMINISTIC
        if (not failed and percept.is_error) or len(call) > _MOST_ARGUMENTS:
            return
        count = await to_thread(self.judgment.note_failure, call, failed)
        if failed and count >= self._close_after:
            stranger = percept.source if percept.trust is Trust.UNTRUSTED else ""
            await self._write(self._dead_end(percept, count), shown=stranger)
            await to_thread(self.judgment.note_failure, call, False)

    def _dead_end(self, percept: Percept, count: int) -> DeadEnd:
        """What a call that keeps failing is: closed with these arguments, by its own failures."""
        conditions: list[Reopen] = []
        if self._reopen_after < _LAST - percept.at:  # else it is for good
            conditions.append(DateReached(at=percept.at + self._reopen_after))
        if (known := self._version_of(percept.source)) is not None:
            conditions.insert(0, VersionChanged(name=percept.source, was=known))
        times = "once" if count == 1 else f"{count} times"
        return DeadEnd(
            topic=one_line(_call(percept.source, percept.arguments or {}), _TEXT),
            why_closed=f"{_FAILED} {times}: {one_line(percept.content, _TEXT)}",
            reopen=tuple(conditions),
            capabilities=(percept.source,),
            arguments=percept.arguments or {},
            # That it failed was seen by code; what its error says is shown as data only.
            origin=Origin(source=self.name, trust="developer", at=percept.at),
        )

    async def _look(self, now: datetime, *arrived: Mapping[str, Any]) -> None:
        """Drops what was revoked, and reopens what has a condition that holds."""
        if not arrived:
            await self._drop_revoked()
        before = {one.id: one for one in self.judgment.dead_ends()}
        world = World(now=now, version_of=self._version_of, percepts=arrived)
        opened = {one.id: why for one, why in await to_thread(self.judgment.look, world)}
        for one in before.values():
            for condition in one.reopen if one.id not in opened else ():
                if isinstance(condition, ModelSaysYes) and await self._says_yes(condition.question):
                    why = f"a model says {condition}"
                    await to_thread(self.judgment.reopen, {one.id: why})
                    opened[one.id] = why
                    break
        now_open = {one.id: one for one in self.judgment.entries() if isinstance(one, DeadEnd)}
        self._reopened |= {name: now_open[name] for name in opened if name in now_open}

    async def _says_yes(self, question: str) -> bool:
        if self._ask is None:
            return False
        if question not in self._answers:
            self._answers[question] = False  # one that fails is not asked again
            self._answers[question] = await self._ask(question)
        return self._answers[question]

    async def _drop_revoked(self) -> None:
        if self._memory is None:
            return
        kind, scopes = MemoryKind.SEMANTIC, self._memory.scopes.readable
        gone = [
            one.record
            for one in self.judgment.entries()
            if one.record
            in {record_id(kind, scope, one.text) for scope in scopes}  # else another's
            and await self._memory.find(kind, one.record) is None
        ]
        if gone:
            await to_thread(lambda: self.judgment.revoke(ids=gone))

    def _consult(self, actions: Sequence[str]) -> None:
        """Notes what was advised among the candidates, to tell later whether it was followed."""
        names = [one for one in dict.fromkeys(actions) if one not in _SKIPPED]
        self.judgment.discover(dict.fromkeys(names, ""))
        self._consulted = None
        if names:
            self._consulted = self.judgment.consult(self._goal, current=self._current, among=names)

    def _executed(self, outcome: ExecutionOutcome) -> None:
        consulted, self._consulted = self._consulted, None
        for one in outcome.executed:
            if one.action in _SKIPPED or one.status is ExecutionStatus.REFUSED:
                continue
            self.judgment.discover({one.action: ""})
            known = consulted is not None and consulted.current == self._current
            self.judgment.report(
                one.action,
                1.0 if one.status is ExecutionStatus.DONE else 0.0,
                current=self._current,
                consultation=consulted if known else None,
                source=self.name,
                trust="developer",
            )
            self._current = one.action
        if outcome.ended_by is not None:
            self._current = START

    # ---- What it says ----

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """What paid and what is closed, for Reasoning and Proposal; it is data, not instruction."""
        if phase not in (Phase.REASONING, Phase.PROPOSAL):
            return None
        if situation.goal != self._goal:
            self._goal, self._current = situation.goal, START
        consulted = self.judgment.consult(self._goal, current=self._current)
        text = self._shown(consulted)
        if not text:
            return None
        quoted = consulted.dead_ends or consulted.entries or self._reopened
        return Section(
            title="What was learned before",
            text=text,
            source=self.name,
            # Numbers and names of actions are the agent's own; what was written down may quote.
            trust=Trust.UNTRUSTED if quoted else Trust.USER,
            budget=budget,
        )

    def _shown(self, consulted: Consultation) -> str:
        lines = [consulted.problem] if consulted.problem else []
        tried = [one for one in consulted.advice if "never tried" not in one.why]
        lines += [f"{one.capability}: {one.why}" for one in tried[:_ADVISED]]
        for dead in consulted.dead_ends:
            sort = "Closed" if dead.closes else "A warning that is not trusted"
            lines.append(f"{sort}: {dead.topic}: {dead.why_closed}")
        lines += [f"Open again: {one.topic}: {one.reopened}" for one in self._reopened.values()]
        lines += [one_line(one.text, 2 * _TEXT) for one in consulted.entries]
        return "\n".join(lines)

    def constraints(self) -> Sequence[Constraint]:
        """The dead ends that are closed now, and those that were reopened in this run."""
        found = (*self.judgment.dead_ends(), *self._reopened.values())
        return (DeadEndRule(f"{self.name}_dead_ends", found),) if found else ()

    async def write(self, *entries: JudgmentEntry) -> None:
        """Writes entries into the state, and where there is a memory as records of it.

        Raises:
            JudgmentError: An entry cannot be, or the state not be written.
            RecordStoreError: The memory cannot be reached; the entries are in the state.
        """
        await self._write(*entries)

    async def _write(self, *entries: JudgmentEntry, shown: str = "") -> None:
        """The same; records of what quotes a stranger (`shown`) are not trusted.

        An entry is written with its record: a kill leaves none that lacks it.
        """
        written = list(entries)
        try:
            for n, one in enumerate(entries):
                written[n] = await _recorded(one, self._memory, shown)
        except RecordStoreError:
            await to_thread(self.judgment.reflect, *written)
            raise
        await to_thread(self.judgment.reflect, *written)

    # ---- State ----

    def save_state(self) -> Mapping[str, Any]:
        """The state of the activity, and what was learned.

        If that has more than 50,000 characters, only the dead ends are saved: a replay reads the
        other entries from the file, as it is then.
        """
        learned, closed = self.judgment.learned(_MOST_SAVED), tuple[str, ...]()
        if learned is None:
            closed = tuple(one.id for one in self.judgment.dead_ends() if one.closes)
        kept = _ActivityState(current=self._current, closed=closed, learned=learned)
        return kept.model_dump(mode="json")

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state; what was learned since in the shared file stays.

        Where the module is detached, it knows what was known then; and where it keeps what it
        learns in RAM and has learned nothing, as in a new process.

        Raises:
            StateError: It is none.
        """
        loaded = module_state(_ActivityState, state, self.name)
        self._forget()
        self._current = loaded.current
        if (self._detached or self.judgment.is_blank()) and loaded.learned is not None:
            self.judgment.put_back(loaded.learned)
        elif self._detached:
            self.judgment.rewind(loaded.closed)

    def detach(self) -> None:
        """For a replay or a fork: reads the file, and then neither writes it nor asks a model.

        Raises:
            JudgmentError: The file cannot be read.
        """
        self.judgment.detach()
        self._detached, self._ask, self._memory = True, None, None

    def reset_state(self) -> None:
        """Forgets the activity; what was learned stays."""
        self._forget()


def _why(dead: DeadEnd) -> str:
    """Why something is closed, in words that somebody trusted said.

    What a tool's error said is shown as data only: a rejection taints nothing.
    """
    own = dead.origin.trust == "developer" and dead.why_closed.startswith(_FAILED)
    return dead.why_closed.partition(": ")[0] if own else dead.why_closed


async def _recorded(one: JudgmentEntry, memory: JudgmentMemory | None, shown: str) -> JudgmentEntry:
    """An entry with the record that is written of it, where there is a memory."""
    if memory is None:
        return one
    stored = await memory.remember(
        MemoryKind.SEMANTIC,
        one.text,
        provenance=_provenance(one.origin, shown),
        type=f"judgment_{one.operation}",
        derived_from=one.origin.derived_from,
    )
    return replace(one, record=stored.record.id)


def _provenance(origin: Origin, shown: str) -> Provenance:
    """The origin of a record of an entry, which quotes a stranger if one was shown."""
    return Provenance(
        run=origin.run,
        activity="",
        cycle=0,
        source=origin.source,
        source_kind="agent",
        trust=Trust.UNTRUSTED if shown else Trust(origin.trust),
        shown=(shown,) if shown else (),
    )


def _call(action: str, arguments: Mapping[str, Any]) -> str:
    said = json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)
    return f"{action} {said}"
