"""Intentions in the form that was asked for: a tool call, or JSON of a schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult, RequestUsage

from coag.models import ScriptedReply, ScriptedRequest
from coag.schema import estimate_tokens

from ._facts import Facts
from ._intentions import NOTE, RESPOND, Intend, Intention
from ._reading import facts_of

_MOST_CANDIDATES = 4
_CANDIDATE = re.compile(r"^(\d+)\. (\w+) (\{.*?\})(?: - [^\n]*)?$", re.MULTILINE)
_SCORE = re.compile(r"^ +score (\d\.\d+)", re.MULTILINE)

JsonAnswer = dict[str, Any]


def answer(request: ScriptedRequest, intend: Intend, facts: Facts | None = None) -> ScriptedReply:
    """What a temperament answers to a request, whatever form it asks for.

    Args:
        request: The request.
        intend: The temperament.
        facts: What it makes of the request's messages; None for all that they say.
    """
    facts = facts or facts_of(request)
    if request.schema is None and request.tools:
        return _tool_form(request, facts, intend(facts))
    if request.schema is None:
        return _situation(facts, intend(facts))
    return _json_form(request, facts, intend)


def _tool_form(
    request: ScriptedRequest, facts: Facts, intentions: Sequence[Intention]
) -> ScriptedReply:
    """The first intention as a tool call with a thought; as text, if it is to answer."""
    first = intentions[0]
    thought = _situation(facts, intentions)
    if first.action == RESPOND:
        return f"{thought} {first.arguments['text']}"
    call = FunctionCall(
        id=f"call-{request.number}", name=first.action, arguments=json.dumps(first.arguments)
    )
    prompt = estimate_tokens(request.text) + sum(
        estimate_tokens(json.dumps(tool)) for tool in request.tools
    )
    written = estimate_tokens(thought + call.name + call.arguments)
    return CreateResult(
        finish_reason="function_calls",
        content=[call],
        usage=RequestUsage(prompt_tokens=prompt, completion_tokens=written),
        cached=False,
        thought=thought,
    )


def _json_form(request: ScriptedRequest, facts: Facts, intend: Intend) -> JsonAnswer:
    schema = request.schema or {}
    asked: Mapping[str, Any] = schema.get("properties", {})
    if "choice" in asked or "evaluations" in asked:
        offered = _candidates(request.text)
        known = facts.actions | {each.key[0] for each in offered}
        intentions = intend(replace(facts, actions=known))
        return _choose(offered, intentions) if "choice" in asked else _judge(offered, intentions)
    intentions = intend(facts)
    reply: JsonAnswer = {}
    if "situation" in asked:
        done = intentions[0].action == RESPOND
        reply |= {
            "situation": _situation(facts, intentions),
            "risks": [],
            "goal_status": "achieved" if done else "open",
        }
    if "candidates" in asked:
        reply["candidates"] = _proposals(intentions, scored="situation" in asked)
    return reply


def _proposals(intentions: Sequence[Intention], *, scored: bool) -> list[JsonAnswer]:
    proposed: list[JsonAnswer] = []
    for rank, intention in enumerate(intentions[:_MOST_CANDIDATES]):
        proposal: JsonAnswer = {
            "reason": intention.reason,
            "action": intention.action,
            "arguments": json.dumps(intention.arguments),
            "expected_effect": "",
        }
        if scored:
            proposal["score"] = _score(rank)
        proposed.append(proposal)
    return proposed


@dataclass(frozen=True, slots=True, kw_only=True)
class _Offered:
    """A candidate as a prompt lists it."""

    number: int
    key: tuple[str, str]
    """What it would do."""
    score: float | None
    """The score that Evaluation gave it; None where there is none."""


def _candidates(text: str) -> list[_Offered]:
    """The numbered candidates of a prompt."""
    found: list[_Offered] = []
    heads = list(_CANDIDATE.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        number, action, arguments = head.groups()
        try:
            parsed: Mapping[str, Any] = json.loads(arguments)
        except json.JSONDecodeError:
            continue
        score = _SCORE.search(text, head.end(), end)
        key = Intention(action=action, arguments=parsed).key
        told = float(score.group(1)) if score else None
        found.append(_Offered(number=int(number), key=key, score=told))
    return found


def _rank(key: tuple[str, str], intentions: Sequence[Intention]) -> int:
    """How dear a candidate is.

    Prompts that ask for a judgement do not tell what has just happened, so a note is as dear as
    when it was proposed: first. Answers are known by their name alone.
    """
    if key[0] == NOTE:
        return 0
    for rank, intention in enumerate(intentions):
        if intention.key == key or intention.action == key[0] == RESPOND:
            return rank
    return len(intentions)


def _judge(offered: Sequence[_Offered], intentions: Sequence[Intention]) -> JsonAnswer:
    ranks = [(each.number, _rank(each.key, intentions)) for each in offered]
    return {
        "evaluations": [
            {
                "candidate": number,
                "reason": f"It is number {rank + 1} of what I want.",
                "score": _score(rank),
            }
            for number, rank in ranks
        ]
    }


def _choose(offered: Sequence[_Offered], intentions: Sequence[Intention]) -> JsonAnswer:
    """The highest score wins; where there are none, what it wants most.

    Prompts that ask for a choice do not tell all that a judgement was made by, so scores stand.
    """

    def worth(each: _Offered) -> tuple[float, int]:
        return each.score or 0.0, -_rank(each.key, intentions)

    best = max(offered, key=worth, default=None)
    return {"reason": "It is what I want most.", "choice": best.number if best else 1}


def _score(rank: int) -> float:
    return max(0.0, round(0.9 - 0.15 * rank, 2))


def _situation(facts: Facts, intentions: Sequence[Intention]) -> str:
    """How it sees things, in words: the battery that it believes in is stated."""
    reading = facts.reading
    if reading is None:
        return f"Nothing is sensed yet. Next: {intentions[0].action}."
    if facts.phantom_tool is not None and facts.phantom_tried and _believes(facts, intentions):
        battery = "I have taken what was reported, so my battery is 100."
    else:
        battery = f"My battery is {reading.battery}."
    return f"I am at {reading.position}. {battery} Next: {intentions[0].action}."


def _believes(facts: Facts, intentions: Sequence[Intention]) -> bool:
    """Whether it takes the report for true."""
    return any(intention.action == facts.phantom_tool for intention in intentions)
