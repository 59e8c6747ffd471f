"""The sections that working memory contributes to prompts."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Literal, cast

from coag._util.text import ellipsis
from coag.memory import Recall
from coag.schema import (
    ActionSpec,
    Candidate,
    Evaluation,
    EvaluationOutcome,
    Percept,
    PerceptKind,
    Phase,
    PromptMessage,
    RecalledRecord,
    Record,
    Section,
    Trust,
    as_read,
    cut_to_tokens,
    estimate_tokens,
    numbered,
    without_tags,
)

from .prompt_budgets import READ_MORE, Budgets, KeepText, RenderPart, newest
from .working_memory import DIALOGUE, Utterance, WorkingMemory

# ---- The sections that working memory itself contributes to prompts ----


_HEADING = re.compile(r"^(?=[^\S\n]*#)", re.MULTILINE)
_ARGUMENTS_SHOWN = 200
"""Characters of an action's arguments that are shown where not all actions fit as they are."""


def escape_delimiters(text: str, escaped: str = "<\\") -> str:
    """The text without anything that reads as one of our data delimiters, however spelled."""
    return without_tags(text, escaped, ("data",))


def one_line(text: str) -> str:
    """The text with every run of blanks and line breaks as one blank."""
    return " ".join(text.split())


def one_entry(text: str) -> str:
    """The text as one entry of a list: its further lines are indented, so none begins another."""
    return "\n  ".join(text.splitlines())


def wrap_as_data(text: str, source: str, trust: Trust) -> str:
    """Text from outside between delimiters that it cannot close itself."""
    label = re.sub(r"[<>]", "", one_line(as_read(source))).replace('"', "'")
    quoted = "\n".join(escape_delimiters(text).splitlines())
    if trust is Trust.UNTRUSTED:  # a line of ours begins with `## `, no line of others does
        quoted = _HEADING.sub("> ", quoted)
    return f'<data source="{label}" trust="{trust.value}">\n{quoted}\n</data>'


def render_section(section: Section) -> str:
    """A section as a prompt shows it: title, then the text, delimited unless it is ours."""
    text = cut_to_tokens(section.text, section.budget)
    if section.trust is not Trust.DEVELOPER:
        text = wrap_as_data(text, section.source, section.trust)
    return f"## {one_line(section.title)}\n{text}"


def _part(
    name: str,
    title: str,
    entries: Iterable[str],
    *,
    source: str = "",
    trust: Trust = Trust.UNTRUSTED,
    keeps: Literal["newest", "alike"] = "newest",
    cap: int | None = None,
) -> RenderPart | None:
    """A part of untrusted text; None where it has no entries."""
    given = tuple(entries)
    if not given:
        return None
    return RenderPart(
        name=name,
        title=title,
        source=source or name,
        trust=trust,
        entries=given,
        keeps=keeps,
        cap=cap,
    )


def goal_section(memory: WorkingMemory, budgets: Budgets, keep: KeepText) -> Section:
    """The goal, quoted: it is a request, not an instruction of the developer.

    It is whole, unless the developer set a budget for it.
    """
    text = memory.goal or "(no goal has been given yet)"
    if budgets.goal is not None:
        text = newest([text], budgets.goal, keep)
    budget = max(estimate_tokens(text), 1)
    return Section(title="Goal", text=text, source="goal", trust=memory.goal_trust, budget=budget)


def dialogue_part(
    memory: WorkingMemory, budgets: Budgets, known: dict[int, tuple[Utterance, str]]
) -> RenderPart | None:
    """The last messages, the agent's own answers among them; not the goal alone once more.

    Args:
        memory: Whose dialogue.
        budgets: Its cap.
        known: The lines of messages that were shown before, by the message's identity; updated,
            so that each message is rendered once.
    """
    said = memory.dialogue
    if not said or (len(said) == 1 and said[0].content == memory.goal and not said[0].own):
        return None
    trusts = {one.trust for one in said if not one.own}
    trust = Trust.UNTRUSTED if Trust.UNTRUSTED in trusts else Trust.USER
    lines = _lines(said, memory.goal, known)
    return _part("dialogue", "Dialogue", lines, trust=trust, cap=budgets.dialogue)


