"""`only_trusted`: values that reach a tool occur in what the user or the developer wrote.

A whitelist: a value that is in no trusted text is forbidden, whether a mail named it or the model
invented it. The spelling that an attacker chooses does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from coag._util.text import comparable, ellipsis, is_compared
from coag.context import WorkingMemory, is_untrusted
from coag.errors import ConfigurationError
from coag.memory import is_trusted
from coag.schema import Candidate, Constraint, ExecutionStatus, PerceptKind, Verdict

from .constraints import JudgedBy

_SHOWN = 80
"""Characters of a value that a verdict names."""
UNHEARD = (
    "as far as this rule knows: it has heard nothing from the user. Give a stock agent "
    "`ConstrainedClient(client, workbench)` as its model, or add the user's messages to the "
    "context that it judges by (`context.add_message`)"
)
"""What a rule adds that judges by what the user said, where there is nothing."""
_DEEPEST = 20
"""Levels of lists and objects that are looked into; what is deeper is forbidden."""
_INNER = r"\w@+\-/\\=&%#~$"
"""Signs that are part of an address, a path or an id, not its end."""
_BEFORE = re.compile(rf"[{_INNER}.]")
_AFTER = re.compile(rf"[{_INNER}]|[.:?!][{_INNER}]")
_NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:[.,]\d+)*(?![\w-])(?![.,]\d)")
_CODE = re.compile(r"(?=\D*\d\D*\d)[^\W_]{8,64}")
"""An account or an order number, which people write in groups."""
_NAME_IN_IT = re.compile(r"(?<![^\W_])[^\W\d_]{5,}(?![^\W_])")
"""A word by itself, as a street's number has one and an account's has none."""
_RUN = re.compile(r"[^\W_]{8,64}")
_LINK = re.compile(
    r"(?:[a-z][a-z0-9+.-]{0,20}://|https?:)[^\s<>\"'\])}|]+"
    r"|(?<![\w/\\])[/\\]{2}\w[^\s<>\"'\])}|]*"
    r"|[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}"
    r"|(?:[\w-]{1,63}\.){1,9}[a-z]{2,24}/[^\s<>\"'\])}|]+"
    r"|www\.[^\s<>\"'\])}|]+"
)
"""An address within a text: of a page, with or without its scheme, or of a mailbox; parts are
bounded, so that looking for them takes time in proportion to the text."""


@dataclass(frozen=True, slots=True)
class OnlyTrusted:
    """See `only_trusted`."""

    action: str
    arguments: tuple[str, ...]
    sources: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    links: bool = False

    @property
    def actions(self) -> tuple[str, ...]:
        """The action that it judges."""
        return (self.action,)

    @property
    def name(self) -> str:
        """How logs call the rule, e.g. `only_trusted_send_mail_to`."""
        return "_".join(("only_trusted", self.action, *self.arguments))

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """Allows other actions; for its own it cannot know what is trusted, and forbids."""
        if candidate.action != self.action:
            return Verdict.allow()
        return Verdict.forbid("nothing tells this rule what was said: give it to an agent")

    def within(self, known: JudgedBy) -> Constraint:
        """The rule as it judges in this moment."""

        def judge(candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
            if candidate.action != self.action:
                return Verdict.allow()
            return self._verdict(candidate.arguments or {}, known)

        return judge

    def _verdict(self, arguments: Mapping[str, Any], known: JudgedBy) -> Verdict:
        schemas = cast("Mapping[str, Any]", known.spec.parameters.get("properties") or {})
        trusted = list(trusted_texts(known, self.sources, self.allow))
        for name in self.arguments:
            if name not in schemas:
                has = ", ".join(schemas) or "none"
                return Verdict.forbid(
                    f"{self.action} has no argument {name!r} for this rule to judge; it has: {has}"
                )
            own = _declared(schemas[name])
            for value in self._values(arguments.get(name), names_of_fields(known.spec.parameters)):
                if value in own or occurs_in_any(value, trusted):
                    continue
                return Verdict.forbid(f"{name} {shown_value(value)} {self._why(value, known)}")
        return Verdict.allow()

    def _why(self, value: Any, known: JudgedBy) -> str:
        wrote = "the user or the developer wrote"
        if self.sources:
            wrote += f" or {' or '.join(self.sources)} returned"
        origin = _came_from(value, known.memory)
        if not known.memory.said_by_user():
            return f"stands in nothing that {wrote}{origin}, {UNHEARD}"
        return f"stands in nothing that {wrote}{origin}: ask the user to name it"

    def _values(self, argument: Any, fields: frozenset[str]) -> Iterator[Any]:
        for value in leaves_of(argument, fields):
            if not self.links:
                yield value
            elif isinstance(value, str):
                yield from links_in(value)


def trusted_texts(
    known: JudgedBy, sources: Sequence[str] = (), allow: Sequence[str] = ()
) -> Iterator[str]:
    """The texts whose values may be used: of the user, the developer, and what they vouch for."""
    memory = known.memory
    yield from allow
    yield from memory.said_by_user()
    retrieval = memory.cognitive_state.retrieval
    for hit in retrieval.records if retrieval else ():
        if is_trusted(hit.record):
            yield hit.record.text
    yield from known.developer()
    for percept in memory.percepts:
        returned = percept.kind is PerceptKind.TOOL_RETURN and not percept.is_error
        if returned and percept.source in sources:
            yield percept.content
    for past in memory.deeds:
        ran = not past.internal and past.status is ExecutionStatus.DONE
        if ran and past.action in sources:
            yield past.result


def only_trusted(
    action: str,
    *arguments: str,
    sources: Iterable[str] = (),
    allow: Iterable[str] = (),
    links: bool = False,
) -> OnlyTrusted:
    """A constraint: these arguments of an action hold nothing that only untrusted text brought.

    Every text and number in them has to occur, as a whole, in what the user said in this activity,
    in the system message or a procedure, in a recalled record that nobody untrusted had a part in,
    in `allow`, or in what a tool of `sources` returned; or it is a default or a choice in the
    tool's schema. Upper and lower case, width of letters and white space do not count. All else is
    forbidden: what a mail, a page or another agent named, what was put together of parts, and
    what the model made up. It does not show whether the user wants the value used.

    Args:
        action: The action's name, e.g. `send_mail`.
        arguments: Which of its arguments, e.g. `to`. In lists and objects every value counts.
        sources: Tools that are trusted to name values, e.g. `contacts`: their newest returns
            count, as far as working memory holds them.
        allow: Values that are always allowed.
        links: Judges not the whole value but the addresses of pages and mailboxes in it. For free
            texts, such as the agent's answer: `only_trusted("respond", "text", links=True)`.

    Raises:
        ConfigurationError: No argument is named, or texts are given where names are meant.
    """
    if not arguments or not all(arguments) or not action:
        takes = "only_trusted takes an action and arguments, e.g. only_trusted('send_mail', 'to')"
        raise ConfigurationError(f"{takes}, not {(action, *arguments)!r}.")
    for name, given in (("sources", sources), ("allow", allow)):
        if isinstance(given, str):
            raise ConfigurationError(f"only_trusted: {name} takes a list of texts, not {given!r}.")
    return OnlyTrusted(action, arguments, tuple(sources), tuple(allow), links)


def links_in(text: str) -> Iterator[str]:
    """The addresses of pages and mailboxes in a text."""
    return (link.rstrip(".,;:!?*_~") for link in _LINK.findall(comparable(text)))


def is_address(value: Any) -> bool:
    """Whether a value names a page, a mailbox, or an account or order number."""
    if not isinstance(value, str):
        return False
    plain = comparable(value)
    grouped = not _NAME_IN_IT.search(plain) and _CODE.fullmatch(plain.replace(" ", ""))
    return bool(_LINK.fullmatch(plain) or _CODE.fullmatch(plain) or grouped)


def values_within(text: str) -> Iterator[str]:
    """The addresses and account numbers in a text."""
    yield from links_in(text)
    yield from (one for one in _RUN.findall(comparable(text)) if _CODE.fullmatch(one))


def names_of_fields(schema: Any, depth: int = 0) -> frozenset[str]:
    """What a schema calls the fields of objects: the developer's words."""
    inside: Iterable[Any] = ()
    named = frozenset[str]()
    if depth <= _DEEPEST and isinstance(schema, list):
        inside = cast("list[Any]", schema)
    elif depth <= _DEEPEST and isinstance(schema, Mapping):
        part = cast("Mapping[str, Any]", schema)
        fields, inside = part.get("properties"), part.values()
        named = frozenset(cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else ())
    return named.union(*(names_of_fields(one, depth + 1) for one in inside))


