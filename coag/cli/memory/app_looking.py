"""The commands of `coag memory` that only look; `_app` registers them.

As in `_app`, modules of our own are imported inside functions.
"""

from __future__ import annotations

from collections.abc import Callable

import typer

from . import options as given


def ls(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    memory: given.Memory = None,
    scope: given.Scope = None,
    kind: given.OfKind = None,
    type_: given.OfType = None,
    source: given.OfSource = None,
    trust: given.OfTrust = None,
    superseded: given.Superseded = False,
    where: given.Where = None,
    limit: given.Limit = 20,
    embedder: given.Embedder = None,
    as_json: given.LinesOfJson = False,
) -> None:
    """Lists records, the newest first.

    Example: coag memory ls -m ~/robbie --kind semantic --trust untrusted

    Exit code 0: some; 1: none; 2: wrongly called.
    """
    from .looking import list_records
    from .place import Chosen, place_of

    chosen = Chosen.of(
        scope=scope,
        kind=kind,
        type_=type_,
        source=source,
        trust=trust,
        superseded=superseded,
        where=where,
        limit=limit,
    )
    list_records(place_of(memory, embedder), chosen, as_json=as_json)


def search(  # noqa: PLR0913, PLR0917 - a command has as many arguments as options
    query: given.Query,
    memory: given.Memory = None,
    scope: given.Scope = None,
    kind: given.OfKind = None,
    type_: given.OfType = None,
    source: given.OfSource = None,
    trust: given.OfTrust = None,
    superseded: given.Superseded = False,
    where: given.Where = None,
    limit: given.Limit = 5,
    min_score: given.MinScore = None,
    embedder: given.Embedder = None,
    as_json: given.LinesOfJson = False,
) -> None:
    """Finds records as the agent would, and tells what each part of a score is.

    Example: coag memory search "where is the charger" -m ~/robbie

    Exit code 0: found; 1: nothing found; 2: wrongly called.
    """
    from .looking import search_records
    from .place import Chosen, place_of

    chosen = Chosen.of(
        scope=scope,
        kind=kind,
        type_=type_,
        source=source,
        trust=trust,
        superseded=superseded,
        where=where,
        limit=limit,
    )
    search_records(place_of(memory, embedder), query, chosen, min_score=min_score, as_json=as_json)


def show(
    ids: given.Ids,
    memory: given.Memory = None,
    scope: given.Scope = None,
    embedder: given.Embedder = None,
    as_json: given.LinesOfJson = False,
) -> None:
    """Shows everything that records say.

    Example: coag memory show 1f0c22aa -m ~/robbie
    """
    from .looking import show_records
    from .place import place_of

    show_records(place_of(memory, embedder), ids, scope=scope, as_json=as_json)


def history(
    name: given.Id,
    memory: given.Memory = None,
    scope: given.Scope = None,
    embedder: given.Embedder = None,
    as_json: given.AsJson = False,
) -> None:
    """Shows what stood in a record's place before and since, and what it has to do with others.

    What it was concluded from and what from it, what says otherwise, where it came from, and what
    people did to it.

    Example: coag memory history 1f0c22aa -m ~/robbie
    """
    from .history import show_history
    from .place import place_of

    show_history(place_of(memory, embedder), name, scope=scope, as_json=as_json)


def stats(
    memory: given.Memory = None,
    mend: given.Mend = False,
    embedder: given.Embedder = None,
    as_json: given.AsJson = False,
) -> None:
    """Tells how a memory is: what it holds, and whether its parts agree.

    Example: coag memory stats -m ~/robbie

    Exit code 0: healthy; 1: something is to be mended; 2: wrongly called.
    """
    from .history import show_stats
    from .place import place_of

    raise typer.Exit(show_stats(place_of(memory, embedder), mend=mend, as_json=as_json))


def paragraphs(command: Callable[..., None]) -> str:
    """A command's help without the line breaks of its source."""
    parts = (command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(part.split()) for part in parts)


COMMANDS: tuple[Callable[..., None], ...] = (ls, search, show, history, stats)
"""In the order in which `coag memory --help` names them."""