def earlier_part(memory: WorkingMemory) -> RenderPart | None:
    """What was said before the dialogue that is kept, in short."""
    earlier = memory.earlier
    if earlier is None:
        return None
    more = f'{READ_MORE}(of="{DIALOGUE}") shows all'
    return RenderPart(
        name="earlier",
        title=f"Earlier in this dialogue ({earlier.messages} messages in short; {more})",
        source="dialogue",
        trust=Trust.UNTRUSTED if earlier.untrusted else Trust.USER,
        entries=tuple(one_entry(line) for line in earlier.lines()),
    )


def _lines(
    said: Sequence[Utterance], goal: str, known: dict[int, tuple[Utterance, str]]
) -> list[str]:
    lines: list[str] = []
    now: dict[int, tuple[Utterance, str]] = {}
    for one in said:
        shown = known.get(id(one))
        if one.content == goal:
            lines.append(_said(one, goal))
            continue
        line = shown[1] if shown is not None and shown[0] is one else _said(one, goal)
        now[id(one)] = (one, line)
        lines.append(line)
    known.clear()
    known.update(now)
    return lines


def _said(said: Utterance, goal: str) -> str:
    speaker = one_line(said.source)
    if said.own:
        speaker = "you"
    elif speaker.casefold() == "you":
        speaker = f"somebody named {speaker!r}"
    return one_entry(f"{speaker}: {'(the goal above)' if said.content == goal else said.content}")


def state_part(description: str, budgets: Budgets) -> RenderPart | None:
    """The domain's description of the perceptual state: facts, brought by sensors and tools."""
    entries = (description,) if description else ()
    title = "State of the environment"
    return _part("state", title, entries, source="perception", cap=budgets.state)


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


def percepts_part(memory: WorkingMemory, budgets: Budgets) -> RenderPart | None:
    """What has arrived since the last action; messages stand in the dialogue."""
    lines = (
        one_entry(_percept_line(one))
        for one in memory.percepts
        if one.kind is not PerceptKind.MESSAGE
    )
    return _part("percepts", "What just happened", lines, keeps="alike", cap=budgets.percepts)


