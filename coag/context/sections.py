"""The sections that working memory contributes to prompts."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import groupby
from typing import Any, cast

from coag._util.text import as_read, cut_to_tokens, ellipsis, in_a_line, without_tags
from coag.memory import Recall
from coag.schema import (
    ActionSpec,
    Candidate,
    Evaluation,
    EvaluationOutcome,
    FeltRecord,
    Percept,
    PerceptKind,
    Phase,
    PromptMessage,
    RecalledRecord,
    RecalledState,
    Section,
    Trust,
    estimate_tokens,
    numbered,
    shown_text,
)

from .prompt_budgets import READ_MORE, KeepText, RenderPart, cost_of, fitted, part_of
from .working_memory import DIALOGUE, Utterance, WorkingMemory

_OURS = ("data",)
"""The tags that no text from outside may hold, however they are spelled."""
_HEADING = re.compile(r"^(?=[^\S\n]*#)", re.MULTILINE)
_ARGUMENTS_SHOWN = 200
"""Characters of an action's arguments that are shown where not all actions fit as they are."""


def one_entry(text: str) -> str:
    """The text as one entry of a list: its further lines are indented, so none begins another."""
    return "\n  ".join(text.splitlines())


def wrap_as_data(text: str, source: str, trust: Trust) -> str:
    """Text from outside between delimiters that it cannot close itself."""
    label = re.sub(r"[<>]", "", in_a_line(as_read(source))).replace('"', "'")
    quoted = "\n".join(without_tags(text, "<\\", _OURS).splitlines())
    if trust is Trust.UNTRUSTED:  # a line of ours begins with `## `, no line of others does
        quoted = _HEADING.sub("> ", quoted)
    return f'<data source="{label}" trust="{trust.value}">\n{quoted}\n</data>'


def render_section(section: Section) -> str:
    """A section as a prompt shows it: title, then the text, delimited unless it is ours."""
    text = cut_to_tokens(section.text, section.budget)
    if section.trust is not Trust.DEVELOPER:
        text = wrap_as_data(text, section.source, section.trust)
    return f"## {in_a_line(section.title)}\n{text}"


def goal_section(memory: WorkingMemory, cap: int | None, keep: KeepText) -> Section:
    """The goal, quoted: it is a request, not an instruction of the developer.

    It is whole, unless the developer set a cap for it, in tokens.
    """
    text = memory.goal or "(no goal has been given yet)"
    if cap is not None and estimate_tokens(text) >= cap:
        text = fitted(text, cap, keep)
    budget = max(estimate_tokens(text), 1)
    return Section(title="Goal", text=text, source="goal", trust=memory.goal_trust, budget=budget)


def spoken_line(message: Utterance) -> tuple[str, int]:
    """A message of the dialogue as one entry, with its speaker, and what that costs."""
    speaker = in_a_line(message.source)
    if message.own:
        speaker = "you"
    elif speaker.casefold() == "you":
        speaker = f"somebody named {speaker!r}"
    line = one_entry(f"{speaker}: {message.content}")
    return line, cost_of(line)


def _times(line: tuple[str, int], count: int) -> tuple[str, int]:
    """One line in place of so many that are alike."""
    if count == 1:
        return line
    text = f"{line[0]} ({count} times)"
    return text, cost_of(text)


def dialogue_part(
    memory: WorkingMemory,
    lines: Callable[[Sequence[Utterance]], list[tuple[str, int]]],
    *,
    lean: bool = False,
) -> RenderPart | None:
    """The last messages, as `lines` has them; not the goal alone once more.

    A lean prompt shows one that is said several times in a row once, with how many times.
    """
    dialogue, goal = memory.dialogue, memory.goal
    if not dialogue or (len(dialogue) == 1 and dialogue[0].content == goal and not dialogue[0].own):
        return None
    spoken = [
        spoken_line(one.model_copy(update={"content": "(the goal above)"}))
        if one.content == goal
        else line
        for one, line in zip(dialogue, lines(dialogue), strict=True)
    ]
    if lean:
        spoken = [_times(line, len(list(run))) for line, run in groupby(spoken)]
    entries, costs = zip(*spoken, strict=True)
    untrusted = any(one.trust is Trust.UNTRUSTED for one in dialogue if not one.own)
    trust = Trust.UNTRUSTED if untrusted else Trust.USER
    return part_of("dialogue", "Dialogue", entries, trust=trust, costs=costs)


