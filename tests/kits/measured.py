"""Episodes to be measured: small worlds that are played by hand, and traces made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from case_study.measures import Episode, vacuum_episode
from coag.evals import TraceEpisode
from coag.schema import (
    Failure,
    Intent,
    ModelCall,
    OutputMode,
    Receipt,
    ReceiptStatus,
    TokenUsage,
    TraceRecord,
)
from vacuum_world.scenarios import ScenarioFacts, ScenarioSetup
from vacuum_world.world import (
    DIRECTIONS,
    STILL,
    Cell,
    Spawn,
    WorldState,
    clean,
    join,
    move,
    seeded_streams,
    sense,
    state_line,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)
Deed = tuple[str, str, str, str]
"""Action, its argument, how it ended, its text."""


def deeds(*done: Deed) -> list[TraceRecord]:
    """Intents and receipts, two seconds each.

    An action ends `done`, `failed` (it would again), `passing` (it may work again) or `unknown`.
    """
    records: list[TraceRecord] = []
    for number, (action, argument, ended, content) in enumerate(done, 1):
        at = AT + timedelta(seconds=2 * number)
        kinds = {"failed": Failure.DETERMINISTIC, "passing": Failure.TRANSIENT}
        status = ReceiptStatus.FAILED if ended in kinds else ReceiptStatus(ended)
        arguments = {"argument": argument} if argument else {}
        records += [
            Intent(
                id=f"intent-{number}",
                at=at,
                cycle=number,
                candidate_id=None,
                action=action,
                arguments=arguments,
            ),
            Receipt(
                intent_id=f"intent-{number}",
                at=at + timedelta(seconds=1),
                cycle=number,
                status=status,
                content=content,
                failure=kinds.get(ended),
            ),
        ]
    return records


def call(raw: str = "", cycle: int = 1, prompt: int = 0, cached: int = 0) -> ModelCall:
    """A call of a model that answered so."""
    return ModelCall(
        id=f"call-{cycle}",
        at=AT,
        cycle=cycle,
        model="m",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=(),
        raw=raw,
        usage=TokenUsage(prompt_tokens=prompt, cached_tokens=cached),
        seconds=0.5,
    )


def elsewhere(records: Sequence[TraceRecord], **more: Any) -> TraceEpisode:
    """An episode of another domain, with the tools `step` and `look`."""
    known: dict[str, Any] = {
        "tools": frozenset({"step", "look"}),
        "looks": frozenset({"look"}),
        "success": True,
    }
    return TraceEpisode(records=tuple(records), **{**known, **more})


def instance(start: Cell, dirty: Sequence[Cell], battery: int = 100, **world: Any) -> ScenarioSetup:
    """An instance on a 5 by 5 grid with the charger at (0, 0), still by default."""
    fields: dict[str, Any] = {"dynamics": STILL, "grid": (5, 5), "charger": (0, 0), **world}
    return ScenarioSetup(
        name="phantom-object",
        seed=0,
        episode=1,
        world=WorldState(
            seed=0,
            streams=seeded_streams(0),
            spawn=Spawn(position=start, battery=battery),
            dirty=tuple(sorted(dirty)),
            **fields,
        ),
        facts=ScenarioFacts(start=start, battery=battery, dirty=tuple(dirty)),
        shortest=3,
        max_actions=12,
    )


def played(setup: ScenarioSetup, *steps: str | ModelCall, success: bool = True) -> Episode:
    """An episode of these directions and `clean`s, with what a model said in between."""
    world = join(setup.world, "robot").state
    records: list[TraceRecord] = []
    for number, step in enumerate(steps, 1):
        if isinstance(step, ModelCall):
            records.append(step)
            continue
        world, made = acted(world, step, f"intent-{number}", number)
        records += made
    return vacuum_episode(records, setup, world, success=success)


def acted(
    world: WorldState, step: str, intent: str, number: int
) -> tuple[WorldState, list[TraceRecord]]:
    """One action, and its intent and receipt."""
    done = move(world, "r1", step, intent) if step in DIRECTIONS else clean(world, "r1", intent)
    action = "clean_current_cell" if step == "clean" else "move_agent"
    arguments = {} if step == "clean" else {"direction": step}
    result, at = done.result.result, AT + timedelta(seconds=2 * number)
    content = f"{result.model_dump_json()}\n{state_line(sense(done.state, 'r1'))}"
    status = ReceiptStatus.DONE if result.ok else ReceiptStatus.FAILED
    failure = None if result.failure is None else Failure(result.failure)
    return done.state, [
        Intent(
            id=intent, at=at, cycle=number, candidate_id=None, action=action, arguments=arguments
        ),
        Receipt(
            intent_id=intent, at=at, cycle=number, status=status, content=content, failure=failure
        ),
    ]