def leaves_of(value: Any, fields: frozenset[str] = frozenset(), depth: int = 0) -> Iterator[Any]:
    """Every text and number in an argument; truth values and nothing at all name nothing.

    A key of an object is one as well, where it is no name of a field.
    """
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return
    if depth < _DEEPEST and isinstance(value, Mapping):
        for key, one in cast("Mapping[str, Any]", value).items():
            yield from () if key in fields else (key,)
            yield from leaves_of(one, fields, depth + 1)
    elif depth < _DEEPEST and isinstance(value, list | tuple):
        for one in cast("Sequence[Any]", value):
            yield from leaves_of(one, fields, depth + 1)
    else:
        yield value


def _declared(schema: Any) -> list[Any]:
    """What the developer of a tool wrote into the schema of an argument."""
    if not isinstance(schema, Mapping):
        return []
    properties = cast("Mapping[str, Any]", schema)
    choices: Any = properties.get("enum")
    declared = list(cast("list[Any]", choices)) if isinstance(choices, list) else []
    declared += [properties[key] for key in ("const", "default") if key in properties]
    return [leaf for one in declared for leaf in leaves_of(one)]


def occurs_in_any(value: Any, trusted: Iterable[str]) -> bool:
    """Whether one of the texts holds a value by itself."""
    if isinstance(value, int | float | Decimal):
        number = Decimal(str(value))
        return any(number in map(_number, _NUMBER.findall(comparable(text))) for text in trusted)
    if not isinstance(value, str) or not all(one.isspace() or is_compared(one) for one in value):
        return False
    plain = comparable(value)
    return bool(plain) and any(_occurs_in(plain, comparable(text)) for text in trusted)


