"""What an agent can do, as a graph: capabilities, and how well one follows another.

Source: W. K. Million, Judgment Preservation in Persistent AI Agents (2026), section 4.1.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import Any, TypeVar, cast

from coag.errors import ConfigurationError, UnknownNameError

START = "start"
"""The node where every task begins; it leads to all capabilities."""
WEIGHT_BOUND = 2.5
"""A learned weight stays within this, on both sides (equation 2)."""
_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    {"a", "an", "and", "for", "in", "is", "it", "of", "on", "or", "the", "to", "with"}
)
_MadeT = TypeVar("_MadeT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """Something that the agent can do: a tool, an action, a way of working."""

    name: str
    summary: str = ""
    """What it does, in a sentence; a task is compared with its words."""
    keywords: tuple[str, ...] = ()
    """Further words of tasks that it is for."""
    utility: float = 0.5
    """What is expected of using it, from 0 to 1."""
    cost: float = 0.1
    """What using it is expected to cost or risk, from 0 to 1."""


@dataclass(slots=True, kw_only=True)
class CapabilityEdge:
    """That one capability can follow another, and what was learned of it."""

    source: str
    target: str
    utility: float = 0.5
    """Expected before anything was learned, from 0 to 1."""
    cost: float = 0.1
    """Expected cost or risk, from 0 to 1."""
    novelty: float = 1.0
    """From 1, never used, towards 0."""
    weight: float = 0.0
    """What reinforcement added, from -2.5 to 2.5."""
    tries: int = 0
    mean: float = 0.0
    """Mean reward of all tries."""
    recent: float = 0.0
    """Mean reward in which the last tries count most."""

    @property
    def key(self) -> tuple[str, str]:
        """Both ends."""
        return self.source, self.target


class CapabilityGraph:
    """Capabilities and the edges between them.

    Args:
        capabilities: What there is.
        edges: Which follows which; None joins each with every other. Edges from `START` that are
            missing are added.

    Raises:
        ConfigurationError: A name is missing or twice, an edge is twice, leads to itself, or to
            something unknown, or a number is out of its range.
    """

    def __init__(
        self, capabilities: Iterable[Capability], edges: Iterable[CapabilityEdge] | None = None
    ) -> None:
        self.capabilities: dict[str, Capability] = {}
        self._edges: dict[str, dict[str, CapabilityEdge]] = {START: {}}
        self._by_word: dict[str, list[str]] | None = None
        listed = tuple(capabilities)
        for one in listed:
            self._insert(one)
        if edges is None:
            edges = (self._prior(a.name, b.name) for a in listed for b in listed if a is not b)
        for edge in edges:
            self._join(edge)
        for one in listed:
            self._start_at(one)

    @staticmethod
    def from_manifest(
        manifest: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    ) -> CapabilityGraph:
        """The graph of a manifest: `{"capabilities": [...], "edges": [...]}`, or capabilities.

        Raises:
            ConfigurationError: See the class; also for a field that is unknown or of a wrong type.
        """
        if not isinstance(manifest, Mapping):
            manifest = {"capabilities": manifest}
        if unknown := sorted(set(manifest) - {"capabilities", "edges"}):
            raise UnknownNameError("field of a manifest", unknown[0], ("capabilities", "edges"))
        capabilities = [_made(Capability, one) for one in _list(manifest, "capabilities")]
        if manifest.get("edges") is None:
            return CapabilityGraph(capabilities)
        return CapabilityGraph(
            capabilities, [_made(CapabilityEdge, one) for one in _list(manifest, "edges")]
        )

    def to_json(self) -> dict[str, Any]:
        """The graph as a manifest, with all that was learned."""
        return {
            "capabilities": [asdict(one) for one in self.capabilities.values()],
            "edges": [asdict(edge) for edge in self.edges()],
        }

    def edges(self) -> list[CapabilityEdge]:
        """All edges, by source."""
        return [edge for leaving in self._edges.values() for edge in leaving.values()]

    def leaving(self, source: str) -> list[CapabilityEdge]:
        """The edges of a source.

        Raises:
            UnknownNameError: There is no such capability.
        """
        return list(self._edges[self._known(source)].values())

    def find(self, source: str, target: str) -> CapabilityEdge | None:
        """The edge between two, or None."""
        return self._edges.get(source, {}).get(target)

    def remove(self, source: str, target: str) -> None:
        """Removes an edge, where there is one."""
        self._edges.get(source, {}).pop(target, None)

    def edge(self, source: str, target: str) -> CapabilityEdge:
        """The edge between two; one that was not expected is made.

        What the agent did is learned from, also where nobody thought that the one follows the
        other.

        Raises:
            UnknownNameError: There is no such capability.
        """
        leaving = self._edges[self._known(source)]
        if target not in leaving:
            leaving[target] = self._prior(source, target)
        return leaving[target]

    def add(self, capability: Capability) -> None:
        """Adds a capability that was found later, joined with `START` and every other.

        Raises:
            ConfigurationError: It is there already, or has a value out of range.
        """
        others = tuple(self.capabilities)
        self._insert(capability)
        self._start_at(capability)
        for other in others:
            self._join(self._prior(other, capability.name))
            self._join(self._prior(capability.name, other))

    def relevance(self, task: str) -> dict[str, float]:
        """How much the words of a task speak for each capability, from 0 to 1.

        It is the share of the task's words that the capability's name, summary and keywords have,
        the best at 1; those that share none are left out.
        """
        if self._by_word is None:
            self._by_word = defaultdict(list)
            for name, one in self.capabilities.items():
                for word in words_of_task(" ".join((one.name, one.summary, *one.keywords))):
                    self._by_word[word].append(name)
        by_word = self._by_word
        shared = Counter(name for word in words_of_task(task) for name in by_word.get(word, ()))
        most = max(shared.values(), default=0)
        return {name: count / most for name, count in shared.items()}

    def _known(self, name: str) -> str:
        if name != START and name not in self.capabilities:
            raise UnknownNameError("capability", name, (START, *self.capabilities))
        return name

    def _insert(self, one: Capability) -> None:
        if not one.name.strip() or one.name == START:
            raise ConfigurationError(
                f"A capability cannot be named {one.name!r}; give another name."
            )
        if one.name in self.capabilities:
            raise ConfigurationError(f"Capability {one.name!r} is there twice; remove one.")
        for field in ("utility", "cost"):
            _check(f"{field} of capability {one.name!r}", getattr(one, field), 0, 1)
        self.capabilities[one.name] = one
        self._edges[one.name] = {}
        self._by_word = None

    def _join(self, edge: CapabilityEdge) -> None:
        for one in edge.key:
            self._known(one)
        if edge.target == START or (edge.source == edge.target and not edge.tries):
            raise ConfigurationError(
                f"An edge cannot lead from {edge.source!r} to {edge.target!r}; remove it."
            )
        if edge.target in self._edges[edge.source]:
            raise ConfigurationError(
                f"The edge from {edge.source!r} to {edge.target!r} is there twice; remove one."
            )
        of = f"of the edge from {edge.source!r} to {edge.target!r}"
        for field in ("utility", "cost", "novelty", "mean", "recent"):
            _check(f"{field} {of}", getattr(edge, field), 0, 1)
        if type(edge.tries) is not int or edge.tries < 0:
            raise ConfigurationError(
                f"The tries {of} must be a whole number from 0, got {edge.tries!r}."
            )
        _check(f"weight {of}", edge.weight, -WEIGHT_BOUND, WEIGHT_BOUND)
        self._edges[edge.source][edge.target] = edge

    def _prior(self, source: str, target: str) -> CapabilityEdge:
        if target not in self.capabilities:
            raise UnknownNameError("capability", target, self.capabilities)
        of = self.capabilities[target]
        return CapabilityEdge(source=source, target=target, utility=of.utility, cost=of.cost)

    def _start_at(self, one: Capability) -> None:
        if one.name not in self._edges[START]:
            self._join(self._prior(START, one.name))


def words_of_task(text: str) -> frozenset[str]:
    """The words of a text, without those that say nothing, and without a plural's s."""
    found = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return frozenset(
        w[:-1] if len(w) > 3 and w.endswith("s") else w for w in found if w not in _STOP
    )


