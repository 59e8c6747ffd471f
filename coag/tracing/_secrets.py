"""What secrets look like: the shapes of keys, and the names of variables and fields."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable

REDACTED = "[redacted]"
"""What stands in a log in the place of a secret."""

SECRET_VARIABLE = re.compile(
    r"(?:_|API|^)KEY$|_(?:PAT|PWD)$|(?:_|^)(?:TOKEN|PASS)$|PASSPHRASE$|CREDENTIALS?$|DATABASE_URL$"
    r"|SECRET|PASSWORD|PASSWD",
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
SECRET_FIELD = re.compile(_NAME)

_Change = Callable[[re.Match[str]], str]


def _basic(found: re.Match[str]) -> str:
    """Blacks out `user:password` in base64, and leaves words as in `Basic understanding`."""
    try:
        said = base64.b64decode(found[1] + "=" * (-len(found[1]) % 4))
    except binascii.Error:
        return found[0]
    return f"asic {REDACTED}" if b":" in said else found[0]


def _lines(found: re.Match[str]) -> str:
    """As many lines as there were: pages show a text of several lines as the list of them."""
    return "\n".join([REDACTED] * (found[0].count("\n") + 1))


# Each begins with letters that every match holds, which are looked for first: that is many times
# faster than the pattern. The letter of an escape such as `\n` may stand before a key.
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
        # A key holds a digit; a word as in `task-…` is none.
        re.compile(
            r"sk-(?:(?<![A-Za-z0-9]sk-)|(?<=\\[nrt]sk-))(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,}"
        ),
        REDACTED,
    ),
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
    *(
        (start, re.compile(pattern), REDACTED)
        for start, pattern in (
            ("gh", r"gh[pousr]_[A-Za-z0-9]{30,}"),
            ("github_pat_", r"github_pat_\w{20,}"),
            ("glpat-", r"glpat-[\w-]{16,}"),
            ("npm_", r"npm_[A-Za-z0-9]{30,}"),
            ("hf_", r"hf_[A-Za-z0-9]{20,}"),
            ("AIza", r"AIza[\w-]{30,}"),
            ("AKIA", r"AKIA[0-9A-Z]{16}"),
            ("k_live_", r"[rs]k_live_[A-Za-z0-9]{10,}"),
            ("k_test_", r"[rs]k_test_[A-Za-z0-9]{10,}"),
            ("eyJ", r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
            ("xox", r"xox[abprs]-[A-Za-z0-9-]{16,}"),
        )
    ),
)

_FIELD = re.compile(rf"(\\*)([\"'])(?:{_NAME})\1\2\s*:\s*(?:\[\s*)?\1\2")
"""The beginning of a secret field that stands as text within a text, however often escaped."""
_NEXT = re.compile(r"(\\*)([\"'])\s*,\s*\1\2")
"""From one text of a list to the next."""
_QUOTE = re.compile(r"(\\*)([\"'])|\n")
_ASSIGNED = re.compile(
    rf"(?<![\w.-])({_NAME}\s?=\s?)(?!\s|=|\[redacted\])"
    r"(?:(\\*[\"'])(?!\[redacted\])[^\"'\\\n]+|[^\s'\"\\&;]+)"
)
"""`password=…` in a command, an address or a program."""
_LETTER = r"[^\s'\"\\,;&]"
_SAID = (
    re.compile(
        rf"(?<![\w.-])({_NAME}[ \t]?:[ \t]+)(?!\[redacted\]|[Bb](?:earer|asic)\b)"
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
    """Whether a text, or one that stands in it as JSON, may hold a secret; quick, and cautious."""
    for start, pattern, _ in _SHAPES:  # a loop: this runs for every record
        if start in text and pattern.search(text):
            return True
    as_bytes = text.encode("utf-8", "replace")
    lowered = as_bytes.lower()
    return any(
        _names_a_secret(as_bytes[max(0, found.start() - _REACH) : found.end() + _BEYOND])
        for end, look in _ENDS
        if end in lowered
        for found in look.finditer(lowered)
    )


def _names_a_secret(place: bytes) -> bool:
    there = place.decode("utf-8", "replace")
    return any(shape.search(there) for shape in (_FIELD, _ASSIGNED, *_SAID))


def without_secrets(text: str) -> str:
    """The text without what looks like a key or stands in a field that is named like one."""
    if not suspicious(text):
        return text
    for start, pattern, change in _SHAPES:
        if start in text:
            text = pattern.sub(change, text)
    text = _ASSIGNED.sub(rf"\1\2{REDACTED}", _without_fields(text))
    for said in _SAID:
        text = said.sub(rf"\1\2{REDACTED}", text)
    return text


def _without_fields(text: str) -> str:
    kept: list[str] = []
    at = 0
    while found := _FIELD.search(text, at):
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
