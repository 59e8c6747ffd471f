"""What a text is about, as far as encoding cares: features by rules.

The rules are patterns of English words and phrases, never of parts of words. They leave alone what
is said every day: "just", "new", "no", "thanks", "call" are no features. A text in another
language has none, and is encoded as neutral.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from typing import NamedTuple

from coag.schema import Mood, Record

from .appraisal import Appraise, arousal_of

_LOG = logging.getLogger(__name__)
_CHARACTERS = 4_000
"""Characters of a text that are looked at."""
_YIELD_EVERY = 50
"""After so many texts other tasks of the loop have their turn."""


class ContentFeatures(NamedTuple):
    """What is in a text, each 0..1: 0 for not at all; a rule gives 0 or 1."""

    novelty: float = 0.0
    """Something that never was before, or is not as expected."""
    procedure: float = 0.0
    """How something is done."""
    emotion: float = 0.0
    """Somebody's feelings."""
    social: float = 0.0
    """People, and what they are to each other."""
    cooperation: float = 0.0
    """Help, sharing, agreement."""
    ethical: float = 0.0
    """Right and wrong."""
    contradiction: float = 0.0
    """Something is not as it was said to be."""
    commitment: float = 0.0
    """A promise, an appointment, a date to keep."""
    relevance: float = 0.5
    """How much it matters to what the agent is about; 0.5 where nobody says."""
    sentiment: float = 0.0
    """From bad to good, -1..1."""
    arousal: float = 0.0
    """How stirring it is; 0 for not at all."""