def earlier_part(memory: WorkingMemory) -> RenderPart | None:
    """What was said before the dialogue that is kept, in short."""
    earlier = memory.earlier
    if earlier is None:
        return None
    more = f'{READ_MORE}(of="{DIALOGUE}") shows all'
    title = f"Earlier in this dialogue ({earlier.messages} messages in short; {more})"
    trust = Trust.UNTRUSTED if earlier.untrusted else Trust.USER
    lines = map(one_entry, earlier.lines() or ("",))
    return part_of("earlier", title, lines, source="dialogue", trust=trust)


def state_part(description: str) -> RenderPart | None:
    """The domain's description of the perceptual state: facts, brought by sensors and tools."""
    entries = (description,) if description else ()
    return part_of("state", "State of the environment", entries, source="perception")


_RETURNS: Mapping[PerceptKind, str] = {
    PerceptKind.TOOL_RETURN: "returned",
    PerceptKind.UNKNOWN_OUTCOME: "outcome unknown",
    PerceptKind.SETTLED: "settled",
}


def _percept_line(percept: Percept) -> str:
    became = _RETURNS.get(percept.kind)
    if became is None:
        return f"{percept.kind.value} from {percept.source}: {percept.content}"
    if percept.kind is PerceptKind.TOOL_RETURN and percept.is_error:
        became = "failed"
    return f"{percept.source} {_json(percept.arguments or {})} {became}: {percept.content}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def percepts_part(memory: WorkingMemory) -> RenderPart | None:
    """The percepts since the last action; messages are in the dialogue."""
    arrived = (one for one in memory.percepts if one.kind is not PerceptKind.MESSAGE)
    lines = (one_entry(_percept_line(one)) for one in arrived)
    return part_of("percepts", "What just happened", lines, alike=True)


def past_actions_part(memory: WorkingMemory) -> RenderPart | None:
    """The actions of earlier cycles with their results.

    Not what has just been perceived, nor answers, which are in the dialogue.
    """
    just_perceived = any(percept.caused_by is not None for percept in memory.percepts)
    answers = {said.content for said in memory.dialogue if said.own}
    lines = (
        one_entry(
            f"cycle {past.cycle}: {past.action} {_json(past.arguments)} "
            f"{past.status.value}: {past.result}"
        )
        for past in memory.deeds
        if (past.internal and past.result not in answers)
        or not (past.internal or (just_perceived and past.cycle == memory.cycle - 1))
    )
    return part_of("deeds", "Your earlier actions", lines)


def unsettled_part(memory: WorkingMemory) -> RenderPart | None:
    """The actions of unknown outcome, for as long as it is not known."""
    lines = (
        one_entry(f"cycle {one.cycle}: {one.action} {_json(one.arguments)}")
        for one in memory.unsettled
        if one.memory_scope in ("", memory.memory_scope)
    )
    title = "Not known whether these had their effect (they are not run again before it is)"
    return part_of("unsettled", title, lines)


def rejections_part(memory: WorkingMemory) -> RenderPart | None:
    """What Evaluation rejected last time, so that it is not proposed again."""
    lines = (
        one_entry(f"- {one.action} {one.raw_arguments}: rejected by {one.constraint}: {one.reason}")
        for one in memory.rejections
    )
    title = "Rejected in the previous cycle (do not propose these again)"
    return part_of("rejections", title, lines, source="evaluation")


# ---- The actions, where they are not offered as tools ----


def action_list(specs: Sequence[ActionSpec], room: int, *, lean: bool = False) -> str:
    """The available actions with their arguments; static as long as they do not change.

    Where they do not all fit, long descriptions are shortened, so that no action is lost to
    another's length; where not even that helps, tools are left out, the agent's own actions not.
    A lean list names what is no text, and what is optional, and says nothing of the rest.
    """
    lines = "\n".join(_action_lines(specs, room, lean=lean))
    section = Section(title="Available actions", text=lines, source="actions", budget=room)
    return render_section(section)


def _action_lines(specs: Sequence[ActionSpec], budget: int, *, lean: bool) -> list[str]:
    def fit(lines: Sequence[str]) -> bool:
        return estimate_tokens("\n".join(lines)) <= budget

    def described(room: int) -> list[str]:
        return [_action_line(spec, room, _ARGUMENTS_SHOWN, lean=lean) for spec in specs]

    whole = [_action_line(spec, lean=lean) for spec in specs]
    if fit(whole):
        return whole
    if fit(described(0)):
        longest = max(len(spec.description) for spec in specs)
        return described(_most(longest, lambda room: fit(described(room))))
    own = [_action_line(spec, 0, _ARGUMENTS_SHOWN, lean=lean) for spec in specs if spec.internal]
    tools = [_action_line(spec, 0, 0, lean=lean) for spec in specs if not spec.internal]

    def first(count: int) -> list[str]:
        left_out = len(tools) - count
        note = [f"[{left_out} more tools are left out]"] if left_out else []
        return [*own, *tools[:count], *note]

    return first(_most(len(tools), lambda count: fit(first(count))))


