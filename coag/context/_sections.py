"""The sections that working memory itself contributes to prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from coag.schema import (
    ActionSpec,
    Candidate,
    Evaluation,
    Percept,
    PerceptKind,
    RecalledRecord,
    Section,
    Trust,
    cut_to_tokens,
    estimate_tokens,
)

from ._budgets import Budgets
from ._working_memory import WorkingMemory


def wrap_as_data(text: str, source: str, trust: Trust) -> str:
    """Text from outside between delimiters that it cannot close itself."""
    safe = text.replace("</data", "<\\/data").replace("<data", "<\\data")
    label = source.replace('"', "'")
    return f'<data source="{label}" trust="{trust.value}">\n{safe}\n</data>'


def render_section(section: Section) -> str:
    """A section as it stands in a prompt: title, then the text, delimited unless it is ours."""
    text = cut_to_tokens(section.text, section.budget)
    if section.trust is not Trust.DEVELOPER:
        text = wrap_as_data(text, section.source, section.trust)
    return f"## {section.title}\n{text}"


def keep_newest(lines: Sequence[str], budget: int) -> str:
    """As many of the last lines as fit into the budget, in order, with a note on the rest.

    The newest line always stays; it is cut if it is too long by itself.
    """
    kept: list[str] = []
    used = 0
    for line in reversed(lines):
        cost = estimate_tokens(line) + 1
        if kept and used + cost > budget:
            break
        kept.append(cut_to_tokens(line, budget))
        used += cost
    left_out = len(lines) - len(kept)
    head = [f"[{left_out} older left out]"] if left_out else []
    return "\n".join([*head, *reversed(kept)])


def goal_section(memory: WorkingMemory, budgets: Budgets) -> Section:
    """The goal, quoted: it is a request, not an instruction of the developer."""
    return Section(
        title="Goal",
        text=memory.goal or "(no goal has been given yet)",
        source="goal",
        trust=memory.goal_trust,
        budget=budgets.goal,
    )


def dialogue_section(memory: WorkingMemory, budgets: Budgets) -> Section | None:
    """The last messages, the agent's own answers among them."""
    if not memory.dialogue:
        return None
    lines = [
        f"{'you' if said.own else said.source}: "
        f"{'(the goal above)' if said.content == memory.goal else said.content}"
        for said in memory.dialogue
    ]
    trusts = {said.trust for said in memory.dialogue if not said.own}
    return Section(
        title="Dialogue",
        text=keep_newest(lines, budgets.dialogue),
        source="dialogue",
        trust=Trust.UNTRUSTED if Trust.UNTRUSTED in trusts else Trust.USER,
        budget=budgets.dialogue,
    )


def state_section(description: str, budgets: Budgets) -> Section | None:
    """The domain's description of the perceptual state: facts, brought by sensors and tools."""
    if not description:
        return None
    return Section(
        title="State of the environment",
        text=description,
        source="perception",
        trust=Trust.UNTRUSTED,
        budget=budgets.state,
    )


def _percept_line(percept: Percept) -> str:
    match percept.kind:
        case PerceptKind.TOOL_RETURN:
            status = "failed" if percept.is_error else "returned"
            given = json.dumps(percept.arguments or {}, ensure_ascii=False)
            return f"{percept.source} {given} {status}: {percept.content}"
        case PerceptKind.UNKNOWN_OUTCOME:
            return f"{percept.source}: outcome unknown: {percept.content}"
        case _:
            return f"{percept.kind.value} from {percept.source}: {percept.content}"


def percepts_section(memory: WorkingMemory, budgets: Budgets) -> Section | None:
    """What has arrived since the last action; messages stand in the dialogue."""
    lines = [_percept_line(p) for p in memory.percepts if p.kind is not PerceptKind.MESSAGE]
    if not lines:
        return None
    return Section(
        title="What just happened",
        text=keep_newest(lines, budgets.percepts),
        source="percepts",
        trust=Trust.UNTRUSTED,
        budget=budgets.percepts,
    )


def deeds_section(memory: WorkingMemory, budgets: Budgets) -> Section | None:
    """The actions of earlier cycles with their results; not what has just been perceived."""
    just_perceived = any(percept.caused_by is not None for percept in memory.percepts)
    lines = [
        f"cycle {deed.cycle}: {deed.action} {json.dumps(deed.arguments, ensure_ascii=False)} "
        f"{deed.status.value}: {deed.result}"
        for deed in memory.deeds
        if deed.internal or not (just_perceived and deed.cycle == memory.cycle - 1)
    ]
    if not lines:
        return None
    return Section(
        title="Your earlier actions",
        text=keep_newest(lines, budgets.deeds),
        source="deeds",
        trust=Trust.UNTRUSTED,
        budget=budgets.deeds,
    )


