"""The first checks of Evaluation: the action exists, and its arguments fit its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing.exceptions import Unresolvable

from coag.schema import ActionSpec, Candidate, Verdict

EXISTS = "action_exists"
ARGUMENTS = "arguments"


def existence(candidate: Candidate, specs: Mapping[str, ActionSpec]) -> Verdict:
    """Whether the action exists; where not, which ones do."""
    if candidate.action in specs:
        return Verdict(allowed=True, constraint=EXISTS)
    return Verdict(
        allowed=False,
        constraint=EXISTS,
        reason=f"there is no action {candidate.action!r}; there are: {', '.join(specs)}",
    )


def parse_arguments(
    candidate: Candidate, spec: ActionSpec
) -> tuple[dict[str, Any] | None, Verdict]:
    """The arguments as an object that fits the action's schema, or the reason why they do not."""
    try:
        parsed = json.loads(candidate.raw_arguments or "{}")
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        return None, _forbid(f"the arguments are no JSON object: {error}")
    if not isinstance(parsed, dict):
        return None, _forbid(f"the arguments must be a JSON object, not {json.dumps(parsed)[:80]}")
    arguments = cast("dict[str, Any]", parsed)
    problem = _schema_problem(arguments, json.dumps(spec.parameters, sort_keys=True))
    if problem:
        return None, _forbid(problem)
    return arguments, Verdict(allowed=True, constraint=ARGUMENTS)


def _forbid(reason: str) -> Verdict:
    return Verdict(allowed=False, constraint=ARGUMENTS, reason=reason)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Draft202012Validator:
    loaded: dict[str, Any] = json.loads(schema)
    Draft202012Validator.check_schema(loaded)
    return Draft202012Validator(loaded)


def _schema_problem(arguments: Mapping[str, Any], schema: str) -> str | None:
    try:
        error = next(iter(_validator(schema).iter_errors(arguments)), None)  # pyright: ignore[reportUnknownMemberType] - jsonschema is partly typed
    except (SchemaError, Unresolvable) as broken:
        return f"the action's own schema is invalid: {str(broken).partition(chr(10))[0]}"
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"{where + ': ' if where else ''}{error.message}"[:300]