def _most(top: int, fits: Callable[[int], bool]) -> int:
    """The greatest number up to `top` that fits, where all smaller ones do; else 0."""
    return max(bisect_left(range(top + 1), True, key=lambda number: not fits(number)) - 1, 0)


def _action_line(
    spec: ActionSpec, room: int | None = None, arguments: int | None = None, *, lean: bool = False
) -> str:
    """One action on one line, its description and arguments in so many characters."""

    def cut(text: str, limit: int | None) -> str:
        return text if limit is None else ellipsis(text, limit) if limit > 1 else ""

    signature = cut(in_a_line(_signature(spec, lean=lean)), arguments)
    ending = f"Arguments: {signature}." if signature else "(arguments not shown)"
    parts = (f"- {in_a_line(spec.name)}:", cut(in_a_line(spec.description), room), ending)
    return " ".join(part for part in parts if part)


def _signature(spec: ActionSpec, *, lean: bool) -> str:
    """The arguments in words. Small models take `name(argument)` for the action's name."""
    properties: Any = spec.parameters.get("properties")
    required: Any = spec.parameters.get("required")
    if not isinstance(properties, dict):
        return "none"
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    named = cast("dict[str, Any]", properties)
    types = {name: _type_name(schema) for name, schema in named.items()}
    if not lean:
        shown = (
            f"{name} ({of_type}{'' if name in needed else ', optional'})"
            for name, of_type in types.items()
        )
        return ", ".join(shown) or "none"
    short = {name: name if of == "string" else f"{name} ({of})" for name, of in types.items()}
    first = ", ".join(text for name, text in short.items() if name in needed)
    optional = ", ".join(text for name, text in short.items() if name not in needed)
    return (
        "; ".join(part for part in (first, optional and f"optional {optional}") if part) or "none"
    )


def _type_name(schema: Any) -> str:
    """The type or the allowed values; a schema may also be just true."""
    if not isinstance(schema, dict):
        return "any"
    described = cast("dict[str, Any]", schema)
    options: Any = described.get("enum")
    if options and isinstance(options, list):
        return "|".join(json.dumps(option) for option in cast("list[Any]", options))
    return str(described.get("type", "any"))


# ---- What long-term memory brought back, as far as a prompt has room for it ----


def fitting(recall: Recall, room: int) -> Recall:
    """A recall as far as its section has room for it, the best first; says what is left out.

    Records are shown whole; one that is too long gives way to shorter ones behind it. The best
    one always stays, and is cut if it is too long by itself.

    Args:
        recall: What was found.
        room: Tokens for it.
    """
    ids = {hit.record.id for hit in recall.records}
    retained: list[RecalledRecord] = []
    left_out: list[str] = []
    for hit in recall.records:
        cost = estimate_tokens(_recalled_line(hit, ids) + "\n")
        if retained and cost > room:
            left_out.append(hit.record.id)
        else:
            retained.append(hit)
            room -= cost
    if not left_out:
        return recall
    return replace(
        recall,
        records=tuple(retained),
        left_out=(*recall.left_out, *left_out),
        contradictions=tuple(p for p in recall.contradictions if not set(left_out) & set(p)),
    )


def recalled_part(
    records: Sequence[RecalledRecord],
    felt: Sequence[FeltRecord] = (),
    doubted: Sequence[str] = (),
) -> RenderPart | None:
    """What long-term memory brought back, best first, each with kind, score and trust.

    Where memory has dynamics: also how old and how sure each is, what replaced it, gists in place
    of texts, what is only felt to be known, and how many were left out as too doubtful.
    """
    ids = {hit.record.id for hit in records}
    lines = [_recalled_line(hit, ids) for hit in records]
    lines += [
        f"- [felt, {one.score:.2f}, {one.trust.value}, id {one.id[:8]}] Something is known that "
        f"does not come to mind, on: {one.cue}"
        for one in felt
    ]
    if doubted:
        lines.append(
            f"- [left out] {len(doubted)} of untrusted sources alone, which nobody confirmed."
        )
    return part_of("recalled", "Recalled from long-term memory", lines, source="memory", alike=True)


def _recalled_line(hit: RecalledRecord, ids: Set[str]) -> str:
    record = hit.record
    others = " and ".join(name[:8] for name in record.lineage.contradicts if name in ids)
    contradicts = f", contradicts {others}" if others else ""
    state = "" if hit.state is None else "".join(f", {one}" for one in state_in_words(hit.state))
    return one_entry(
        f"- [{record.kind.value}, {hit.score:.2f}, {record.provenance.trust.value}, "
        f"id {record.id[:8]}{contradicts}{state}] {shown_text(hit)}"
    )


