"""Perception by rules: sentences of talk and code work, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from coag.awareness.adapters import (
    CodingAnalysis,
    ConversationAnalysis,
    RaisedError,
    Sentiment,
    StatedGoal,
)
from coag.awareness.injection import as_item
from coag.awareness.observation import ObservedFailure
from coag.awareness.state import AwarenessState, Entity, distinct, folded
from coag.schema import cut_to_tokens, estimate_tokens

from .protocol import Domain

# ---- Rules for both domains: sentences, questions, goals and what became of them ----


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
_MOST = 5


def words(text: str) -> frozenset[str]:
    """A list of words, written as a text."""
    return frozenset(text.split())


_SMALL = words("a an the to of for in on my your our with and or it this that answer")


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text, also those between dashes and after colons, without fillers."""
    close = _BLANKS.sub(" ", text[:LONGEST])
    parts = (_FILLER.sub("", part.strip()).strip() for part in _SENTENCE.split(close))
    return tuple(part for part in parts if part)


def questions_in(said: Iterable[str]) -> tuple[str, ...]:
    """The sentences that ask."""
    return first_few(_capital(one) for one in said if one.rstrip("\"')").endswith("?"))


def goals_in(said: Iterable[str]) -> tuple[str, ...]:
    """The goals that the sentences state, as short commands."""
    found: list[str] = []
    for sentence in said:
        match = _GOAL.search(sentence)
        asks = sentence.endswith("?")
        if match is None or (asks and match.lastgroup in ("f", "need")):
            continue
        what = _CLAUSE.split(match[match.lastgroup or 0])[0].strip(" .!?\"'")
        prefix = "Get " if match.lastgroup == "need" else ""
        found += [prefix + goal.strip() for goal in _AND.split(what) if goal.strip()]
    return first_few(_capital(goal) for goal in found)


def reached_in(said: Iterable[str], state: AwarenessState) -> tuple[str, ...]:
    """Ids of the open goals that the sentences say are reached."""
    return _goals_of(_DONE, said, state)


def given_up_in(said: Iterable[str], state: AwarenessState) -> tuple[str, ...]:
    """Ids of the open goals that the sentences give up."""
    return _goals_of(_GIVEN_UP, said, state)


def first_few(texts: Iterable[str]) -> tuple[str, ...]:
    """The first few texts without repetitions."""
    return distinct(texts)[:_MOST]


def stems(text: str) -> frozenset[str]:
    """The words of a text that say something, without common endings."""
    said = (word.casefold() for word in _WORD.findall(text))
    return frozenset(re.sub(r"(?:ing|ed|s)$", "", word) for word in said if word not in _SMALL)


def _goals_of(
    pattern: re.Pattern[str], said: Iterable[str], state: AwarenessState
) -> tuple[str, ...]:
    """Ids of the open goals all of whose words a pattern finds; else of those with all it finds."""
    found: list[str] = []
    for sentence in said:
        match = pattern.search(sentence.rstrip(".!?"))
        named = stems(match["what"]) if match else frozenset[str]()
        if not named:
            continue
        wanted = {goal.id: stems(goal.description) for goal in state.goals.goals if goal.is_open}
        whole = [id for id, words in wanted.items() if words and words <= named]
        found += whole or [id for id, words in wanted.items() if named <= words]
    return tuple(dict.fromkeys(found))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ---- The state as a perception model is told it: short, numbered, within a budget ----


_ITEM = 30
"""Tokens of one goal, error or question; the rest is cut."""
_NAME_CHARACTERS = 12
"""Tokens of one name."""
_MOST_NAMES = 12
"""Items of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A state as text, and what its numbers mean."""

    text: str
    goals: tuple[str, ...]
    """Ids of the goals, the first of them number 1."""
    errors: tuple[str, ...]
    """Names of the unresolved errors, the first of them number 1."""


def unresolved_errors(state: AwarenessState) -> tuple[Entity, ...]:
    """The errors that the coding adapter holds for unresolved, those seen last first."""
    errors = [one for one in state.world.entities if one.state.get("error_status") == "unresolved"]
    return tuple(sorted(errors, key=lambda error: -error.last_step))


