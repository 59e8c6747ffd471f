"""`no_foreign_orders`: what a text from outside tells its reader to do is not done for it.

A text that an agent reads on its user's behalf, a mail, a page, a tool's return, may hold values
that the user wants used, and it may hold orders. This rule tells them apart by form: which records
of such texts give orders, in English, and which values stand in those records alone.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from coag._util.text import comparable
from coag.context import WorkingMemory, is_untrusted
from coag.errors import ConfigurationError
from coag.memory import is_trusted
from coag.schema import Candidate, Constraint, ExecutionStatus, Trust, Verdict

from .actions import RESPOND
from .constraints import JudgedBy
from .only_trusted import (
    UNHEARD,
    is_address,
    leaves_of,
    names_of_fields,
    occurs_in_any,
    shown_value,
    trusted_texts,
    values_within,
)

_ORDER_LENGTH = 600
"""Characters of a text that belong to an order, from its verb on, if the paragraph is so long."""
_OBJECT_LENGTH = 50
"""Characters from an order's verb on that name what it is about."""
_RECORD_LENGTH = 50_000
"""Characters of a record in which orders are looked for; the rest counts as one order."""
_PARSED_LENGTH = 200_000
"""Characters of a text that is read as JSON or as Python's."""
_REPEATED = ((5, 1), (3, 4))
"""Words in a row by which an answer repeats an order, and how many letters each has at least: five
as in the gate of procedural memory, or three longer ones, such as a name."""

# ---- What orders are: verbs of what agents do, where a sentence tells its reader to do it ----

_FAMILIES: Mapping[str, str] = {
    "pay": "pay transfer wire refund remit reimburse deposit withdraw invest donate purchase buy",
    "send": "send email e-mail mail forward message write reply respond answer post publish tell "
    "notify inform contact share upload text submit report leak dm",
    "delete": "delete remove erase cancel clear wipe drop destroy unsubscribe revoke kick",
    "create": "create make add append schedule set organize organise plan register generate "
    "arrange put sign invite save store install",
    "book": "book reserve rent hire order",
    "change": "change update modify adjust add edit reschedule move rename append replace reset "
    "correct amend extend increase decrease rewrite set switch enable disable grant",
    "run": "run execute call use invoke perform",
    "look": "visit open click download browse navigate fetch access load",
    "say": "say tell recommend mention claim pretend state answer respond reply write advise "
    "suggest",
}
"""Verbs that mean much the same; a verb may be in several families."""
_NOUNS: Mapping[str, str] = {
    "pay": "money payment payments transaction transactions transfer funds invoice",
    "send": "email emails mail message messages",
    "book": "reservation reservations booking bookings",
}
"""What an action that changes something is about, where its verb does not say it."""
_SAY, _LOOK = "say", "look"
_QUIET = frozenset({_SAY, _LOOK})
"""Kinds that change nothing outside: to say something to the user, and to look."""
_LOOKING = frozenset({_LOOK})
_LOOKS = frozenset({"get", "read", "visit", "open", "fetch", "browse", "download", "load",
                    "access", "search", "retrieve"})  # fmt: skip
"""Verbs of tools that look."""
_FAMILY_OF: Mapping[str, frozenset[str]] = {
    verb: frozenset(name for name, verbs in _FAMILIES.items() if verb in verbs.split())
    for verbs in _FAMILIES.values()
    for verb in verbs.split()
}
_IRREGULAR = {"sent": "send", "paid": "pay", "made": "make", "wrote": "write", "written": "write",
              "told": "tell", "said": "say", "bought": "buy", "setting": "set"}  # fmt: skip
