"""The condition of a rule: a comparison in CEL, the Common Expression Language, and no more of it.

The one module that imports a library of CEL. What may be written is a small part: comparisons and
sums of what a call, the state and its prediction hold. A condition is bounded when it is loaded
(its length, its names, one loop over a list and none within another), and what it reads is bounded
when it is judged, so that no call can keep it busy. Numbers are compared as numbers, whole or not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Literal, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from coag.errors import ConfigurationError

from .files import NOT_INSTALLED

LENGTH = 1_000
"""Characters that a condition may have."""
VALUES = 2_000
"""Values that a condition may read in a call: two such lists are compared in some 0.4 s."""
CHARACTERS = 200_000
"""Characters that the texts it reads may have in all."""
LARGEST = 2**53
"""The largest whole number that is compared; beyond it, different ones could pass for the same."""
_DEEPEST = 30
ROOTS = ("arguments", "state", "after")
"""Names that have members: the call's arguments, the state now, the predicted state."""
PLAIN = ("tool", "unsettled")
"""The tool's name, and the names of the actions whose outcome is not known."""
_METHODS = ("contains", "startsWith", "endsWith", "matches")
_LOOPS = ("all", "exists")
_FUNCTIONS = ("size", "has")
_WORDS = {"and": "&&", "or": "||", "not": "!", "is": "==", "AND": "&&", "OR": "||", "NOT": "!"}
_TRUTH = {"True": "true", "False": "false", "yes": "true", "no": "false"}
_ORDER = ("<", "<=", ">", ">=", "==", "!=")
_VALUES = ("text", "number")
_BREAKS = ("&&", "||", "?", ":", ",")
_BORDERS = ("", "(", ")", "]", *_BREAKS)
"""What may be beside a comparison that is compared with nothing else; empty at the ends."""
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\n]+)
    |(?P<text>"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*')
    |(?P<number>(?:\d+\.\d+|\d+)(?:[eE][+-]?\d+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-<>!+*/()\[\],.?:])""",
    re.VERBOSE,
)


class ConditionError(ValueError):
    """A condition cannot be understood, or cannot be judged for a call."""

    def __init__(self, problem: str, column: int = 0) -> None:
        self.problem = problem
        self.column = column
        """Characters before the place in the condition's text."""
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def check_installed() -> None:
    """Checks that conditions can be judged here.

    Raises:
        ConfigurationError: The extra is not installed.
    """
    _library()


def _library() -> Any:
    try:
        import cel
    except ImportError as error:
        raise ConfigurationError(NOT_INSTALLED) from error
    return cel


class PolicyCondition:
    """A condition that was read, ready to be judged.

    Args:
        text: As it is written in the file.

    Raises:
        ConditionError: It cannot be understood; says where, and what to write.
        ConfigurationError: The extra is not installed.
    """

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        if not self.text:
            raise ConditionError("the condition is empty; write true for every call")
        if len(text) > LENGTH:
            raise ConditionError(f"it has {len(text):,} characters; at most {LENGTH:,} are read")
        tokens = list(_tokens(text))
        reader = _Reader(tokens)
        reader.check()
        self.reads: frozenset[tuple[str, str]] = frozenset(reader.reads)
        """What it reads of arguments, state and prediction, e.g. `("arguments", "amount")`."""
        self.names: frozenset[str] = frozenset(reader.names)
        """What else it reads: `tool`, `unsettled`."""
        self.compared: frozenset[tuple[str, str, str, str]] = frozenset(reader.compared)
        """What is to be the same as a value that is written out, e.g. `("arguments", "amount",
        "number", "5")`. Values of two kinds are never the same, and never an error."""
        _compiled(text)  # what is wrong is shown in the text as it was written
        self._program = _compiled(_with_decimals(tokens))
        if not self.reads and not self.names:
            self.holds({})

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Whether it is true.

        Args:
            values: The mappings `arguments`, `state` and `after`, as far as they are known, and
                `tool` and `unsettled`. A member that is None counts as missing.

        Raises:
            ConditionError: It cannot be judged: something is missing, or of the wrong kind.
        """
        budget = _Budget()
        known: dict[str, Any] = {name: budget.plain(values[name]) for name in self.names}
        for root, member in self.reads:
            known.setdefault(root, {})
            held = _member(root, values.get(root), member)
            if held is not None:
                known[root][member] = budget.plain(held)
        try:
            answer: object = self._program.execute(known)
        except KeyError as error:
            missing = str(error.args[0]) if error.args else "something"
            raise ConditionError(f"{missing!r} is not given or not known") from error
        except (ValueError, TypeError, RuntimeError, ArithmeticError, LookupError) as error:
            raise ConditionError(_first_line(error)) from error
        except BaseException as error:
            if type(error).__module__ != "pyo3_runtime":  # a panic in Rust is no `Exception`
                raise
            raise ConditionError(f"the library failed: {_first_line(error)}") from error
        if not isinstance(answer, bool):
            raise ConditionError(f"it comes to {answer!r:.80}, which is neither true nor false")
        return answer


def _member(root: str, value: Any, member: str) -> Any:
    if value is None:
        if root == "after":
            raise ConditionError("what it leads to is not known yet")
        raise ConditionError(f"{root} is not known")
    if isinstance(value, BaseModel):
        kind = type(value)
        fields = {*kind.model_fields, *kind.model_computed_fields, *(value.model_extra or {})}
        return getattr(value, member) if member in fields else None
    if not isinstance(value, Mapping):
        raise ConditionError(f"{root} is a {type(value).__name__}, which has no named members")
    return cast("Mapping[str, Any]", value).get(member)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].partition(" CEL does not coerce")[0][:200]


@dataclass(slots=True)
class _Budget:
    """How much of a call's values may still be read."""

    values: int = VALUES
    characters: int = CHARACTERS

    def plain(self, value: Any, depth: int = 0) -> Any:
        """The value as conditions compare it: every number as a decimal, nothing that is None."""
        self.values -= 1
        if self.values < 0 or depth > _DEEPEST:
            raise ConditionError(f"it would read more than {VALUES:,} values")
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            self.characters -= len(value)
            if self.characters < 0:
                raise ConditionError(f"it would read more than {CHARACTERS:,} characters")
            return value.encode(errors="replace").decode()
        if isinstance(value, int | float):
            return _decimal(value)
        return self._of_parts(value, depth)

    def _of_parts(self, value: Any, depth: int) -> Any:
        if isinstance(value, Mapping):
            items = cast("Mapping[str, Any]", value).items()
            return {str(k): self.plain(v, depth + 1) for k, v in items if v is not None}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.plain(one, depth + 1) for one in cast("list[Any]", value)]
        if isinstance(value, BaseModel):
            return self.plain(value.model_dump(), depth)
        return self.plain(_as_json(value), depth + 1)


