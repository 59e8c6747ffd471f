"""What secrets look like, and how they are taken out of texts and JSON: the one list of both.

No pattern here takes more than linear time: each begins at most once in a run of letters, or
takes the whole run at once, and a function looks at what was taken.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, cast

REDACTED = "[redacted]"
"""Takes the place of a secret in a log."""

_SECRET_SETTING = re.compile(
    r"(?:^|[_-]|api|access|auth|private|secret|signing)key$"
    r"|(?:^|[_-])(?:pat|pass|pwd|sig|signature|auth|bearer)$"
    r"|token$|passphrase$|credentials?$|database_url$|secret|password|passwd",
    re.IGNORECASE,
)
_WORDS = (
    r"(?:(?i:api|access|private|secret|encryption|signing|account)[_-]?)(?i:key)"
    r"|(?i:token|password|passwd|passphrase|pwd|secret|authorization|credentials?)"
)
# A word begins a name, or follows a sign or, in `clientSecret`, a small letter.
_NAME = (
    rf"(?:(?:[\w.-]*(?:[_.-]|[a-z0-9](?=[A-Z])))?(?:{_WORDS})"
    r"|[\w.-]*(?i:password|passwd|passphrase))"
)
_SECRET_FIELD = re.compile(_NAME)
_DIRECTORY = re.compile(r"/|[A-Za-z]:\\")


def is_secret_setting(name: str, value: str = "") -> bool:
    """Whether a variable, a program's option or an address's parameter is named like a secret.

    Args:
        name: Its name, `GITHUB_PAT`, `--token` or `sig`. Short words such as `key`, which may be
            anything in JSON, mean secrets here.
        value: What it is set to. The shell's `PWD` is a secret unless it is a directory.
    """
    return _SECRET_SETTING.search(name) is not None and not _is_directory(name, value)


def is_secret_field(name: str, value: object = "") -> bool:
    """Whether a field of JSON is named like a secret: `api_key`, `clientSecret`; see above."""
    return _SECRET_FIELD.fullmatch(name) is not None and not _is_directory(name, value)


def _is_directory(name: str, value: object) -> bool:
    return name == "PWD" and isinstance(value, str) and _DIRECTORY.match(value) is not None


_Change = Callable[[re.Match[str]], str]


def _basic(found: re.Match[str]) -> str:
    """Blacks out `user:password` in base64, and leaves words as in `Basic understanding`."""
    try:
        decoded = base64.b64decode(found[1] + "=" * (-len(found[1]) % 4))
    except binascii.Error:
        return found[0]
    return f"asic {REDACTED}" if b":" in decoded else found[0]


def _key(found: re.Match[str]) -> str:
    """Blacks out what is called a key or holds a digit; words as in `sk-learn-…` stay."""
    is_key = found[1] is not None or any(sign.isdigit() for sign in found[0])
    return REDACTED if is_key else found[0]


def _signed(found: re.Match[str]) -> str:
    """Blacks out signed tokens in a run of parts with dots between them."""
    parts, kept = found[0].split("."), list[str]()
    while parts:
        begin = parts[0].find("eyJ")
        long_enough = [len(parts[0]) - begin >= 11, *(len(part) >= 8 for part in parts[1:3])]
        if begin >= 0 and long_enough == [True] * 3:
            kept.append(parts[0][:begin] + REDACTED)
            parts = parts[3:]
        else:
            kept.append(parts[0])
            parts = parts[1:]
    return ".".join(kept)


def _lines(found: re.Match[str]) -> str:
    """As many lines as there were: pages show a text of several lines as the list of them."""
    return "\n".join([REDACTED] * (found[0].count("\n") + 1))


# Each begins with letters that every match holds, which are looked for first: that is many times
# faster than the pattern. The letter of an escape such as `\n` may come before a key.
_SHAPES: tuple[tuple[str, re.Pattern[str], str | _Change], ...] = (
    (
        "PRIVATE KEY-----",
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            re.DOTALL,
        ),
        _lines,
    ),
    (
        "sk-",
        re.compile(
            r"sk-(?:(?:(?<=[Kk]ey sk-)|(?<=[Kk]ey: sk-)|(?<=provided: sk-))([A-Za-z0-9_*-]{6,})"
            r"|(?:(?<![A-Za-z0-9]sk-)|(?<=\\[nrt]sk-))[A-Za-z0-9_*-]{16,})"
        ),
        _key,
    ),
    ("eyJ", re.compile(r"eyJ[\w.-]*+"), _signed),
    (
        "earer ",
        re.compile(r"earer (?<=[Bb]earer )[\w.~+/-]{16,}=*"),
        f"earer {REDACTED}",
    ),
    ("asic ", re.compile(r"asic (?<=[Bb]asic )([A-Za-z0-9+/]{6,}={0,2})"), _basic),
    (
        "://",
        re.compile(r"(://[^\s/@:\"'\\]*:)(?!\[redacted\]@)[^\s/\"'\\]+(?=@)"),
        rf"\1{REDACTED}",
    ),
    ("sig=", re.compile(r"sig=(?<=[?&]sig=)[\w%+/-]{16,}=*"), f"sig={REDACTED}"),
    ("gnature=", re.compile(r"gnature=(?<=ignature=)[\w%+/-]{16,}=*"), f"gnature={REDACTED}"),
    ("oken ", re.compile(r"oken (?<=ation: [Tt]oken )[^\s'\"\\,;&]{8,}"), f"oken {REDACTED}"),
    (
        "--",
        re.compile(
            r"(?<![\w-])(--(?:[a-z]+-)*+(?:password|passwd|passphrase|token|secret|key)[ ]"
            r"(?:\\*[\"'])?)(?!\[redacted\]|-)[^\s'\"\\;&]{6,}"
        ),
        rf"\1{REDACTED}",
    ),
    *(
        (start, re.compile(pattern), REDACTED)
        for start, pattern in (
            ("gh", r"gh[pousr]_[A-Za-z0-9]{30,}"),
            ("github_pat_", r"github_pat_\w{20,}"),
            ("glpat-", r"glpat-[\w-]{16,}"),
            ("npm_", r"npm_[A-Za-z0-9]{30,}"),
            ("gsk_", r"gsk_[A-Za-z0-9]{30,}"),
            ("xai-", r"xai-[A-Za-z0-9]{30,}"),
            ("hf_", r"hf_[A-Za-z0-9]{20,}"),
            ("AIza", r"AIza[\w-]{30,}"),
            ("AKIA", r"AKIA[0-9A-Z]{16}"),
            ("k_live_", r"[rs]k_live_[A-Za-z0-9]{10,}"),
            ("k_test_", r"[rs]k_test_[A-Za-z0-9]{10,}"),
            ("xox", r"xox[abprs]-[A-Za-z0-9-]{16,}"),
            ("tvly-", r"tvly-[\w-]{16,}"),
            ("pplx-", r"pplx-[A-Za-z0-9]{30,}"),
            ("nvapi-", r"nvapi-[\w-]{30,}"),
            ("r8_", r"r8_[A-Za-z0-9]{30,}"),
            ("ya29.", r"ya29\.[\w-]{20,}"),
        )
    ),
)

_FIELD = re.compile(rf"(?<!\\)(\\*)([\"'])({_NAME})\1\2\s*:\s*(?:\[\s*)?\1\2")
"""The beginning of a secret field that is text within a text, however often escaped."""
_NEXT = re.compile(r"(\\*)([\"'])\s*,\s*\1\2")
"""From one text of a list to the next."""
_QUOTE = re.compile(r"(?<!\\)(\\*)([\"'])|\n")
_PLACE = r"(?:\\*[\"'])?(?:/|[A-Za-z]:\\)"
_ASSIGNED = re.compile(
    rf"(?<![\w.-])({_NAME}\s?=\s?)(?!\s|=|\[redacted\]|(?<=\bPWD=){_PLACE})"
    r"(?:(\\*[\"'])(?!\[redacted\])[^\"'\\\n]+|[^\s'\"\\&;]+)"
)
"""`password=…` in a command, an address or a program."""
_LETTER = r"[^\s'\"\\,;&]"
_STATED = (
    re.compile(
        rf"(?<![\w.-])({_NAME}[ \t]?:[ \t]+)"
        rf"(?!\[redacted\]|[Bb](?:earer|asic)\b|(?<=\bPWD: ){_PLACE})"
        rf"(?:(\\*[\"'])(?!\[redacted\])[^\"'\\\n]+|(?={_LETTER}*[0-9]){_LETTER}{{5,}})"
    ),
    re.compile(
        r"(?<![\w.-])([\w.-]*(?i:password|passwd|passphrase)[ \t]?:[ \t]+)(?!\[redacted\])()"
        rf"{_LETTER}{{6,}}(?=[ \t]*(?:[\\\n\"']|\Z))"
    ),
)
"""`token: …` in YAML or prose, quoted or with a digit in it; `password: …` at a line's end."""

