"""What can be told of a turn of a plain agent, which leaves no deliberation behind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from coag.errors import ConfigurationError
from coag.proof.forking import Choice
from coag.schema import Intent, ModelCall, Note, Percept, TraceRecord, TurnEnd
from coag.tracing import RunInfo, cycle_of

from ._values import Considered, Explanation

LIMITS = (
    "A plain agent's run: it holds what arrived, what the model was asked and answered, and what "
    "was begun; neither what was remembered nor what else was considered."
)


def explain_plain(info: RunInfo, records: Iterable[TraceRecord], turn: int) -> Explanation:
    """What a turn's actions rested on.

    Raises:
        ConfigurationError: The run has no such turn.
    """
    last, acted = 0, False
    of_turn: list[TraceRecord] = []
    for current, record in _by_turn(records):
        last = max(last, current)
        acted = acted or isinstance(record, ModelCall | Intent)
        if current == turn:
            of_turn.append(record)
    if last == 0 and acted:
        raise ConfigurationError(
            f"Run {info.id!r} is a plain agent's and was written down without turns. `coag log` "
            "shows it; a RecordedAgent around the agent writes its turns, too."
        )
    if not of_turn or turn < 1:
        what = "no turn yet" if last == 0 else f"turns up to {last}"
        raise ConfigurationError(f"Run {info.id!r} is a plain agent's and has {what}: no {turn}.")
    calls = [record for record in of_turn if isinstance(record, ModelCall)]
    begun = tuple(_begun(record) for record in of_turn if isinstance(record, Intent))
    ends = [record for record in of_turn if isinstance(record, TurnEnd)]
    notes = (f"{r.about}: {r.text}" for r in of_turn if isinstance(r, Note))
    return Explanation(
        run=info.id,
        kind=info.kind,
        cycle=turn,
        percepts=tuple(record for record in of_turn if isinstance(record, Percept)),
        models=tuple(dict.fromkeys(call.model for call in calls)),
        situation="\n".join(call.raw for call in calls if call.raw and call.error is None),
        considered=begun,
        decided_by="model" if begun else None,
        result=ends[-1].response if ends else "",
        notes=(LIMITS, *notes),
    )


def _by_turn(records: Iterable[TraceRecord]) -> Iterator[tuple[int, TraceRecord]]:
    """Each record with its turn; a percept between two turns is of the later one."""
    current, over = 0, True
    for record in records:
        named = cycle_of(record)
        current = current if named is None else named
        over = isinstance(record, TurnEnd) or (over and named is None)
        between = over and isinstance(record, Percept)
        yield (current + 1 if between else current), record


def _begun(intent: Intent) -> Considered:
    arguments = json.dumps(intent.arguments, ensure_ascii=False, sort_keys=True)
    choice = Choice(action=intent.action, arguments=arguments)
    return Considered(id=intent.id, choice=choice, chosen=True)
