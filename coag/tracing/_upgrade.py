"""What older versions wrote, as this version would have written it.

For each version there is a step from it to the next, and a file goes through all that it needs.
To raise the version: add a step for lines and one for `run.json`, and a run folder of the version
before to the test data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from coag.schema import TRACE_VERSION

Fields = dict[str, Any]
"""A line or a `run.json` as its JSON says, not yet checked."""


def is_older(version: int) -> bool:
    """True for a version that can be upgraded."""
    return 1 <= version < TRACE_VERSION


def upgraded_line(fields: Fields) -> Fields:
    """A line of an older version as one of this version; what is no record stays as it is."""
    return _upgraded(fields, _LINES)


def upgraded_run(fields: Fields) -> Fields:
    """A `run.json` of an older version as one of this version."""
    return _upgraded(fields, _RUNS)


def _upgraded(fields: Fields, steps: Mapping[int, Callable[[Fields], Fields]]) -> Fields:
    while fields["v"] < TRACE_VERSION:
        version = fields["v"]
        fields = {**steps[version](fields), "v": version + 1}
    return fields


def _line_from_1(fields: Fields) -> Fields:
    """Version 1 had no hashes, and its snapshots did not say why they were written."""
    body = fields.get("body")
    if not isinstance(body, dict) or cast("Fields", body).get("record") != "snapshot":
        return fields
    snapshot = cast("Fields", body)
    return {**fields, "body": {**snapshot, "reason": _reason_in_1(fields.get("seq"), snapshot)}}


def _reason_in_1(seq: Any, snapshot: Fields) -> str:
    """`cycle` promises that the records before lead to this state, so it is said where it is sure.

    A loaded state was written with the texts of all procedures; so was the snapshot of a cycle
    before which they had changed. Neither is claimed to follow from what was recorded before.
    """
    if seq == 0:
        return "opened"
    procedures = snapshot.get("procedures")
    whole = isinstance(procedures, dict) and "state" in procedures
    return "loaded" if whole else "cycle"


def _run_from_1(fields: Fields) -> Fields:
    """Version 1 had neither parent nor seal; what is not there needs no words."""
    return fields


_LINES: Mapping[int, Callable[[Fields], Fields]] = {1: _line_from_1}
_RUNS: Mapping[int, Callable[[Fields], Fields]] = {1: _run_from_1}
