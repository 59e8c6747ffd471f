"""Asking an approver, so that nothing but a plain yes is a yes."""

from __future__ import annotations

import inspect
from typing import Any, cast

from ._approval_values import ApprovalAnswer, ApprovalRequest, ApproveFunction
from ._threads import in_thread, outcome_of
from ._timed import LateError, SelfCancelledError, told, within

_SHOWN = 80
"""Characters of an answer that is none, and that are shown."""


def approver_name(approver: object) -> str:
    """How denials and traces call the approver: its `name`, its `__name__`, or its type."""
    own = getattr(approver, "name", None) or getattr(approver, "__name__", None)
    return own if isinstance(own, str) else type(approver).__name__


async def answer_of(
    approver: ApproveFunction, request: ApprovalRequest, seconds: float
) -> ApprovalAnswer:
    """The approver's answer within `seconds`; whatever goes wrong is a denial by nobody.

    Only that this task is cancelled, or the process is to end, passes through.
    """
    name = approver_name(approver)
    shown = request.model_copy(deep=True)  # what the approver does to it, it does to its own
    try:
        given = await within(seconds, lambda: _called(approver, shown))
    except LateError:
        return request.deny("", f"nobody answered within {seconds:g} s")
    except SelfCancelledError:
        return request.deny("", f"the approver {name} was cancelled by itself")
    except Exception as error:  # an approver is user code; without its yes nothing may run
        return request.deny("", f"the approver {name} raised {told(error)}")
    return _understood(given, request, name)


async def _called(approver: ApproveFunction, request: ApprovalRequest) -> object:
    call: Any = approver
    if inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__):
        return await call(request)
    given: object = await outcome_of(in_thread(lambda: call(request), "coag-approver"))
    return await cast("Any", given) if inspect.isawaitable(given) else given


def _understood(given: object, request: ApprovalRequest, name: str) -> ApprovalAnswer:
    if isinstance(given, bool):
        return request.grant(name) if given else request.deny(name)
    if not isinstance(given, ApprovalAnswer):
        return request.deny(
            "",
            f"the approver {name} returned {_shown(given)} instead of True, False or "
            "request.grant(...) or request.deny(...)",
        )
    if given.digest != request.digest:
        return request.deny("", f"the approver {name} answered another request")
    return given


def _shown(value: object) -> str:
    """A plain value as it is, anything else by its type: its `repr` could do anything."""
    plain = value is None or type(value) in (str, int, float)
    return repr(value)[:_SHOWN] if plain else f"a {type(value).__name__}"
