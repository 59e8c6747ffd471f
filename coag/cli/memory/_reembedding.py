"""`coag memory reembed`."""

from __future__ import annotations

import typer

from coag.errors import RecordStoreError
from coag.schema import one_line
from coag.store import (
    Embedder,
    ReembedPlan,
    WordLlamaEmbedder,
    abandon_reembedding,
    embedder_of,
    plan_reembedding,
    reembed,
)

from ._asking import ask, check_can_ask, shown_progress, tell
from ._log import note
from ._place import Place, run


def reembed_memory(place: Place, to: str | None, *, by: str, yes: bool) -> None:
    """Gives all records vectors of another embedder, after it has told how long that takes.

    Raises:
        CoagError: There is no such embedder, it failed, or nobody can be asked.
    """
    embedder = embedder_of(to or WordLlamaEmbedder.name)
    check_can_ask(yes=yes)
    plan = run(plan_reembedding(place.store, embedder))
    if plan.state == "done":
        typer.echo(f"All {plan.records:,} record(s) have vectors of {embedder.name} already.")
        return
    _tell(plan)
    ask("Do it?", yes=yes)
    count = run(_reembedded(place, embedder, plan))
    details = {"made_with": list(plan.made_with), "embedder": embedder.name, "records": count}
    note(place, "reembedded", by=by, details=details)
    typer.echo(
        f"{count:,} record(s) have vectors of {embedder.name}. Open the memory with that embedder "
        "from now on."
    )


def abandon_it(place: Place, *, yes: bool) -> None:
    """Drops what an unfinished re-embedding has done; the memory stays as it is in use.

    Raises:
        CoagError: It failed, its switch has begun, or nobody can be asked.
    """
    ask("Drop what the unfinished re-embedding has done?", yes=yes)
    dropped = run(abandon_reembedding(place.store))
    typer.echo("It is dropped." if dropped else "There was none to drop.")


async def _reembedded(place: Place, embedder: Embedder, plan: ReembedPlan) -> int:
    with shown_progress("re-embedding", plan.records) as progress:
        try:
            return await reembed(place.store, embedder, progress=lambda now: progress(now.done))
        except RecordStoreError:
            tell("It is not done; the same command goes on where it stopped.", "yellow")
            raise


def _tell(plan: ReembedPlan) -> None:
    made_with = one_line(", ".join(plan.made_with) or "nothing", 200)
    begun = " It was begun before and goes on." if plan.state == "half_way" else ""
    tell(
        f"{plan.records:,} record(s) have vectors of {made_with}; {plan.left:,} of them will get "
        f"those of {plan.embedder}, which takes about {plan.seconds:,.0f} s.{begun}"
    )
