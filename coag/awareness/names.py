"""Which entity a name means: by its form first, then by meaning."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Generic, NamedTuple, TypeVar

from pydantic import Field, PlainSerializer

from coag.schema import Value
from coag.store import Embedder, row_products, text_vectors

from .goals import GoalDraft
from .observation import ObservedEntity
from .state import STICKY, Entity, MergeReason, Relationship, TransitionType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SortedSet = Annotated[frozenset[str], PlainSerializer(sorted, when_used="json")]


class EngineSettings(Value):
    """How names are recognised and how much is kept."""

    name_threshold: float = Field(default=0.75, ge=0.0, le=1.0)
    """Cosine from which two names mean one entity; for the default embedder of `coag.store`."""
    loose_types: SortedSet = frozenset({"topic", "concept"})
    """Types (without their namespace) whose names are words of a language. Only these are
    recognised by meaning: `config.py` and `test_config.py` are near in meaning, and two files."""
    generic_words: SortedSet = frozenset(
        {"programming", "language", "coding", "development", "topic", "subject"}
    )
    """Words that say nothing of their own beside another: `Python programming` is Python."""
    trajectory_window: int = Field(default=5, ge=0)
    """How many of the latest transitions a new state keeps."""
    sticky: tuple[TransitionType, ...] = STICKY
    """Types of transitions that a new state keeps at any age."""
    kept_aliases: int = Field(default=16, ge=0)
    """How many other names an entity remembers."""
    kept_merges: int = Field(default=200, ge=0)
    """How many recognitions of a name the world model remembers."""
    kept_failures: int = Field(default=100, ge=0)
    """How many mistakes the self model remembers."""


# ---- The forms under which names are compared ----

_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s?(?!\w)")
_WORD = re.compile(r"[\w+#]+")
_INSIDE = re.compile(r"^[./\\@]\w|\S[./\\_:@=<>(){}\[\]$~%&*^|]\S|[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
"""What no word of a language has: a path, a call, a name in code."""
_GAP = re.compile(r"(?<!\d) | (?!\d)")
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_HEX = re.compile(r"(?=.*\d)[0-9a-f]{6,}")
_CODE_LETTERS = 3
"""Letters in a row that a number may have around it: `ORD-17`, `17b`."""
_QUOTES = " \t\n\"'`\u2018\u2019\u201c\u201d"
_STOPS = _QUOTES + ".,;:!?"
_ACCENTED = (range(0x41, 0x250), range(0x370, 0x400))
"""Latin and Greek: elsewhere a mark makes another letter."""
_NO_PLURAL = ("ss", "us", "is", "news", "series", "species")


def _plain(text: str) -> str:
    """The text without case, compatibility forms, and the accents of Latin and Greek letters."""
    if text.isascii():
        return text.lower()
    letters: list[str] = []
    for letter in unicodedata.normalize("NFC", unicodedata.normalize("NFKC", text).casefold()):
        base = unicodedata.normalize("NFD", letter)[0]
        accented = any(ord(base) in block for block in _ACCENTED)
        letters.append(base if accented else letter)
    return "".join(letters)


def _bare(name: str) -> str:
    return name.strip(_QUOTES).rstrip(_STOPS)


def _is_literal(name: str) -> bool:
    """Whether a name is one of code or files, where each sign counts: `src/a.py`, `get_item`."""
    bare = _bare(name)
    return _INSIDE.search(bare) is not None and len(bare.split()) == 1


def is_code(name: str) -> bool:
    """Whether a name is a number, an id or a short code, which does not show what it names.

    `17`, `#17`, `ORD-17`, `9f8c1e2a`, `A`; not `Python 3`, `python` or `app2.py`.
    """
    bare = _bare(name)
    tokens = _TOKEN.findall(_plain(bare))
    if not _DIGIT.search(bare):
        return len("".join(tokens)) <= 2 and bare.isupper()
    most = 1 if _is_literal(name) else _CODE_LETTERS
    return all(
        _HEX.fullmatch(token) or all(len(run) <= most for run in _LETTERS.findall(token))
        for token in tokens
    )


def words_of(name: str) -> tuple[str, ...]:
    """The words of a name, plain, without punctuation and possessives; `+` and `#` are kept."""
    plain = _plain(name)
    if "'" in plain or "\u2019" in plain:
        plain = _POSSESSIVE.sub("", plain)
    return tuple(_WORD.findall(plain.replace("_", " ")))


class NameForms(NamedTuple):
    """What spellings of one name have in common, from strict to loose."""

    normal: str
    """Without case, accents, punctuation, possessives and spaces. In a name of code or files only
    case and the signs around it are left out."""
    singular: str
    """The normal form with the last word in the singular, as far as English endings show."""
    core: str
    """The singular form without words that say nothing of their own; empty if none is left."""


@lru_cache(maxsize=1024)
def forms_of(name: str, generic: frozenset[str] = frozenset()) -> NameForms:
    """The forms of a name; no form but the core is ever empty.

    Quotes around it and stops after it do not count; generic words say nothing beside another.
    """
    words = () if _is_literal(name) else words_of(name)
    if not words:
        plain = unicodedata.normalize("NFKC", _bare(name) or name.strip()).casefold()
        return NameForms(normal=plain, singular=plain, core=plain)
    own = [word for word in words if word not in generic]
    core = _joined((*own[:-1], _singular(own[-1]))) if own else ""
    return NameForms(_joined(words), _joined((*words[:-1], _singular(words[-1]))), core)


def all_forms(*names: str) -> tuple[str, ...]:
    """The different forms of all these names, by the generic words of the default settings."""
    generic = EngineSettings().generic_words
    return tuple(dict.fromkeys(form for name in names for form in forms_of(name, generic) if form))


def _joined(words: Iterable[str]) -> str:
    """The words as one, so that `web scraper` is `webscraper`; numbers stay apart."""
    text = " ".join(words)
    return _GAP.sub("", text) if _DIGIT.search(text) else text.replace(" ", "")


def _singular(word: str) -> str:
    """The word without the ending of an English plural."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    return word[: -2 if word.endswith(("sses", "xes", "ches", "shes")) else -1]


