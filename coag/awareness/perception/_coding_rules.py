"""Rules for work on software: its parts, its errors, what was fixed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from coag.awareness._observation import ObservedFailure
from coag.awareness.adapters import CodingAnalysis, RaisedError, StatedGoal
from coag.awareness.state import AwarenessState, folded

from ._sentences import (
    LONGEST,
    first_few,
    given_up_in,
    goals_in,
    questions_in,
    reached_in,
    sentences,
    stems,
    words,
)
from ._summary import unresolved_errors

_FILE = re.compile(
    r"(?<![\w./-])[\w./-]*\w\.(?:py|js|ts|tsx|jsx|go|rs|java|kt|c|cc|cpp|h|hpp|cs|rb|php|sh|sql|html|"
    r"css|md|txt|csv|ipynb)\b|\b(?:Dockerfile|Makefile)\b"
)
_CONFIG_FILE = re.compile(
    r"(?<![\w./-])[\w./-]*\w\.(?:ya?ml|toml|ini|cfg|conf|json|env|lock)\b|(?<!\S)\.env\b"
)
_CONSTANT = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_ENDPOINT = re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) /(?:[\w/{}:.-]*[\w/}])?")
_FUNCTION = re.compile(r"\b([a-zA-Z_]\w*)\(\)|\bdef (\w+)|\b([a-z]+(?:_[a-z0-9]+)+)\b(?![.(/])")
_SERVICE = re.compile(
    r"(?<![\w./-])(?:PostgreSQL|Postgres|MySQL|MariaDB|MongoDB|Redis|Kafka|RabbitMQ|Elasticsearch|Docker|"
    r"Kubernetes|nginx|SQLite|Celery|S3|Prometheus|Grafana)(?![\w/-]|\.\w)",
    re.I,
)
_IMPORT = re.compile(
    r"\b(?:import|from|pip install|npm install|library|package) ([A-Za-z][\w-]*)(?!\w*\.)"
)
_CAMEL = re.compile(r"\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]{2,}[a-z]\w+")
_ABBREVIATION = re.compile(r"(?<![\w/])[A-Z]{2,6}(?![\w/]| /)")
_NO_LIBRARY = words("the a an it this that here there my your our")
_BUT = re.compile(r",?\s+(?:but|and now|now)\s+", re.I)
_ERROR = re.compile(
    r"\b([A-Z]\w*(?:Error|Exception|Failure|Warning))\b(?::[ \t]*((?:(?!\.\s)[^\n]){1,200}))?"
    r"|\b(?:raises?|raised|throws?|thrown|threw)(?: an?)? ([A-Z]\w+)"
)
_FIXED = re.compile(
    r"\b(?:fixed|solved|resolved)\b|\bworks now\b|\b(?:is|are) gone\b|\bno longer (?:fails|happens|"
    r"raises|shows)\b|\bgone away\b|\bwent away\b",
    re.I,
)
_NOT_FIXED = re.compile(
    r"\b(?:not|isn't|wasn't|hasn't|haven't|never|can't|cannot|still|to be|how|needs?|want)\b", re.I
)
_TRIED = re.compile(
    r"\b(?:I|we)(?:'ve| have)? tried (?:to )?(?P<what>.{1,200}?),? but (?P<why>.{1,200})", re.I
)


def coding_by_rules(text: str, state: AwarenessState) -> CodingAnalysis:
    """What a message about software says by the rules of `RulePerception`."""
    read = text[:LONGEST]
    said = sentences(read)
    clauses = [clause for sentence in said for clause in _BUT.split(sentence)]
    errors = _errors(read, clauses)
    fixed = _fixed(clauses, errors, state)
    shown = tuple(one for one in errors if folded(one.name) not in set(map(folded, fixed)))
    taken = {folded(one.name) for one in errors}
    services = first_few(_SERVICE.findall(read))
    taken |= set(map(folded, services))
    return CodingAnalysis(
        message=text,
        files=_matches(_FILE, read),
        configs=first_few((*_CONFIG_FILE.findall(read), *_CONSTANT.findall(read))),
        endpoints=_matches(_ENDPOINT, read),
        functions=first_few(name for found in _FUNCTION.findall(read) for name in found if name),
        services=services,
        libraries=first_few(
            name
            for name in (*_IMPORT.findall(read), *_CAMEL.findall(read))
            if folded(name) not in taken | _NO_LIBRARY
        ),
        concepts=_matches(_ABBREVIATION, read),
        errors=shown,
        fixed=fixed,
        failure=_failure(said),
        goals=tuple(StatedGoal(description=goal) for goal in goals_in(said)),
        questions=questions_in(said),
        completed=reached_in(said, state),
        abandoned=given_up_in(said, state),
    )


def _matches(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return first_few(match.group() for match in pattern.finditer(text))


def _errors(text: str, said: Sequence[str]) -> tuple[RaisedError, ...]:
    """The errors that the text names, each once, but for those whose sentence says they are gone.

    The whole text is read for what an error says; sentences end at its colon.
    """
    found: dict[str, RaisedError] = {}
    for match in _ERROR.finditer(text):
        name = match[1] or match[3]
        error = RaisedError(name=name, message=(match[2] or "").strip())
        known = found.get(folded(name))
        found[folded(name)] = error if known is None or not known.message else known
    gone = {folded(name) for one in said if _says_fixed(one) for name in _names(one)}
    back = {folded(name) for one in said if not _says_fixed(one) for name in _names(one)}
    return tuple(error for name, error in found.items() if name not in gone - back)


def _names(sentence: str) -> Iterable[str]:
    return (match[1] or match[3] for match in _ERROR.finditer(sentence))


def _says_fixed(sentence: str) -> bool:
    """Whether it says that something is fixed, and not that it is not, or asks how."""
    found = _FIXED.search(sentence)
    if found is None or sentence.endswith("?"):
        return False
    before = "" if "no longer" in found.group().casefold() else sentence[: found.start()]
    return _NOT_FIXED.search(before) is None


def _fixed(
    said: Iterable[str], errors: Sequence[RaisedError], state: AwarenessState
) -> tuple[str, ...]:
    """The unresolved errors that are said to be gone: those that are named, or the only one."""
    now = {folded(error.name) for error in errors}
    known = [one.name for one in unresolved_errors(state) if folded(one.name) not in now]
    gone: list[str] = []
    for sentence in said:
        if _says_fixed(sentence):
            told = stems(sentence)
            named = [name for name in known if _parts(name) & told]
            gone += named or (known if len(known) == 1 else [])
    return tuple(dict.fromkeys(gone))


def _parts(name: str) -> frozenset[str]:
    """The words of a name of an error: of `ConnectionRefusedError` connection and refused."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return stems(spaced) - {"error", "exception", "failure", "warn"} | {folded(name)}


def _failure(said: Iterable[str]) -> ObservedFailure | None:
    """The first thing that was tried in vain."""
    for sentence in said:
        match = _TRIED.search(sentence)
        if match:
            return ObservedFailure(action=match["what"].strip(), reason=match["why"].strip(" ."))
    return None
