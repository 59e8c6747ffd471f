"""`python -m examples.ten_sessions`: plays, prints what is remembered, and reads it blindly."""

from __future__ import annotations

import argparse
import asyncio
import time
from itertools import combinations

from coag import ScriptedModel, open_model
from coag.models import StructuredModel
from coag.store import open_store

from .game import PlayedSession, load_story, play
from .reading import read_pairs
from .script import script


def _show(played: PlayedSession, seconds: float) -> None:
    print(f"\n===== {played.name} ({seconds:.0f} s)")
    for one in played.report.perspectives:
        text = one.record.text if one.record else ""
        print(f"{one.witness:>6} [{one.how}] {text}{f'  ({one.reason})' if one.reason else ''}")
    end = played.end
    print("summary:", end.summary and end.summary.text)
    for one in end.recaps:
        print(f"recap of {one.scope}: {one.text}")
    for thread in end.threads:
        print("thread:", thread.describe())
    print("\n".join(f"problem: {one}" for one in end.problems), flush=True)  # it takes minutes


def _pairs(
    played: list[PlayedSession], emotional: str, cool: str, how: str
) -> list[tuple[str, str]]:
    """The perspectives of two characters on the same events, both written by model or rules."""
    by_event: dict[str, dict[str, str]] = {}
    for session in played:
        for one in session.report.perspectives:
            if one.record and one.how == how:
                by_event.setdefault(one.event, {})[one.witness] = one.record.text
    both = (one for one in by_event.values() if emotional in one and cool in one)
    return [(one[emotional], one[cool]) for one in both]


async def main(
    model: StructuredModel | None, sessions: int, readings: int, *, ends: bool = True
) -> None:
    """Plays some sessions and reads some pairs of perspectives."""
    story = load_story()
    story = story.model_copy(update={"session": story.session[:sessions]})
    played: list[PlayedSession] = []
    began = time.monotonic()
    async for one in play(story, open_store(), model, ends=ends):
        played.append(one)
        _show(one, time.monotonic() - began)
        began = time.monotonic()
    print("\n===== The next session would begin with\n")
    print(played[-1].end.scenario.text if played[-1].end.scenario else "")
    print(played[-1].end.index.render())
    ordered = sorted(story.witness, key=lambda one: -one.traits.emotionality)
    names = [one.name for one in story.witness]
    for emotional, cool in combinations(ordered, 2):
        how = "model" if model else "rules"
        pairs = _pairs(played, emotional.name, cool.name, how)[:readings]
        print(f"\n===== Blind reading: {emotional.name} (emotional) against {cool.name}")
        print("by rules:", await read_pairs(pairs, names))
        if model is not None:
            print("by the model:", await read_pairs(pairs, names, model))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m examples.ten_sessions")
    parser.add_argument("--model", help="a real model, e.g. http://127.0.0.1:8080/v1#NAME")
    parser.add_argument("--rules", action="store_true", help="no model at all")
    parser.add_argument("--sessions", type=int, default=10, help="how many sessions, at most 10")
    parser.add_argument("--readings", type=int, default=10, help="pairs that are read blindly")
    parser.add_argument("--no-ends", action="store_true", help="write perspectives only")
    given = parser.parse_args()
    client = open_model(given.model) if given.model else ScriptedModel(script)
    asked = None if given.rules else StructuredModel(client)
    asyncio.run(main(asked, max(1, given.sessions), given.readings, ends=not given.no_ends))