# ---- The names of a world's entities ----

_NUMBER = re.compile(r"\d+")


class _NameVectors:
    """One unit vector a name; those added since the last question are made at once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._positions: list[int] = []
        self._names: list[str] = []
        self._rows: NDArray[np.float32] | None = None
        self._filled = 0
        self._last: tuple[list[str], NDArray[np.float32]] | None = None

    def add(self, position: int, name: str) -> None:
        self._positions.append(position)
        self._names.append(name)

    def nearest(self, name: str, threshold: float) -> tuple[int, float] | None:
        """Position and cosine of the nearest name, from a cosine on; None if there is none.

        Two names with different numbers in them never mean the same: `room 1` is not `room 2`.
        """
        import numpy as np

        if not self._names:
            return None
        rows, wanted = self._fill(), text_vectors(self._embedder, [name])
        self._last = ([name], wanted)
        cosines, numbers = row_products(rows, wanted[0]), _NUMBER.findall(name)
        near = np.flatnonzero(cosines >= threshold)
        for place in map(int, near[np.argsort(-cosines[near], kind="stable")]):
            if _NUMBER.findall(self._names[place]) == numbers:
                return self._positions[place], min(max(float(cosines[place]), 0.0), 1.0)
        return None

    def _fill(self) -> NDArray[np.float32]:
        """The rows of all names; the room for them grows by doubling."""
        import numpy as np

        total, new = len(self._names), self._names[self._filled :]
        if new:
            # Most often the new name is the one that was just not found.
            made = (
                self._last[1]
                if self._last and self._last[0] == new
                else text_vectors(self._embedder, new)
            )
            if self._rows is None or total > len(self._rows):
                room = np.zeros((max(64, 2 * total), made.shape[1]), dtype=np.float32)
                if self._rows is not None:
                    room[: self._filled] = self._rows[: self._filled]
                self._rows = room
            self._rows[self._filled : total] = made
            self._filled = total
        assert self._rows is not None
        return self._rows[:total]


class NameMatch(NamedTuple):
    """The entity that a name means, by its position in `WorldModel.entities`."""

    position: int
    how: MergeReason
    score: float = 1.0


class NameIndex:
    """The names of one world's entities. What it finds depends on the entities alone."""

    def __init__(
        self, settings: EngineSettings, embedder: Embedder | None, entities: Iterable[Entity] = ()
    ) -> None:
        self._settings = settings
        self._types: list[str] = []
        self._exact: dict[str, int] = {}
        self._singular: defaultdict[str, set[int]] = defaultdict(set)
        self._core: defaultdict[str, set[int]] = defaultdict(set)
        self._vectors = _NameVectors(embedder) if embedder else None
        for entity in entities:
            self.add(entity)

    def add(self, entity: Entity) -> None:
        """Learns the names of the next entity."""
        position = len(self._types)
        self._types.append(entity.type)
        for name in (entity.name, *entity.aliases):
            self.learn(position, name)
        if self._vectors and self._is_loose(entity.type):
            self._vectors.add(position, entity.name)

    def learn(self, position: int, name: str) -> None:
        """Learns one more name of an entity."""
        forms = self._forms(name)
        self._exact.setdefault(forms.normal, position)
        self._singular[forms.singular].add(position)
        if forms.core:
            self._core[forms.core].add(position)

    def find(self, name: str, type: str) -> NameMatch | None:
        """The entity that this name means: by its form first, then by meaning.

        A form that fits several entities means none of them. All but the normal form require the
        same type, or two loose ones.
        """
        forms = self._forms(name)
        position = self._exact.get(forms.normal)
        if position is None:
            position = self._only(self._singular.get(forms.singular), type)
        if position is not None:
            return NameMatch(position, MergeReason.NORMAL_FORM)
        position = self._only(self._core.get(forms.core), type)
        if position is not None:
            return NameMatch(position, MergeReason.CONTAINED)
        if self._vectors is None or not self._is_loose(type):
            return None
        nearest = self._vectors.nearest(name, self._settings.name_threshold)
        return None if nearest is None else NameMatch(nearest[0], MergeReason.EMBEDDING, nearest[1])

    def position_of(self, name: str) -> int | None:
        """The position of the entity that has this name or alias in normal form."""
        return self._exact.get(self._forms(name).normal)

    def distinct(self, observed: Sequence[ObservedEntity]) -> tuple[ObservedEntity, ...]:
        """The observed entities, under names that mean one thing each; nothing is learned.

        Words mean the same for every type: a topic `Python` and a library `Python` are one thing.
        A number does not: where the world has an order `17`, a customer `17` is named
        `customer:17`. Topics and concepts (`EngineSettings.loose_types`) count as one type.
        """
        new: dict[str, str] = {}

        def type_of(name: str) -> str | None:
            position = self.position_of(name)
            return new.get(self._forms(name).normal) if position is None else self._types[position]

        def named(one: ObservedEntity) -> ObservedEntity:
            if not is_code(one.name):
                return one
            own, known = f"{one.type}:{one.name.strip()}", type_of(one.name)
            if type_of(own) is None and (known is None or self._compatible(known, one.type)):
                own = one.name
            new.setdefault(self._forms(own).normal, one.type)
            return one if own == one.name else one.model_copy(update={"name": own})

        return tuple(map(named, observed))

    def _forms(self, name: str) -> NameForms:
        return forms_of(name, self._settings.generic_words)

    def _only(self, positions: set[int] | None, type: str) -> int | None:
        """The one position whose type is compatible; None for none or several."""
        fitting = [one for one in positions or () if self._compatible(self._types[one], type)]
        return fitting[0] if len(fitting) == 1 else None

    def _compatible(self, one: str, other: str) -> bool:
        return one == other or (self._is_loose(one) and self._is_loose(other))

    def _is_loose(self, type: str) -> bool:
        """Whether names of this type are words of a language; a namespace does not count."""
        return type.rpartition(":")[2] in self._settings.loose_types


