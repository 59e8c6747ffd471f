"""How much of the model's window prompts take, and how it is given out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from coag.schema import BYTES_PER_TOKEN, Section, Trust, Value, estimate_tokens

# ---- Giving out a prompt's room: who needs how much, who comes first, and what is cut where ----
#
# Nothing is cut silently. A text that does not fit keeps its beginning and its end, cut at lines,
# with a note of how much is left out and how to read it; entries that do not fit are counted.


KeepText = Callable[[str], str]
"""Keeps a text that is cut, so that it can be read on, and gives the name to ask for it by."""
READ_MORE = "read_more"
"""The action that shows what was left out."""

FRAME = 20
"""Tokens of a section's heading and its delimiters."""
_BEGINNING = 0.7
"""Of the characters that a cut text keeps, how many are its beginning."""
_CUT = " [cut]"
_NOTE = 120
"""Characters of a note on what is left out."""
_NEAR = 0.2
"""How far back from its place a cut moves to meet the end of a line, as a part of what is kept."""

_WORTH = 100
"""Tokens for which it is worth to begin a text that has no room as a whole."""
FIRST = ("percepts", "unsettled", "rejections", "cognition", "deeds")
"""What this turn and this cycle brought; served first, in this order."""
THEN = ("earlier", "dialogue", "state", "recalled", "module")
_FLOORS: Mapping[str, float] = {
    "percepts": 0.25,
    "cognition": 0.1,
    "dialogue": 0.2,
    "state": 0.05,
    "recalled": 0.1,
    "earlier": 0.12,
    "module": 0.05,
    "deeds": 0.1,
    "unsettled": 0.03,
    "rejections": 0.03,
}
"""The part of the room that each may have before anybody gets more."""


def name_of(text: str) -> str:
    """The name by which a text that was cut is asked for: the same for the same text."""
    return f"t{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def shortened(text: str, characters: int, name: str | None = None) -> str:
    """The text, or its beginning and its end with a note between them, in so many characters.

    Args:
        text: Any text.
        characters: At most so many, the note included.
        name: What to ask for it by; None where it cannot be asked for.
    """
    if len(text) <= characters:
        return text
    if characters < 2 * _NOTE:
        return f"{text[: max(0, characters - len(_CUT))]}{_CUT}"[: max(0, characters)]
    room = characters - _NOTE
    head = _to_line_end(text[: int(room * _BEGINNING)])
    tail = _from_line(text[len(text) - (room - len(head)) :] if room > len(head) else "")
    left_out = len(text) - len(head) - len(tail)
    ask = f'; {READ_MORE}(of="{name}", start={len(head)}) shows them' if name else ""
    note = f"[{left_out:,} of {len(text):,} characters left out here{ask}]"
    return "\n".join(part for part in (head, note, tail) if part)


def _to_line_end(text: str) -> str:
    """The beginning of a text up to the end of a line, where one is near."""
    at = text.rfind("\n")
    return text[:at] if at >= len(text) * (1 - _NEAR) and at > 0 else text


def _from_line(text: str) -> str:
    """The end of a text from the beginning of a line, where one is near."""
    at = text.find("\n")
    return text[at + 1 :] if 0 <= at <= len(text) * _NEAR else text


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderPart:
    """What a prompt may show under one heading: entries, and which of them go first."""

    name: str
    """Which of the budgets is its own."""
    title: str
    source: str
    trust: Trust
    entries: tuple[str, ...]
    keeps: Literal["newest", "alike"] = "newest"
    """Where not all fit: the newest whole, or of each its beginning and end."""
    cap: int | None = None
    """Tokens that it may take at most; None for as many as there are."""
    tokens: int | None = None
    """What the entries take, where it is known; else it is counted."""
    need: int = field(init=False, default=0)
    """Tokens that it takes, at most its cap."""

    def __post_init__(self) -> None:
        whole = self.tokens
        if whole is None:
            whole = sum(estimate_tokens(entry) + 1 for entry in self.entries)
        whole += FRAME
        # The one place that sets it; the value is frozen from here on.
        object.__setattr__(self, "need", min(whole, self.cap or whole))

    def section(self, budget: int, keep: KeepText) -> Section:
        """As a section of at most so many tokens."""
        room = max(1, budget - FRAME)
        if self.keeps == "newest":
            text = newest(self.entries, room, keep)
        else:
            text = "\n".join(alike(self.entries, room, keep))
        budget = max(estimate_tokens(text), 1)
        return Section(
            title=self.title, text=text, source=self.source, trust=self.trust, budget=budget
        )


def newest(entries: Sequence[str], room: int, keep: KeepText) -> str:
    """The last entries that fit, with a note of how many older ones there are."""
    retained, left_out = newest_of(entries, room, keep)
    return "\n".join([*([f"[{left_out} older left out]"] if left_out else []), *retained])


def newest_of(
    entries: Sequence[str], room: int, keep: KeepText, costs: Sequence[int] | None = None
) -> tuple[list[str], int]:
    """The last entries that fit, whole and in order, and how many older ones do not.

    The first that does not fit is shortened.

    Args:
        entries: The oldest first.
        room: Tokens for all.
        keep: Keeps what is cut.
        costs: Tokens that each takes with what delimits it, where that is known.
    """
    retained: list[str] = []
    for number in range(len(entries) - 1, -1, -1):
        entry = entries[number]
        cost = estimate_tokens(entry) + 1 if costs is None else costs[number]
        if cost <= room:
            retained.append(entry)
            room -= cost
            continue
        if not retained or room >= _WORTH:
            retained.append(_fitted(entry, room, keep))
        break
    return retained[::-1], len(entries) - len(retained)


