"""What the module of an activity shows in prompts: text from outside, within a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from coag.schema import cut_to_tokens, estimate_tokens, folded, one_line

from .manual import Manual
from .module_state import SituatedModuleState
from .records import DELEGATED, ToolDescription
from .trust import safe_text

_LINE = 160
_REASON = 400
_PLAN_TOKENS = 300
_CATALOGUE_TOKENS = 200


def ranked(tools: Iterable[ToolDescription], goal: str) -> list[ToolDescription]:
    """Tools by how many words of a goal their descriptions have, the most first.

    Those that stand for delegated goals are left out: who delegated one knows its id.
    """
    wanted = set(folded(goal).split())

    def shared(tool: ToolDescription) -> int:
        names = " ".join(one.name.replace("_", " ") for one in tool.operations)
        words = f"{tool.id.replace('_', ' ')} {tool.category} {tool.description} {names}"
        return len(wanted & set(folded(words).split()))

    listed = (tool for tool in tools if tool.category != DELEGATED)
    return sorted(listed, key=lambda tool: -shared(tool))


def catalogue_text(tools: Iterable[ToolDescription], state: SituatedModuleState) -> str:
    """One line for each tool."""
    return "\n".join(
        f"- {tool.id}: {one_line(tool.description, _LINE)}"
        + (" (manual mounted)" if tool.id in state.mounted else "")
        + ("" if tool.has_manual else " (needs no manual)")
        for tool in tools
    )


def situation_text(
    state: SituatedModuleState,
    now: datetime | None,
    focused: Mapping[str, ToolDescription | None],
    catalogue: str,
    manuals: Mapping[str, Manual | str],
    budget: int,
) -> str:
    """Plan, signals, properties, what may be waited for, manuals, and the catalogue.

    Args:
        state: The module's state.
        now: When the cycle began.
        focused: The tools in focus, with what they declare.
        catalogue: The catalogue in words; empty to leave it out.
        manuals: The mounted manuals; of one that cannot be shown, why.
        budget: Tokens at most.
    """
    plan = f"Plan:\n{cut_to_tokens(safe_text(state.plan), _PLAN_TOKENS)}" if state.plan else ""
    parts = [plan, _recent(state), _properties(state, now, focused), _waits(focused)]
    short = f"Tools:\n{cut_to_tokens(catalogue, _CATALOGUE_TOKENS)}" if catalogue else ""
    text = "\n\n".join(filter(None, [*parts, short]))
    room = budget - estimate_tokens(text)
    shown: list[str] = []
    for tool, manual in manuals.items():
        shown.append(_manual(tool, manual, room))
        room -= estimate_tokens(shown[-1]) + 1
    return cut_to_tokens("\n\n".join(filter(None, [*parts, *shown, short])), budget)


def _recent(state: SituatedModuleState) -> str:
    return "Last signals:\n" + "\n".join(state.recent) if state.recent else ""


def _properties(
    state: SituatedModuleState, now: datetime | None, focused: Mapping[str, ToolDescription | None]
) -> str:
    lines: list[str] = []
    for tool in focused:
        if (known := state.tools.get(tool)) is not None:
            age = f" (changed {_age(known.at, now)} ago)" if now is not None else ""
            lines.append(f"- {known.text}{age}")
    return "In focus:\n" + "\n".join(lines) if lines else ""


def _age(at: datetime, now: datetime) -> str:
    seconds = max(0.0, (now - at).total_seconds())
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _waits(focused: Mapping[str, ToolDescription | None]) -> str:
    lines: list[str] = []
    for tool, known in focused.items():
        if known is not None and (known.signals or known.properties):
            signals = ", ".join(one.name for one in known.signals) or "none"
            properties = ", ".join(one.name for one in known.properties) or "none"
            lines.append(f"- {tool}: signals {signals}; properties {properties}")
    return "What may be waited for:\n" + "\n".join(lines) if lines else ""


def _manual(tool: str, manual: Manual | str, room: int) -> str:
    """A manual whole, its section 3 where that alone has room, or that it was left out."""
    if isinstance(manual, str):
        return f"The manual of {tool} is not shown: {one_line(manual, _REASON)}"
    size = estimate_tokens(manual.body)
    if size <= room:
        return f"Manual of {tool}:\n{manual.body.strip()}"
    protocol = f"Manual of {tool}, only its section on protocol and safety:\n{manual.protocol}"
    if manual.protocol and estimate_tokens(protocol) <= room:
        return f"{protocol}\n(The rest, {size} tokens in all, has no room: unmount another one.)"
    return f"The manual of {tool} ({size} tokens) has no room here: unmount another one."