# ---- Indexes that are reused from step to step ----

_Source = TypeVar("_Source")
_Index = TypeVar("_Index")


class _ReusableIndex(Generic[_Source, _Index]):
    """An index that changes with its source.

    While it is in use, none is held: an index that was left half changed is never used again.
    """

    def __init__(self, make: Callable[[_Source], _Index]) -> None:
        self._make = make
        self._held: tuple[_Source, _Index] | None = None

    def take(self, source: _Source) -> _Index:
        """The index of this source; made unless the held one is of this very object."""
        held, self._held = self._held, None
        return held[1] if held is not None and held[0] is source else self._make(source)

    def put_back(self, source: _Source, index: _Index) -> None:
        """Holds an index that contains exactly this source."""
        self._held = (source, index)


def _places(edges: tuple[Relationship, ...]) -> dict[tuple[str, str, str], int]:
    return {edge.key: place for place, edge in enumerate(edges)}


class NameResolver:
    """Gives the indexes that find entities, relationships and goals, rebuilt only when needed.

    It changes no result: each index follows from the state.

    Args:
        settings: How names are recognised.
        embedder: Recognises names by meaning; None recognises them by their form only.
    """

    def __init__(
        self, settings: EngineSettings | None = None, embedder: Embedder | None = None
    ) -> None:
        self.settings = chosen = settings or EngineSettings()

        def indexed(entities: tuple[Entity, ...]) -> NameIndex:
            return NameIndex(chosen, embedder, entities)

        self.names = _ReusableIndex(indexed)
        self.edges = _ReusableIndex(_places)
        self.goals = _ReusableIndex(GoalDraft)