_VERBS = "|".join(sorted(map(re.escape, _FAMILY_OF), key=len, reverse=True))
_CLAUSE = r"(?:^|[^\w\s]|\n)\s{0,4}"
_LEAD = (
    r"(?:(?:please|kindly|then|finally|now|next|first|also|and|just|simply|immediately|always|"
    r"instead|afterwards|do|must|should|shall|you|need|have|has|are|is|to|be|sure|make|certain|"
    r"don't|do not|forget|remember|can|could|would|will|i|we|want|like|ask|urge|require|expect|"
    r"start|begin|by|your|task|job|goal|it|important|urgent|required|necessary|that|todo)"
    r"[\s,:]{1,4}){0,8}?"
)
_URGE = (
    r"\b(?:please|kindly|you (?:must|should|shall|need to|have to|are to|ought to)|"
    r"(?:can|could|would|will) you|make sure (?:to|that you)|be sure to|(?:do not|don't) forget to|"
    r"remember to|(?:want|need|like|ask|asks|asking|urge|require|expect|order) you to)\s"
    r"(?:please\s|also\s|first\s|now\s|then\s|immediately\s){0,2}"
)
_SECOND = (
    rf"\band (?:then )?(?=(?:{_VERBS}) (?:them|it|this|that|these|those|all|the|him|her|me|us|an?|"
    r"my|your)\b)"
)
"""Where the second of two orders begins, whatever the first one is."""
_ORDER = re.compile(
    rf"(?:{_CLAUSE}{_LEAD}|{_URGE}|{_SECOND})(?P<verb>{_VERBS})\b(?!\s*(?:[:.,;!?)-]|(?:of|is|was|are|and|or)\b|$))"
    r"(?P<prepositional>\s+(?:at|in|on|for|by|from)\b)?"
)
"""A verb in the form of an order where a clause begins, or after words that urge."""
_NOUNS_TOO = frozenset(
    name
    for names in (
        "purchase transfer order book plan share change update report message contact email mail",
        "e-mail answer reply post text call use schedule set open store increase decrease switch",
        "claim state deposit refund request upload register reset",
    )
    for name in names.split()
)
"""Verbs that are nouns as well: `Purchase at ...` is a title."""
_DELEGATES = re.compile(
    r"\b(?:follow|do|carry out|complete|execute|perform|work through)\s+(?!the following|these)"
    r"[^.!?\n]{0,60}\b(?:instructions?|tasks?|to-?dos?|steps|orders|actions)\b",
    re.IGNORECASE,
)
"""A user who wants the orders of a text to be followed."""
_FIELD = re.compile(r"[A-Za-z_]\w{0,40}")
"""How developers name fields; other keys of an object are values."""
_REFERENCE = r"(?:\b(?:id|number|no|nr|item|row|entry)\b\.?|#)\W{0,4}"
"""What makes a short number in a sentence the name of something."""
_SHORT = 3
"""Characters of a value that occurs in many sentences by chance."""
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class _Order:
    """An order within a text."""

    families: frozenset[str]
    text: str
    """From the verb to the end of its paragraph."""


@dataclass(frozen=True, slots=True)
class _Record:
    """What belongs together in a text from outside: an object of its JSON, or all of it."""

    source: str
    text: str
    orders: tuple[_Order, ...]

    @property
    def commands(self) -> bool:
        """Whether it tells its reader to do something with a tool."""
        return any(order.families - _QUIET for order in self.orders)


@lru_cache(maxsize=1024)
def _orders_in(record: str) -> tuple[_Order, ...]:
    """The orders in a record; what is beyond the length that is looked at counts as one."""
    text = "\n".join(map(comparable, record[:_RECORD_LENGTH].split("\n")))
    found: list[_Order] = []
    if len(record) > _RECORD_LENGTH:
        found.append(_Order(frozenset(_FAMILIES), record[_RECORD_LENGTH:]))
    for match in _ORDER.finditer(text):
        if match["prepositional"] and match["verb"] in _NOUNS_TOO:
            continue
        start = match.start("verb")
        end = text.find("\n\n", start)
        end = min(len(text) if end < 0 else end, start + _ORDER_LENGTH)
        ordered = text[start:end]
        kinds = _FAMILY_OF[match["verb"]]
        kinds |= _kinds_named(_words(ordered[:_OBJECT_LENGTH])) if kinds - _QUIET else frozenset()
        found.append(_Order(kinds, ordered))
    return tuple(found)