def _check(what: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        raise ConfigurationError(
            f"The {what} must be a number from {low} to {high}, got {value!r}."
        )


def _list(manifest: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    value = manifest.get(name)
    listed = cast("list[Any]", value) if isinstance(value, list | tuple) else None
    if listed is None or not all(isinstance(one, Mapping) for one in listed):
        raise ConfigurationError(f"{name!r} of a manifest must be a list of objects: {value!r}.")
    return cast("Sequence[Mapping[str, Any]]", listed)


@cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(field.name for field in fields(cast("Any", kind)))


def _made(kind: type[_MadeT], values: Mapping[str, Any]) -> _MadeT:
    known = _names(kind)
    if unknown := sorted(set(values) - known):
        raise UnknownNameError(f"field of {kind.__name__}", unknown[0], sorted(known))
    given = dict(values)
    if "keywords" in given:
        words = given["keywords"]
        if not isinstance(words, list | tuple):
            raise ConfigurationError(f"'keywords' must be a list of texts, got {words!r}.")
        given["keywords"] = tuple(map(str, cast("Sequence[Any]", words)))
    for name in ("name", "summary", "source", "target"):
        if name in given and not isinstance(given[name], str):
            raise ConfigurationError(f"{name!r} must be a text, got {json.dumps(given[name])}.")
    try:
        return kind(**given)
    except TypeError as error:
        raise ConfigurationError(
            f"{kind.__name__} {dict(values)!r} is not complete: {error}"
        ) from error