def _decimal(value: float) -> float:
    if isinstance(value, int) and abs(value) > LARGEST:
        raise ConditionError(f"a number is larger than {LARGEST:,}, the largest compared")
    if not math.isfinite(value):
        raise ConditionError(f"{value} is no number that can be compared")
    return float(value)


def _as_json(value: object) -> Any:
    try:
        plain = to_jsonable_python(value)
        return float(plain) if type(value).__name__ == "Decimal" else plain
    except (TypeError, ValueError) as error:
        raise ConditionError(f"a {type(value).__name__} cannot be compared") from error


def _compiled(text: str) -> Any:
    try:
        return _library().compile(text)
    except ValueError as error:
        if isinstance(error, ConfigurationError):
            raise
        if "Recursion limit" in str(error):
            raise ConditionError("too many parentheses within each other") from error
        found = re.search(r"<input>:(\d+):(\d+): (?:Syntax error: )?([^\n]*)", str(error))
        if found is None:
            raise ConditionError(f"it cannot be read: {_first_line(error)}") from error
        raise ConditionError(found[3][:160], max(0, int(found[2]) - 1)) from error


# ---- Reading the text: which names and signs, and nothing that could run away ----


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise _unreadable(text, place)
        if found.lastgroup != "blank":
            yield _Token(cast("str", found.lastgroup), found[0], place)
        place = found.end()


