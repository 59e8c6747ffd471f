"""Which thing a name means, and which beliefs are held of it."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from coag.errors import ObservationError
from coag.store import Embedder

from .observation import ObservedEntity
from .settings import EngineSettings
from .state import Belief, Entity, GoalDraft, GoalGraph, MergeReason, WorldModel, folded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# ---- The forms under which names are compared ----


_POSSESSIVE = re.compile(r"(?<=\w)['\u2019]s?(?!\w)")
_WORD = re.compile(r"[\w+#]+")
_INSIDE = re.compile(r"^[./\\@]\w|\S[./\\_:@=<>(){}\[\]$~%&*^|]\S|[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
"""What the words of a language have not: a path, a call, a name in code."""
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
    folded = unicodedata.normalize("NFKC", text).casefold()
    for letter in unicodedata.normalize("NFC", folded):
        base = unicodedata.normalize("NFD", letter)[0]
        accented = any(ord(base) in block for block in _ACCENTED)
        letters.append(base if accented else letter)
    return "".join(letters)


def _bare(name: str) -> str:
    """The name without quotes around it and stops after it."""
    return name.strip(_QUOTES).rstrip(_STOPS)


def is_literal(name: str) -> bool:
    """Whether a name is one of code or files, where each sign counts: `src/a.py`, `get_item`."""
    bare = _bare(name)
    return _INSIDE.search(bare) is not None and len(bare.split()) == 1


def is_code(name: str) -> bool:
    """Whether a name is a number, an id or a short code, which says nothing of what it names.

    `17`, `#17`, `ORD-17`, `9f8c1e2a`, `A`; not `Python 3`, `python` or `app2.py`.
    """
    bare = _bare(name)
    tokens = _TOKEN.findall(_plain(bare))
    if not _DIGIT.search(bare):
        return len("".join(tokens)) <= 2 and bare.isupper()
    most = 1 if is_literal(name) else _CODE_LETTERS
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


def _joined(words: Iterable[str]) -> str:
    """The words as one, so that `web scraper` is `webscraper`; numbers stay apart."""
    text = " ".join(words)
    return _GAP.sub("", text) if _DIGIT.search(text) else text.replace(" ", "")


class NameForms(NamedTuple):
    """What spellings of one name have in common, from strict to loose."""

    normal: str
    """Case, accents, punctuation, possessives and spaces do not count. In a name of code or files
    only case and the signs around it do not."""
    singular: str
    """The normal form with the last word in the singular, as far as English endings tell."""
    core: str
    """The singular form without words that say nothing of their own; empty if none is left."""


@lru_cache(maxsize=1024)
def forms_of(name: str, generic: frozenset[str] = frozenset()) -> NameForms:
    """The forms of a name; `generic` are words that say nothing of their own beside another."""
    words = () if is_literal(name) else words_of(name)
    if not words:
        plain = unicodedata.normalize("NFKC", _bare(name) or name.strip()).casefold()
        return NameForms(normal=plain, singular=plain, core=plain)
    normal = _joined(words)
    singular = _in_singular(words, normal)
    own = tuple(word for word in words if word not in generic)
    if len(own) < len(words):
        return NameForms(normal, singular, _in_singular(own, _joined(own)) if own else "")
    return NameForms(normal, singular, singular)


def _in_singular(words: tuple[str, ...], joined: str) -> str:
    """The words joined, the last one in the singular."""
    last = _singular(words[-1])
    return joined if last == words[-1] else _joined((*words[:-1], last))


def _singular(word: str) -> str:
    """The word without the ending of an English plural."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_NO_PLURAL):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


# ---- Names by meaning: the vectors of entities' names, and the nearest to another name ----


_NUMBER = re.compile(r"\d+")