def past_actions_part(memory: WorkingMemory, budgets: Budgets) -> RenderPart | None:
    """The actions of earlier cycles with their results.

    Not what has just been perceived, nor answers, which stand in the dialogue.
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
    return _part("deeds", "Your earlier actions", lines, cap=budgets.deeds)


def unsettled_part(memory: WorkingMemory, budgets: Budgets) -> RenderPart | None:
    """The actions of unknown outcome, for as long as it is not known."""
    lines = (
        one_entry(f"cycle {one.cycle}: {one.action} {_json(one.arguments)}")
        for one in memory.unsettled
        if one.memory_scope in ("", memory.memory_scope)
    )
    title = "Not known whether these had their effect (they are not run again before it is)"
    return _part("unsettled", title, lines, cap=budgets.rejections)


def rejections_part(memory: WorkingMemory, budgets: Budgets) -> RenderPart | None:
    """What Evaluation rejected last time, so that it is not proposed again."""
    lines = (
        one_entry(f"- {one.action} {one.raw_arguments}: rejected by {one.constraint}: {one.reason}")
        for one in memory.rejections
    )
    title = "Rejected in the previous cycle (do not propose these again)"
    return _part("rejections", title, lines, source="evaluation", cap=budgets.rejections)


def actions_section(specs: Sequence[ActionSpec], room: int) -> Section:
    """The available actions with their arguments; static as long as they do not change.

    Where they do not all fit, long descriptions are shortened, so that no action is lost to
    another's length; where not even that helps, tools are left out, the agent's own actions not.
    """
    return Section(
        title="Available actions",
        text="\n".join(_action_lines(specs, room)),
        source="actions",
        budget=room,
    )


def _action_lines(specs: Sequence[ActionSpec], budget: int) -> list[str]:
    def shown(room: int) -> list[str]:
        return [_action_line(spec, room, _ARGUMENTS_SHOWN) for spec in specs]

    whole = [_action_line(spec) for spec in specs]
    if _fits(whole, budget):
        return whole
    if _fits(shown(0), budget):
        longest = max(len(spec.description) for spec in specs)
        rooms = range(longest + 1)
        return shown(bisect_left(rooms, True, key=lambda room: not _fits(shown(room), budget)) - 1)
    named = [_action_line(spec, 0, _ARGUMENTS_SHOWN if spec.internal else 0) for spec in specs]
    tools = [line for line, spec in zip(named, specs, strict=True) if not spec.internal]
    own = [line for line, spec in zip(named, specs, strict=True) if spec.internal]

    def first(count: int) -> list[str]:
        left_out = len(tools) - count
        note = [f"[{left_out} more tools are left out]"] if left_out else []
        return [*own, *tools[:count], *note]

    counts = range(len(tools) + 1)
    most = bisect_left(counts, True, key=lambda count: not _fits(first(count), budget)) - 1
    return first(max(most, 0))


def _fits(lines: Sequence[str], budget: int) -> bool:
    return estimate_tokens("\n".join(lines)) <= budget


def _action_line(spec: ActionSpec, room: int | None = None, arguments: int | None = None) -> str:
    """One action on one line, its description and arguments in so many characters."""
    described = _shortened(one_line(spec.description), room)
    signature = _shortened(one_line(_signature(spec)), arguments)
    ending = f"Arguments: {signature}." if signature else "(arguments not shown)"
    return " ".join(part for part in (f"- {one_line(spec.name)}:", described, ending) if part)


def _shortened(text: str, room: int | None) -> str:
    return text if room is None else ellipsis(text, room) if room > 1 else ""


def _signature(spec: ActionSpec) -> str:
    """The arguments in words. Small models take `name(argument)` for the action's name."""
    properties: Any = spec.parameters.get("properties")
    required: Any = spec.parameters.get("required")
    if not isinstance(properties, dict):
        return "none"
    needed = cast("list[Any]", required) if isinstance(required, list) else []
    described = [
        f"{name} ({_type_name(schema)}{'' if name in needed else ', optional'})"
        for name, schema in cast("dict[str, Any]", properties).items()
    ]
    return ", ".join(described) or "none"


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
    """A recall as far as its section has room for it, the best first; tells what is left out.

    Records are shown whole; one that is too long gives way to shorter ones behind it. The best
    one always stays, and is cut if it is too long by itself.

    Args:
        recall: What was found.
        room: Tokens for it.
    """
    shown = {hit.record.id for hit in recall.records}
    retained: list[RecalledRecord] = []
    left_out: list[str] = []
    for hit in recall.records:
        cost = estimate_tokens(_recalled_line(hit, shown) + "\n")
        if retained and cost > room:
            left_out.append(hit.record.id)
        else:
            retained.append(hit)
            room -= cost
    if not left_out:
        return recall
    gone = set(left_out)
    pairs = tuple(pair for pair in recall.contradictions if gone.isdisjoint(pair))
    return replace(
        recall,
        records=tuple(retained),
        left_out=(*recall.left_out, *left_out),
        contradictions=pairs,
    )


def recalled_part(records: Sequence[RecalledRecord], budgets: Budgets) -> RenderPart | None:
    """What long-term memory brought back, best first, each with kind, score and trust."""
    shown = {hit.record.id for hit in records}
    lines = (_recalled_line(hit, shown) for hit in records)
    title, cap = "Recalled from long-term memory", budgets.recalled
    return _part("recalled", title, lines, source="memory", keeps="alike", cap=cap)


