"""How much of the model's window prompts take, and how it is given out.

Nothing is cut silently. A text that does not fit keeps its beginning and its end, cut at lines,
with a note of how much is left out and how to read it; entries that do not fit are counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Field

from coag._util.text import BYTES_PER_TOKEN
from coag.schema import Section, Trust, Value, estimate_tokens

KeepText = Callable[[str], str]
"""Keeps a text that is cut, so that the rest can be read, and gives the name to ask for it by."""
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
"""Tokens from which on the beginning of a text is shown that has no room as a whole."""
_FLOORS: Mapping[str, float] = {
    "percepts": 0.25,
    "unsettled": 0.03,
    "rejections": 0.03,
    "cognition": 0.1,
    "deeds": 0.1,
    "earlier": 0.12,
    "dialogue": 0.2,
    "state": 0.05,
    "recalled": 0.1,
    "module": 0.05,
}
"""The part of the room that each may have before anybody gets more. They are served in this order:
first what this turn and this cycle brought."""


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
    head = text[: int(room * _BEGINNING)]
    line_end = head.rfind("\n")
    if line_end > 0 and line_end >= len(head) * (1 - _NEAR):
        head = head[:line_end]
    tail = text[len(text) - (room - len(head)) :] if room > len(head) else ""
    line_end = tail.find("\n")
    if 0 <= line_end <= len(tail) * _NEAR:
        tail = tail[line_end + 1 :]
    left_out = len(text) - len(head) - len(tail)
    ask = f'; {READ_MORE}(of="{name}", start={len(head)}) shows them' if name else ""
    note = f"[{left_out:,} of {len(text):,} characters left out here{ask}]"
    return "\n".join(part for part in (head, note, tail) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderPart:
    """What a prompt may show under one heading."""

    name: str
    """Which share of the room is its own."""
    title: str
    source: str
    trust: Trust
    entries: Sequence[str]
    costs: Sequence[int]
    """Tokens of each entry, with what parts it from the next."""
    alike: bool
    """Where not all fit: of each its beginning and end, or else the newest whole."""

    def section(self, budget: int, keep: KeepText) -> Section:
        """As a section of at most so many tokens."""
        room = max(1, budget - FRAME)
        if sum(self.costs) <= room:
            lines = self.entries
        elif self.alike:
            lines = _alike(self.entries, self.costs, room, keep)
        else:
            retained, left_out = newest_of(self.entries, self.costs, room, keep)
            lines = [*([f"[{left_out} older left out]"] if left_out else []), *retained]
        text = "\n".join(lines)
        budget = max(estimate_tokens(text), 1)
        return Section(
            title=self.title, text=text, source=self.source, trust=self.trust, budget=budget
        )


def part_of(
    name: str,
    title: str,
    entries: Iterable[str],
    *,
    source: str = "",
    trust: Trust = Trust.UNTRUSTED,
    alike: bool = False,
    costs: Sequence[int] = (),
) -> RenderPart | None:
    """A part with these entries, the oldest first, and their costs where they are known.

    None where there is none.
    """
    listed = tuple(entries)
    if not listed:
        return None
    return RenderPart(
        name=name,
        title=title,
        source=source or name,
        trust=trust,
        entries=listed,
        costs=costs or [cost_of(entry) for entry in listed],
        alike=alike,
    )


def cost_of(entry: str) -> int:
    """Tokens of an entry and of what parts it from the next."""
    return estimate_tokens(entry) + 1


def newest_of(
    entries: Sequence[str], costs: Sequence[int], room: int, keep: KeepText
) -> tuple[list[str], int]:
    """The last entries that fit, whole and in order, and how many older ones do not.

    The first that does not fit is shortened, if that is worth it.
    """
    retained: list[str] = []
    for entry, cost in zip(reversed(entries), reversed(costs), strict=True):
        if cost > room:
            if not retained or room >= _WORTH:
                retained.append(fitted(entry, room, keep))
            break
        retained.append(entry)
        room -= cost
    return retained[::-1], len(entries) - len(retained)


def _alike(entries: Sequence[str], costs: Sequence[int], room: int, keep: KeepText) -> list[str]:
    """All entries: the short ones whole, the long ones cut to the same length."""
    cap = 0
    for number, cost in enumerate(sorted(costs)):
        cap = room // (len(costs) - number)
        if cost > cap:
            break
        room -= cost
    return [
        entry if cost <= cap else fitted(entry, max(1, cap - 1), keep)
        for entry, cost in zip(entries, costs, strict=True)
    ]


def fitted(entry: str, tokens: int, keep: KeepText) -> str:
    """The entry, or its beginning and end, in so many tokens."""
    size = len(entry.encode("utf-8", "surrogatepass"))
    characters = tokens * BYTES_PER_TOKEN * len(entry) // size if size else 0
    return entry if len(entry) <= characters else shortened(entry, characters, keep(entry))


def allot(needs: Mapping[str, int], room: int) -> dict[str, int]:
    """How many tokens each gets of the room: a floor for all, then by rank as much as it needs."""
    if sum(needs.values()) <= room:
        return dict(needs)
    shares = {name: min(need, int(room * _FLOORS[name])) for name, need in needs.items()}
    remaining = room - sum(shares.values())
    for name in filter(needs.__contains__, _FLOORS):
        more = min(needs[name] - shares[name], remaining)
        shares[name] += more
        remaining -= more
    return shares


# ---- How much of a model's window a prompt takes, and how much of a dialogue is kept for it ----


WINDOW = 32_000
"""Tokens that a model is taken to read and write at once where nobody says how many it does."""
_RETAINED_SHARE = 0.6
"""Of a prompt's room, what the kept dialogue may take, and what kept results may."""
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
    """Characters of messages; the newest message is kept at any length."""
    results: int = 57_600
    """Characters of the results of past actions; of older ones the beginning is kept."""
    percepts: int = 64
    """Percepts since the last action."""


class Budgets(Value):
    """How the room of a prompt is given out, in estimated tokens (four bytes of text each).

    A prompt takes a share of the model's window. Whole, always: the system message, the procedure
    and the goal. Then, as far as they fit: what this turn brought, the dialogue from the newest
    message back, the state, what was recalled, the modules' sections. None sets no cap of its own.
    """

    window: int | None = _CAP
    """Tokens that the model reads and writes at once; None for what its client, its server or its
    name says, else 32,000."""
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
    """What was rejected, and what is not known to have happened."""
    cognition: int | None = _CAP
    """The current cycle's reasoning, candidates or evaluations."""
    module: int = Field(default=400, gt=0)
    """Each cognitive module's section."""

    def limits(self, window: int | None) -> MemoryLimits:
        """The limits of working memory for a model's window; None if that is not known."""
        size = self.window or window or WINDOW
        prompt = max(1, int(size * self.share))
        retained = self.kept or min(int(prompt * _RETAINED_SHARE), _RETAINED_LIMIT)
        return MemoryLimits(
            window=size,
            known=(self.window or window) is not None,
            prompt=prompt,
            dialogue=retained * BYTES_PER_TOKEN,
            results=retained * BYTES_PER_TOKEN,
        )

    def needed(self, part: RenderPart) -> int:
        """Tokens that a part takes at most: all that it has, or its cap."""
        name = "rejections" if part.name == "unsettled" else part.name
        size = sum(part.costs) + FRAME
        return min(size, getattr(self, name, None) or size)
