"""The feeling of a text: valence, arousal, dominance, without a model.

Valence is VADER's (Hutto & Gilbert 2014, "VADER: A parsimonious rule-based model for sentiment
analysis of social media text", ICWSM), which reads English; its package is the extra `coag[mood]`.
VADER says nothing of arousal: that is read off stirring words, capitals and exclamation marks.
Any function from a text to a `Mood` may take its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import copysign
from string import punctuation
from typing import Any, cast

from coag.errors import ConfigurationError
from coag.schema import Mood

Appraise = Callable[[str], Mood]
"""Says what a text feels like."""

AT_REST = Mood(valence=0.0, arousal=0.5)
"""Neither glad nor sad, awake: where the agent's attention is best."""

_CHARACTERS = 1_000
"""Characters of a text that are appraised; VADER's time grows with the square of its length."""

# fmt: off
_STIRRING = re.compile(
    r"\b(?:terrif(?:y|ied|ying)|horrif(?:y|ied|ying)|panic\w*|furious\w*|enraged?|outrag\w+|rage"
    r"|ecstatic|thrilled|elated|overjoyed|euphori\w+|exhilarat\w+|scream\w*|shriek\w*|shout\w*"
    r"|emergenc(?:y|ies)|explo(?:de|ded|sion)\w*|crash(?:ed|es)?|burn(?:ed|t|ing)|flames|bleeding"
    r"|attack\w*|assault\w*|shot|stabbed|murder\w*|kill(?:ed|s|ing)?|died|dead|dying|death"
    r"|desperate\w*|hysteri\w+|devastat\w+|shock(?:ed|ing)?|stunned|amaz\w+|astonish\w+|incredibl\w+"
    r"|urgent\w*|danger\w*|disaster\w*|catastroph\w+|nightmare|terror|horror|won|victory|triumph\w*"
    r"|hate[sd]?|adore[sd]?)\b"
)
# fmt: on
"""Words in small letters: to look for them takes a fifth of the time of ignoring case."""
_SHOUTED = re.compile(r"[A-Z](?<!\w[A-Z])[A-Z]{2,}\b")
"""Three capitals and more; to look for the first before the edge of the word is quicker."""
_SPOKEN = re.compile(r"\b[a-z]{2,}\b")


def arousal_of(text: str) -> float:
    """How stirring a text is, 0..1; 0 where it has no stirring word and no emphasis."""
    beginning = text[:_CHARACTERS]
    words = set(_STIRRING.findall(beginning.lower()))
    # A text all in capitals is a heading or a habit, not a cry.
    shouted = bool(_SHOUTED.search(beginning) and _SPOKEN.search(beginning))
    calm = (
        0.5 ** min(3, len(words)) * 0.85 ** min(3, beginning.count("!")) * (0.8 if shouted else 1)
    )
    return 1 - calm


class VaderAppraisal:
    """Appraises texts by VADER: `appraise(text)` is a `Mood` of dominance 0.

    It takes about 0.1 ms; of a text the first 1,000 characters count. A text in another language
    than English is mostly neutral to it.

    Raises:
        ConfigurationError: The package vaderSentiment is not installed.
    """

    def __init__(self) -> None:
        try:
            import vaderSentiment.vaderSentiment as vader
        except ImportError as error:
            raise ConfigurationError(
                "A memory with a mood appraises texts by the package vaderSentiment, which is not "
                "installed: pip install 'coag[mood]'; or give a function from text to Mood."
            ) from error
        self._vader = cast("Any", vader)
        self._analyzer = self._vader.SentimentIntensityAnalyzer()
        self._lexicon: Mapping[str, float] = self._analyzer.lexicon
        boosters = self._vader.BOOSTER_DICT
        self._changing = frozenset[str](
            {*self._vader.NEGATE, *boosters, "no", "so", "this", "least", "but"}
        )
        """Words that change what others count; beside them phrases, and "n't"."""
        self._phrases: tuple[str, ...] = (
            "n't",
            *self._vader.SPECIAL_CASES,
            *(one for one in boosters if " " in one),
        )

    def __call__(self, text: str) -> Mood:
        """The feeling of a text."""
        valence = max(-1.0, min(1.0, self._valence(text[:_CHARACTERS])))
        return Mood(valence=valence, arousal=noisy_or(arousal_of(text), abs(valence) / 2))

    def _valence(self, text: str) -> float:
        """What `polarity_scores` gives as a whole, in less than half the time.

        ASCII has no emoji, for which that one tries each letter; words that are not in the
        lexicon count nothing; and the others what it says, where nothing changes that.
        """
        if not text.isascii():
            return float(self._analyzer.polarity_scores(text)["compound"])
        small = _bare_words(text.lower())
        if self._lexicon.keys().isdisjoint(small):
            return 0.0
        words = _bare_words(text)
        if not any(map(str.isupper, words)) and not self._is_changing(small):
            return self._whole([self._lexicon.get(word, 0.0) for word in small], text)
        said, found = self._vader.SentiText(text), list[float]()
        for at, word in enumerate(small):
            kind_of = word == "kind" and small[at + 1 : at + 2] == ["of"]
            if kind_of or word not in self._lexicon or word in self._vader.BOOSTER_DICT:
                found.append(0.0)
            else:
                found = self._analyzer.sentiment_valence(0.0, said, words[at], at, found)
        return self._whole(self._analyzer._but_check(words, found), text)

    def _whole(self, found: Sequence[float], text: str) -> float:
        """The sum of the words of a text; its punctuation adds to that."""
        felt = float(sum(found))
        felt += copysign(self._analyzer._punctuation_emphasis(text), felt) if felt else 0.0
        return round(self._vader.normalize(felt), 4)

    def _is_changing(self, words: Sequence[str]) -> bool:
        said = " ".join(words)
        return not self._changing.isdisjoint(words) or any(one in said for one in self._phrases)


def _bare_words(text: str) -> list[str]:
    """The words of a text without the marks around them; what is left of short ones has them."""
    pairs = ((word, word.strip(punctuation)) for word in text.split())
    return [bare if len(bare) > 2 else word for word, bare in pairs]


def noisy_or(one: float, other: float) -> float:
    """Two shares, each 0..1, as one that is at least the larger and at most 1."""
    return 1 - (1 - one) * (1 - other)