_MONTH, _YEAR = 30.44, 365.25
"""Days."""


def state_in_words(state: RecalledState) -> Iterator[str]:
    """What a reader should know of how a record was kept."""
    if state.unasked:
        yield "came to mind unasked"
    for days, unit in ((_YEAR, "year"), (_MONTH, "month"), (1.0, "day")):
        if (count := int(state.age / days)) > 0:
            yield f"{count} {unit}{'s' if count > 1 else ''} old"
            break
    if state.yields_to is not None:
        yield f"perhaps outdated by id {state.yields_to[:8]}"
    if state.unconfirmed:
        yield "unconfirmed"
    if state.doubtful:
        yield f"sureness of its source {state.confidence:.2f}"
    if state.gist is not None:
        yield "its gist only"


# ---- How a prompt shows the results of earlier phases of the same cycle ----


ANSWER_TEXT = 500
"""Characters of each text of an earlier answer that a growing prompt keeps."""
ANSWER_TOKENS = 800
"""Tokens of an earlier answer that a growing prompt keeps, unless a budget says otherwise."""
_FOR_THE_TRACE = frozenset({"record", "at", "usage", "cycle", "phase", "id", "proposed_by"})
"""Fields of outcomes that say nothing to a model."""


def earlier_answer(phase: Phase, memory: WorkingMemory, cap: int | None) -> PromptMessage:
    """What the model answered in an earlier phase of this cycle, from the committed outcome.

    In short: without what is empty, what the trace alone needs, and what later sections show;
    with its longer texts cut. The rules, and what they foresee, decide by themselves.
    """
    outcome = getattr(memory.cognitive_state, phase.value)
    fields: dict[str, Any] = {}
    if isinstance(outcome, EvaluationOutcome):
        fields["evaluations"] = [
            {"candidate": number, "score": judged.score, "reason": judged.reason}
            for number, judged in enumerate(numbered(outcome.evaluations), 1)
            if judged.score is not None
        ]
    elif outcome is not None:
        fields = outcome.model_dump(mode="json", exclude_none=True)
    text = cut_to_tokens(_json(_in_short(fields)), cap or ANSWER_TOKENS)
    return PromptMessage(role="assistant", content=without_tags(text, "\\u003c", _OURS))


def _in_short(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= ANSWER_TEXT else f"{value[:ANSWER_TEXT]}…"
        case list():
            return [_in_short(item) for item in cast("list[Any]", value)]
        case dict():
            return {
                key: _in_short(item)
                for key, item in cast("dict[str, Any]", value).items()
                if key not in _FOR_THE_TRACE and item not in ("", [], {})
            }
        case _:
            return value


def reasoning_part(memory: WorkingMemory) -> RenderPart | None:
    """How the agent understood its situation in this cycle."""
    reasoning = memory.cognitive_state.reasoning
    if reasoning is None or not reasoning.situation:
        return None
    risks = "".join(f"\n- risk: {risk}" for risk in reasoning.risks)
    text = f"{reasoning.situation}{risks}\nGoal: {reasoning.goal_status.value}."
    return part_of("cognition", "Your reasoning", (text,), source="reasoning", alike=True)


def candidates_part(
    memory: WorkingMemory, evaluations: Iterable[Evaluation], predictions: Mapping[str, str]
) -> RenderPart | None:
    """The candidates that survived the hard checks, with predictions and scores.

    They are sorted by rank, with the numbers of `numbered`: before there are scores, these are one
    order.
    """
    proposal = memory.cognitive_state.proposal
    by_id = {} if proposal is None else {one.id: one for one in proposal.candidates}
    ranked = sorted(enumerate(numbered(evaluations), 1), key=lambda each: -each[1].rank())
    lines = (
        _candidate_line(
            number, by_id[judged.candidate_id], judged, predictions.get(judged.candidate_id)
        )
        for number, judged in ranked
        if by_id
    )
    return part_of("cognition", "Candidates", lines, source="candidates", alike=True)


def _candidate_line(
    number: int, candidate: Candidate, judged: Evaluation, prediction: str | None
) -> str:
    line = f"{number}. {candidate.action} {candidate.raw_arguments}"
    if candidate.reason:
        line += f" - {candidate.reason}"
    if prediction:
        line += f"\n   predicted state: {prediction}"
    if judged.gain is not None:
        line += f"\n   brings the goal nearer by {judged.gain:+.2f}"
    if judged.score is not None:
        line += f"\n   score {judged.score:.2f}: {judged.reason}"
    return line
