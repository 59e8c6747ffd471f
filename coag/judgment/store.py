"""What a judgment keeps: entries in words, dead ends that reopen, and what is taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from coag.errors import JudgmentError

from .entries import Annotation, add_entries, annotations_of, remove_entries, stored_entries
from .graph import CapabilityGraph
from .off_policy import LoggedChoice
from .protocol import DeadEnd, JudgmentEntry, World, entry_from, to_json
from .reports import MOST_STEPS, folded, graph_of, logged_choices, patterns_of, undo_reports
from .state import StateFile, new_state, parsed_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """What was taken back."""

    entries: tuple[str, ...]
    """The ids of the entries that are gone."""
    reports: int
    """How many reports were undone."""
    left: int
    """How many reports of the source are too old to be undone; what they did stays."""


_LOGS = ("steps", "consultations", "consulted")
"""Parts of the state that only explain how it came about."""


class JudgmentStore:
    """The state of a judgment, and what can be done with its entries.

    Args:
        path: The state's file, made with the first change; None for RAM.
        now: Gives the time, with its zone.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._file = StateFile(None if path is None else Path(path))
        self._now = now
        self._made: tuple[dict[str, Any], CapabilityGraph, list[JudgmentEntry]] | None = None
        self._learned: tuple[dict[str, Any], dict[str, Any], int] | None = None
        """What was learned, of which state, and how many characters it has as JSON."""

    @property
    def problem(self) -> str:
        """What was wrong with the file when it was read last, and what was used; else empty."""
        return self._file.problem

    def reflect(self, *entries: JudgmentEntry) -> tuple[str, ...]:
        """Writes entries down, dead ends included; gives their ids. The same said twice is one.

        A dead end that is said again is closed again, by the new conditions.

        Raises:
            JudgmentError: An entry has a field that cannot be, or explains a pattern that is not
                there.
        """
        for one in entries:
            entry_from(to_json(one))
        with self._file.changing() as state:
            add_entries(state, entries)
            state["health"]["since_reflection"] = 0
        return tuple(one.id for one in entries)

    def entries(self) -> tuple[JudgmentEntry, ...]:
        """Everything that is kept in words, oldest first."""
        return tuple(self._parts()[2])

    def dead_ends(self) -> tuple[DeadEnd, ...]:
        """Those that are not open again, warnings of untrusted sources included."""
        found = (one for one in self._parts()[2] if isinstance(one, DeadEnd))
        return tuple(one for one in found if not one.reopened)

    def annotations(self) -> tuple[Annotation, ...]:
        """Every route pattern, with why it works and when it fails where somebody said so."""
        state, _, entries = self._parts()
        return tuple(annotations_of(patterns_of(state), entries))

    def choices(self) -> tuple[LoggedChoice, ...]:
        """The reported choices that were drawn by their probabilities, oldest first.

        From them `ips`, `snips` and `doubly_robust` estimate what another policy would have
        brought. What an agent chose by itself is not among them: nobody knows its probabilities.
        """
        return tuple(logged_choices(self._parts()[0]["steps"]))

    def look(self, world: World) -> tuple[tuple[DeadEnd, str], ...]:
        """Reopens the dead ends of which a condition holds; gives each with the reason.

        A condition that asks a model never holds here; ask it, and `reopen` by its answer.
        """
        found = [(one, why) for one in self.dead_ends() if (why := one.opened_by(world))]
        self.reopen({one.id: why for one, why in found})
        return tuple(found)

    def reopen(self, why: Mapping[str, str]) -> None:
        """Opens dead ends, by their ids, each for a reason.

        Raises:
            JudgmentError: There is no such dead end.
        """
        if not why:
            return
        with self._file.changing() as state:
            known = {one["id"]: one for one in state["entries"] if one["is"] == DeadEnd.operation}
            for name, reason in why.items():
                if name not in known:
                    raise JudgmentError(f"There is no dead end {name!r}. There are: {list(known)}.")
                known[name]["reopened"] = reason

    def detach(self) -> None:
        """From now on keeps to itself what it learns: the file is not written any more.

        Raises:
            JudgmentError: Neither the file nor its copy can be read.
        """
        self._file = self._file.detached()

    def learned(self, most: int) -> Mapping[str, Any] | None:
        """What advice and rules follow from: all but the logs of reports and consultations.

        It is made again only where the state has changed, and not to be changed.

        Args:
            most: Characters as JSON; None is given for what has more.
        """
        state = self._parts()[0]
        if self._learned is None or self._learned[0] is not state:
            known = {name: part for name, part in state.items() if name not in _LOGS}
            # Ids follow from what entries say, times included, which a replay does not repeat.
            known["entries"] = [
                {name: value for name, value in one.items() if name != "id"}
                for one in state["entries"]
            ]
            known["dropped"] = folded(state)
            self._learned = state, known, len(json.dumps(known))
        return self._learned[1] if self._learned[2] <= most else None

    def put_back(self, learned: Mapping[str, Any]) -> None:
        """Takes what was learned at an earlier time in the place of what is known now.

        Of the reports that led to it those come back that are still in the log.

        Raises:
            JudgmentError: It is none.
        """
        state = parsed_state(json.dumps({**new_state(), **learned}))
        for one, said in zip(state["entries"], stored_entries(state), strict=True):
            one["id"] = said.id
        with self._file.changing() as now:
            steps = now["steps"][: state["health"].get("reports", 0)]
            whole: dict[str, Any] = {**state, "steps": steps, "dropped": {}}
            now.update(whole if folded(whole) == state["dropped"] else state)

    def is_blank(self) -> bool:
        """Whether nothing was learned yet, and there is no file where it would be kept."""
        state = self._file.read()
        parts = ("steps", "dropped", "entries", "failures")
        return self._file.path is None and not any(state[name] for name in parts)

    def rewind(self, closed: Iterable[str]) -> None:
        """Lets of all dead ends exactly these be closed, as they were at an earlier time.

        One that came later goes; one that was revoked since does not come back.
        """
        then = set(closed)
        with self._file.changing() as state:
            kept: list[dict[str, Any]] = []
            for one in state["entries"]:
                if one["id"] in then:
                    one["reopened"] = ""
                elif one["is"] == DeadEnd.operation and not one["reopened"]:
                    continue
                kept.append(one)
            state["entries"] = kept

    def note_failure(self, call: str, failed: bool) -> int:
        """Counts one more failure of a call over all runs, or forgets them; gives how many."""
        if not failed and call not in self._parts()[0]["failures"]:
            return 0
        with self._file.changing() as state:
            failures = state["failures"]
            count = failures.pop(call, 0) + 1
            if not failed:
                return 0
            failures[call] = count
            while len(failures) > MOST_STEPS:
                del failures[next(iter(failures))]
        return count

    def revoke(self, *, source: str = "", ids: Iterable[str] = ()) -> Revoked:
        """Takes back entries with all that was derived from them, and the reports of a source.

        Reports are undone exactly: edges, patterns and the health of the advice are as if the
        source had never reported. Of a judgment with more than 1,000 reports, or one that was put
        back from a run's snapshot, the older ones stay, and `Revoked.left` counts them.

        Args:
            source: Whose statements and reports.
            ids: Entries, or records of long-term memory.
        """
        with self._file.changing() as state:
            removed = remove_entries(state, source, ids)
            undone, left = undo_reports(state, source) if source else (0, 0)
        return Revoked(entries=removed, reports=undone, left=left)

    def _parts(self) -> tuple[dict[str, Any], CapabilityGraph, list[JudgmentEntry]]:
        """The state with its graph and entries; made again only where the file has changed."""
        state = self._file.read()
        if self._made is None or self._made[0] is not state:
            self._made = state, graph_of(state), stored_entries(state)
        return self._made
