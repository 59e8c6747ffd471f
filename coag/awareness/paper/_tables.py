"""The tables, read off the states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coag.awareness.adapters import Analysis, CodingAdapter, ConversationAdapter
from coag.awareness.state import AwarenessState

from ._printed import TABLE_3, TABLE_5, TABLE_12
from ._runs import checkpointed, states_of
from ._scenarios import CODING, CONVERSATION, CONVERSATION_RESTORED

BUDGET = 300
"""Tokens of the injections that are compared, as in section 6.3."""

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table, as it came out and as the paper has it."""

    title: str
    columns: Row
    ours: tuple[Row, ...]
    paper: tuple[Row, ...]

    @property
    def agrees(self) -> bool:
        """Whether every cell is the paper's."""
        return self.ours == self.paper


def tables() -> tuple[Table, ...]:
    """All that must come out as the paper has it: tables 3, 5 and 12."""
    return (coding_table(), conversation_table(), restored_table(CONVERSATION_RESTORED))


def coding_table() -> Table:
    """Table 3: four turns of work on software."""
    states = states_of(CodingAdapter(), CODING)
    return Table(
        title="Table 3. Coding adapter: state evolution across four turns",
        columns=("Step", "Event", "Goals", "Entities", "Errors", "Attn", "Trajectory"),
        ours=tuple(
            (
                str(state.step),
                event,
                str(len(state.goals.goals)),
                str(_things(state)),
                _errors(state),
                *_attention_and_trajectory(states, place),
            )
            for place, (state, event) in enumerate(zip(states, _events(TABLE_3), strict=True))
        ),
        paper=TABLE_3,
    )


def conversation_table() -> Table:
    """Table 5: four turns of a talk."""
    states = states_of(ConversationAdapter(), CONVERSATION)
    return Table(
        title="Table 5. Conversation: state evolution across four demonstration turns",
        columns=("Step", "Event", "Goals", "Entities", "Attn Items", "Trajectory"),
        ours=tuple(
            (
                str(state.step),
                event,
                str(len(state.goals.goals)),
                str(len(state.world.entities)),
                *_attention_and_trajectory(states, place),
            )
            for place, (state, event) in enumerate(zip(states, _events(TABLE_5), strict=True))
        ),
        paper=TABLE_5,
    )


def restored_table(turns: Sequence[Analysis]) -> Table:
    """Table 12: four turns with a checkpoint after two, and without."""
    adapter = ConversationAdapter()
    _, restored = checkpointed(adapter, turns, after=2)
    continuous = states_of(adapter, turns)[-1]
    texts = {adapter.format_for_injection(state, BUDGET) for state in (restored, continuous)}
    same = "identical" if len(texts) == 1 else "different"
    columns = (_measured(restored), _measured(continuous))
    return Table(
        title="Table 12. Restored (2+2) and continuous (4) execution",
        columns=("Metric", "Restored", "Continuous"),
        ours=(
            *((name, *(column[name] for column in columns)) for name in columns[0]),
            ("Injection text", same, same),
        ),
        paper=TABLE_12,
    )


def _events(printed: Sequence[Row]) -> list[str]:
    """What the paper calls each turn."""
    return [row[1] for row in printed]


def _things(state: AwarenessState) -> int:
    """The entities that are no errors: table 3 has these in a column of their own."""
    return len(state.world.entities) - len(state.world.of_type("error"))


def _errors(state: AwarenessState) -> str:
    """Errors as the paper writes them: `1+1R` is one unresolved and one resolved."""
    statuses = [error.state["error_status"] for error in state.world.of_type("error")]
    resolved = statuses.count("resolved")
    return f"{len(statuses) - resolved}" + (f"+{resolved}R" if resolved else "")


def _attention_and_trajectory(states: Sequence[AwarenessState], place: int) -> tuple[str, str]:
    """The two counts at this turn, each with the types that it added."""
    state = states[place]
    before = states[place - 1] if place else None
    known = {item.id for item in before.attention.items} if before else set[str]()
    items = state.attention.items
    noticed = [item.type.value for item in items if item.id not in known]
    transitions = state.trajectory.transitions
    happened = [one.type.value for one in transitions if one.step == state.step]
    return (
        _counted(len(items), noticed, len(known)),
        _counted(len(transitions), happened, len(before.trajectory.transitions) if before else 0),
    )


def _counted(count: int, added: Sequence[str], before: int) -> str:
    """As the paper writes it: `0`, `1 (threat)`, `2 (+threat)`."""
    if not added:
        return str(count)
    return f"{count} ({'+' if before else ''}{', '.join(added)})"


def _measured(state: AwarenessState) -> dict[str, str]:
    goals = state.goals
    return {
        "Steps": str(state.step),
        "Goals (total / active)": f"{len(goals.goals)} / {len(goals.active_goals)}",
        "Entities": str(len(state.world.entities)),
        "Attention items": str(len(state.attention.items)),
        "Trajectory transitions": str(len(state.trajectory.transitions)),
        "Scan patterns": str(len(state.attention.scan_patterns)),
    }
