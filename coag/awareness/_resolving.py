"""Recognising a name as that of a known entity, without looking at every entity."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from coag.store import Embedder

from ._beliefs import BeliefDraft
from ._names import NameForms, forms_of
from ._settings import EngineSettings
from ._vectors import NameVectors
from .state import Entity, GoalDraft, GoalGraph, MergeReason, WorldModel


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
