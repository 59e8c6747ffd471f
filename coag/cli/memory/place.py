"""What commands on memories have in common: the place, its records, questions."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, cast

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from coag._util.text import clip, in_a_line
from coag._util.text import visible as unseen_escaped
from coag.cli.output import say, screen
from coag.errors import ConfigurationError, EmbedderMismatchError
from coag.schema import MemoryKind, Record
from coag.store import (
    DEFAULT_RANKING,
    LTM_FOLDER,
    RECORDS_FILE,
    SHORT_ID_LENGTH,
    RecordStore,
    Search,
    StoreConfig,
    WordLlamaEmbedder,
    embedder_of,
    found_by_id,
    holds_records,
    parse_where,
    plan_reembedding,
)

# ---- Texts of records for a terminal: characters that do not show are written out ----


def visible(text: str) -> str:
    """A foreign text in which no character steers a terminal, turns the writing or hides."""
    return unseen_escaped(text, joined=True)


def line(text: str, limit: int = 300) -> str:
    """The beginning of a foreign text on one line."""
    return clip(in_a_line(visible(text)), limit)


def day(moment: datetime) -> str:
    """A date, for tables."""
    return f"{moment:%Y-%m-%d}"


def minute(moment: datetime) -> str:
    """A point in time."""
    return f"{moment:%Y-%m-%d %H:%M}{'Z' if not moment.utcoffset() else f'{moment:%z}'}"


def cell(text: str, style: str = "", limit: int = 300) -> Text:
    """One cell of a table, cut by the table where it is too long."""
    return Text(line(text, limit), style=style, no_wrap=True, overflow="ellipsis")


# ---- Where a memory is, and how it is opened for a command ----


_NOTHING = 1
"""Exit code where nothing was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlace:
    """Where a memory is."""

    store: Path | str
    """The folder or the address of its records."""
    folder: Path | None
    """The folder beside them, with procedures and the memory's log; None at a server."""
    embedder: str | None
    """Name of the embedder that it was made with, as a person gave it; None to find that out."""

    @property
    def shown(self) -> str:
        """Where the records are, for a person."""
        return str(self.store)


def place_of(memory: str | None, embedder: str | None, *, make: bool = False) -> MemoryPlace:
    """The place that options name."""
    if not memory or not memory.strip():
        raise ConfigurationError(
            "Which memory? Give --memory FOLDER, what the agent was given as memory=, or a Chroma "
            "server's http://HOST:PORT; or set COAG_MEMORY."
        )
    if "://" in memory:
        return MemoryPlace(store=memory, folder=None, embedder=embedder)
    folder = Path(memory).expanduser()
    inner = folder / LTM_FOLDER
    if holds_records(folder) and holds_records(inner):
        raise ConfigurationError(
            f"There are two memories: one in {str(folder)!r} itself and one in {str(inner)!r}. "
            f"Name {str(inner)!r} for that one; move the other one's files into a folder of their "
            "own to read it."
        )
    if holds_records(folder):  # the records' own folder
        beside = folder.parent if folder.name == LTM_FOLDER else folder
        return MemoryPlace(store=folder, folder=beside, embedder=embedder)
    if not make and not holds_records(inner):
        raise ConfigurationError(
            f"There is no memory in {str(folder)!r}. Neither {str(inner)!r}, where an agent that "
            f"was given memory= has it, nor {str(folder)!r} itself has a {RECORDS_FILE}."
        )
    return MemoryPlace(store=inner, folder=folder, embedder=embedder)


@asynccontextmanager
async def opened(place: MemoryPlace) -> AsyncGenerator[RecordStore]:
    """The records of a place, while a command works with them."""
    store = await _opened(place)
    try:
        yield store
    finally:
        await store.close()


async def _opened(place: MemoryPlace) -> RecordStore:
    """The store with the embedder that it was made with, if that is one of coag's."""
    name = place.embedder or WordLlamaEmbedder.name
    store = StoreConfig(location=str(place.store), embedder=name).open()
    try:
        await store.count(MemoryKind.EPISODIC)
    except EmbedderMismatchError as error:
        await store.close()
        made_with = await _made_with(place, error)
        return StoreConfig(location=str(place.store), embedder=made_with).open()
    except BaseException:
        await store.close()
        raise
    return store


async def _made_with(place: MemoryPlace, error: EmbedderMismatchError) -> str:
    """Name of the one embedder whose vectors a place holds; the error if it is not to be had."""
    if place.embedder is not None:
        raise error
    plan = await plan_reembedding(place.store, embedder_of(WordLlamaEmbedder.name))
    if len(plan.made_with) != 1:
        raise error
    return plan.made_with[0]