def _unreadable(text: str, place: int) -> ConditionError:
    sign = text[place]
    hints = {
        "=": "write == to compare",
        "&": "write && for and",
        "|": "write || for or",
        '"': "a text has no end: close it with the same sign",
        "'": "a text has no end: close it with the same sign",
    }
    hint = hints.get(sign, "a condition has names, numbers, texts and comparisons")
    return ConditionError(f"{sign!r} (U+{ord(sign):04X}) cannot stand here: {hint}", place)


class _Reader:
    """Looks through the tokens of a condition once."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._end = _Token("end", "", tokens[-1].at + len(tokens[-1].text) if tokens else 0)
        self._bound: list[tuple[int, str]] = []
        """Names of loops that are open, each with the depth of its parenthesis."""
        self._compared: list[str] = [""]
        """The last comparison in each parenthesis that is open."""
        self.reads: set[tuple[str, str]] = set()
        self.names: set[str] = set()
        self.compared: set[tuple[str, str, str, str]] = set()

    def check(self) -> None:
        """Finds names and what they read.

        Raises:
            ConditionError: Something is not known, or not allowed.
        """
        for n, token in enumerate(self._tokens):
            before, after = self._at(n - 1), self._at(n + 1)
            joined = token.kind in _VALUES and after.kind in (*_VALUES, "name")
            if joined and after.text not in ("in", *_WORDS):
                raise ConditionError(f"{after.text!r} cannot follow {token.text!r}", after.at)
            if token.kind == "number":
                self._check_number(token, before)
            elif token.kind == "sign":
                self._check_sign(token, after)
            elif token.kind == "name" and before.text == ".":
                self._check_member(n, token, after)
            elif token.kind == "name":
                self._check_name(n, token, after)

    def _at(self, n: int) -> _Token:
        return self._tokens[n] if 0 <= n < len(self._tokens) else self._end

    def _check_number(self, token: _Token, before: _Token) -> None:
        if before.text == ".":
            raise ConditionError(f"write 0.{token.text}", before.at)
        if Decimal(token.text) > LARGEST:
            raise ConditionError(f"{token.text} is larger than {LARGEST:,}", token.at)

    def _check_sign(self, token: _Token, after: _Token) -> None:
        sign = token.text
        if sign == "/" and after.text == "/" and after.at == token.at + 1:
            raise ConditionError(
                "// would begin a comment: write it in the file behind #", token.at
            )
        if sign == "/" and not (after.kind == "number" and float(after.text)):
            # By 0 it would be infinite, and pass for a number.
            raise ConditionError(
                "divide by a number that is not 0: write a > 5 * b instead of a / b > 5", token.at
            )
        if sign in ("(", "["):
            self._compared.append("")
        elif sign in (")", "]"):
            self._bound = [one for one in self._bound if one[0] < len(self._compared)]
            if len(self._compared) > 1:
                self._compared.pop()
        elif sign in _BREAKS:
            self._compared[-1] = ""
        elif sign in _ORDER:
            if self._compared[-1]:
                raise ConditionError(
                    "two comparisons in a row: write a < b && b < c instead of a < b < c", token.at
                )
            self._compared[-1] = sign

    def _check_member(self, n: int, token: _Token, after: _Token) -> None:
        if after.text != "(":
            return
        known = (*_METHODS, *_LOOPS)
        if token.text not in known:
            raise ConditionError(
                f"there is no {token.text}() here{nearest(token.text, known)}", token.at
            )
        quoted = self._at(n + 2).kind == "text" and self._at(n + 3).text == ")"
        if token.text == "matches" and not quoted:
            raise ConditionError("matches() takes a pattern in quotes", token.at)
        if token.text in _LOOPS:
            name = self._at(n + 2)
            if self._bound:
                raise ConditionError(f"{token.text}() cannot stand within another loop", token.at)
            taken = (*ROOTS, *PLAIN, *_FUNCTIONS)
            if name.kind != "name" or self._at(n + 3).text != "," or name.text in taken:
                raise ConditionError(f"write {token.text}(item, CONDITION ON item)", token.at)
            self._bound.append((len(self._compared) + 1, name.text))

    def _check_name(self, n: int, token: _Token, after: _Token) -> None:
        name = token.text
        if name in ("true", "false", "in") or any(name == bound for _, bound in self._bound):
            return
        if after.kind == "text":
            raise ConditionError(f"{name!r} cannot stand before a text", token.at)
        if name in _FUNCTIONS and after.text == "(":
            return
        if name in PLAIN:
            self.names.add(name)
        elif name in ROOTS:
            member = self._member(n, name)
            self.reads.add((name, member))
            for one in self._same_as(n):
                kind = "truth" if one.text in ("true", "false") else one.kind
                if kind in (*_VALUES, "truth"):
                    self.compared.add((name, member, kind, one.text))
        else:
            raise _unknown(token, after)

    def _same_as(self, n: int) -> Iterator[_Token]:
        """What the member at a place is compared with for being the same."""
        end = n + (3 if self._at(n + 1).text == "." else 4)
        alone = self._at(n - 1).text in _BORDERS
        if self._at(n - 1).text in ("==", "!=") and self._at(n - 3).text in _BORDERS:
            if self._at(end).text in _BORDERS:
                yield self._at(n - 2)
        elif alone and self._at(end).text in ("==", "!="):
            if self._at(end + 2).text in _BORDERS:
                yield self._at(end + 1)
        elif alone and self._at(end).text == "in" and self._at(end + 1).text == "[":
            for place in range(end + 2, len(self._tokens), 2):
                if self._at(place + 1).text not in (",", "]"):
                    return
                yield self._at(place)
                if self._at(place + 1).text == "]":
                    return

    def _member(self, n: int, root: str) -> str:
        """The member that a root is followed by."""
        sign, member, end = self._at(n + 1), self._at(n + 2), self._at(n + 3)
        if sign.text == "." and member.kind == "name" and end.text != "(":
            return member.text
        quoted = sign.text == "[" and member.kind == "text" and end.text == "]"
        if quoted and "\\" not in member.text:
            return member.text[1:-1]
        raise ConditionError(f'say what of it: {root}.NAME or {root}["NAME"]', self._at(n).at)


def _unknown(token: _Token, after: _Token) -> ConditionError:
    name = token.text
    if name in _WORDS:
        return ConditionError(f"write {_WORDS[name]} instead of {name}", token.at)
    if name in _TRUTH:
        return ConditionError(f"write {_TRUTH[name]} instead of {name}", token.at)
    if name in ("null", "None", "none"):
        return ConditionError("what is null counts as missing: write has(arguments.NAME)", token.at)
    if after.text == "(":
        hint = nearest(name, _FUNCTIONS)
        return ConditionError(f"there is no function {name}(){hint}; there are size, has", token.at)
    hint = nearest(name, (*ROOTS, *PLAIN)) or f"; an argument is written arguments.{name}"
    known = ", ".join((*ROOTS, *PLAIN))
    return ConditionError(f"there is no {name!r} here{hint}. There are: {known}", token.at)


def nearest(name: str, known: Any) -> str:
    """`; did you mean ...?`, if anything is near enough; else nothing."""
    found = get_close_matches(name, [str(one) for one in known], n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def _with_decimals(tokens: list[_Token]) -> str:
    """The condition with every number as a decimal, as values are; places in lists stay whole."""
    written: list[str] = []
    open_signs: list[Literal["index", "list", "call", "size"]] = []
    before = _Token("end", "", 0)
    for token in tokens:
        text = token.text
        if text == "[":
            member = before.kind in ("name", "text") and before.text != "in"
            open_signs.append("index" if member or before.text in (")", "]") else "list")
        elif text == "(":
            sized = before.text == "size"
            open_signs.append("size" if sized else "call")
            if sized:
                written[-1] = "double(size"
        elif text in (")", "]") and open_signs and open_signs.pop() == "size":
            text = "))"
        elif token.kind == "number" and text.isdigit() and "index" not in open_signs[-1:]:
            text = f"{text}.0"
        written.append(text)
        before = token
    return "".join(w if w in (".",) else f" {w} " for w in written)
