"""The paper's four-turn scenarios and its tables 3, 5 and 12, computed again.

    python -m benchmarks.awareness.paper

prints each table beside the paper's numbers, and exits with 1 where one differs. The paper
describes what its states held (sections 5.2, 6.1, 6.2 and 6.5) and does not print its analyses;
the analyses here are ours, in the schemas of the adapters.

After four turns of one scenario, tables 5 and 14 count 7 goals, 5 entities and 3 attention items,
tables 11 and 12 count 6, 6 and 4. So there are two readings: `CONVERSATION` gives table 5,
`CONVERSATION_RESTORED` table 12. Where the paper contradicts itself: errors (table 3) are entities,
a topic (5.1, 6.2) is any name once given as a topic, a pivot and callback in one turn (listing 1)
is progress, urgency (6.4) is shown from 0.7 on, pivots are not sticky (3.2, not 6.7).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from case_study.awareness import CONVERSATION
from coag.awareness import (
    AwarenessEngine,
    AwarenessState,
    CodingAdapter,
    ConversationAdapter,
    DomainAdapter,
)
from coag.awareness.adapters import (
    Analysis,
    CodingAnalysis,
    ConversationAnalysis,
    RaisedError,
    Sentiment,
    StatedGoal,
)
from coag.schema import SteppingClock, estimate_tokens

from .talk import grid

# ---- The scenarios ----

CONVERSATION_RESTORED = (
    CONVERSATION[0],
    ConversationAnalysis(
        message=CONVERSATION[1].message,
        topics=("cooking", "pasta carbonara"),
        questions=("How do you make pasta carbonara?",),
    ),
    ConversationAnalysis(
        message=CONVERSATION[2].message,
        topics=("scraping libraries",),
        questions=("What library for scraping?",),
        references_previous=True,
    ),
    ConversationAnalysis(
        message=CONVERSATION[3].message,
        topics=("BeautifulSoup", "scraping libraries"),
        goals=(StatedGoal(description="Get BeautifulSoup to work"),),
        sentiment=Sentiment.FRUSTRATED,
    ),
)
"""The same messages, read so that the state is that of table 12 and of its checkpoint.

