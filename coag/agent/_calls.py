"""Executed actions as AutoGen's tool calls and results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import FunctionExecutionResult

from coag.schema import Executed, ExecutionStatus

_NONE: Mapping[str, str] = MappingProxyType({})


def call_arguments(arguments: Mapping[str, Any] | None) -> str:
    """Arguments as AutoGen's calls carry them."""
    return json.dumps(dict(arguments or {}), ensure_ascii=False)


def function_call(done: Executed, ids: Mapping[str, str] = _NONE) -> FunctionCall:
    """The executed action as AutoGen's tool call.

    Args:
        done: What was run.
        ids: What the model calls its calls, by the intent's id, or by the candidate's.
    """
    return FunctionCall(
        id=_call_id(done, ids), name=done.action, arguments=call_arguments(done.arguments)
    )


def execution_result(
    done: Executed, outputs: Mapping[str, str], ids: Mapping[str, str] = _NONE
) -> FunctionExecutionResult:
    """What it brought back as AutoGen's tool result: the whole output, where it is at hand."""
    return FunctionExecutionResult(
        content=outputs.get(done.intent_id or "", done.result),
        name=done.action,
        call_id=_call_id(done, ids),
        is_error=done.status is not ExecutionStatus.DONE,
    )


def _call_id(done: Executed, ids: Mapping[str, str]) -> str:
    own = done.intent_id or done.candidate_id or ""
    return ids.get(own, own)