def summary_of(state: AwarenessState, budget: int) -> Summary:
    """The state in at most `budget` tokens; of each list the newest, whole.

    Goals and errors come before names, since the answer refers to them.
    """
    room = _Room(budget)
    goals = sorted(
        (goal for goal in state.goals.goals if goal.is_open), key=lambda goal: -goal.updated_step
    )[:_MOST_NAMES]
    told_goals = room.numbered("Open goals", [goal.description for goal in goals])
    errors = unresolved_errors(state)[:_MOST_NAMES]
    told_errors = room.numbered("Unresolved errors", [error.name for error in errors])
    last = max((one.last_step for one in state.world.entities), default=0)
    entities = sorted(state.world.entities, key=lambda one: -one.last_step)
    now = [one.name for one in entities if one.last_step == last]
    room.names("In the message before", now)
    room.names("Earlier", [one.name for one in entities[len(now) :]])
    return Summary(
        text="\n".join(room.lines) or "Nothing yet: this is the first message.",
        goals=tuple(goal.id for goal in goals[:told_goals]),
        errors=tuple(error.name for error in errors[:told_errors]),
    )


class _Room:
    """Lines within a budget."""

    def __init__(self, budget: int) -> None:
        self.lines: list[str] = []
        self._left = budget

    def numbered(self, heading: str, items: Sequence[str]) -> int:
        """Tells as many of the items as there is room for, and says how many."""
        lines = [f"{number}. {_short(item, _ITEM)}" for number, item in enumerate(items, 1)]
        told = self._how_many([f"{heading}:", *lines])
        if told > 1:
            self._take([f"{heading}:", *lines[: told - 1]])
        return max(0, told - 1)

    def names(self, heading: str, names: Iterable[str]) -> None:
        """Tells as many of the names as there is room for, on one line."""
        line = ""
        for name in list(names)[:_MOST_NAMES]:
            longer = (
                f"{line}, {_short(name, _NAME_CHARACTERS)}"
                if line
                else f"{heading}: {_short(name, _NAME_CHARACTERS)}"
            )
            if self._how_many([longer]) == 0:
                break
            line = longer
        if line:
            self._take([line])

    def _how_many(self, lines: Sequence[str]) -> int:
        left, told = self._left, 0
        for line in lines:
            left -= estimate_tokens(line + "\n")
            if left < 0:
                break
            told += 1
        return told

    def _take(self, lines: Sequence[str]) -> None:
        self.lines += lines
        self._left -= sum(estimate_tokens(line + "\n") for line in lines)


def _short(text: str, tokens: int) -> str:
    return cut_to_tokens(as_item(text), tokens)


# ---- Rules for work on software: its parts, its errors, what was fixed ----


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


# ---- Rules for a talk: topics, moods, and what refers back ----


