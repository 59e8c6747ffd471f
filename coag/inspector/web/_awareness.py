"""Where the agent stood, over a run and in one cycle of it."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock
from weakref import WeakKeyDictionary

from starlette.exceptions import HTTPException

from coag.errors import TraceError
from coag.inspector.drawing import course_svg, goals_svg
from coag.inspector.pages import Place, Target, WebAddresses
from coag.inspector.tracks import NOT_AWARE, AwarenessTrack, is_aware
from coag.inspector.views import RunCard
from coag.tracing import RecordKind, TraceIndex

from ._desk import Desk

_AHEAD = 1 << 24
"""Bytes of a trace in which its first snapshot is looked for."""
_PIECE = 1 << 20
_ADDRESSES = WebAddresses()
_LOCK = Lock()
_AWARE: WeakKeyDictionary[TraceIndex, tuple[int, bool]] = WeakKeyDictionary()
"""Whether a trace keeps a state of awareness, as found when it had so many lines."""
_TRACKS: WeakKeyDictionary[TraceIndex, AwarenessTrack] = WeakKeyDictionary()


def told_card(desk: Desk, key: str) -> RunCard:
    """The card of a run that says whether it keeps a state of awareness.

    Raises:
        UnknownNameError: There is no such run.
        TraceError: Its `run.json` cannot be read.
    """
    return replace(desk.card(key), aware=_is_aware(desk.open(key).index))


def _is_aware(index: TraceIndex) -> bool:
    """As far as it was scanned, up to the first snapshot at least; pages tell of faults."""
    try:
        while not index.count(RecordKind.SNAPSHOT) and index.scanned < _AHEAD:
            if not index.extend(_PIECE):
                break
        known = _AWARE.get(index)
        if known is None or (not known[1] and known[0] != index.lines):
            known = _AWARE[index] = (index.lines, is_aware(index))
    except TraceError:
        return False
    return known[1]


def _track_of(desk: Desk, key: str) -> AwarenessTrack:
    index = desk.scanned(key)
    with _LOCK:
        track = _TRACKS.get(index)
        if track is None or track.lines != index.lines:
            track = _TRACKS[index] = AwarenessTrack(index)
    return track


def awareness_page(desk: Desk, key: str, cycle: int | None = None) -> str:
    """The page about where the agent stood as a cycle began.

    Args:
        desk: The runs.
        key: Names the run.
        cycle: The cycle; None for the last one.

    Raises:
        HTTPException: The run keeps no state of awareness.
        UnknownNameError: There is no such run, or no state of that cycle.
        TraceError: The trace cannot be read.
    """
    track = _track_of(desk, key)
    if not track.aware:
        raise HTTPException(404, NOT_AWARE)
    view = track.view(cycle)

    def leads(number: int) -> str:
        return _ADDRESSES.to(Place(target=Target.STOOD, run=key, number=number))

    courses = enumerate(view.courses, 1)
    return desk.pages.awareness_page(
        replace(desk.card(key), aware=True),
        view,
        [goals_svg(stand, prefix=f"goals{n}") for n, stand in enumerate(view.stands, 1)],
        [course_svg(one, view.cycle, prefix=f"course{n}", leads=leads) for n, one in courses],
        chosen=cycle is not None,
        beside=track.beside(view.cycle),
    )