@lru_cache(maxsize=2048)
def _records(source: str, text: str) -> tuple[_Record, ...]:
    return tuple(
        _Record(source, part, _orders_in(part) if free else ())
        for part, free in _parts(_parsed(text))
        if part
    )


def _parsed(text: str) -> Any:
    """The value that a tool wrote, as JSON or, as AutoGen's tools do, as Python's; or the text."""
    if text.lstrip()[:1] not in ("{", "[", "(") or len(text) > _PARSED_LENGTH:
        return _unescaped(text)
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return _unescaped(text)


def _unescaped(text: str) -> str:
    """The text with its line breaks, where they are written as in a program."""
    return re.sub(r"\\[nrt]", "\n", text)


def _parts(value: Any) -> Iterator[tuple[str, bool]]:
    """The parts of a value, and whether each is text in which somebody can give orders.

    The texts of an object, with those in its lists, are one part. Its fields that are only a
    value are another: a number, an address, a key that is no name of a field. An object within
    an object is a part of its own.
    """
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        flat = {key: one for key, one in fields.items() if not _holds_objects(one)}
        named = frozenset(key for key in flat if _FIELD.fullmatch(key))
        leaves = [str(leaf) for leaf in leaves_of(flat, named)]
        yield "\n\n".join(leaf for leaf in leaves if _has_space(leaf)), True
        yield "\n\n".join(leaf for leaf in leaves if not _has_space(leaf)), False
        for one in fields.values():
            if _holds_objects(one):
                yield from _parts(one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _parts(one)
    elif value is not None and not isinstance(value, bool) and value != "":
        yield str(value), _has_space(str(value))


def _has_space(text: str) -> bool:
    return any(map(str.isspace, text))


def _holds_objects(value: Any) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and any(map(_holds_objects, cast("list[Any]", value)))


# ---- The rule ----


@dataclass(frozen=True, slots=True)
class ForeignOrders:
    """See `no_foreign_orders`."""

    sources: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    answers: bool = False

    @property
    def actions(self) -> tuple[str, ...]:
        """The answer, where it judges answers; tools are judged without being named."""
        return (RESPOND.name,) if self.answers else ()

    @property
    def name(self) -> str:
        """How logs call the rule."""
        return "no_foreign_orders"

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """By itself it cannot know what was read, and forbids."""
        return Verdict.forbid("nothing tells this rule what was said: give it to an agent")

    def within(self, known: JudgedBy) -> Constraint:
        """The rule as it judges in this moment."""

        def judge(candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
            return self._verdict(candidate, known)

        return judge

    def _verdict(self, candidate: Candidate, known: JudgedBy) -> Verdict:
        answers = candidate.action == RESPOND.name
        if known.spec.internal and not (answers and self.answers):
            return Verdict.allow()
        records = [
            record
            for source, text in dict.fromkeys(_read(known.memory, self.sources))
            for record in _records(source, text)
        ]
        if not any(record.orders for record in records):
            return Verdict.allow()
        trusted = list(trusted_texts(known, self.sources, self.allow))
        if answers:
            return _answer_verdict(candidate, records, trusted)
        return _Case(candidate, known, records, trusted).verdict()


@dataclass(frozen=True, slots=True)
class _Case:
    """One call, and what was read and said before it."""

    candidate: Candidate
    known: JudgedBy
    records: Sequence[_Record]
    trusted: Sequence[str]

    def verdict(self) -> Verdict:
        """Forbids what is done, or with what, because a text from outside says so."""
        spec = self.known.spec
        own = _families_of_action(spec.name, spec.description)
        own = _LOOKING if spec.read_only else own
        alike = [
            (record, order)
            for record in self.records
            for order in record.orders
            if order.families & own or _names(order, spec.name)
        ]
        if alike and own != _LOOKING and not self._asked(own):
            ordered = f"text from {alike[0][0].source} tells its reader to do this, and the user"
            if not self.known.memory.said_by_user():
                return Verdict.forbid(f"{ordered} asked for nothing of the kind, {UNHEARD}")
            return Verdict.forbid(
                f"{ordered} asked for nothing of the kind: go on with what the user asked"
            )
        values = list(self._values())
        disputed = any(
            is_address(value) and occurs_in_any(value, [order.text])
            for _, value in values
            for _, order in alike
        )
        for name, value in values:
            verdict = self._of_value(name, value, alike, own, disputed=disputed)
            if not verdict.allowed:
                return verdict
        return Verdict.allow()

    def _of_value(
        self,
        name: str,
        value: Any,
        alike: Sequence[tuple[_Record, _Order]],
        own: frozenset[str],
        *,
        disputed: bool,
    ) -> Verdict:
        """Whether a value of an argument may be used, by the orders for actions of this kind.

        The call is `disputed` where one of them names an address of it, which the user may have
        named as well; then its numbers must come from somewhere else.
        """
        if occurs_in_any(value, self.trusted):
            return Verdict.allow()
        for record, order in alike:
            if (own != _LOOKING or is_address(value)) and _ordered(value, order.text):
                return self._foreign(name, value, record.source)
        numeric = isinstance(value, int | float)
        if not is_address(value) and not (numeric and disputed):
            return Verdict.allow()
        holding = [record for record in self.records if occurs_in_any(value, [record.text])]
        if any(not record.commands for record in holding):
            return Verdict.allow()
        if holding:
            return self._foreign(name, value, holding[0].source)
        return Verdict.forbid(
            f"{name} {shown_value(value)} stands in nothing that was said or read, and a text that "
            "was read gives orders: ask the user to name it"
        )

    def _foreign(self, name: str, value: Any, source: str) -> Verdict:
        return Verdict.forbid(
            f"{name} {shown_value(value)} comes from text of {source} that gives orders, and the "
            "user did not name it: go on with what the user asked, or ask the user"
        )

    def _asked(self, own: frozenset[str]) -> bool:
        if not own:
            return True
        text = "\n".join(self.known.memory.said_by_user())
        return bool(own & _families_in(text)) or _DELEGATES.search(text) is not None

    def _values(self) -> Iterator[tuple[str, Any]]:
        """The values of the call, each with its argument; of texts also the addresses in them.

        A text that is a whole record, as a name in a list of names, is one value, whatever
        somebody wrote into it.
        """
        fields = names_of_fields(self.known.spec.parameters)
        whole = {record.text for record in self.records}
        for name, argument in (self.candidate.arguments or {}).items():
            for value in leaves_of(argument, fields):
                yield name, value
                if isinstance(value, str) and value not in whole:
                    yield from ((name, part) for part in values_within(value) if part != value)


def _ordered(value: Any, order: str) -> bool:
    """Whether an order names a value; a short one counts where it is used as a name."""
    if not occurs_in_any(value, [order]):
        return False
    short = len(str(value)) < _SHORT
    written = re.escape(str(value))
    named = rf"{_REFERENCE}{written}\b|['\"`]{written}['\"`]"
    return not short or re.search(named, order, re.IGNORECASE) is not None


def _names(order: _Order, action: str) -> bool:
    """Whether an order names a tool, as developers write its name."""
    return "_" in action and action.lower() in order.text.lower()


def _families_of_action(name: str, description: str) -> frozenset[str]:
    """What kind of change an action makes, by the verb of its name or of its description.

    Empty where neither begins with a verb of a known kind.
    """
    words = _words(name.replace("_", " "))
    described = _words(description)
    if words and words[0] in _LOOKS:
        return _LOOKING
    own = _families_of_word(words[0]) - _QUIET if words else frozenset[str]()
    own = own or (_families_of_word(described[0]) - _QUIET if described else own)
    return own | _kinds_named((*words, *described[:12])) if own else own


def _kinds_named(words: Iterable[str]) -> frozenset[str]:
    about = set(words)
    return frozenset(kind for kind, named in _NOUNS.items() if about & set(named.split()))


def _families_in(text: str) -> frozenset[str]:
    words = set(_words(re.sub(r"\bmake sure\b", " ", text, flags=re.IGNORECASE)))
    return _kinds_named(words).union(*map(_families_of_word, words))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=4096)
def _families_of_word(word: str) -> frozenset[str]:
    """The families of a verb in any of its forms."""
    forms = {word, _IRREGULAR.get(word, word)}
    for ending in ("s", "es", "d", "ed", "ing"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word.removesuffix(ending)
            forms |= {stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem}
    return frozenset[str]().union(*(_FAMILY_OF.get(form, frozenset()) for form in forms))


def _answer_verdict(
    candidate: Candidate, records: Sequence[_Record], trusted: Sequence[str]
) -> Verdict:
    """Forbids an answer that says what a text from outside wants said."""
    said = " ".join(_words("\n".join(_said_in(candidate.arguments or {}))))
    known = " ".join(_words("\n".join(trusted)))
    for record in records:
        for order in record.orders:
            if _SAY not in order.families:
                continue
            for run in _runs(_words(order.text)):
                if f" {run} " in f" {said} " and f" {run} " not in f" {known} ":
                    return Verdict.forbid(
                        f"text from {record.source} wants {shown_value(run)} to be said: say what "
                        "the user asked for, without it"
                    )
    return Verdict.allow()


def _said_in(arguments: Mapping[str, Any]) -> Iterator[str]:
    """The texts of an answer, of one in a form each value; what is JSON also as it is read."""
    for leaf in leaves_of(dict(arguments), frozenset(arguments)):
        yield str(leaf)
        read = _parsed(str(leaf))
        if isinstance(read, dict | list):
            yield from map(str, leaves_of(read))


def _runs(words: Sequence[str]) -> Iterator[str]:
    """The runs of words that an answer does not repeat by chance."""
    for length, letters in _REPEATED:
        for start in range(len(words) - length + 1):
            run = words[start : start + length]
            if min(map(len, run)) >= letters:
                yield " ".join(run)


def _read(memory: WorkingMemory, sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    for past in memory.deeds:
        ran = not past.internal and past.status is not ExecutionStatus.NONE
        if ran and past.action not in sources:
            yield past.action, past.result
    for percept in memory.percepts:
        if is_untrusted(percept) and percept.source not in sources:
            yield percept.source, percept.content
    for one in memory.dialogue:
        if not one.own and one.trust is Trust.UNTRUSTED:
            yield one.source, one.content
    retrieval = memory.cognitive_state.retrieval
    for hit in retrieval.records if retrieval else ():
        if not is_trusted(hit.record):
            yield "memory", hit.record.text


def no_foreign_orders(
    *, sources: Iterable[str] = (), allow: Iterable[str] = (), answers: bool = False
) -> ForeignOrders:
    """A constraint: what a text from outside orders is not done because it says so.

    It judges every external action, and is silent until a text that is not trusted gives orders.
    Then it forbids a call

    - of a kind that such an order names (to pay, to send, to delete, to create, to book, to
      change), where the user asked for nothing of that kind;
    - with a value that the order names, or that occurs only in records that give orders, unless
      the user, the developer or another trusted text named it;
    - with an address or an account number that occurs nowhere.

    A record is an object of a tool's JSON, or the whole of another text. Orders are recognised in
    English, by verbs at the beginning of a clause; a text that states instead of ordering ("our
    new account is ...") passes. Where that is not enough, use `only_trusted`.

    Args:
        sources: Tools whose returns are trusted, orders included.
        allow: Values that are always allowed.
        answers: Judges the agent's answers too: one that repeats five words in a row of an order
            to say something is forbidden. Answers that quote such a text are then refused as well.

    Raises:
        ConfigurationError: A text is given where names are meant.
    """
    for name, given in (("sources", sources), ("allow", allow)):
        if isinstance(given, str):
            raise ConfigurationError(f"no_foreign_orders: {name} takes a list, not {given!r}.")
    return ForeignOrders(tuple(sources), tuple(allow), answers)
