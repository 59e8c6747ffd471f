"""What a summary must keep letter by letter: names, dates, amounts and quoted words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_NUMBER = r"\d+(?:[.,:/-]\d+)*"
_UNIT = (
    r"(?:%|€|\$|£|euros?|dollars?|pounds?|gold|coins?|kg|g|km|m|cm|miles?|litres?|hours?|minutes?"
    r"|seconds?|days?|weeks?|months?|years?|a\.?m\.?|p\.?m\.?)"
)
_LITERAL = re.compile(
    rf"\b\d{{1,2}}\.? {_MONTH}(?: \d{{4}})?\b"
    rf"|\b{_MONTH} \d{{1,2}}(?:, \d{{4}})?\b"
    rf"|[€$£] ?{_NUMBER}"
    rf"|\b{_NUMBER}(?: ?{_UNIT})?(?!\w)"
    rf"|\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b"
    r"|[\"“][^\"”\n]{1,80}[\"”]"
)
_NAME = re.compile(
    r"\b[A-Z][\w'\u2019-]*[a-z0-9][\w-]*(?: (?:of |the )?[A-Z][\w-]*)*|\b[A-Z]{2,}\b"
)
_POSSESSIVE = re.compile(r"['\u2019]s$")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n]\s+|[\"“(]\s*)$")
_NOT_NAMES = (
    "I I'm I'll I've I'd The A An He She It We They You My Our Your His Her Their This That "
    "These Those There Then When While After Before If And But Or So Yes No Not What Who Where "
    "Why How Please Remember Actually Today Tomorrow Yesterday In On At By For From To With OK"
)
_NO_NAMES = frozenset(_NOT_NAMES.split())


def literals_of(text: str) -> tuple[str, ...]:
    """The names, dates, amounts and quotations of a text, each once, in their order.

    By rules: a capitalised word at the start of a sentence is taken for a name only where it is
    one elsewhere in the text, or is followed by another capitalised word.
    """
    literals = list(_LITERAL.finditer(text))
    found: dict[int, str] = {one.start(): one[0] for one in literals}
    at_start: list[tuple[int, str]] = []
    for one in _NAME.finditer(text):
        if any(other.start() <= one.start() < other.end() for other in literals):
            continue
        parts = _POSSESSIVE.sub("", one[0]).split(" ")
        while parts and parts[-1] in _NO_NAMES:
            parts.pop()
        leading = 0
        while leading < len(parts) and parts[leading] in _NO_NAMES:
            leading += 1
        name, place = " ".join(parts[leading:]), one.start()
        if not name[:1].isupper():
            continue
        if (
            not leading
            and _SENTENCE_START.search(text, max(0, place - 4), place)
            and " " not in name
        ):
            at_start.append((place, name))
        else:
            found[place] = name
    inside = set(found.values())
    found |= {place: name for place, name in at_start if name in inside}
    return tuple(dict.fromkeys(found[place] for place in sorted(found)))


def holds_literal(text: str, literal: str) -> bool:
    """Whether a text has a literal as a whole, whatever its case."""
    return re.search(rf"(?<!\w){re.escape(literal)}(?!\w)", text, re.IGNORECASE) is not None


def invented(text: str, sources: Iterable[str]) -> tuple[str, ...]:
    """The literals of a text that none of its sources has."""
    whole = "\n".join(sources)
    return tuple(one for one in literals_of(text) if not holds_literal(whole, one))


def missing_literals(text: str, sources: Iterable[str]) -> tuple[str, ...]:
    """The literals of the sources that a text has not kept."""
    wanted = dict.fromkeys(literal for source in sources for literal in literals_of(source))
    return tuple(one for one in wanted if not holds_literal(text, one))


def with_literals(text: str, sources: Sequence[str]) -> str:
    """The text, with the literals of its sources that it lost in brackets behind it."""
    lost = missing_literals(text, sources)
    return f"{text} [{'; '.join(lost)}]" if lost else text