def _occurs_in(value: str, text: str) -> bool:
    """Whether a text holds a value by itself, not as a part of a longer one."""
    pattern = " ?".join(value) if _CODE.fullmatch(value) else re.escape(value)
    return any(
        not _BEFORE.match(text[max(result.start() - 1, 0) : result.start()])
        and not _AFTER.match(text[result.end() : result.end() + 2])
        for result in re.finditer(pattern, text)
    )


def _number(written: str) -> Decimal | None:
    """A number as people write it: 1,500 and 1,500.50 and 1.500,50, but 1.500 is one and a half.

    None where it is not clear.
    """
    last = max(written.rfind("."), written.rfind(","))
    groups = re.split("[.,]", written)
    thirds = all(len(group) == 3 for group in groups[1:])
    marks = {one for one in written if one in ".,"}
    if len(marks) == 2 and written.count(written[last]) == 1:
        return Decimal(re.sub("[.,]", "", written[:last]) + "." + written[last + 1 :])
    if len(groups) == 1 or (thirds and (marks == {","} or (marks == {"."} and len(groups) > 2))):
        return Decimal("".join(groups))
    return Decimal(".".join(groups)) if len(groups) == 2 else None


def _came_from(value: Any, memory: WorkingMemory) -> str:
    texts = [(one.source, one.content) for one in memory.percepts if is_untrusted(one)]
    texts += [(one.action, one.result) for one in memory.deeds if not one.internal]
    plain = comparable(str(value))
    named = [source for source, text in texts if plain in comparable(text)]
    return f", only in text from {named[-1]}" if named else ""


def shown_value(value: Any) -> str:
    """A value as a verdict shows it."""
    unseen = isinstance(value, str) and not value.isprintable()
    return ellipsis(ascii(value) if unseen else repr(value), _SHOWN)