def leave(why: str) -> NoReturn:
    """Says that nothing was found, and leaves with exit code 1."""
    for one in why.splitlines():
        indent = " " * (len(one) - len(one.lstrip(" ")))
        typer.echo(indent + line(one, 600), err=True)
    raise typer.Exit(_NOTHING)


_DECLINED = 1
_SECONDS = 5.0
"""Between two lines of progress where there is no terminal."""


def check_can_ask(*, yes: bool) -> None:
    """Refuses where nobody can be asked."""
    if not yes and not sys.stdin.isatty():
        raise ConfigurationError(
            "This changes the memory and asks first, but there is no terminal to ask at; nothing "
            "was changed. Add --yes to do it without being asked."
        )


def ask(question: str, *, yes: bool) -> None:
    """Returns only after a yes; else leaves with exit code 1."""
    check_can_ask(yes=yes)
    with interruptible():
        agreed = yes or typer.confirm(question, err=True)
    if not agreed:
        say("Nothing was changed.")
        raise typer.Exit(_DECLINED)


@contextmanager
def interruptible() -> Generator[None]:
    """Lets Ctrl-C end a question at once; with the event loop's handler it takes a second one."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def shown_progress(what: str, total: int | None) -> Generator[Callable[..., None]]:
    """Yields what shows how far it is: a bar, or a line now and then without a terminal.

    It is called with how many are done and, where that changes, what is being done.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = screen(errors=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=total)
        last = time.monotonic()

        def show(done: int, doing: str = what) -> None:
            nonlocal last
            bar.update(task, completed=done, description=doing)
            if not console.is_terminal and time.monotonic() - last >= _SECONDS:
                last = time.monotonic()
                say(f"{doing}: {done:,}" + ("" if total is None else f" of {total:,}"))

        yield show


# ---- Which records a person means ----


_MANY = 20
"""Records of one short id that are listed."""


def searches(
    text: str | None,
    k: int,
    scope: str | None,
    kind: MemoryKind | None,
    where: str | None,
    of: Mapping[str, str | None],
    *,
    superseded: bool,
    min_score: float | None = None,
) -> list[Search]:
    """What options mean: for a text the best records, for None the newest, of each kind.

    `of` are values of fields, None for any.
    """
    parts: list[Mapping[str, Any]] = [
        {name: str(value)} for name, value in of.items() if value is not None
    ]
    if where is not None:
        parts.append(_filter(where))
    return [
        Search(
            text=text,
            kind=one,
            k=k,
            scopes=None if scope is None else (scope,),
            where={"$and": parts} if len(parts) > 1 else next(iter(parts), None),
            min_score=min_score,
            include_superseded=superseded,
            ranking=None if text is None else DEFAULT_RANKING,
        )
        for one in (MemoryKind if kind is None else (kind,))
    ]


async def the_record(store: RecordStore, name: str, scope: str | None) -> Record:
    """The record that a person means by an id or the beginning of one; leaves without one."""
    found = await record_if_any(store, name, scope)
    return leave(no_record(name, scope)) if found is None else found


def no_record(name: str, scope: str | None) -> str:
    """What to say where there is no such record."""
    return f"There is no record {name!r}{'' if scope is None else f' in scope {scope!r}'}."


async def record_if_any(store: RecordStore, name: str, scope: str | None) -> Record | None:
    """The same; None without one."""
    if len(name) < SHORT_ID_LENGTH:
        raise ConfigurationError(
            f"{name!r} is too short for an id; give at least its first {SHORT_ID_LENGTH} "
            "characters, as `coag memory ls` shows them."
        )
    scopes = None if scope is None else (scope,)
    matches = await found_by_id(store, scopes, tuple(MemoryKind), name)
    if len(matches) > 1:
        named = ", ".join(f"{one.id} (scope {one.scope!r})" for one in matches)
        raise ConfigurationError(f"{name!r} begins the ids of several records: {named}.")
    return next(iter(matches), None)


async def no_scope(store: RecordStore, name: str) -> str | None:
    """What to say if no record is of a scope, with those that there are; None if some is."""
    known: set[str] = set()
    async for records in store.scan():
        known.update(record.scope for record in records)
    if name in known:
        return None
    shown = ", ".join(map(repr, sorted(known)[:_MANY]))
    more = f" and {len(known) - _MANY} more" if len(known) > _MANY else ""
    return f"There is no scope {name!r}. There are: {shown}{more}."


def _filter(where: str) -> Mapping[str, Any]:
    try:
        parsed: object = json.loads(where)
        parse_where(cast("Mapping[str, Any]", parsed))
    except ValueError as error:
        raise ConfigurationError(
            f"--where {where!r} is no filter: {str(error).rstrip('.')}. It is JSON such as "
            '{"type": "obstacle", "x": {"$gte": 1}}.'
        ) from error
    return cast("Mapping[str, Any]", parsed)
