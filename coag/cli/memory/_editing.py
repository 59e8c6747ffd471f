"""`coag memory edit`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click
import typer

from coag.errors import ConfigurationError
from coag.memory import LongTermMemory, said_by_person
from coag.memory.transfer import Correction, amended, corrected
from coag.schema import Record, Scalar
from coag.store import short_id

from ._asking import ask, check_can_ask, tell
from ._filters import the_record
from ._log import note
from ._place import Place, opened, run
from ._text import line, visible

_NEVER = "never"
_STANDARD_INPUT = "-"
_FIELDS = ("type", "metadata", "fact")


@dataclass(frozen=True, slots=True)
class _Change:
    """One thing that will be other than it was."""

    what: str
    """Which thing, in one word; the memory's log keeps this alone."""
    before: str
    now: str

    @property
    def shown(self) -> str:
        return f"{self.what}: {line(self.before)} -> {line(self.now)}"


def wanted_of(
    *,
    text: str | None,
    type_: str | None,
    metadata: Sequence[str],
    unset: Sequence[str],
    importance: float | None,
    value: str | None,
    until: str | None,
    no_fact: bool = False,
) -> Correction:
    """What options want to be changed.

    Raises:
        ConfigurationError: If one of them cannot be understood.
    """
    if no_fact and (value is not None or until is not None):
        raise ConfigurationError("--no-fact drops the fact; --value and --until are of one.")
    never = until is not None and until.strip().casefold() == _NEVER
    return Correction(
        text=sys.stdin.read().strip() if text == _STANDARD_INPUT else text,
        type=type_,
        metadata=dict(map(_pair, metadata)),
        without=tuple(unset),
        importance=importance,
        value=value,
        until=None if until is None or never else _moment(until),
        holds=never,
        no_fact=no_fact,
    )


def edit_record(
    place: Place, name: str, wanted: Correction, *, scope: str | None, by: str, yes: bool
) -> None:
    """Changes a record, after it has shown what will be and asked.

    Raises:
        CoagError: The record cannot be found or changed so, or nobody can be asked.
    """
    if not wanted.is_empty:
        check_can_ask(yes=yes)
    run(_edited(place, name, wanted, scope=scope, by=by, yes=yes))


async def _edited(
    place: Place, name: str, wanted: Correction, *, scope: str | None, by: str, yes: bool
) -> None:
    async with opened(place) as store:
        record = await the_record(store, name, scope)
        if wanted.is_empty:
            wanted = _as_typed(record)
        _check(record, wanted)
        try:
            changes = list(_changes(record, wanted))
            if not changes:
                tell("Nothing is to be changed: it says so already.")
                return
            tell(f"{short_id(record.id)} {line(record.text, 100)}", "bold")
            for one in changes:
                tell(f"  {one.shown}")
                if one.what == "text":
                    tell("    (a new record of yours, in the place of this one)")
            ask("Change it?", yes=yes)
            memory = LongTermMemory(store, scope=record.scope)
            now = await corrected(memory, record, wanted, by=said_by_person(by))
        except ConfigurationError:
            raise
        except ValueError as error:
            raise ConfigurationError(f"{error} Nothing was changed.") from error
    details = {"changed": [one.what for one in changes]}
    note(place, "edited", by=by, records=tuple(dict.fromkeys((record.id, now.id))), details=details)
    if now.id == record.id:
        typer.echo(f"{now.id} was changed.")
    else:
        typer.echo(f"{now.id} has taken the place of {record.id}.")


def _check(record: Record, wanted: Correction) -> None:
    """Refuses a text that is none, or that would leave a fact behind which says otherwise."""
    if wanted.text is None:
        return
    if not wanted.text.strip():
        raise ConfigurationError(
            "The text is empty; nothing was changed. `coag memory forget` removes a record."
        )
    fact = record.fact
    if wanted.text == record.text or fact is None or wanted.value is not None or wanted.no_fact:
        return
    of = " ".join(f"{fact.subject} {fact.attribute}".split())
    raise ConfigurationError(
        f"The record has a fact: {line(of, 100)} = {line(fact.value, 100)}. Say by --value what it "
        "says with the new text (the same, if that stays), or drop the fact by --no-fact. Nothing "
        "was changed."
    )


def _changes(record: Record, wanted: Correction) -> Iterator[_Change]:
    """What will be, each thing."""
    after = amended(record, wanted)
    if wanted.text is not None and wanted.text != record.text:
        yield _Change("text", record.text, wanted.text)
    for name in _FIELDS:
        before, now = _plain(record, name), _plain(after, name)
        if before != now:
            yield _Change(name, before, now)
    before, now = record.dynamics.importance, after.dynamics.importance
    if before != now:
        yield _Change("importance", f"{before:g}", f"{now:g}")


def _plain(record: Record, name: str) -> str:
    dumped = record.model_dump(mode="json", include={name}, exclude_defaults=name == "fact")
    return json.dumps(dumped.get(name), ensure_ascii=False)


def _as_typed(record: Record) -> Correction:
    """The text, and what the fact says with it, as a person says them at a terminal."""
    text, fact = _typed(record), record.fact
    if fact is None or text in ("", record.text):
        return Correction(text=text)
    of = line(f"{fact.subject} {fact.attribute}", 100)
    value: str = typer.prompt(f"Its fact says {of} =", default=visible(fact.value), err=True)
    return Correction(text=text, value=fact.value if value == visible(fact.value) else value)


def _typed(record: Record) -> str:
    """The text as a person leaves it in their editor."""
    if not sys.stdin.isatty():
        raise ConfigurationError(
            "What is to be changed? There is no terminal for an editor: give --text, --type, "
            "--set, --unset, --importance, --value or --until."
        )
    if visible(record.text) != record.text:
        tell(f"It has characters that do not show: {line(record.text)}", "yellow")
    try:
        typed = click.edit(record.text + "\n")
    except click.ClickException as error:
        raise ConfigurationError(
            f"{error.message.rstrip('.')}. Set EDITOR, or give --text."
        ) from error
    return record.text if typed is None else typed.strip()


def _pair(given: str) -> tuple[str, Scalar]:
    key, equals, text = given.partition("=")
    if not equals or not key:
        raise ConfigurationError(f"--set takes KEY=VALUE, not {given!r}.")
    try:
        value: Any = json.loads(text)
    except ValueError:
        return key, text
    if isinstance(value, str | int | float | bool):
        return key, value
    raise ConfigurationError(
        f"--set {given!r}: metadata holds text, numbers and truth values. --unset {key} takes the "
        "key away."
    )


def _moment(given: str) -> datetime:
    try:
        moment = datetime.fromisoformat(given.strip())
    except ValueError as error:
        raise ConfigurationError(
            f"--until {given!r} is no time such as 2026-11-22 or 2026-11-22T10:30:00Z, nor `never`."
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
