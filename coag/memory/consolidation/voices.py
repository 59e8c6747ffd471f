"""How a witness puts an event, by rules: what a personality notices, and what it feels.

The sentences are in `voices.toml`. They follow the six factors of HEXACO (Ashton & Lee 2007):
emotionality is fear, worry and attachment; conscientiousness order and planning; openness
curiosity; agreeableness patience and forgiveness; extraversion company; honesty sincerity. A trait
near 0.5 adds nothing.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from coag.memory.dynamics import Appraise, Traits
from coag.memory.words import words
from coag.schema import Mood, Value

Tone = Literal["bad", "plain", "good"]
"""Whether an event is bad, good, or neither."""

_MARKED = 0.1
"""A trait that is so far from 0.5 shows."""
_MOST = 3
"""Traits that show in one memory."""
_FELT = 0.3
"""A feeling towards somebody, or a mood, of at least this shows."""
_TONE = 0.2


class TraitVoice(Value):
    """How somebody with much or with little of a trait is, and what he or she says."""

    character: str
    bad: tuple[str, ...]
    plain: tuple[str, ...]
    good: tuple[str, ...]

    def on(self, tone: Tone) -> tuple[str, ...]:
        """The sentences on what is bad, good, or neither."""
        return {"bad": self.bad, "plain": self.plain, "good": self.good}[tone]


class Voices(Value):
    """What is in `voices.toml`."""

    words: dict[Literal["bad", "good"], str]
    towards: dict[Literal["liked", "disliked"], tuple[str, ...]]
    traits: dict[str, dict[Literal["high", "low"], TraitVoice]]


@cache
def _voices() -> Voices:
    file = Path(__file__).with_name("voices.toml")
    return Voices.model_validate(tomllib.loads(file.read_text("utf-8")))


@cache
def _words(tone: Literal["bad", "good"]) -> frozenset[str]:
    return frozenset(_voices().words[tone].split())


def _marked(traits: Traits) -> list[tuple[str, TraitVoice, bool]]:
    """The traits that show, the strongest first: each with its voice, and whether it is high."""
    ordered = sorted(traits, key=lambda one: -abs(one[1] - 0.5))
    return [
        (trait, _voices().traits[trait]["high" if value > 0.5 else "low"], value > 0.5)
        for trait, value in ordered
        if abs(value - 0.5) >= _MARKED
    ]


_I = re.compile(r"\b(?:I|me|my|mine|myself|we|us|our)\b")
_FIRST_PERSON_AFTER = re.compile(
    r"(?:^|[.!?;:,]\s|\b(?:and|but|that|while|when|then|so)\s)$", re.IGNORECASE
)


def tone_of(text: str, appraise: Appraise | None = None) -> Tone:
    """Whether a text tells of something bad or good: by an appraisal, or by telling words."""
    if appraise is not None:
        valence = appraise(text).valence
        return "bad" if valence < -_TONE else "good" if valence > _TONE else "plain"
    said = words(text)
    bad, good = (sum(one in _words(tone) for one in said) for tone in ("bad", "good"))
    return "bad" if bad > good else "good" if good > bad else "plain"


def in_first_person(text: str, name: str) -> str:
    """The text as the one of this name tells it: `I`, `me` and `my` in place of the name."""
    text = re.sub(rf"\b{re.escape(name)}(?:'s|\u2019s)(?!\w)", "my", text)

    def person(found: re.Match[str]) -> str:
        subject = _FIRST_PERSON_AFTER.search(text, max(0, found.start() - 8), found.start())
        return "I" if subject else "me"

    own = re.sub(rf"\b{re.escape(name)}\b(?!')", person, text)
    own = re.sub(r"\bI (?:were|is)\b", "I was", own)
    own = re.sub(r"\bI has\b", "I had", own)
    return own[:1].upper() + own[1:]


def is_first_person(text: str) -> bool:
    """Whether somebody tells of himself or herself in a text."""
    return _I.search(text) is not None


def told_by(
    name: str,
    text: str,
    *,
    traits: Traits,
    mood: Mood | None = None,
    feelings: Mapping[str, float] | None = None,
    appraise: Appraise | None = None,
) -> str:
    """An event as a witness tells it.

    What happened keeps the words of the event. Before and after it is what the witness noticed
    and felt: by the strongest traits, the feeling towards those who took part, and the mood.
    The same event and witness give the same text. `feelings` are those towards who took part, -1 to
    1, by their names; without `appraise` a list of words says whether the event is good or bad.
    """
    tone = tone_of(text, appraise)
    happened = in_first_person(" ".join(text.split()), name)
    before: list[str] = []
    after: list[str] = []
    for trait, voice, high in _marked(traits)[:_MOST]:
        leads = trait == "emotionality" and high
        (before if leads else after).append(_chosen(voice.on(tone), name, text, trait))
    whom, feeling = max((feelings or {}).items(), key=lambda one: abs(one[1]), default=("", 0.0))
    if abs(feeling) >= _FELT:
        said = _voices().towards["liked" if feeling > 0 else "disliked"]
        after.append(_chosen(said, name, text, whom).format(whom=whom))
    if mood is not None and abs(mood.valence) >= _FELT:
        low = mood.valence < 0
        before.append(
            f"I was in {'low' if low else 'good'} spirits {'already' if low else 'then'}."
        )
    if not before and not after:
        before.append("I was there, and I remember it.")
    return " ".join((*before, happened, *after))


def _chosen(sentences: Sequence[str], *seed: str) -> str:
    digest = hashlib.sha256("\x1f".join(seed).encode("utf-8", "surrogatepass")).digest()
    return sentences[int.from_bytes(digest[:4]) % len(sentences)]


def describe(name: str, traits: Traits, mood: Mood | None, feelings: Mapping[str, float]) -> str:
    """A witness's character in sentences, for a prompt."""
    marked, lines = _marked(traits), list[str]()
    if marked:
        lines.append(f"{name} {'; '.join(voice.character for _, voice, _ in marked)}.")
        manner: list[str] = []
        for trait, voice, _ in marked[:2]:
            manner += voice.bad[:1] + (voice.plain[:1] if trait == "emotionality" else ())
        said = " ".join(f'"{one}"' for one in manner)
        lines.append(f"{name} would say, for example: {said}")
    if mood is not None and abs(mood.valence) >= _FELT:
        lines.append(f"{name} was in {'low' if mood.valence < 0 else 'good'} spirits.")
    for whom, feeling in feelings.items():
        if abs(feeling) >= _FELT:
            lines.append(f"{name} {'trusts and likes' if feeling > 0 else 'distrusts'} {whom}.")
    return " ".join(lines) or f"{name} is an ordinary person."
