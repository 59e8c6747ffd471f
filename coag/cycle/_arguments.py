"""The first checks of Evaluation: the action exists, and its arguments fit its schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

from coag.schema import ActionSpec, Candidate, Verdict

from ._json_schemas import LEVELS, levels, value_fault

EXISTS = "action_exists"
IDEMPOTENCY_KEY = "idempotency_key"
"""The parameter of a tool that gets a key from the guard; the model never sees it."""
ARGUMENTS = "arguments"
_EXISTS = Verdict(allowed=True, constraint=EXISTS)
_FIT = Verdict(allowed=True, constraint=ARGUMENTS)


def existence(candidate: Candidate, specs: Mapping[str, ActionSpec]) -> Verdict:
    """Whether the action exists; where not, which ones do."""
    if candidate.action in specs:
        return _EXISTS
    return Verdict(
        allowed=False,
        constraint=EXISTS,
        reason=f"there is no action {candidate.action!r}; there are: {', '.join(specs)}"[:1_000],
    )


def parse_arguments(
    candidate: Candidate, spec: ActionSpec
) -> tuple[dict[str, Any] | None, Verdict]:
    """The arguments as an object that fits the action's schema, or the reason why they do not."""
    try:
        parsed = json.loads(candidate.raw_arguments or "{}")
        json.dumps(parsed, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        return None, _forbid(f"the arguments are no JSON object: {error}"[:300])
    if not isinstance(parsed, dict):
        return None, _forbid(f"the arguments must be a JSON object, not {json.dumps(parsed)[:80]}")
    if levels(parsed) > LEVELS:
        return None, _forbid(f"the arguments have more than {LEVELS} levels of lists and objects")
    arguments = cast("dict[str, Any]", parsed)
    if spec.idempotency_key:  # whoever runs it gives the key
        arguments.pop(IDEMPOTENCY_KEY, None)
    problem = value_fault(arguments, json.dumps(spec.parameters, sort_keys=True))
    if problem:
        return None, _forbid(problem)
    return arguments, _FIT


def with_defaults(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the defaults of their JSON Schema, in objects within objects too.

    Of schemas that leave a choice (`anyOf`, `$ref`) no default is taken, but their own.
    """
    whole = dict(arguments)
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name, part in properties.items():
        if not isinstance(part, dict):
            continue
        inner = cast("dict[str, Any]", part)
        if name not in whole and inner.get("default") is not None:
            whole[name] = deepcopy(inner["default"])
        if isinstance(whole.get(name), dict) and isinstance(inner.get("properties"), dict):
            whole[name] = with_defaults(whole[name], inner)
    return whole


def completed_arguments(
    arguments: dict[str, Any],
    complete: Callable[[ActionSpec, dict[str, Any]], dict[str, Any]],
    spec: ActionSpec,
) -> tuple[dict[str, Any] | None, Verdict]:
    """The arguments exactly as the action will get them, or the reason why it will not."""
    try:
        return complete(spec, deepcopy(arguments)), _FIT
    except Exception as error:  # a tool's own validators may raise anything; nothing passes then
        told = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return None, _forbid(told[:300])


def _forbid(reason: str) -> Verdict:
    return Verdict(allowed=False, constraint=ARGUMENTS, reason=reason)