def recalled_section(records: Sequence[RecalledRecord], budgets: Budgets) -> Section | None:
    """What long-term memory brought back, best first, each with kind, score and trust."""
    if not records:
        return None
    lines = [
        f"- [{hit.record.kind.value}, {hit.score:.2f}, {hit.record.provenance.trust.value}, "
        f"id {hit.record.id[:8]}] {hit.record.text}"
        for hit in records
    ]
    text = cut_to_tokens("\n".join(lines), budgets.recalled)
    return Section(
        title="Recalled from long-term memory",
        text=text,
        source="memory",
        trust=Trust.UNTRUSTED,
        budget=budgets.recalled,
    )


def rejections_section(memory: WorkingMemory, budgets: Budgets) -> Section | None:
    """What Evaluation rejected last time, so that it is not proposed again."""
    if not memory.rejections:
        return None
    lines = [
        f"- {gone.action} {gone.raw_arguments}: rejected by {gone.constraint}: {gone.reason}"
        for gone in memory.rejections
    ]
    return Section(
        title="Rejected in the previous cycle (do not propose these again)",
        text="\n".join(lines),
        source="evaluation",
        trust=Trust.UNTRUSTED,
        budget=budgets.rejections,
    )


def reasoning_section(memory: WorkingMemory, budgets: Budgets) -> Section | None:
    """How the agent understood its situation in this cycle."""
    reasoning = memory.cognitive_state.reasoning
    if reasoning is None or not reasoning.situation:
        return None
    risks = "".join(f"\n- risk: {risk}" for risk in reasoning.risks)
    return Section(
        title="Your reasoning",
        text=f"{reasoning.situation}{risks}\nGoal: {reasoning.goal_status.value}.",
        source="reasoning",
        trust=Trust.UNTRUSTED,
        budget=budgets.cognition,
    )


def candidates_section(
    candidates: Sequence[Candidate], evaluations: Sequence[Evaluation], budgets: Budgets
) -> Section | None:
    """The candidates that survived the hard checks, numbered, with projections and scores."""
    by_id = {candidate.id: candidate for candidate in candidates}
    survivors = [judged for judged in evaluations if judged.survived]
    if not survivors:
        return None
    lines = [
        _candidate_line(number, by_id[judged.candidate_id], judged)
        for number, judged in enumerate(survivors, 1)
    ]
    return Section(
        title="Candidates",
        text="\n".join(lines),
        source="candidates",
        trust=Trust.UNTRUSTED,
        budget=budgets.cognition,
    )


def _candidate_line(number: int, candidate: Candidate, judged: Evaluation) -> str:
    line = f"{number}. {candidate.action} {candidate.raw_arguments}"
    if candidate.reason:
        line += f" - {candidate.reason}"
    if judged.projection is not None:
        line += f"\n   predicted state: {json.dumps(judged.projection, ensure_ascii=False)}"
    if judged.score is not None:
        line += f"\n   score {judged.score:.2f}: {judged.reason}"
    return line


def actions_section(specs: Sequence[ActionSpec], budgets: Budgets) -> Section:
    """The available actions with their arguments; static as long as they do not change."""
    lines = [f"- {spec.name}: {spec.description} Arguments: {_signature(spec)}." for spec in specs]
    return Section(
        title="Available actions",
        text="\n".join(lines),
        source="actions",
        budget=budgets.actions,
    )


def _signature(spec: ActionSpec) -> str:
    """The arguments in words. Small models take `name(argument)` for the action's name."""
    properties: dict[str, dict[str, Any]] = spec.parameters.get("properties") or {}
    required: Sequence[str] = spec.parameters.get("required") or ()
    described = [
        f"{name} ({_type_name(schema)}{'' if name in required else ', optional'})"
        for name, schema in properties.items()
    ]
    return ", ".join(described) or "none"


def _type_name(schema: dict[str, Any]) -> str:
    options: list[Any] | None = schema.get("enum")
    if options:
        return "|".join(json.dumps(option) for option in options)
    return str(schema.get("type", "any"))