def alike(entries: Sequence[str], room: int, keep: KeepText) -> list[str]:
    """All entries: the short ones whole, the long ones cut to the same length."""
    cap, remaining, waiting = 0, room, sorted(estimate_tokens(entry) + 1 for entry in entries)
    for number, cost in enumerate(waiting):
        cap = remaining // (len(waiting) - number)
        if cost > cap:
            break
        remaining -= cost
    else:
        return list(entries)
    return [
        entry if estimate_tokens(entry) + 1 <= cap else _fitted(entry, max(1, cap - 1), keep)
        for entry in entries
    ]


def _fitted(entry: str, tokens: int, keep: KeepText) -> str:
    size = len(entry.encode("utf-8", "surrogatepass"))
    characters = tokens * BYTES_PER_TOKEN * len(entry) // size if size else 0
    return entry if len(entry) <= characters else shortened(entry, characters, keep(entry))


def allot(needs: Mapping[str, int], room: int) -> dict[str, int]:
    """How many tokens each gets of the room: a floor for all, then by rank as much as it needs.

    Args:
        needs: Tokens by the name of a part; several modules are one.
        room: Tokens that are there for all.
    """
    if sum(needs.values()) <= room:
        return dict(needs)
    given = {name: min(need, int(room * _FLOORS[name])) for name, need in needs.items()}
    remaining = room - sum(given.values())
    for name in (*FIRST, *THEN):
        if name in needs:
            more = min(needs[name] - given[name], remaining)
            given[name] += more
            remaining -= more
    return given


# ---- How much of a model's window a prompt takes, and how much of a dialogue is kept for it ----


WINDOW = 32_000
"""Tokens that a model is taken to read and write at once where nobody says how many it does."""
_RETAINED_SHARE = 0.6
"""Of a prompt's room, what the kept dialogue may take, and what kept results may."""
_OUTPUT_SHARE = 0.5
"""Of a prompt's room, what one tool's output may take."""
_RETAINED_LIMIT = 30_000
"""Tokens of dialogue, and of results, that are kept however large the window is."""
_CAP = Field(default=None, gt=0)


class MemoryLimits(Value):
    """What working memory keeps: part of its value, so that a trace gives it back alike."""

    window: int = WINDOW
    """Tokens that the model reads and writes at once."""
    known: bool = False
    """False where the window is not known, so that `WINDOW` is assumed."""
    prompt: int = 24_000
    """Tokens of a prompt, the schemas of offered tools included."""
    dialogue: int = 57_600
    """Characters of messages; the newest message is kept whatever its length."""
    results: int = 57_600
    """Characters of the results of past actions; of older ones the beginning is kept."""


class Budgets(Value):
    """How the room of a prompt is given out, in estimated tokens (four bytes of text each).

    A prompt takes a share of the model's window. Whole, always: the system message, the procedure
    and the goal. Then, as far as they fit: what this turn brought, the dialogue from the newest
    message back, the state, what was recalled, the modules' sections. None sets no cap of its own.
    """

    window: int | None = _CAP
    """Tokens that the model reads and writes at once; None for what its client, its server or its
    name tells, else 32,000."""
    share: float = Field(default=0.75, gt=0, le=1)
    """The part of the window that a prompt may take. The rest is for the answer, and for
    tokenizers that count otherwise."""
    output: int | None = _CAP
    """One tool's output; None for half of a prompt. Of a longer one the beginning and the end."""
    kept: int | None = _CAP
    """The dialogue that working memory keeps, and as much again of results; None for six tenths of
    a prompt, at most 30,000. What leaves it is summed up, and found again when it matters."""
    system: int | None = _CAP
    """The developer's system message."""
    procedure: int | None = _CAP
    """The procedure of the phase, standing rules included."""
    actions: int | None = _CAP
    """The list of actions, where they are not offered as tools; None for half a prompt."""
    goal: int | None = _CAP
    dialogue: int | None = _CAP
    state: int | None = _CAP
    percepts: int | None = _CAP
    """What has arrived since the last action."""
    deeds: int | None = _CAP
    """Earlier actions and their results."""
    recalled: int | None = _CAP
    """What long-term memory brought back; None for an eighth of a prompt."""
    rejections: int | None = _CAP
    cognition: int | None = _CAP
    """The current cycle's reasoning, candidates or evaluations."""
    module: int = Field(default=400, gt=0)
    """Each cognitive module's section."""

    def limits(self, window: int | None) -> MemoryLimits:
        """What follows for working memory.

        Args:
            window: The model's window as it is known, None if it is not; `self.window` comes first.
        """
        whole = self.window or window or WINDOW
        prompt = max(1, int(whole * self.share))
        retained = (
            self.kept or min(int(prompt * _RETAINED_SHARE), _RETAINED_LIMIT)
        ) * BYTES_PER_TOKEN
        return MemoryLimits(
            window=whole,
            known=(self.window or window) is not None,
            prompt=prompt,
            dialogue=retained,
            results=retained,
        )

    def output_characters(self, limits: MemoryLimits) -> int:
        """Characters of one tool's output that are kept."""
        return (self.output or int(limits.prompt * _OUTPUT_SHARE)) * BYTES_PER_TOKEN

    def recall_room(self, limits: MemoryLimits) -> int:
        """Tokens for what is recalled."""
        return self.recalled or max(1, limits.prompt // 8)

    def action_room(self, limits: MemoryLimits) -> int:
        """Tokens for the list of actions; the same in every cycle, as the list should be."""
        return self.actions or max(1, limits.prompt // 2)
