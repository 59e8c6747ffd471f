"""`Guard`: the rules around a stock agent, for its calls, its dialogue and its answers."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from autogen_core.tools import ToolResult
from pydantic import BaseModel
from pydantic_core import from_json

from coag._util.text import well_formed
from coag.context import Utterance
from coag.cycle import (
    RESPOND,
    GuardDeps,
    GuardedActions,
    check,
    respond_spec,
    run_selected,
    sayable,
)
from coag.schema import (
    ActionSpec,
    Candidate,
    Percept,
    PerceptKind,
    Phase,
    Trust,
    Verdict,
)

from .guarded_calls import (
    GuardedCalls,
    GuardedTools,
    JudgedCall,
    as_json,
    forbids,
    refusal,
)

_UNHEARD_ANSWERS = (
    "The rule {rule!r} judges answers, and nobody brings the agent's answers here: give an agent "
    "of AutoGen `ConstrainedClient(client, workbench)` as its model client."
)
_HEARD = 1_000
"""Texts of dialogues that are known again; more where one request has more than half of it."""
_USERS = 100
"""The user's messages that stay in a dialogue, as far as they take half of its characters."""
_LOG = logging.getLogger(__name__)


class Guard(GuardedCalls):
    """Judges what a stock agent, of whatever framework, does and says, and hears what it is told.

    Args:
        name: Who acts, for approvers and in the trace.
        context: Keeps the state that rules judge by.
        runner: The tools, where calls do not bring theirs.
        constraints: Hard rules; the context's own are asked as well.
        approval: What a person has to agree to; everything, if there is only `approve`.
        approve: Who is asked.
        logs: The folder for run folders; None keeps the trace in RAM.
        settings: What `run.json` holds of how it was set.
        parallel: Run calls of read-only tools beside others.

    Raises:
        ConfigurationError: A constraint is none, or a policy has nobody to ask.
    """

    hears_answers = False
    """Whether answers are brought here to be judged; rules on them have no force without."""
    asked_again = 3
    """How often a model is asked again in a row because what it called or said is forbidden."""
    _known_at_most = _HEARD

    async def open(self) -> None:
        """Begins the run, unless it is open; says which rules on answers have no force."""
        if self.trace.id:
            return
        await super().open()
        for rule in () if self.hears_answers else self._constraints.about_answers():
            self.note("rule", _UNHEARD_ANSWERS.format(rule=rule), rule=rule)
            _LOG.warning("%s: %s", self._name, _UNHEARD_ANSWERS.format(rule=rule))

    async def reset(self) -> None:
        """Forgets the state, what failed and what was said."""
        self._heard.clear()
        await super().reset()

    async def save_state(self) -> dict[str, Any]:
        """What the guard knows, as JSON."""
        return {**await super().save_state(), "heard": list(self._heard)}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from what `save_state` returned."""
        await super().load_state(state)
        self._heard = OrderedDict.fromkeys(state.get("heard", ()))

    async def judge(
        self, calls: Sequence[tuple[str, object]], tools: GuardedTools
    ) -> list[JudgedCall]:
        """What code says of calls by the state as it is now. Nothing is run, nobody is asked.

        Args:
            calls: Tools and their arguments.
            tools: Those that exist.

        Raises:
            ConfigurationError: Another event loop is using the guard.
            TraceError: It cannot be written down.
        """
        async with self._judging(self._offering(tools)) as deps:
            specs = await deps.actions.specs()
            return [self._judged(name, given, specs, deps) for name, given in calls]

    def _judged(
        self, name: str, arguments: object, specs: Mapping[str, ActionSpec], deps: GuardDeps
    ) -> JudgedCall:
        candidate = Candidate(id=deps.ids("call"), action=name, raw_arguments=as_json(arguments))
        evaluation = check(candidate, specs, self.context, deps)
        self._note_verdicts(candidate, evaluation, deps)
        by = evaluation.rejected_by
        return JudgedCall(evaluation, "" if by is None else refusal(name, by).to_text())

    # ---- what is said: the dialogue, and the agent's answers ----

    async def hear(
        self,
        messages: Iterable[tuple[str, str, Trust]],
        *,
        unanswered: bool,
        own: Collection[str] = (),
    ) -> bool:
        """Takes in messages of the dialogue as percepts, the same text of a speaker once.

        What the user says again is heard again, unless he said nothing else meanwhile.

        Args:
            messages: Who speaks, what is said, and how far it is trusted.
            unanswered: Whether the agent has said nothing since the user spoke.
            own: What else the dialogue holds: names of the agent's own words, see `know`.

        Returns:
            Whether there was something new.

        Raises:
            ConfigurationError: Another event loop is using the guard.
            TraceError: It cannot be written down.
        """
        said = [one for one in messages if one[1].strip()]
        known = {_digest(*one): one for one in said}
        with self._entered():
            new = [one for name, one in known.items() if name not in self._heard]
            last = next((one for one in reversed(said) if one[2] is Trust.USER), None)
            if unanswered and last and last not in new and not self._heard_last(last[1]):
                new.append(last)
            if new:
                await self.open()
                await self._take_in([self._message(*one) for one in new])
            self._known_at_most = max(self._known_at_most, 2 * (len(known) + len(own)))
            self.know([*known, *own])
        return bool(new)

    async def _take_in(self, messages: Sequence[Percept]) -> None:
        """Perceives messages; the user's last ones stay, however much others say."""
        memory = self.context.working_memory
        users = [(one.source, one.content) for one in memory.dialogue if _is_users(one)]
        users += [(one.source, one.content) for one in messages if one.trust is Trust.USER]
        await self.perceive(messages)
        kept, room = self.context.working_memory.said_by_user(), memory.limits.dialogue // 2
        lost = list[tuple[str, str]]()
        for one in list(reversed(dict.fromkeys(users)))[:_USERS]:
            room -= len(one[1])
            if room >= 0 and one[1] not in kept:
                lost.append(one)
        if lost:
            await self.perceive(self._message(*one, Trust.USER) for one in reversed(lost))

    def _heard_last(self, text: str) -> bool:
        """Whether this is what the user said last, as far as working memory holds it."""
        said = reversed(self.context.working_memory.dialogue)
        return next((one.content for one in said if _is_users(one)), None) == well_formed(text)

    def know_result(self, result: ToolResult) -> None:
        """What a call gave back was perceived already, and is no news where a dialogue holds it."""
        self.know([_digest(result.name, result.to_text(), Trust.UNTRUSTED)])

    def knows(self, name: str) -> bool:
        """Whether words are known by this name."""
        return name in self._heard

    def know(self, names: Iterable[str]) -> None:
        """Keeps names of words that are no news, e.g. hashes of the agent's own."""
        for name in names:
            self._heard[name] = None
            self._heard.move_to_end(name)
        while len(self._heard) > self._known_at_most:
            self._heard.popitem(last=False)

    def _message(self, source: str, text: str, trust: Trust) -> Percept:
        return Percept(
            id=self.context.ids("percept"),
            at=self.context.clock.now(),
            kind=PerceptKind.MESSAGE,
            source=source,
            trust=trust,
            content=well_formed(text),
        )

    @property
    def judges_answers(self) -> bool:
        """Whether a rule in force, or an approver, may forbid an answer."""
        self._constraints.pin()
        asked = self._approvals is not None and not self._approvals.policy.exempts(RESPOND.name)
        return asked or self._constraints.may_judge_answers()

    async def judge_answer(self, text: str, form: bool | type[BaseModel] | None = None) -> Verdict:
        """What is said of a text that is to be the agent's answer, judged as the action `respond`.

        By the same rules and state as its calls; approvers are asked where their policy wants it.

        Args:
            text: The answer as the model gave it.
            form: AutoGen's `json_output`: the type whose fields the action then has; or whether
                the text is JSON.

        Raises:
            ConfigurationError: Another event loop is using the guard.
            TraceError: It cannot be written down.
        """
        spec, raw = _as_response(text, form)
        actions = GuardedActions(respond=spec)
        actions.enter(Phase.EXECUTION)
        async with self._judging(actions) as deps:
            candidate = Candidate(id=deps.ids("call"), action=RESPOND.name, raw_arguments=raw)
            if read := _as_read(text, form):
                as_read = candidate.model_copy(update={"raw_arguments": read})
                judged = check(as_read, {RESPOND.name: spec}, self.context, deps)
                if judged.arguments is not None and judged.rejected_by is not None:
                    self._note_verdicts(as_read, judged, deps)
                    return judged.rejected_by
            judged_by = partial(self._note_verdicts, deps=deps)
            ended = await run_selected([candidate], self.context, deps, judged=judged_by)
            if ended.broken is not None:
                raise ended.broken
            return ended.ran[0].refused_by or Verdict.allow()

    async def may_show(self, text: str) -> bool:
        """Whether every rule lets a text be shown that is no answer, e.g. what a model thought.

        Raises as `judge_answer`.
        """
        async with self._judging(GuardedActions()) as deps:
            return sayable(text, self.context, deps)

    async def withheld(self, verdict: Verdict) -> str:
        """What is said in place of a forbidden answer; the reason only as far as rules let it.

        Raises as `judge_answer`.
        """
        text = f"The answer was withheld. {forbids(verdict)}"
        if await self.may_show(text):
            return text
        return f"The answer was withheld. The rule {verdict.constraint!r} forbids it."


