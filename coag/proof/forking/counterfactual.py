"""Which of the recalled records a decision hung on: it is taken again without each in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from coag.errors import ConfigurationError
from coag.schema import RecalledRecord, SelectionOutcome, Value
from coag.tracing import RunFolder

from .boundary import Boundary, Choice, choices
from .changes import Changes
from .past import Later, Past, read_past
from .taken import Play, taken_up

_REACHED = "The choice is known."


class Counterfactual(Value):
    """How a decision comes out without a record."""

    record: RecalledRecord | None
    """The record that was left out; None for the decision taken again with all of them, by which
    one sees whether it is the same each time anyway."""
    times: int
    """How often it was taken again."""
    changed: int
    """How often it was another choice than the run's."""
    others: tuple[tuple[Choice, ...], ...]
    """The other choices, each once; empty for an impasse."""


def _unheard(told: Counterfactual) -> None:
    """Nobody listens."""


async def counterfactuals(
    run: RunFolder | Path | str,
    cycle: int,
    *,
    model: str | None = None,
    repeats: int = 1,
    trust: Iterable[str] = (),
    on_told: Callable[[Counterfactual], None] = _unheard,
) -> tuple[Counterfactual, ...]:
    """Takes a cycle's decision again: with everything, then without each recalled record.

    Each time the run is taken up before the cycle's Retrieval and goes on until its Selection is
    committed. Nothing is executed and nothing is written to a disk. The environment is not asked
    anything; one that says it is a copy is put back first, since rules may read it.

    Args:
        run: The run's folder.
        cycle: The cycle.
        model: A model spec that takes the place of the run's model.
        repeats: How often each is tried; for models that do not always answer the same.
        trust: Modules, or packages with their modules, from which the run may name its factory.
        on_told: Is told of each as soon as it is known.

    Raises:
        ConfigurationError: There is no such cycle, or nothing was decided in it.
        CoagError: The agent cannot be built again, or its model cannot be asked.
    """
    if repeats < 1:
        raise ConfigurationError(f"repeats must be at least 1, not {repeats!r}.")
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    past, later = read_past(folder, Boundary(cycle=cycle))
    chosen = later.cycles[0].chosen if later.cycles else None
    if chosen is None:
        raise ConfigurationError(f"Nothing was decided in cycle {cycle} of {folder.path.name!r}.")
    trusted = tuple(trust)
    told: list[Counterfactual] = []
    for left_out in (None, *later.retrieved):
        gone = () if left_out is None else (left_out.record.id,)
        changes = Changes(model=model, without_records=gone)
        if past.info.parent is not None:
            changes = changes.inheriting(past.info.parent.changes)
        again = [await _decided(past, later, changes, trusted) for _ in range(repeats)]
        others = [choice for choice in again if choice != chosen]
        one = Counterfactual(
            record=left_out,
            times=repeats,
            changed=len(others),
            others=tuple(dict.fromkeys(others)),
        )
        told.append(one)
        on_told(one)
    return tuple(told)


async def _decided(
    past: Past, later: Later, changes: Changes, trust: Iterable[str]
) -> tuple[Choice, ...]:
    """What is chosen in the boundary's cycle; nothing for an impasse."""
    found: list[tuple[Choice, ...]] = []
    async with taken_up(past, later, changes, logs=None, trust=trust) as taken:

        async def stop(selection: SelectionOutcome) -> str:
            proposal = taken.agent.context.working_memory.cognitive_state.proposal
            known = {one.id: one for one in (proposal.candidates if proposal else ())}
            found.append(choices(selection.chosen, known))
            return _REACHED

        await Play(agent=taken.agent, remains=taken.remains, stop=stop, acting=False).go_on(())
    return found[0] if found else ()