The question about carbonara states no goal, and the one about a library is about libraries,
which were no topic before: a second shift, as listing 1 shows one.
"""

CODING = (
    CodingAnalysis(
        message=(
            "I am setting up a FastAPI project with SQLAlchemy on PostgreSQL: main.py, models.py, "
            "database.py, DATABASE_URL in the environment, and GET /users to begin with."
        ),
        files=("main.py", "models.py", "database.py"),
        libraries=("FastAPI", "SQLAlchemy"),
        services=("PostgreSQL",),
        endpoints=("GET /users",),
        configs=("DATABASE_URL",),
        goals=(
            StatedGoal(description="Set up the FastAPI project"),
            StatedGoal(description="Define the user model", parent="Set up the FastAPI project"),
            StatedGoal(description="Serve GET /users", depends_on=("Define the user model",)),
        ),
        questions=("How should the project be laid out?",),
    ),
    CodingAnalysis(
        message=(
            "I get a ConnectionRefusedError: PostgreSQL runs by docker-compose.yml. Why is the "
            "connection refused?"
        ),
        services=("PostgreSQL",),
        configs=("docker-compose.yml",),
        errors=(RaisedError(name="ConnectionRefusedError", message="connection to port 5432"),),
        goals=(StatedGoal(description="Connect to the database"),),
        questions=("Why is the connection refused?",),
    ),
    CodingAnalysis(
        message="That fixed the connection. But now GET /users raises EmptyResultSet.",
        endpoints=("GET /users",),
        errors=(RaisedError(name="EmptyResultSet", message="GET /users finds no rows"),),
        fixed=("ConnectionRefusedError",),
        completed=("Connect to the database",),
        answered=("Why is the connection refused?",),
    ),
    CodingAnalysis(
        message=(
            "We also need authentication: JWT with PyJWT and passlib, an auth.py with "
            "get_current_user, and POST /login. Which routes should be protected?"
        ),
        files=("auth.py",),
        libraries=("PyJWT", "passlib"),
        endpoints=("POST /login",),
        functions=("get_current_user",),
        concepts=("JWT",),
        goals=(StatedGoal(description="Add user authentication"),),
        questions=("Which routes should be protected?",),
    ),
)
"""The work on software of section 5.2: setup, connection error, fix with regression, new scope."""


# ---- What the paper prints; nothing is computed from it ----

TABLE_3 = (
    ("1", "Project setup", "4", "8", "0", "0", "1 (progress)"),
    ("2", "Connection error", "6", "9", "1", "1 (threat)", "2 (+failure)"),
    ("3", "Fix + regression", "6", "9", "1+1R", "2 (+threat)", "3 (+discovery)"),
    ("4", "Scope expansion", "8", "15", "1+1R", "3 (+anomaly)", "4 (+branch)"),
)
"""Step, event, goals, entities, errors, attention items, trajectory."""

TABLE_5 = (
    ("1", "Goal creation", "3", "2", "0", "1 (progress)"),
    ("2", "Topic pivot", "5", "4", "1 (transition)", "2 (+pivot)"),
    ("3", "Callback", "6", "4", "2 (+opportunity)", "3 (+progress)"),
    ("4", "Frustration", "7", "5", "3 (+threat)", "4 (+progress)"),
)
"""Step, event, goals, entities, attention items, trajectory."""

TABLE_12 = (
    ("Steps", "4", "4"),
    ("Goals (total / active)", "6 / 6", "6 / 6"),
    ("Entities", "6", "6"),
    ("Attention items", "4", "4"),
    ("Trajectory transitions", "4", "4"),
    ("Scan patterns", "4", "4"),
    ("Injection text", "identical", "identical"),
)
"""Metric, restored after two turns, continuous."""


# ---- Running a scenario, in one go or with a checkpoint in between ----


def states_of(adapter: DomainAdapter, turns: Sequence[Analysis]) -> tuple[AwarenessState, ...]:
    """The state after each turn."""
    engine = AwarenessEngine(adapter, clock=SteppingClock())
    return tuple(engine.update(engine.observe(turn.model_dump())) for turn in turns)


def checkpointed(
    adapter: DomainAdapter, turns: Sequence[Analysis], *, after: int
) -> tuple[str, AwarenessState]:
    """The JSON of the state after so many turns, and the last state of a new engine from there."""
    clock = SteppingClock()
    first = AwarenessEngine(adapter, clock=clock)
    for turn in turns[:after]:
        first.update(first.observe(turn.model_dump()))
    checkpoint = first.state.model_dump_json()
    restored = AwarenessState.model_validate_json(checkpoint)
    second = AwarenessEngine(adapter, clock=clock, state=restored)
    for turn in turns[after:]:
        second.update(second.observe(turn.model_dump()))
    return checkpoint, second.state


# ---- The tables, read off the states ----

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


# ---- The report ----


def report() -> tuple[str, bool]:
    """The tables beside the paper's, what else can be compared, and whether the tables agree."""
    made = tables()
    parts = [_section(table) for table in made]
    other = restored_table(CONVERSATION)
    parts.append(
        f"{other.title}, of the turns of table 5\n{grid(_beside(other))}\n"
        "The two scenarios cannot both be what the paper ran: see the docstring of this program."
    )
    parts.append(_sizes())
    parts.append(_listing())
    return "\n\n".join(parts) + "\n", all(table.agrees for table in made)


def _section(table: Table) -> str:
    verdict = "every cell agrees" if table.agrees else "DIFFERS from the paper"
    return f"{table.title}: {verdict}\n{grid(_beside(table))}"


def _beside(table: Table) -> list[Row]:
    """Each row as it came out, and under it the paper's."""
    rows = [("", *table.columns)]
    for ours, paper in zip(table.ours, table.paper, strict=True):
        rows += [("ours", *ours), ("paper", *paper)]
    return rows


def _sizes() -> str:
    """The sizes that the paper gives, which follow from wording and not from rules."""
    adapter = ConversationAdapter()
    checkpoint, _ = checkpointed(adapter, CONVERSATION_RESTORED, after=2)
    text = adapter.format_for_injection(states_of(adapter, CONVERSATION)[-1], BUDGET)
    return (
        f"Checkpoint after two turns: {len(checkpoint.encode()) / 1000:.1f} KB [paper: 4.7 KB]\n"
        f"Injection after four turns, budget {BUDGET}: {estimate_tokens(text)} tokens "
        "[paper: 176 in table 6, 175 in table 11, ~180 in table 14]"
    )


def _listing() -> str:
    state = states_of(ConversationAdapter(), CONVERSATION)[2]
    text = ConversationAdapter().format_for_injection(state, BUDGET)
    return f"Listing 1, in structure: the injection after turn 3\n{text}"


def main() -> int:
    """Prints the report; 0 if every table agrees, else 1."""
    text, agrees = report()
    sys.stdout.write(text)
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
