"""What stands in a trace where it cannot be taken up: whoever wrote it, it was not this package."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from coag.errors import CoagError, StateError, TraceError
from coag.schema import Snapshot, Written

_TRACE = Path("trace.jsonl")


@contextmanager
def taking_up(record: Snapshot | Written | None, field: str) -> Generator[None]:
    """Says of a value that cannot be taken up in which record and field of the trace it stands.

    Args:
        record: The record; None where it is one of several snapshots.
        field: Its field.

    Raises:
        TraceError: The block failed at the value.
    """
    try:
        yield
    except StateError as error:
        raise _error(record, field, str(error)) from error
    except CoagError:
        raise
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise _error(record, field, f"{where}: {first['msg']}") from error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise _error(record, field, f"{type(error).__name__}: {error}") from error


def _error(record: Snapshot | Written | None, field: str, problem: str) -> TraceError:
    match record:
        case Snapshot():
            named = f"the snapshot of cycle {record.cycle}"
        case Written():
            named = f"the record that {record.id!r} was written"
        case None:
            named = "a snapshot"
    return TraceError(_TRACE, f"{field!r} of {named} cannot be taken up: {problem}")