class NameVectors:
    """One unit vector a name; those that were added since the last question are made at once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._positions: list[int] = []
        self._names: list[str] = []
        self._rows: NDArray[np.float32] | None = None
        self._filled = 0
        self._last: tuple[list[str], NDArray[np.float32]] | None = None

    def add(self, position: int, name: str) -> None:
        """Has this entity's name considered from now on."""
        self._positions.append(position)
        self._names.append(name)

    def nearest(self, name: str, threshold: float) -> tuple[int, float] | None:
        """Position and cosine of the nearest name, from a cosine on; None if there is none.

        Two names with different numbers in them never mean the same: `room 1` is not `room 2`.
        """
        import numpy as np

        if not self._names:
            return None
        self._fill()
        assert self._rows is not None
        asked = self._units([name])
        self._last = ([name], asked)
        cosines = self._rows[: self._filled] @ asked[0]
        numbers = _NUMBER.findall(name)
        near = np.flatnonzero(cosines >= threshold)
        for place in sorted((int(one) for one in near), key=lambda one: -float(cosines[one])):
            if _NUMBER.findall(self._names[place]) == numbers:
                return self._positions[place], min(max(float(cosines[place]), 0.0), 1.0)
        return None

    def _fill(self) -> None:
        """Makes the rows of the names that have none; room grows by doubling."""
        import numpy as np

        total = len(self._names)
        if total == self._filled:
            return
        new = self._names[self._filled :]
        # Most often what is new is the name that was just asked for in vain.
        made = self._last[1] if self._last and self._last[0] == new else self._units(new)
        if self._rows is None or total > len(self._rows):
            room = np.zeros((max(64, 2 * total), made.shape[1]), dtype=np.float32)
            if self._rows is not None:
                room[: self._filled] = self._rows[: self._filled]
            self._rows = room
        self._rows[self._filled : total] = made
        self._filled = total

    def _units(self, names: list[str]) -> NDArray[np.float32]:
        """Vectors of length 1; a vector of nothing stays nothing."""
        import numpy as np

        rows = np.asarray(self._embedder.embed(names), dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        return (rows / lengths).astype(np.float32)


# ---- What an observation changes of what is assumed and what is not known ----


class BeliefDraft:
    """Assumptions, or unknowns, while they are changed; open ones are found without a search.

    Args:
        beliefs: Those of a world, oldest first.
    """

    def __init__(self, beliefs: tuple[Belief, ...] = ()) -> None:
        self._made: tuple[Belief, ...] | None = beliefs
        self._beliefs = list(beliefs)
        self._open: defaultdict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(beliefs):
            if one.resolved is None:
                self._open[folded(one.text)].append(place)

    @property
    def beliefs(self) -> tuple[Belief, ...]:
        """All of them as they are now."""
        if self._made is None:
            self._made = tuple(self._beliefs)
        return self._made

    def say(self, texts: tuple[str, ...], step: int) -> None:
        """Adds those that are new; one that is open already is not said twice."""
        for text in texts:
            if not self.has_open(text):
                self._open[folded(text)].append(len(self._beliefs))
                self._beliefs.append(Belief(text=text, step=step))
                self._made = None

    def has_open(self, text: str) -> bool:
        """Whether this is said and not settled, whatever its case and spacing."""
        return folded(text) in self._open

    def settle(self, text: str, step: int) -> None:
        """Settles all that say this and are open."""
        for place in self._open.pop(folded(text), ()):
            self._beliefs[place] = self._beliefs[place].model_copy(update={"resolved": step})
            self._made = None


def settle_all(
    assumptions: BeliefDraft, unknowns: BeliefDraft, resolved: tuple[str, ...], step: int
) -> None:
    """Settles assumptions and unknowns.

    Raises:
        ObservationError: One of them is not open.
    """
    for place, text in enumerate(resolved):
        if not assumptions.has_open(text) and not unknowns.has_open(text):
            raise ObservationError(
                f"resolved[{place}]",
                f"no open assumption or unknown says {text!r}; give it as it was said.",
            )
    for text in resolved:
        assumptions.settle(text, step)
        unknowns.settle(text, step)


# ---- Recognising a name as that of a known entity, without looking at every entity ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The entity that a name means."""

    position: int
    """In `WorldModel.entities`."""
    how: MergeReason
    score: float = 1.0


class NameIndex:
    """The names of one world's entities. What it finds depends on the entities alone."""

    def __init__(self, settings: EngineSettings, embedder: Embedder | None) -> None:
        self._settings = settings
        self._types: list[str] = []
        self._exact: dict[str, int] = {}
        self._singular: defaultdict[str, set[int]] = defaultdict(set)
        self._core: defaultdict[str, set[int]] = defaultdict(set)
        self._vectors = NameVectors(embedder) if embedder else None

    def add(self, entity: Entity) -> None:
        """Learns the names of the next entity."""
        position = len(self._types)
        self._types.append(entity.type)
        self.learn(position, entity.name)
        for alias in entity.aliases:
            self.learn(position, alias)
        if self._vectors and self._is_loose(entity.type):
            self._vectors.add(position, entity.name)

    def learn(self, position: int, name: str) -> None:
        """Learns one more name of an entity."""
        forms = self._forms(name)
        self._exact.setdefault(forms.normal, position)
        self._singular[forms.singular].add(position)
        if forms.core:
            self._core[forms.core].add(position)

    def find(self, name: str, type: str) -> Found | None:
        """The entity that this name means: by its form first, then by meaning.

        A form that fits several entities means none of them. All but the normal form ask for the
        same type, or for two loose ones.
        """
        forms = self._forms(name)
        position = self._exact.get(forms.normal)
        if position is None:
            position = self._only(self._singular.get(forms.singular), type)
        if position is not None:
            return Found(position=position, how=MergeReason.NORMAL_FORM)
        position = self._only(self._core.get(forms.core), type)
        if position is not None:
            return Found(position=position, how=MergeReason.CONTAINED)
        if self._vectors is None or not self._is_loose(type):
            return None
        nearest = self._vectors.nearest(name, self._settings.name_threshold)
        if nearest is None:
            return None
        return Found(position=nearest[0], how=MergeReason.EMBEDDING, score=nearest[1])

    def position_of(self, name: str) -> int | None:
        """The position of the entity that has this name or alias in normal form."""
        return self._exact.get(self.normal(name))

    def type_of(self, name: str) -> str | None:
        """The type of the entity that has this name or alias in normal form."""
        position = self.position_of(name)
        return None if position is None else self._types[position]

    def normal(self, name: str) -> str:
        """The normal form of a name."""
        return self._forms(name).normal

    def go_together(self, one: str, other: str) -> bool:
        """Whether two types are the same, or both of names that are words of a language."""
        return one == other or (self._is_loose(one) and self._is_loose(other))

    def _forms(self, name: str) -> NameForms:
        return forms_of(name, self._settings.generic_words)

    def _only(self, positions: set[int] | None, type: str) -> int | None:
        """The one position whose type goes with this one; None for none or several."""
        fitting = [one for one in positions or () if self.go_together(self._types[one], type)]
        return fitting[0] if len(fitting) == 1 else None

    def _is_loose(self, type: str) -> bool:
        """Whether names of this type are words of a language; a namespace does not count."""
        return type.rpartition(":")[2] in self._settings.loose_types


@dataclass(frozen=True, slots=True)
class WorldIndex:
    """Where a world's entities and relationships stand."""

    names: NameIndex
    edges: dict[tuple[str, str, str], int]
    """Position of a relationship by its source, type and target."""


class NameResolver:
    """Gives what finds things, goals and beliefs in a state, made anew only where that changed.

    It changes no result: what it keeps follows from the state. While something is out, none of it
    is kept, so that what was left half changed is never used again.
    """

    def __init__(
        self, settings: EngineSettings | None = None, embedder: Embedder | None = None
    ) -> None:
        self.settings = settings or EngineSettings()
        self._embedder = embedder
        self._kept: tuple[WorldModel, WorldIndex] | None = None
        self._goals: GoalDraft | None = None
        self._beliefs: tuple[BeliefDraft, BeliefDraft] | None = None

    def index_of(self, world: WorldModel) -> WorldIndex:
        """The index of this world; it is the caller's until it is kept again."""
        kept, self._kept = self._kept, None
        same_names = kept is not None and kept[0].entities is world.entities
        same_edges = kept is not None and kept[0].relationships is world.relationships
        if kept is not None and same_names and same_edges:
            return kept[1]
        return WorldIndex(
            names=kept[1].names if kept and same_names else self._names_of(world),
            edges=kept[1].edges if kept and same_edges else _edges_of(world),
        )

    def keep(self, world: WorldModel, index: WorldIndex) -> None:
        """Keeps an index that holds exactly this world's entities and relationships."""
        self._kept = (world, index)

    def goals_of(self, graph: GoalGraph) -> GoalDraft:
        """A draft that begins with these goals; it is the caller's until it is kept again."""
        kept, self._goals = self._goals, None
        return kept if kept is not None and kept.goals is graph.goals else GoalDraft(graph.goals)

    def keep_goals(self, draft: GoalDraft) -> None:
        """Keeps a draft for the graph that has its goals."""
        self._goals = draft

    def beliefs_of(self, world: WorldModel) -> tuple[BeliefDraft, BeliefDraft]:
        """Drafts of the assumptions and of the unknowns; the caller's until they are kept again."""
        kept, self._beliefs = self._beliefs or (None, None), None
        assumptions, unknowns = kept
        if assumptions is None or assumptions.beliefs is not world.assumptions:
            assumptions = BeliefDraft(world.assumptions)
        if unknowns is None or unknowns.beliefs is not world.unknowns:
            unknowns = BeliefDraft(world.unknowns)
        return assumptions, unknowns

    def keep_beliefs(self, assumptions: BeliefDraft, unknowns: BeliefDraft) -> None:
        """Keeps drafts for the world that has their beliefs."""
        self._beliefs = (assumptions, unknowns)

    def _names_of(self, world: WorldModel) -> NameIndex:
        names = NameIndex(self.settings, self._embedder)
        for entity in world.entities:
            names.add(entity)
        return names


def _edges_of(world: WorldModel) -> dict[tuple[str, str, str], int]:
    return {
        (edge.source, edge.type, edge.target): position
        for position, edge in enumerate(world.relationships)
    }


# ---- Things of different types that go by one number or code: each gets a name of its own ----


def told_apart(seen: Sequence[ObservedEntity], names: NameIndex) -> tuple[ObservedEntity, ...]:
    """What was noticed, under names that mean one thing each, before it goes into a world.

    Words mean the same whatever the type: a topic `Python` and a library `Python` are one thing.
    A number does not: where the world has an order `17`, a customer `17` is named `customer:17`.
    Topics and concepts (`EngineSettings.loose_types`) count as one type.

    Args:
        seen: What was noticed.
        names: Those of the world; nothing is learned.
    """
    new: dict[str, str] = {}
    return tuple(_named(one, names, new) if is_code(one.name) else one for one in seen)


def _named(seen: ObservedEntity, names: NameIndex, new: dict[str, str]) -> ObservedEntity:
    """The thing under the name that is its own; its type stands in `new` from now on."""

    def type_of(name: str) -> str | None:
        return names.type_of(name) or new.get(names.normal(name))

    own = f"{seen.type}:{seen.name.strip()}"
    known = type_of(seen.name)
    if type_of(own) is None and (known is None or names.go_together(known, seen.type)):
        new.setdefault(names.normal(seen.name), seen.type)
        return seen
    new.setdefault(names.normal(own), seen.type)
    return seen.model_copy(update={"name": own})