def _any(*phrases: str) -> re.Pattern[str]:
    """A pattern of phrases for texts in small letters: a third of the time of ignoring case."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(phrases)})(?!\w)")


def _rule(words: str, *phrases: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """A pattern, with beginnings of words, one of which each of its phrases has.

    A text without any of them need not be searched, which takes a tenth of the time.
    """
    return frozenset(words.split()), _any(*phrases)


def _by_name(words: str, before: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """A rule for what comes before a name."""
    return frozenset(words.split()), re.compile(rf"\b(?i:{before})[A-Z]\w")


_WORD_BEGINNING = re.compile(r"\b\w{1,4}")
_KIN = (
    r"(?:mother|father|mum|mom|dad|parents?|sister|brother|son|daughter|wife|husband|partner|"
    r"girlfriend|boyfriend|fianc[eé]e?|aunt|uncle|cousin|niece|nephew|grand\w+|family|friends?|"
    r"neighbou?rs?|colleagues?|boss|roommate|flatmate|classmates?|teammates?)"
)
_DAY = (
    r"(?:today|tonight|tomorrow|monday|tuesday|wednesday|thursday|friday|saturday|sunday|noon|"
    r"midnight|next (?:week|month|year)|the end of|january|february|march|april|may|june|july|"
    r"august|september|october|november|december|\d)"
)
_DOING = (
    r"(?:call|send|write|bring|pay|finish|visit|meet|come|help|do|make|give|let|take|return|buy|"
    r"deliver|reply|answer|check|fix|prepare|be there|be back|get back|never|always|not)"
)
RULES = {
    "novelty": _rule(
        "firs neve disc surp unex unpr unhe brea inve new stra weir biza unus blue",
        r"first[- ]time",
        r"never (?:before|(?:\w+ )?(?:seen|heard|met|known|tried|happened))",
        r"discover(?:ed|y|ies|s)?",
        r"surpris(?:ed|ing|ingly|e)",
        r"unexpected(?:ly)?",
        r"unprecedented",
        r"unheard of",
        r"breakthrough",
        r"invent(?:ed|ion|s)",
        r"(?:brand[- ]new|entirely new|completely new|whole new)",
        r"new (?:idea|way|approach|method|theory|species|kind|sort|insight|evidence)s?",
        r"(?:strange|weird|bizarre|unusual)(?:ly)?",
        r"out of the blue",
    ),
    "procedure": _rule(
        "how step inst proc prot reci work chec runb then alwa neve must shou sure orde pres "
        "clic type ente run rest unpl conf",
        r"how to \w+",
        r"step (?:\d+|one|two|three|by step)",
        r"(?:instructions?|procedure|protocol|recipe|workflow|checklist|runbook)s?",
        r"first,? .{2,80}?,? (?:and )?then",
        r"(?:before|after|when(?:ever)?|if) you \w+.{0,80}?\b"
        r"(?:always|never|must|should|make sure)",
        r"make sure (?:to|that|you)",
        r"in order to \w+",
        r"(?:press|click|type|enter|run|restart|unplug|install|configure) the \w+",
    ),
    "emotion": _rule(
        "terr horr afra scar frig anxi nerv worr pani happ glad deli over joy joyf thri ecst "
        "elat exci sad sadl sadn unha mise depr hear deva lone grie mour crie cryi tear wept "
        "weep angr ange furi enra rage anno upse frus rese asha sham emba humi guil prou prid "
        "jeal envi hate hatr loat desp disg ador love",
        r"(?:terrif|horrif)(?:y|ies|ied|ying)",
        r"(?:afraid|scared|frightened|anxious|nervous|worried|panicked|panic)",
        r"(?:happy|happier|happily|happiness|glad|delighted|overjoyed|joy|joyful|thrilled|ecstatic"
        r"|elated|excited)",
        r"(?:sad|sadly|sadness|unhappy|miserable|depressed|heartbroken|devastated|lonely|grief"
        r"|griev(?:e|es|ed|ing)|mourn(?:s|ed|ing)?|crie[ds]|crying|tears|wept|weeping)",
        r"(?:angry|angrily|anger|furious|enraged|rage|annoyed|upset|frustrated|resent\w*)",
        r"(?:ashamed|shame|embarrass(?:ed|ing)|humiliated|guilt|guilty|proud|pride|jealous|envious)",
        r"(?:hate[sd]?|hatred|loathe[sd]?|despise[sd]?|disgust(?:ed|ing)?|adore[sd]?)",
        r"(?:in love|(?:i|we|he|she|they) (?:really |still )?love[sd]?)",
    ),
    "social": _rule(
        "moth fath mum mom dad pare sist brot son daug wife husb part girl boyf fian aunt "
        "uncl cous niec neph gran fami frie neig coll boss room flat clas team wedd marr enga "
        "divo fune birt anni reun rela fell brok dati met intr invi goss quar argu chat",
        rf"(?:my|your|his|her|our|their|\w+'s) (?:\w+ )?{_KIN}",
        rf"{_KIN} of (?:mine|yours|his|hers|ours|theirs)",
        r"(?:wedding|married|marry|engaged to|divorced?|funeral|birthday|anniversary|reunion)",
        r"(?:friendship|relationship|fell in love|broke up|made friends|dating)",
        r"met (?:with )?(?:him|her|them|up)",
        r"(?:introduced|invited|gossip(?:ed)?|quarrel(?:led|ed)?|argued|chatted) \w+",
    ),
    "cooperation": _rule(
        "help toge shar spli agre comp cons coll coop oper team join work volu supp let",
        r"help(?:s|ed|ing)? (?:me|you|him|her|us|them|each other|out|with)",
        r"help(?:ed|ing|ful)",
        r"together",
        r"(?:shared?|sharing|split) (?:\w+ ){0,3}(?:with|between|among)",
        r"(?:agreed|agreement|compromised?|consensus)",
        r"(?:collaborat\w+|cooperat\w+|co-operat\w+|team(?:ed)? up|teamwork|join(?:ed)? forces)",
        r"work(?:s|ed|ing)? with (?:me|you|him|her|us|them)",
        r"(?:volunteer(?:ed|s)?|support(?:ed|s|ive) (?:me|you|him|her|us|them|each other))",
        r"let's",
    ),
    "ethical": _rule(
        "unfa fair hone dish inte mora immo ethi unet just inju unju lied lies lyin chea stea "
        "stol betr brib corr frau plag expl disc thin wron guil brok dese",
        r"(?:unfair(?:ly|ness)?|(?:not|isn't|wasn't|is it|was it) fair|fairness)",
        r"(?:honest(?:y|ly)?|dishonest(?:y|ly)?|integrity|moral(?:s|ly|ity)?|immoral|ethic(?:s|al"
        r"|ally)|unethical)",
        r"(?:justice|injustice|unjust(?:ly)?)",
        r"(?:lied|lies|lying) (?:to|about)",
        r"(?:cheat(?:ed|s|ing)?|st(?:eal|eals|ole|olen|ealing)|betray(?:ed|al|s)?|brib(?:e|ed|es|ery)"
        r"|corrupt(?:ed|ion)?|fraud|plagiari\w+|exploit(?:ed|ation)|discriminat\w+)",
        r"the (?:right|wrong|decent) thing",
        r"(?:it|that)(?: is| was| would be|'s) wrong to",
        r"(?:guilty of|broke (?:his|her|their|my|our|a|the) (?:promise|word))",
        r"deserve[sd]?",
    ),
    "contradiction": _rule(
        "true righ corr so case wron fals inco untr mist cont long now mind fact actu no but",
        r"(?:that|this|it|which)(?: is| was|'s)(?: not|n't) (?:true|right|correct|so|the case)",
        r"(?:that|this|it|you said)(?: is| was|'s) (?:wrong|false|incorrect|untrue|a mistake)",
        r"correction(?=:)",
        r"contrary to",
        r"contradict(?:s|ed|ion|ory)?",
        r"no longer",
        r"(?:used to|once) .{2,60}?\b(?:but|and) now",
        r"(?:i|you|we|he|she|they) (?:was|were|am|are|been) (?:mistaken|wrong)",
        r"changed (?:my|his|her|their|our|your) minds?",
        r"(?:in fact|actually),? (?:it|he|she|they|i|we|that|this|the|not)",
        r"no, (?:it|that|he|she|they|the|this|i|we|you)",
        r"not \w+(?: \w+){0,3},? but (?:rather )?\w+",
    ),
    "commitment": _rule(
        "prom swor vow vowe pled comm ll will shal by dead due appo forg owe owes owed debt remi",
        r"(?:i|we|you|he|she|they|who) (?:\w+ )?(?:promise[ds]?|swore|vow(?:ed)?|pledged?)",
        r"promise to",
        r"commit(?:ted|ment|ments)? to",
        rf"(?:i|we)(?:'ll| will| shall) (?:\w+ )?{_DOING}",
        r"(?:agreed|have|has|need|ought) to \w+ .{0,60}?\bby " + _DAY,
        rf"(?:deadline|due) (?:is |on |by |at )*{_DAY}",
        rf"due (?:on|by) {_DAY}",
        r"deadlines?",
        r"appointments?",
        r"(?:must|can)(?: not|n't|not) forget",
        r"(?:owe[sd]?|in debt to) (?:me|you|him|her|us|them)",
        r"remind (?:me|us)",
    ),
}
WITH_NAMES = {
    "social": _by_name("met", r"met (?:with )?"),
    "cooperation": _by_name("help work", r"help(?:s|ed|ing)? |work(?:s|ed|ing)? with "),
    "commitment": _by_name("owe owes owed debt", r"owe[sd]? |in debt to "),
}
"""What tells by a name, which begins with a capital."""
_BEGINNINGS = frozenset[str]().union(*(some for some, _ in RULES.values()))


_ORDERS = _any(
    r"must(?:n't)?",
    r"(?:do not|don't|never) \w+",
    r"(?:have|has|had|need|needs|ought) to",
    r"should(?:n't)?",
    r"shall",
    r"(?:house |golden )?rules?",
    r"(?:forbidden|prohibited|mandatory|obligatory|not allowed|not permitted)",
    r"from now on",
    r"(?:ignore|disregard|obey|forget) \w+",
    r"remember (?:this|that|to)",
)


def gives_orders(text: str) -> bool:
    """Whether a text tells what must, should or must not be done, by rules for English."""
    return _ORDERS.search(_beginning(text).lower()) is not None


def _beginning(text: str) -> str:
    """What the rules look at, on one line."""
    return " ".join(text[:_CHARACTERS].split()).replace("\u2019", "'")


def _tells(rule: tuple[frozenset[str], re.Pattern[str]], text: str, words: frozenset[str]) -> bool:
    some, pattern = rule
    return not some.isdisjoint(words) and pattern.search(text) is not None


def features_of(text: str, appraise: Appraise | None = None) -> ContentFeatures:
    """The features of a text by rules; `relevance` stays at 0.5, which no rule can know.

    Args:
        text: Any text; of a long one the first 4,000 characters are looked at.
        appraise: Says what it feels like, e.g. `VaderAppraisal()`; without it `sentiment` is 0,
            and `arousal` is read off stirring words and emphasis.

    Raises:
        TypeError: The appraisal gave something else than a `Mood`.
    """
    beginning = _beginning(text)
    small, found = beginning.lower(), dict[str, float]()
    words = _BEGINNINGS.intersection(_WORD_BEGINNING.findall(beginning.casefold()))
    for name, rule in RULES.items() if words else ():
        named = WITH_NAMES.get(name)
        if _tells(rule, small, words) or (named and _tells(named, beginning, words)):
            found[name] = 1.0
    if appraise is None:
        return ContentFeatures(**found, arousal=arousal_of(text))
    feeling = appraise(text)
    if not isinstance(feeling, Mood):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"The appraisal of a text gave {feeling!r}; it must give a Mood.")
    return ContentFeatures(**found, sentiment=feeling.valence, arousal=feeling.arousal)


def read_features(record: Record, appraise: Appraise | None = None) -> ContentFeatures:
    """The features of a record's text; where its appraisal fails, those without an appraisal.

    That is logged.
    """
    try:
        return features_of(record.text, appraise)
    # An appraisal is somebody else's code and may raise anything; the record is to be stored.
    except Exception as error:
        name = type(error).__name__
        _LOG.warning("Record %s was not appraised. %s: %s", record.id, name, error)
        return features_of(record.text)


async def read_all(
    records: Iterable[Record], appraise: Appraise | None = None
) -> dict[str, ContentFeatures]:
    """The features of the texts of records, by id, while other tasks have their turn."""
    found: dict[str, ContentFeatures] = {}
    for number, record in enumerate(records, start=1):
        found[record.id] = read_features(record, appraise)
        if number % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
    return found
