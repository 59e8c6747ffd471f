"""The forgetting curve, what use does to it, and the floor below which a record fades.

Strength falls exponentially (Ebbinghaus 1885). A use resets it and makes the record more stable,
the more the further it had faded: what is repeated at intervals lasts, what is repeated at once
gains nothing (the spacing effect; Bjork & Bjork 1992, "A new theory of disuse").

Pure functions; `now` is in POSIX seconds. Where `settings.forgetting` is None, nothing changes.
"""

from __future__ import annotations

from math import exp, log

from coag.memory.facts import trust_of
from coag.schema import Record, Trust

from .settings import Forgetting, MemoryDynamicsSettings
from .states import DAY, RecordState, days_since, moment_of

NEUTRAL_STRENGTH = 0.5
"""Encoding strength of a record that nothing speaks for or against."""
_GAIN = 0.1
"""What a use adds to the encoding strength."""
_SPACING = 2.5
"""Growth of stability, beyond 1, at the first use of a record that had all but faded."""
_HABIT = 0.1
"""How much each earlier use takes off that growth."""
_FEELING = 0.3
"""How much full intensity adds to it."""
_BY_STRENGTH = 6.0
"""How much more stable a record of full strength is than one of none."""


def neutral_stability(settings: MemoryDynamicsSettings) -> float:
    """Days of stability with which a neutral record falls to the floor after `retention` days."""
    forgetting = settings.forgetting or Forgetting()
    return forgetting.retention / log(NEUTRAL_STRENGTH / forgetting.floor)


def stability_of(
    strength: float, settings: MemoryDynamicsSettings, *, flashbulb: bool = False
) -> float:
    """Days of stability with which a record of this encoding strength, 0..1, begins.

    The neutral one gives `neutral_stability`; a flashbulb lasts five times as long.
    """
    neutral = neutral_stability(settings)
    share = (1 + _BY_STRENGTH * strength) / (1 + _BY_STRENGTH * NEUTRAL_STRENGTH)
    ceiling = (settings.forgetting or Forgetting()).ceiling
    return min(neutral * share * (5.0 if flashbulb else 1.0), max(ceiling, neutral))


def strength_now(state: RecordState, now: float, settings: MemoryDynamicsSettings) -> float:
    """What is left of a record's strength, 0..1.

    It falls to 1/e in each `stability` days since the last use; a clock that jumped back counts
    as no time.
    """
    if settings.forgetting is None:
        return state.strength
    return state.strength * exp(-days_since(state.used_at, now) / state.stability)


def used(
    state: RecordState, now: float, settings: MemoryDynamicsSettings, **further: float
) -> RecordState:
    """The state after a use: recalled and kept, or repeated by its source.

    It is at full strength again, a little stronger, and more stable: by the share that had been
    lost, less at each further use, and up to the ceiling. Nothing of it ever shrinks, nor is it
    used earlier than before where the clock jumped back. `further` fields change with it.
    """
    forgetting = settings.forgetting
    if forgetting is None:
        return state._replace(uses=state.uses + 1, used_at=max(state.used_at, now), **further)
    lost = 1 - exp(-days_since(state.used_at, now) / state.stability)
    habit = 1 + _HABIT * state.uses
    growth = 1 + _SPACING * lost * (1 + _FEELING * state.intensity) / habit
    return state._replace(
        strength=min(1.0, state.strength + _GAIN),
        stability=max(state.stability, min(forgetting.ceiling, state.stability * growth)),
        used_at=max(state.used_at, now),
        uses=state.uses + 1,
        **further,
    )


def has_faded(state: RecordState, now: float, settings: MemoryDynamicsSettings) -> bool:
    """Whether a record is below the floor; one that is exempt or a flashbulb never is."""
    forgetting = settings.forgetting
    if forgetting is None or state.exempt or state.flashbulb:
        return False
    return strength_now(state, now, settings) < forgetting.floor


def fades_at(state: RecordState, settings: MemoryDynamicsSettings) -> float | None:
    """When a record that is not used falls below the floor, in POSIX seconds; None for never."""
    forgetting = settings.forgetting
    if forgetting is None or state.exempt or state.flashbulb:
        return None
    days = state.stability * log(max(state.strength, forgetting.floor) / forgetting.floor)
    return state.used_at + days * DAY


def is_exempt(record: Record, settings: MemoryDynamicsSettings) -> bool:
    """Whether a record never fades: by its type, or because it is important enough.

    Of what is untrusted nothing is exempt: its type and importance may be its author's choice.
    """
    if trust_of(record) is Trust.UNTRUSTED:
        return False
    forgetting = settings.forgetting or Forgetting()
    important = record.dynamics.importance >= forgetting.exempt_importance
    return important or record.type in forgetting.exempt_types


def why_kept(state: RecordState, now: float, settings: MemoryDynamicsSettings) -> str:
    """Why a record fades, and on which day; or why it does not. In words, for a person."""
    forgetting = settings.forgetting
    if forgetting is None:
        return "stays: forgetting is off"
    if state.flashbulb:
        return "stays: encoded with great feeling"
    if state.exempt:
        return "stays: exempt by its type or importance"
    at = fades_at(state, settings)
    if state.faded_at is not None or has_faded(state, now, settings):
        unused = days_since(state.used_at, now)
        return f"faded: not used for {unused:.0f} days, below {forgetting.floor:g}"
    return "stays" if at is None else f"fades {day_of(at)} unless it is used"


def day_of(at: float) -> str:
    """A day as `2026-05-01`; one that no calendar has is the nearest that there is."""
    return f"{moment_of(at):%Y-%m-%d}"