def _recalled_line(hit: RecalledRecord, shown: Set[str]) -> str:
    record = hit.record
    return one_entry(
        f"- [{record.kind.value}, {hit.score:.2f}, {record.provenance.trust.value}, "
        f"id {record.id[:8]}{_contradicting(record, shown)}] {record.text}"
    )


def _contradicting(record: Record, shown: Set[str]) -> str:
    """Which of the records beside it a record contradicts."""
    others = [name[:8] for name in record.lineage.contradicts if name in shown]
    return f", contradicts {' and '.join(others)}" if others else ""


# ---- How a prompt tells what earlier phases of the same cycle have come to ----


ANSWER_TEXT = 500
"""Characters of each text of an earlier answer that a growing prompt keeps."""
ANSWER_TOKENS = 800
"""Tokens of an earlier answer that a growing prompt keeps, unless a budget says otherwise."""
_FOR_THE_TRACE = frozenset({"record", "at", "usage", "cycle", "phase", "id", "proposed_by"})
"""Fields of outcomes that say nothing to a model."""


def earlier_answer(phase: Phase, memory: WorkingMemory, budgets: Budgets) -> PromptMessage:
    """What the model answered in an earlier phase of this cycle, from the committed outcome.

    In short: without what is empty, what the trace alone needs, and what later sections show;
    with its longer texts cut.
    """
    outcome = getattr(memory.cognitive_state, phase.value)
    shown: dict[str, Any] = {}
    if isinstance(outcome, EvaluationOutcome):
        shown = {"evaluations": _judgements(outcome)}
    elif outcome is not None:
        shown = outcome.model_dump(mode="json", exclude_none=True)
    text = json.dumps(_in_short(shown), ensure_ascii=False)
    text = cut_to_tokens(text, budgets.cognition or ANSWER_TOKENS)
    return PromptMessage(role="assistant", content=escape_delimiters(text, "\\u003c"))


def _judgements(outcome: EvaluationOutcome) -> list[dict[str, Any]]:
    """What was thought of the survivors; the rules, and what they foresee, decide by themselves."""
    return [
        {"candidate": number, "score": judged.score, "reason": judged.reason}
        for number, judged in enumerate(numbered(outcome.evaluations), 1)
        if judged.score is not None
    ]


def _in_short(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= ANSWER_TEXT else f"{value[:ANSWER_TEXT]}…"
    if isinstance(value, list):
        return [_in_short(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            key: _in_short(item)
            for key, item in items
            if key not in _FOR_THE_TRACE and item not in ("", [], {})
        }
    return value


def reasoning_part(memory: WorkingMemory, budgets: Budgets) -> RenderPart | None:
    """How the agent understood its situation in this cycle."""
    reasoning = memory.cognitive_state.reasoning
    if reasoning is None or not reasoning.situation:
        return None
    risks = "".join(f"\n- risk: {risk}" for risk in reasoning.risks)
    text = f"{reasoning.situation}{risks}\nGoal: {reasoning.goal_status.value}."
    title, cap = "Your reasoning", budgets.cognition
    return _part("cognition", title, (text,), source="reasoning", keeps="alike", cap=cap)


def candidates_part(
    memory: WorkingMemory,
    evaluations: Sequence[Evaluation],
    predictions: Mapping[str, str],
    budgets: Budgets,
) -> RenderPart | None:
    """The candidates that survived the hard checks, with predictions and scores.

    They stand by rank, with the numbers that `numbered` gives them: before there are scores, these
    are one order.
    """
    proposal = memory.cognitive_state.proposal
    survivors = numbered(evaluations)
    if proposal is None or not survivors:
        return None
    by_id = {candidate.id: candidate for candidate in proposal.candidates}
    ranked = sorted(enumerate(survivors, 1), key=lambda each: -each[1].rank())
    lines = (
        _candidate_line(
            number, by_id[judged.candidate_id], judged, predictions.get(judged.candidate_id)
        )
        for number, judged in ranked
    )
    cap = budgets.cognition
    return _part("cognition", "Candidates", lines, source="candidates", keeps="alike", cap=cap)


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
