"""What a scripted mind wants, in the form that was asked for: a tool call, or JSON of a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage

from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import estimate_tokens

_MOST = 4
_CANDIDATE = re.compile(r"^(\d+)\. (\w+) \{", re.MULTILINE)
_SCORE = re.compile(r"^ +score (\d\.\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Intention:
    """One thing that it wants to do."""

    action: str
    reason: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


def answer(
    request: ScriptedRequest, situation: str, intentions: Sequence[Intention]
) -> ScriptedReply:
    """The intentions, the most wanted first, in the form that the request asks for."""
    if request.schema is None and request.tools:
        return _tool_call(request, situation, intentions[0])
    if request.schema is None:
        return situation
    asked: Mapping[str, Any] = request.schema.get("properties", {})
    if "choice" in asked:
        return {"reason": "It scores best.", "choice": _best(request.text, intentions)}
    if "evaluations" in asked:
        return {"evaluations": _judged(request.text, intentions)}
    done = intentions[0].action == "respond"
    reply: dict[str, Any] = {}
    if "situation" in asked:
        status = "achieved" if done else "open"
        reply |= {"situation": situation, "risks": [], "goal_status": status}
    if "candidates" in asked:
        reply["candidates"] = [
            _proposed(rank, each, scored="situation" in asked)
            for rank, each in enumerate(intentions[:_MOST])
        ]
    return reply


def _tool_call(request: ScriptedRequest, situation: str, first: Intention) -> ScriptedReply:
    """The first intention as a tool call with a thought; as text, if it is to answer."""
    if first.action == "respond":
        return f"{situation} {first.arguments['text']}"
    call = FunctionCall(id=f"call-{request.number}", name=first.action, arguments="{}")
    offered = sum(estimate_tokens(json.dumps(tool)) for tool in request.tools)
    usage = RequestUsage(
        prompt_tokens=estimate_tokens(request.text) + offered,
        completion_tokens=estimate_tokens(situation + call.name),
    )
    return CreateResult(
        finish_reason="function_calls", content=[call], usage=usage, cached=False, thought=situation
    )


def _proposed(rank: int, intention: Intention, *, scored: bool) -> dict[str, Any]:
    fields = {
        "reason": intention.reason,
        "action": intention.action,
        "arguments": json.dumps(intention.arguments),
        "expected_effect": "",
    }
    return {**fields, "score": _score(rank)} if scored else fields


def _judged(text: str, intentions: Sequence[Intention]) -> list[dict[str, Any]]:
    ranks = {each.action: rank for rank, each in enumerate(intentions)}
    return [
        {
            "candidate": int(found.group(1)),
            "reason": "So much I want it.",
            "score": _score(ranks.get(found.group(2), len(ranks))),
        }
        for found in _CANDIDATE.finditer(text)
    ]


def _best(text: str, intentions: Sequence[Intention]) -> int:
    """The number of the highest score; of equal ones, what it wants most itself."""
    heads = list(_CANDIDATE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    ranks = {each.action: rank for rank, each in enumerate(intentions)}
    best, choice = (-1.0, 0), 1
    for head, end in zip(heads, ends, strict=True):
        score = _SCORE.search(text, head.end(), end)
        worth = (float(score.group(1)) if score else 0.0, -ranks.get(head.group(2), len(ranks)))
        if worth > best:
            best, choice = worth, int(head.group(1))
    return choice


def _score(rank: int) -> float:
    return max(0.0, round(0.9 - 0.15 * rank, 2))