_REACH = 80
"""Bytes before the end of a name in which its beginning is looked for."""
_BEYOND = 10
"""Bytes after it that show the beginning of a value."""
_PLACES = 1_000
"""Places that are looked at, in a text that is then taken for one with secrets."""
_ENDS = tuple(
    (
        start.encode(),
        re.compile(
            rf"{start}{rest}(?:\\*[\"']\s*:\s*(?:\[\s*)?\\*[\"']|\s?=|[ \t]?:[ \t])".encode()
        ),
    )
    for start, rest in (
        *(("key", ""), ("token", ""), ("pass", "(?:word|wd|phrase)"), ("pwd", "")),
        *(("secret", ""), ("authorization", ""), ("credential", "s?")),
    )
)


def suspicious(text: str) -> bool:
    """Whether a text, or a JSON text within it, may hold a secret; quick, and cautious."""
    for start, pattern, _ in _SHAPES:  # a loop: this runs for every record
        if start in text and pattern.search(text):
            return True
    as_bytes = text.encode("utf-8", "replace")
    lowered = as_bytes.lower()
    places = (
        as_bytes[max(0, found.start() - _REACH) : found.end() + _BEYOND]
        for end, look in _ENDS
        if end in lowered
        for found in look.finditer(lowered)
    )
    return any(n >= _PLACES or _names_a_secret(place) for n, place in enumerate(places))