_MOST_TOPICS = 4
_KNOWN = 300
"""Entities, the latest, whose names are looked for in a text."""
_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][\w+#]*(?:\s[A-Z][\w+#]*)*")
_CODED = re.compile(r"\b[A-Za-z]+[a-z][A-Z]\w*|\b[A-Z]{2,4}s?\b|\b[A-Z]{2}(?=\w*\d)\w*")
"""Words with a capital inside, abbreviations of up to four letters, and codes with digits."""
_CUE = re.compile(
    r"\b(?:about|regarding|(?:going |go |coming |come |get |getting )?back to|returning to|learn|"
    r"learning|make|making|cook|cooking|build|building|for|with|use|using|play|playing|visit|"
    r"studying|study|into|on)\s+(?:(?:a|an|the|my|your|some|our|this|that)\s+)?"
    r"(?P<what>[a-z][\w+#'-]*(?:\s[a-z][\w+#'-]*){0,2})"
)
_STOP = words(
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
_PRONOUN = words(
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


def conversation_by_rules(text: str, state: AwarenessState) -> ConversationAnalysis:
    """What a message of a talk says by the rules of `RulePerception`."""
    said = sentences(text)
    return ConversationAnalysis(
        message=text,
        topics=_topics(text[:LONGEST], said, state),
        goals=tuple(StatedGoal(description=goal) for goal in goals_in(said)),
        questions=questions_in(said),
        completed=reached_in(said, state),
        abandoned=given_up_in(said, state),
        sentiment=_mood(text[:LONGEST]),
        references_previous=refers_back(text, state),
    )


def refers_back(text: str, state: AwarenessState) -> bool:
    """Whether a text says that it takes up something previous, and something was."""
    return state.step > 0 and _BACK.search(text[:LONGEST]) is not None


def content(text: str) -> frozenset[str]:
    """The stems of the words of a text that are about something."""
    said = re.findall(r"[\w+#]+", text[:LONGEST].casefold())
    return stems(" ".join(word for word in said if word not in _STOP))


def _topics(text: str, said: Sequence[str], state: AwarenessState) -> tuple[str, ...]:
    """Known names, other names, then what follows a cue; none twice, none within another."""
    found = [
        *_known(text, state),
        *_coded(text),
        *(name for sentence in said for name in _NAME.findall(sentence) if _says_something(name)),
        *_cued(said),
    ]
    kept: list[str] = []
    for topic in first_few(found):
        if not any(f" {folded(topic)} " in f" {folded(other)} " for other in kept):
            kept.append(topic)
    return tuple(kept[:_MOST_TOPICS])


def _known(text: str, state: AwarenessState) -> list[str]:
    """Names of the latest entities that the text has as words."""
    plain = _spaced(text)
    return [
        entity.name
        for entity in state.world.entities[-_KNOWN:]
        if any(
            spaced in plain for name in (entity.name, *entity.aliases) if (spaced := _spaced(name))
        )
    ]


def _spaced(text: str) -> str:
    """The words of a text, each between blanks; nothing for none."""
    joined = " ".join(re.findall(r"[\w+#]+", folded(text)))
    return f" {joined} " if joined else ""


def _coded(text: str) -> list[str]:
    """Names that are written as in code, wherever they stand."""
    return [name for name in _CODED.findall(text) if _says_something(name)]


def _says_something(name: str) -> bool:
    return name not in _PRONOUN and name.casefold() not in _STOP


def _cued(said: Iterable[str]) -> list[str]:
    """The words after a cue, up to the first that says nothing."""
    found: list[str] = []
    for sentence in said:
        for match in _CUE.finditer(sentence):
            kept: list[str] = []
            for word in match["what"].split():
                if word.casefold() in _STOP:
                    break
                kept.append(word)
            if kept:
                found.append(" ".join(kept))
    return found


def _mood(text: str) -> Sentiment:
    """The worst mood that the words tell."""
    for mood, signs in _MOODS:
        for match in re.finditer(signs, text, re.I):
            start = match.start()
            if not _NEGATED.search(text[max(0, start - _BEFORE) : start]):
                return mood
    return Sentiment.NEUTRAL


# ---- Perception by rules: no model, no network, the same answer each time ----


class RulePerception:
    """Reads English text by plain rules, for offline use and as a base line.

    Both domains: a sentence that ends in `?` is a question. `I want to ...`, `I need to ...`,
    `I'd like to ...`, `I'm trying to ...`, `my goal is to ...`, `let's ...` and, outside of
    questions, `help me ...` and `we also need ...` state goals, up to the end of the clause; a
    list with `and` is several where a verb follows. `I have finished ...` and `never mind ...`
    complete and abandon the open goals whose words they name, or else those that have theirs.

    Conversation: topics are known names that the text has, other names (`Python`,
    `BeautifulSoup`), and what follows `about`, `learn`, `make`, `going back to` and the like;
    four at most. Moods are told by words that are not negated, the worst first. `Going back to`,
    `as I said`, `earlier` and the like refer to something previous, unless nothing was.

    Coding: file names, `GET /path`, `name()`, `CONSTANT_NAMES` and known services are parts by
    their form; what is imported, installed or written in camel case is a library. Errors are
    names that end in `Error` or `Exception`, and names after `raises`; `fixed`, `works now` and
    the like say that an unresolved error of the state is gone which the sentence names, or the
    only one. `I tried ... but ...` is a failure.

    Args:
        domain: Which adapter's analysis to give.
    """

    def __init__(self, domain: Domain = Domain.CONVERSATION) -> None:
        self._domain = Domain(domain)

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says by the rules, where things stand so."""
        if self._domain is Domain.CODING:
            return coding_by_rules(text, state).model_dump(mode="json")
        return conversation_by_rules(text, state).model_dump(mode="json")