make_guard = Guard
"""The earlier name of the constructor."""


def correction_of(verdict: Verdict) -> str:
    """What a model is shown whose answer was forbidden."""
    again = "Answer once more, without what is forbidden."
    return f"That answer was not given out. {forbids(verdict)} {again}"


def _is_users(said: Utterance) -> bool:
    return said.trust is Trust.USER and not said.own


def _digest(source: str, text: str, trust: Trust) -> str:
    said = json.dumps([source, text, trust.value])
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def _as_response(text: str, form: bool | type[BaseModel] | None) -> tuple[ActionSpec, str]:
    """The answer as its action has it: an object of a type by its fields, all else as a text.

    JSON is read as those read it who get it, so that no other spelling of a text hides it.
    """
    if form:
        try:
            value: object = from_json(text)
        except ValueError:  # it is judged as it is
            return RESPOND, as_json({"text": well_formed(text)})
        if isinstance(form, type) and isinstance(value, dict):
            return respond_spec(form), as_json(cast("object", value))
        text = json.dumps(value, ensure_ascii=False)
    return RESPOND, as_json({"text": well_formed(text)})


def _as_read(text: str, form: bool | type[BaseModel] | None) -> str:
    """The fields of an answer as its type reads them, stripped or with defaults, say.

    Empty where they are as they were written, and for what is no answer of a type.
    """
    if not isinstance(form, type):
        return ""
    try:
        read = form.model_validate_json(text).model_dump(mode="json", by_alias=True)
        return "" if read == from_json(text) else as_json(read)
    except ValueError:
        return ""