def _names_a_secret(place: bytes) -> bool:
    there = place.decode("utf-8", "replace")
    return any(shape.search(there) for shape in (_FIELD, _ASSIGNED, *_STATED))


def without_secrets(text: str) -> str:
    """The text without what looks like a key or is in a field named like one."""
    if not suspicious(text):
        return text
    for start, pattern, change in _SHAPES:
        if start in text:
            text = pattern.sub(change, text)
    text = _ASSIGNED.sub(rf"\1\2{REDACTED}", _without_fields(text))
    for pattern in _STATED:
        text = pattern.sub(rf"\1\2{REDACTED}", text)
    return text


def _without_fields(text: str) -> str:
    kept: list[str] = []
    at = 0
    while found := _FIELD.search(text, at):
        if _is_directory(found[3], text[found.end() : found.end() + 3]):
            kept.append(text[at : found.end()])
            at = found.end()
            continue
        of_list = "[" in found[0][found[0].rindex(":") :]
        value: re.Match[str] | None = found
        while value is not None:
            end = _end(text, value)
            kept += (text[at : value.end()], REDACTED if end > value.end() else "")
            at = end
            value = _NEXT.match(text, at) if of_list else None
    return "".join((*kept, text[at:]))


def _end(text: str, found: re.Match[str]) -> int:
    """Where the value of a field ends that begins there; its line's end if it was cut off."""
    depth = len(found[1])
    for quote in _QUOTE.finditer(text, found.end()):
        if quote[2] is None:
            return quote.start()
        # Each escape doubles the backslashes and adds one to those before a quote.
        if quote[2] == found[2] and len(quote[1]) % (2 * (depth + 1)) == depth:
            return quote.end() - 1 - depth
    return len(text)


