"""How much of a model's window a prompt takes, and how much of a dialogue is kept for it."""

from __future__ import annotations

from pydantic import Field

from coag.schema import BYTES_PER_TOKEN, Value

WINDOW = 32_000
"""Tokens that a model is taken to read and write at once where nobody says how many it does."""
_KEPT_SHARE = 0.6
"""Of a prompt's room, what the kept dialogue may take, and what kept results may."""
_OUTPUT_SHARE = 0.5
"""Of a prompt's room, what one tool's output may take."""
_MOST_KEPT = 30_000
"""Tokens of dialogue, and of results, that are kept however large the window is."""
_CAP = Field(default=None, gt=0)


class Limits(Value):
    """What working memory keeps: part of its value, so that a trace gives it back alike."""

    window: int = WINDOW
    """Tokens that the model reads and writes at once."""
    known: bool = False
    """False where nobody told the window, so that `WINDOW` is assumed."""
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

    def limits(self, window: int | None) -> Limits:
        """What follows for working memory.

        Args:
            window: The model's window as it is known, None if it is not; `self.window` comes first.
        """
        whole = self.window or window or WINDOW
        prompt = max(1, int(whole * self.share))
        kept = (self.kept or min(int(prompt * _KEPT_SHARE), _MOST_KEPT)) * BYTES_PER_TOKEN
        return Limits(
            window=whole,
            known=(self.window or window) is not None,
            prompt=prompt,
            dialogue=kept,
            results=kept,
        )

    def output_characters(self, limits: Limits) -> int:
        """Characters of one tool's output that are kept."""
        return (self.output or int(limits.prompt * _OUTPUT_SHARE)) * BYTES_PER_TOKEN

    def recall_room(self, limits: Limits) -> int:
        """Tokens for what is recalled."""
        return self.recalled or max(1, limits.prompt // 8)

    def action_room(self, limits: Limits) -> int:
        """Tokens for the list of actions; the same in every cycle, as the list should be."""
        return self.actions or max(1, limits.prompt // 2)
