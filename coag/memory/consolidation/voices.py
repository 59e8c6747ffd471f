"""How a witness puts an event, by rules: what a personality notices, and what it feels.

The sentences follow the six factors of HEXACO (Ashton & Lee 2007): emotionality is fear, worry and
attachment; conscientiousness order and planning; openness curiosity; agreeableness patience and
forgiveness; extraversion company; honesty sincerity. A trait near 0.5 adds nothing.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from coag.memory.dynamics import Appraise, Traits
from coag.memory.words import words
from coag.schema import Mood

Tone = Literal["bad", "plain", "good"]
"""Whether an event is bad, good, or neither."""

_MARKED = 0.1
"""A trait that is so far from 0.5 shows."""
_MOST = 3
"""Traits that show in one memory."""
_FELT = 0.3
"""A feeling towards somebody, or a mood, of at least this shows."""
_TONE = 0.2

_BAD_WORDS = (
    "attack attacked attacks ambush ambushed burn burned burnt fire flames destroy destroyed "
    "ruin ruined die died dead death kill killed wound wounded hurt hit lose lost losing steal "
    "stole stolen robbed threat threatened threatens demand demanded betray betrayed lie lied "
    "trap trapped fall fell fled flee fail failed failure broke broken collapse collapsed sick "
    "ill storm flood flooded angry anger insult insulted refuse refused dragon wolves spiders "
    "curse cursed missing afraid terror fear crash crashed outage error cancelled complained "
    "complaint delay delayed double charged wrong late damaged blamed accused"
)
_BAD = frozenset(_BAD_WORDS.split())
_GOOD_WORDS = (
    "help helped saved save rescued rescue won win victory gift gave healed heal thanked thanks "
    "thank celebrated celebrate feast found freed free peace agreed agreement promise promised "
    "friend friends joined welcomed welcome repaired repair rebuilt mended safe returned refund "
    "refunded solved resolved fixed reward rewarded trusted forgave sang harvest defeated "
    "apologised upgraded"
)
_GOOD = frozenset(_GOOD_WORDS.split())

_VOICES: Mapping[tuple[str, bool], Mapping[Tone, Sequence[str]]] = {
    ("emotionality", True): {
        "bad": (
            "I was terrified, and my hands would not stop shaking.",
            "I felt sick with fear, and I could have cried.",
            "I was so afraid for all of us that I could hardly breathe.",
            "I felt my heart pound, and I was close to tears.",
        ),
        "plain": (
            "I felt uneasy about it, and I could not say why.",
            "I was moved by it more than I showed.",
            "I felt my worry grow with every word.",
        ),
        "good": (
            "I was so happy that I cried.",
            "I felt such relief that my knees went weak.",
            "I was overjoyed, and I loved everybody who was there.",
        ),
    },
    ("emotionality", False): {
        "bad": (
            "It was a matter of facts, and there was no reason to get excited.",
            "The damage could be counted, and counting was the next step.",
            "Nothing was gained by shouting, so the situation was assessed first.",
        ),
        "plain": ("There was nothing remarkable in it.", "It went as such things go."),
        "good": (
            "The result was acceptable.",
            "It worked, and that was what mattered.",
        ),
    },
    ("conscientiousness", True): {
        "bad": (
            "I made a list of what had to be repaired, and began with the first point.",
            "I noted the time and the weak point in our plan, so that it would not happen again.",
        ),
        "plain": (
            "I wrote down what was agreed and checked it twice.",
            "I planned the next steps before I went to sleep.",
        ),
        "good": (
            "I noted what had worked, so that we could do it again.",
            "I saw that the work had been done properly.",
        ),
    },
    ("conscientiousness", False): {
        "bad": ("I had prepared nothing, as usual.", "I left the plans to others."),
        "plain": ("I forgot half of the details.", "I did not think about what came next."),
        "good": ("I had planned none of it, and it went well anyway.",),
    },
    ("openness", True): {
        "bad": (
            "I wondered what had really caused it, and what nobody had seen yet.",
            "I had never seen anything like it, and I wanted to understand it.",
        ),
        "plain": (
            "I kept asking myself what else was possible.",
            "I imagined three other ways in which it could have ended.",
        ),
        "good": (
            "I thought of all that could be tried now.",
            "I saw in it the beginning of something new.",
        ),
    },
    ("openness", False): {
        "bad": ("I said from the start that the old ways were safer.",),
        "plain": ("I would have done it as it was always done.",),
        "good": ("I was content that things were as before.",),
    },
    ("agreeableness", True): {
        "bad": (
            "I thought of those who were hurt, and I did not want to blame anybody.",
            "I was sure that even this could be talked over.",
        ),
        "plain": ("I tried to see it from everybody's side.",),
        "good": ("I was grateful to the others, and I told them so.",),
    },
    ("agreeableness", False): {
        "bad": (
            "I will not forgive whoever is to blame for this.",
            "I told them to their faces that it was their own fault.",
        ),
        "plain": ("I did not believe half of what they said.",),
        "good": ("I thought that they took too much credit for it.",),
    },
    ("extraversion", True): {
        "bad": ("I shouted for the others and brought everybody together.",),
        "plain": ("I talked about it with everybody I met.",),
        "good": ("I told the story to the whole room that evening.",),
    },
    ("extraversion", False): {
        "bad": ("I said nothing and kept to the back.",),
        "plain": ("I listened, and kept my thoughts to myself.",),
        "good": ("I went home early and was content to be alone with it.",),
    },
    ("honesty", True): {
        "bad": ("I said openly what we ourselves had done wrong.",),
        "plain": ("I took care to tell it as it was.",),
        "good": ("I wanted no more than my fair share of it.",),
    },
    ("honesty", False): {
        "bad": ("I looked for a way to gain something from it.",),
        "plain": ("I thought about what this could be worth to me.",),
        "good": ("I let them believe that it was my doing.",),
    },
}
_CHARACTER: Mapping[str, tuple[str, str]] = {
    "emotionality": (
        "feels strongly and is soon afraid, worried or moved to tears",
        "stays cool, speaks of facts and never of feelings",
    ),
    "conscientiousness": ("plans, checks and keeps order", "is careless and plans nothing"),
    "openness": ("is curious and full of ideas", "holds on to what was always done"),
    "agreeableness": ("is gentle and forgives", "is stubborn and quick to blame"),
    "extraversion": ("is sociable and talks a lot", "is quiet and keeps apart"),
    "honesty": ("is sincere and modest", "looks for an advantage"),
}
_TOWARDS: Mapping[bool, Sequence[str]] = {
    True: (
        "I was glad that {whom} was part of it.",
        "I thought of {whom}, whom I hold dear.",
        "As ever, I was on the side of {whom}.",
    ),
    False: (
        "I have never trusted {whom}, and I do not trust {whom} now.",
        "I expected nothing better of {whom}.",
        "I kept an eye on {whom}, whom I dislike.",
    ),
}
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
    good, bad = sum(one in _GOOD for one in said), sum(one in _BAD for one in said)
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
    marked = [(trait, value - 0.5) for trait, value in traits if abs(value - 0.5) >= _MARKED]
    marked.sort(key=lambda one: -abs(one[1]))
    before: list[str] = []
    after: list[str] = []
    for trait, off in marked[:_MOST]:
        said = _chosen(_VOICES[trait, off > 0][tone], name, text, trait)
        leads = trait == "emotionality" and off > 0
        (before if leads else after).append(said)
    about = max((feelings or {}).items(), key=lambda one: abs(one[1]), default=("", 0.0))
    if abs(about[1]) >= _FELT:
        after.append(_chosen(_TOWARDS[about[1] > 0], name, text, about[0]).format(whom=about[0]))
    if mood is not None and abs(mood.valence) >= _FELT:
        low = mood.valence < 0
        before.append(
            f"I was in {'low' if low else 'good'} spirits {'already' if low else 'then'}."
        )
    if not before and not after:
        before.append("I was there, and I remember it.")
    return " ".join((*before, happened, *after))


def _manner(traits: Traits) -> list[str]:
    marked = [(trait, value - 0.5) for trait, value in traits if abs(value - 0.5) >= _MARKED]
    marked.sort(key=lambda one: -abs(one[1]))
    tones: tuple[Tone, ...] = ("bad", "plain")
    return [
        f'"{_VOICES[trait, off > 0][tone][0]}"'
        for trait, off in marked[:2]
        for tone in tones[: 2 if trait == "emotionality" else 1]
    ]


def _chosen(sentences: Sequence[str], *seed: str) -> str:
    digest = hashlib.sha256("\x1f".join(seed).encode("utf-8", "surrogatepass")).digest()
    return sentences[int.from_bytes(digest[:4]) % len(sentences)]


def describe(name: str, traits: Traits, mood: Mood | None, feelings: Mapping[str, float]) -> str:
    """A witness's character in sentences, for a prompt."""
    parts: list[str] = [
        _CHARACTER[trait][value < 0.5]
        for trait, value in sorted(traits, key=lambda one: -abs(one[1] - 0.5))
        if abs(value - 0.5) >= _MARKED
    ]
    lines = [f"{name} {'; '.join(parts)}."] if parts else []
    if manner := _manner(traits):
        lines.append(f"{name} would say, for example: {' '.join(manner)}")
    if mood is not None and abs(mood.valence) >= _FELT:
        lines.append(f"{name} was in {'low' if mood.valence < 0 else 'good'} spirits.")
    for whom, feeling in feelings.items():
        if abs(feeling) >= _FELT:
            lines.append(f"{name} {'trusts and likes' if feeling > 0 else 'distrusts'} {whom}.")
    return " ".join(lines) or f"{name} is an ordinary person."
