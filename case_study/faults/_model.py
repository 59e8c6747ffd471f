"""A model that breaks in one phase: a wrapper around what a scripted one answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import CreateResult

from case_study.temperaments import Intend, answer
from coag.models import Script, ScriptedReply, ScriptedRequest
from coag.proof import Cause
from coag.schema import Phase

from ._beliefs import Belief, belief_of, believing
from ._fault import Breaker
from ._spoiling import EVALUATIONS, PROPOSALS, SELECTIONS, UNUSABLE, Reply, Spoil

NO_ANSWER = "no answer"
_PHASE_BY_FIELD = {
    "situation": Phase.REASONING,
    "candidates": Phase.PROPOSAL,
    "evaluations": Phase.EVALUATION,
    "choice": Phase.SELECTION,
}
_SPOILS: Mapping[Phase, tuple[Cause, Mapping[str, Spoil]]] = {
    Phase.PROPOSAL: (Cause.INVALID_PROPOSAL, PROPOSALS),
    Phase.EVALUATION: (Cause.FAULTY_EVALUATION, EVALUATIONS),
    Phase.SELECTION: (Cause.BAD_SELECTION, SELECTIONS),
}


def broken_script(intend: Intend, breaker: Breaker) -> Script:
    """A script that answers as a temperament does, as far as its breaker lets it."""
    return _Model(intend, breaker).answer


class _Model:
    """What one run's model does."""

    def __init__(self, intend: Intend, breaker: Breaker) -> None:
        self._intend = intend
        self._breaker = breaker
        self._believed: tuple[int, Belief] | None = None

    def answer(self, request: ScriptedRequest) -> ScriptedReply:
        phase = _phase_of(request)
        belief = self._belief(request, phase)
        reply = answer(believing(request, belief) if belief else request, self._intend)
        if belief:
            reply = _told(reply, belief)
        if phase is not None and phase in _SPOILS and isinstance(reply, dict):
            reply = self._spoiled(reply, request, *_SPOILS[phase])
        elif phase is None and isinstance(reply, CreateResult):
            reply = self._spoiled_call(reply, request)
        return self._unusable(reply, phase)

    def _belief(self, request: ScriptedRequest, phase: Phase | None) -> Belief | None:
        """What it believes in this cycle: formed in Reasoning, and held in what follows."""
        breaker = self._breaker
        if not breaker.due(Cause.FAULTY_REASONING):
            return None
        cycle = breaker.now()
        if phase in (Phase.REASONING, None):
            dice = breaker.dice(f"belief {cycle}")
            formed = belief_of(request, breaker.variant, dice)
            self._believed = (cycle, formed) if formed else None
            if formed:
                breaker.strike()
        held = self._believed
        return held[1] if held and held[0] == cycle else None

    def _spoiled(
        self, reply: Reply, request: ScriptedRequest, cause: Cause, spoils: Mapping[str, Spoil]
    ) -> Reply:
        breaker = self._breaker
        if not breaker.due(cause):
            return reply
        dice = breaker.dice(f"answer {breaker.now()}")
        spoiled = spoils[breaker.variant](reply, request.text, dice)
        if spoiled is None:
            return reply
        breaker.strike()
        return spoiled

    def _spoiled_call(self, reply: CreateResult, request: ScriptedRequest) -> CreateResult:
        """A plain agent's tool call, spoiled as a proposal of one candidate is."""
        if isinstance(reply.content, str):
            return reply
        call = reply.content[0]
        one = {"action": call.name, "arguments": call.arguments}
        proposed = {"candidates": [one]}
        whole = self._spoiled(proposed, request, Cause.INVALID_PROPOSAL, PROPOSALS)
        if whole is proposed:
            return reply
        calls = [
            FunctionCall(id=call.id, name=told["action"], arguments=told["arguments"])
            for told in whole["candidates"]
        ]
        return reply.model_copy(update={"content": calls or ""})

    def _unusable(self, reply: ScriptedReply, phase: Phase | None) -> ScriptedReply:
        breaker = self._breaker
        if not breaker.due(Cause.UNUSABLE_ANSWER):
            return reply
        broken = breaker.dice("phase").choice(list(_PHASE_BY_FIELD.values()))
        if phase not in (broken, None):
            return reply
        breaker.strike()
        if breaker.variant == NO_ANSWER:
            raise ConnectionError("Connection error.")
        whole = json.dumps(reply) if isinstance(reply, dict) else "Let me see."
        return UNUSABLE[breaker.variant](whole, breaker.dice(f"answer {breaker.now()}"))


def _phase_of(request: ScriptedRequest) -> Phase | None:
    """The phase that asks; None for a plain agent."""
    asked: Mapping[str, Any] = (request.schema or {}).get("properties", {})
    return next((phase for name, phase in _PHASE_BY_FIELD.items() if name in asked), None)


def _told(reply: ScriptedReply, belief: Belief) -> ScriptedReply:
    """The answer of one who believes so: said in the situation, acted upon where it ends all."""
    if isinstance(reply, CreateResult):
        if belief.status is not None:
            return belief.told
        thought = f"{reply.thought or ''} {belief.told}".strip()
        return reply.model_copy(update={"thought": thought})
    if not isinstance(reply, dict):
        return reply
    told: Reply = dict(reply)
    if "situation" in told:
        first, _, following = str(told["situation"]).partition(" Next:")
        told["situation"] = f"{first} {belief.told} Next:{following}".replace("  ", " ")
        told["goal_status"] = belief.status or told["goal_status"]
    elif "candidates" in told and belief.status is not None:
        told["candidates"] = [
            {
                "reason": belief.told,
                "action": "respond",
                "arguments": json.dumps({"text": belief.told}),
                "expected_effect": "",
            }
        ]
    return told