_SHORTEST = 8
"""Shorter values of secret-looking variables are taken for words, not for secrets."""


class SecretRedactor:
    """Replaces secrets in JSON: known values, things that look like keys, fields named so.

    Args:
        values: The very texts that must not be logged. Those under eight characters are
            ignored, since they would black out ordinary words.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        lines = {line.strip() for value in values for line in (value, *value.splitlines())}
        secrets = {line for line in lines if len(line) >= _SHORTEST}
        # A text may itself be JSON, as the arguments that models write are.
        once = secrets.union(*map(_written_forms, secrets))
        forms = once.union(*map(_written_forms, once))
        # Longest first, so that a secret within another does not leave the rest.
        self._values = tuple(sorted(forms, key=len, reverse=True))
        self._written = tuple({_in_json(form) for form in forms})

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """A redactor of the values of all environment variables named like secrets.

        Args:
            environment: The variables; None for those of this process.
        """
        variables = os.environ if environment is None else environment
        return cls(value for name, value in variables.items() if is_secret_setting(name, value))

    def clean(self, text: str, *, indent: int | None = None) -> str:
        """A JSON text without the secrets in its strings; unchanged where there are none.

        Args:
            text: A whole JSON value.
            indent: Spaces per level of the result, if anything had to be replaced.
        """
        if not self._suspects(text):
            return text
        parsed = json.loads(text)
        cleaned = self._clean_value(parsed)
        if cleaned == parsed:
            return text
        separators = (",", ":") if indent is None else None
        return json.dumps(cleaned, ensure_ascii=False, separators=separators, indent=indent)

    def clean_text(self, text: str) -> str:
        """A plain text without the secrets in it."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        return without_secrets(text)

    def _suspects(self, text: str) -> bool:
        """True if the JSON text may hold a secret; errs on the side of suspicion."""
        for value in self._written:
            if value in text:
                return True
        return suspicious(text)

    def _clean_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean_text(value)
        if isinstance(value, list):
            return self._clean_list(cast("list[Any]", value))
        if isinstance(value, dict):
            return self._clean_fields(cast("dict[str, Any]", value))
        return value

    def _clean_list(self, items: list[Any]) -> list[Any]:
        lines = [item for item in items if isinstance(item, str) and "\n" not in item]
        if lines and len(lines) == len(items):  # a text, as pages show it
            cleaned = without_secrets("\n".join(lines)).split("\n")
            items = list(cleaned if len(cleaned) == len(lines) else lines)
        return [self._clean_value(item) for item in items]

    def _clean_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = {}
        for number, (key, value) in enumerate(fields.items(), start=1):
            name = self.clean_text(key)
            while name in cleaned:  # two secrets as names
                name = f"{name} {number}"
            clean = self._hidden if is_secret_field(key, value) else self._clean_value
            cleaned[name] = clean(value)
        return cleaned

    def _hidden(self, value: Any) -> Any:
        """A secret field's value: no text of it stays, nor of its lists; its counts do."""
        if isinstance(value, list):
            return [self._hidden(item) for item in cast("list[Any]", value)]
        return REDACTED if isinstance(value, str) and value else self._clean_value(value)


def _in_json(text: str) -> str:
    """The text as it is within a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _written_forms(text: str) -> set[str]:
    """The text as it may be within a JSON string, with or without its signs beyond ASCII."""
    ascii_only = json.dumps(text)[1:-1]
    escaped = re.sub(r"\\u[0-9a-f]{4}", lambda found: r"\u" + found[0][2:].upper(), ascii_only)
    return {_in_json(text), ascii_only, escaped}
