"""The agent's mood: one state on three axes that returns to its owner's baseline by itself.

The baseline follows from the personality (Mehrabian 1996, "Analysis of the Big-five personality
factors in terms of the PAD temperament model"; emotional stability is taken as the contrary of
HEXACO's emotionality). Traits of 0.5 give `AT_REST`.
"""

from __future__ import annotations

from coag.schema import Mood

from .appraisal import AT_REST
from .file import DynamicsFile
from .settings import Traits
from .states import days_since

AXES = {"valence": -1.0, "arousal": 0.0, "dominance": -1.0}
"""The axes of a mood with the least value on each."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS moods (
  owner TEXT PRIMARY KEY, valence REAL NOT NULL, arousal REAL NOT NULL, dominance REAL NOT NULL,
  at REAL NOT NULL
) WITHOUT ROWID
"""


class MoodState:
    """The mood of one owner, kept in the file."""

    def __init__(self, file: DynamicsFile, owner: str, half_life: float) -> None:
        self.file = file
        self.owner = owner
        self.half_life = half_life
        file.create(_SCHEMA)

    def now(self, now: float, traits: Traits | None) -> Mood:
        """The mood at a time, in POSIX seconds."""
        rows = self.file.rows("SELECT * FROM moods WHERE owner = ?", self.owner)
        baseline = baseline_of(traits)
        if not rows:
            return baseline
        then = Mood(**{axis: rows[0][axis] for axis in AXES})
        return moved(baseline, then, 0.5 ** (days_since(rows[0]["at"], now) / self.half_life))

    def feel(self, mood: Mood, share: float, now: float, traits: Traits | None) -> Mood:
        """Takes on a share of a mood, 0..1, and gives what it is then."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"share must be between 0 and 1, not {share!r}.")
        with self.file.transaction():
            felt = moved(self.now(now, traits), mood, share)
            row = (self.owner, felt.valence, felt.arousal, felt.dominance, now)
            self.file.write("INSERT OR REPLACE INTO moods VALUES (?, ?, ?, ?, ?)", [row])
        return felt


def baseline_of(traits: Traits | None) -> Mood:
    """The mood that somebody returns to."""
    if traits is None:
        return AT_REST
    agreeable, open_, dutiful, outgoing, emotional = (
        2 * value - 1
        for value in (
            traits.agreeableness,
            traits.openness,
            traits.conscientiousness,
            traits.extraversion,
            traits.emotionality,
        )
    )
    return Mood(
        valence=clamped(0.21 * outgoing + 0.59 * agreeable - 0.19 * emotional, -1.0),
        arousal=clamped(0.5 + (0.15 * open_ + 0.30 * agreeable + 0.57 * emotional) / 2, 0.0),
        dominance=clamped(0.60 * outgoing + 0.25 * open_ + 0.17 * dutiful - 0.32 * agreeable, -1.0),
    )


def moved(mood: Mood, towards: Mood, share: float) -> Mood:
    """A mood that has gone a share of the way to another one."""
    stays = 1 - share
    both = {axis: stays * getattr(mood, axis) + share * getattr(towards, axis) for axis in AXES}
    return Mood(**{axis: clamped(value, AXES[axis]) for axis, value in both.items()})


def clamped(value: float, least: float) -> float:
    """A value on an axis of mood, cut to its ends."""
    return max(least, min(1.0, value))
