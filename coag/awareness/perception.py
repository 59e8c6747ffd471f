"""Perception: from raw text to the analysis that an adapter takes (SAGEN §4.4, §6.6).

A `Perception` reads a text in a state, and gives the mapping that `parse_observation` of the
conversation or the coding adapter takes; it changes nothing. `RulePerception` needs no model and
applies the rules below. `ModelPerception` asks a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, Protocol

from coag._util.deprecation import renamed
from coag.schema import folded

from .adapters import CodingAnalysis, ConversationAnalysis, RaisedError, Sentiment
from .fields import distinct
from .observation import ObservedFailure
from .state import AwarenessState, Entity


class PerceptionDomain(StrEnum):
    """Which adapter's analysis a perception gives."""

    CONVERSATION = "conversation"
    CODING = "coding"


class Perception(Protocol):
    """Reads raw input. It holds no state and changes nothing."""

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """The analysis of a text in a state, as the adapter takes it.

        Raises:
            ModelAnswerError: A model was asked, and gave nothing usable.
            ModelCallError: A model could not be asked.
        """
        ...


# ---- Rules for both domains: sentences, questions and goals ----

LONGEST = 20_000
"""Characters of a text that the rules read."""
_BLANKS = re.compile(r"[^\S\n]+")
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+|\s{1,4}[-\u2013\u2014]\s+|:\s+|;\s+")
_FILLER = re.compile(
    r"^(?:(?:oh|wait|by the way|btw|well|so|ok|okay|hey|hi|hello|please|also|and|but|now)\b"
    r"[,\s]*)+",
    re.I,
)
_GOAL = re.compile(
    r"\b(?:I|we)(?:'d| would) (?:also )?(?:like|love) to (?P<a>.+)"
    r"|\b(?:I|we) (?:also |really |just )?(?:want|need|have|plan|hope) to (?P<b>.+)"
    r"|\b(?:I'm|I am|we're|we are) (?:trying|going|planning) to (?P<c>(?!be\b).+)"
    r"|\bmy (?:goal|aim|plan) is to (?P<d>.+)"
    r"|\blet's (?P<e>.+)"
    r"|\bhelp me (?:to )?(?P<f>.+)"
    r"|\bwe (?:also )?need (?P<need>(?!to\b).+)",
    re.I,
)
_VERBS = (
    "learn|build|make|write|create|find|fix|add|get|use|test|deploy|plan|book|buy|improve|set|"
    "understand|start|finish|read|move|sell|cook|visit|run|install|migrate|refactor|document|"
    "train|save|lose|apply|prepare|speak|solve|debug|design|publish|send|change|remove|host"
)
_AND = re.compile(rf",? and (?:then )?(?:to )?(?=(?:{_VERBS})\b)", re.I)
_CLAUSE = re.compile(r"[,;(]|\s(?:because|but|so that|since|before|after|when|which|while)\s", re.I)
_DONE = re.compile(
    r"\b(?:I|we)(?:'ve| have)? (?:just |finally |now )?"
    r"(?:finished|completed|managed to|succeeded in|am done with|are done with)\s+(?P<what>.+)",
    re.I,
)
_GIVEN_UP = re.compile(
    r"\b(?:never mind|forget(?: about)?|no longer want to|don't want to|I(?:'ve)? (?:gave|given) up"
    r"(?: on)?)\s+(?P<what>.+?)(?: any ?more)?$",
    re.I,
)
_WORD = re.compile(r"[\w+#]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SMALL = _words("a an the to of for in on my your our with and or it this that answer")


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, also those between dashes and after colons, without fillers."""
    close = _BLANKS.sub(" ", text[:LONGEST])
    parts = (_FILLER.sub("", part.strip()).strip() for part in _SENTENCE.split(close))
    return tuple(part for part in parts if part)


def said_in(text: str, state: AwarenessState) -> dict[str, tuple[str, ...]]:
    """The goals, as short commands, and questions of a text; which open goals it closes, by id."""
    texts = sentences(text)
    questions = (_capital(one) for one in texts if one.rstrip("\"')").endswith("?"))
    return {
        "goals": _goals_in(texts),
        "questions": first_few(questions),
        "completed": _goals_of(_DONE, texts, state),
        "abandoned": _goals_of(_GIVEN_UP, texts, state),
    }


def _goals_in(texts: Iterable[str]) -> tuple[str, ...]:
    goals: list[str] = []
    for sentence in texts:
        match = _GOAL.search(sentence)
        asks = sentence.endswith("?")
        if match is None or (asks and match.lastgroup in ("f", "need")):
            continue
        what = _CLAUSE.split(match[match.lastgroup or 0])[0].strip(" .!?\"'")
        prefix = "Get " if match.lastgroup == "need" else ""
        goals += [prefix + goal.strip() for goal in _AND.split(what) if goal.strip()]
    return first_few(map(_capital, goals))


def first_few(texts: Iterable[str]) -> tuple[str, ...]:
    """The first few texts without repetitions."""
    return distinct(texts)[:5]


def stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without common endings."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(re.sub(r"(?:ing|ed|s)$", "", word) for word in words if word not in _SMALL)


def _goals_of(
    pattern: re.Pattern[str], texts: Iterable[str], state: AwarenessState
) -> tuple[str, ...]:
    """Ids of the open goals whose words a pattern all matches; else of those with all it finds."""
    ids: list[str] = []
    for sentence in texts:
        match = pattern.search(sentence.rstrip(".!?"))
        named = stems(match["what"]) if match else frozenset[str]()
        if not named:
            continue
        wanted = {goal.id: stems(goal.description) for goal in state.goals.goals if goal.is_open}
        complete = [id for id, words in wanted.items() if words and words <= named]
        ids += complete or [id for id, words in wanted.items() if named <= words]
    return tuple(dict.fromkeys(ids))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def unresolved_errors(state: AwarenessState) -> tuple[Entity, ...]:
    """The unresolved errors, those seen last first."""
    errors = [one for one in state.world.entities if one.state.get("error_status") == "unresolved"]
    return tuple(sorted(errors, key=lambda error: -error.last_step))


# ---- Rules for work on software ----

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
_NO_LIBRARY = _words("the a an it this that here there my your our")
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


def _coding(text: str, state: AwarenessState) -> CodingAnalysis:
    read = text[:LONGEST]
    texts = sentences(read)
    clauses = [clause for sentence in texts for clause in _BUT.split(sentence)]
    errors = _errors(read, clauses)
    fixed = _fixed(clauses, errors, state)
    gone = set(map(folded, fixed))
    services = first_few(_SERVICE.findall(read))
    no_library = {folded(one.name) for one in errors} | set(map(folded, services)) | _NO_LIBRARY
    libraries = (*_IMPORT.findall(read), *_CAMEL.findall(read))
    fields = {
        "message": text,
        "files": _matches(_FILE, read),
        "configs": first_few((*_matches(_CONFIG_FILE, read), *_CONSTANT.findall(read))),
        "endpoints": _matches(_ENDPOINT, read),
        "functions": first_few(name for found in _FUNCTION.findall(read) for name in found if name),
        "services": services,
        "libraries": first_few(name for name in libraries if folded(name) not in no_library),
        "concepts": _matches(_ABBREVIATION, read),
        "errors": tuple(one for one in errors if folded(one.name) not in gone),
        "fixed": fixed,
        "failure": _failure(texts),
    }
    return CodingAnalysis.model_validate(fields | said_in(read, state))


def _matches(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    return first_few(match.group() for match in pattern.finditer(text))


def _errors(text: str, texts: Sequence[str]) -> tuple[RaisedError, ...]:
    """The errors that the text names, each once, except those that are said to be gone."""
    errors: dict[str, RaisedError] = {}
    for match in _ERROR.finditer(text):
        error = RaisedError(name=match[1] or match[3], message=(match[2] or "").strip())
        known = errors.get(folded(error.name))
        errors[folded(error.name)] = known if known and known.message else error
    gone = {folded(name) for one in texts if _says_fixed(one) for name in _names(one)}
    back = {folded(name) for one in texts if not _says_fixed(one) for name in _names(one)}
    return tuple(error for name, error in errors.items() if name not in gone - back)


def _names(sentence: str) -> Iterable[str]:
    return (match[1] or match[3] for match in _ERROR.finditer(sentence))


def _says_fixed(sentence: str) -> bool:
    """Whether it says that something is fixed; not that it is not, nor asks how."""
    match = _FIXED.search(sentence)
    if match is None or sentence.endswith("?"):
        return False
    before = "" if "no longer" in match.group().casefold() else sentence[: match.start()]
    return _NOT_FIXED.search(before) is None


def _fixed(
    texts: Iterable[str], errors: Sequence[RaisedError], state: AwarenessState
) -> tuple[str, ...]:
    """The unresolved errors that are said to be gone: those that are named, or the only one."""
    now = {folded(error.name) for error in errors}
    known = [one.name for one in unresolved_errors(state) if folded(one.name) not in now]
    gone: list[str] = []
    for sentence in texts:
        if _says_fixed(sentence):
            said_words = stems(sentence)
            named = [name for name in known if _parts(name) & said_words]
            gone += named or (known if len(known) == 1 else [])
    return tuple(dict.fromkeys(gone))


def _parts(name: str) -> frozenset[str]:
    """The words of a name of an error: of `ConnectionRefusedError` connection and refused."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return stems(spaced) - {"error", "exception", "failure", "warn"} | {folded(name)}


def _failure(texts: Iterable[str]) -> ObservedFailure | None:
    """The first thing that was tried without success."""
    tried = next(filter(None, map(_TRIED.search, texts)), None)
    if tried is None:
        return None
    return ObservedFailure(action=tried["what"].strip(), reason=tried["why"].strip(" ."))


# ---- Rules for a talk ----

KNOWN = 300
"""Entities and goals, the latest of each, that are looked for in a text."""
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w+#]*(?:\s[A-Z][\w+#]*)*")
_CODED = re.compile(r"\b[A-Za-z]+[a-z][A-Z]\w*|\b[A-Z]{2,4}s?\b|\b[A-Z]{2}(?=\w*\d)\w*")
"""Words with a capital inside, abbreviations of up to four letters, and codes with digits."""
_CUE = re.compile(
    r"\b(?:about|regarding|(?:going |go |coming |come |get |getting )?back to|returning to|learn|"
    r"learning|make|making|cook|cooking|build|building|for|with|use|using|play|playing|visit|"
    r"studying|study|into|on)\s+(?:(?:a|an|the|my|your|some|our|this|that)\s+)?"
    r"(?P<what>[a-z][\w+#'-]*(?:\s[a-z][\w+#'-]*){0,2})"
)
_STOP = _words(
    "a an the i me my you your we us our he she it its they them this that these those is are was "
    "were be been do does did have has had will would can could should may might must and or but "
    "if so as at by for from in into of on off to up with about again not no yes what which who "
    "when where why how there here now then than too very really just only also all any some "
    "everything nothing something anything one two more most much many first next last time way "
    "thing things work works working help know think want need like get got go going come back "
    "make made use using see say said tell told try learn build please thanks thank today "
    "tomorrow yesterday everywhere instead myself yourself sure fun free example his him her own "
    "other others another someone somebody anyone anybody nobody everyone everybody each both"
)
_PRONOUN = _words(
    "I I'm I'd I've I'll OK Oh Hi Hey Hello Thanks Monday Tuesday Wednesday Thursday Friday "
    "Saturday Sunday"
)
_BACK = re.compile(
    r"\b(?:going|go|coming|come|getting|get|turn|turning|return|returning|circling) back to\b|"
    r"\bback to\b|\breturning to\b|\bas (?:I|we|you) (?:said|mentioned|told)\b|"
    r"\b(?:you|we|I) (?:said|mentioned|told (?:you|me)|talked about|discussed)\b|"
    r"\b(?:earlier|previously)\b|\bremember (?:when|the|that|my|what|how)\b|"
    r"\blike (?:I|you) said\b|\blast time\b|\bfrom before\b|\bbefore that\b|\bagain about\b|"
    r"\babout that\b",
    re.I,
)
_BEFORE = 40
"""Characters before a word of a mood among which a negation is looked for."""
_NEGATED = re.compile(r"(?:\bnot|\bno longer|\bnever|n't|\bno)\s+(?:\w+\s+)?$", re.I)
_MOODS = (
    (Sentiment.ANGRY, r"furious|angry|outrageous|unacceptable|\bhate\b|useless|ridiculous|fed up"),
    (
        Sentiment.FRUSTRATED,
        r"frustrat\w*|(?:is|are|does|do|did|was)(?: not|n't) work\w*|keeps? (?:failing|crashing|"
        r"breaking)|errors? everywhere|nothing works|still (?:fails|broken|failing|not)|annoy\w*|"
        r"\bstuck\b|\bugh\b|\bargh\b|gives? up|driving me (?:mad|crazy)|waste of time",
    ),
    (Sentiment.ANXIOUS, r"worried|worry\w*|afraid|scared|nervous|anxious|panic\w*|stress\w*"),
    (
        Sentiment.CONFUSED,
        r"confus\w*|(?:do not|don't|can't|cannot) (?:\w+ )?(?:understand|follow)|makes no sense|"
        r"(?:am|'m) lost\b|unclear|\bpuzzled",
    ),
    (
        Sentiment.NEGATIVE,
        r"\bsad\b|unhappy|disappoint\w*|terrible|awful|\bbad\b|\bworse\b|unfortunate",
    ),
    (
        Sentiment.POSITIVE,
        r"\bgreat\b|\blove\b|awesome|perfect\w*|excellent|wonderful|thank\w*|\bhappy\b|amazing|"
        r"brilliant|excited|it works",
    ),
)


def _conversation(text: str, state: AwarenessState) -> ConversationAnalysis:
    fields = {
        "message": text,
        "topics": _topics(text[:LONGEST], sentences(text), state),
        "sentiment": _mood(text[:LONGEST]),
        "references_previous": refers_back(text, state),
    }
    return ConversationAnalysis.model_validate(fields | said_in(text, state))


def refers_back(text: str, state: AwarenessState) -> bool:
    """Whether a text says that it refers to something earlier, and there was something."""
    return state.step > 0 and _BACK.search(text[:LONGEST]) is not None


def content(text: str) -> frozenset[str]:
    """The stems of a text's content words."""
    words = _WORD.findall(text[:LONGEST].casefold())
    return stems(" ".join(word for word in words if word not in _STOP))


def _topics(text: str, texts: Sequence[str], state: AwarenessState) -> tuple[str, ...]:
    """Known names, other names, then what follows a cue; none twice, none within another."""
    names = (name for sentence in texts for name in _NAME.findall(sentence))
    every = (*_CODED.findall(text), *names)
    named = (one for one in every if one not in _PRONOUN and one.casefold() not in _STOP)
    candidates = (*_known(text, state), *named, *_cued(texts))
    topics: list[str] = []
    for topic in first_few(candidates):
        if not any(f" {folded(topic)} " in f" {folded(other)} " for other in topics):
            topics.append(topic)
    return tuple(topics[:4])


def _known(text: str, state: AwarenessState) -> list[str]:
    """Names of the latest entities that the text has as words."""
    plain = _spaced(text)
    names = ((entity, _spaced(name)) for entity, name in latest_names(state))
    return [entity.name for entity, spaced in names if spaced and spaced in plain]


def latest_names(state: AwarenessState) -> Iterator[tuple[Entity, str]]:
    """All names of the latest entities, each with its entity."""
    for entity in state.world.entities[-KNOWN:]:
        for name in (entity.name, *entity.aliases):
            yield entity, name


def _spaced(text: str) -> str:
    """The words of a text, each between blanks; nothing for none."""
    joined = " ".join(_WORD.findall(folded(text)))
    return f" {joined} " if joined else ""


def _cued(texts: Iterable[str]) -> list[str]:
    """The words after a cue, up to the first stop word."""
    phrases = (
        takewhile(lambda word: word.casefold() not in _STOP, match["what"].split())
        for sentence in texts
        for match in _CUE.finditer(sentence)
    )
    return [joined for phrase in phrases if (joined := " ".join(phrase))]


def _mood(text: str) -> Sentiment:
    """The worst mood that the words show."""
    for mood, signs in _MOODS:
        for match in re.finditer(signs, text, re.I):
            start = match.start()
            if not _NEGATED.search(text[max(0, start - _BEFORE) : start]):
                return mood
    return Sentiment.NEUTRAL


# ---- The perception ----


class RulePerception:
    """Reads English text by plain rules, for offline use and as a baseline.

    Both domains: a sentence that ends in `?` is a question. `I want to ...`, `I need to ...`,
    `I'd like to ...`, `I'm trying to ...`, `my goal is to ...`, `let's ...` and, outside of
    questions, `help me ...` and `we also need ...` state goals, up to the end of the clause; a
    list with `and` is several where a verb follows. `I have finished ...` and `never mind ...`
    complete and abandon the open goals whose words they name, or else those that have theirs.

    Conversation: topics are known names that the text has, other names (`Python`,
    `BeautifulSoup`), and what follows `about`, `learn`, `make`, `going back to` and the like;
    four at most. Moods follow from words that are not negated, the worst first. `Going back to`,
    `as I said`, `earlier` and the like refer to something previous, unless nothing was.

    Coding: file names, `GET /path`, `name()`, `CONSTANT_NAMES` and known services are parts by
    their form; what is imported, installed or written in camel case is a library. Errors are
    names that end in `Error` or `Exception`, and names after `raises`; `fixed`, `works now` and
    the like say that an unresolved error of the state is gone which the sentence names, or the
    only one. `I tried ... but ...` is a failure.

    Args:
        domain: Which adapter's analysis to give.
    """

    def __init__(self, domain: PerceptionDomain = PerceptionDomain.CONVERSATION) -> None:
        self._domain = PerceptionDomain(domain)

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """The analysis of a text by the rules."""
        read = _coding if self._domain is PerceptionDomain.CODING else _conversation
        return read(text, state).model_dump(mode="json")


if not TYPE_CHECKING:
    __getattr__ = renamed(__name__, {"Domain": "PerceptionDomain"})
