"""What a domain may tell a diagnosis about its states and its language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from coag.schema import Record

Facts = Mapping[str, Any]
"""Named things that are the case, as JSON values: `{"battery": 40, "dirty (2, 1)": true}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a text says is the case."""

    fact: str
    """The name of a fact, as `Domain.facts` uses it, or a further one of the domain."""
    value: Any = True
    """What the text says of it."""
    text: str = ""
    """Where it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known when a claim is judged or a way to the goal is looked for."""

    state: Mapping[str, Any]
    """The perceptual state as JSON."""
    goal: str = ""
    """The goal in the words of whoever set it."""
    constraints: tuple[str, ...] = ()
    """Names of the constraints in force."""
    recalled: tuple[Claim, ...] = ()
    """What the recalled records say."""
    observed: Facts = field(default_factory=dict[str, Any])
    """The latest observation of every fact so far in this run."""


class Domain:
    """What is known of a domain; as it stands, nothing but what JSON shows.

    Subclass it where a domain knows more, and give it to `diagnose`. Every method has a default
    that serves any domain: facts are the scalars of the state, texts say nothing that could be
    compared, and how far the goal is cannot be told.
    """

    complete: bool = False
    """Whether a fact that a projection leaves as it is stays so, unless the world changes. Where
    it is False, only what a projection predicts is compared with what is perceived."""

    def facts(self, state: Mapping[str, Any]) -> Facts:
        """What a state says was perceived now; what is only remembered in it is left out."""
        return dict(flat(dict(state)))

    def expected(self, before: Mapping[str, Any], projection: Mapping[str, Any]) -> Facts:
        """The facts that a projection says an action brings about."""
        now = self.facts(before)
        return {
            name: value for name, value in self.facts(projection).items() if value != now.get(name)
        }

    def goal_facts(self, goal: str) -> Facts:
        """Facts that whoever set the goal says are the case at the start."""
        return {}

    def may_change(self, fact: str, old: Any, new: Any, achieved: bool) -> bool:
        """Whether the environment may change a fact so, without the agent.

        Args:
            fact: Its name.
            old: What it was.
            new: What it is said to be now.
            achieved: Whether the agent's own action had changed it before.
        """
        return True

    def claims(self, text: str) -> Sequence[Claim]:
        """What a text says is the case, as far as it can be read."""
        return ()

    def record_claims(self, record: Record) -> Sequence[Claim]:
        """What a record of long-term memory says."""
        return self.claims(record.text)

    def holds(self, claim: Claim, now: Circumstances, *, remembered: bool) -> bool | None:
        """Whether a claim is so; None where that is not known.

        Args:
            claim: What is said.
            now: What is known.
            remembered: Whether a record says so, or the agent's reasoning, which has no source
                but what it was shown.
        """
        known = self.facts(now.state)
        return known[claim.fact] == claim.value if claim.fact in known else None

    def remaining(self, now: Circumstances) -> float | None:
        """The least number of actions to the goal, the recalled claims taken for true.

        Infinite where there is no way; None where the domain cannot tell.
        """
        return None


def flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """The scalars in a JSON value, each with its dotted path; lists stand for themselves."""
    if not isinstance(value, dict):
        return [(name, value)]
    items: list[tuple[str, Any]] = []
    for key, item in cast("dict[str, Any]", value).items():
        items += flat(item, f"{name}.{key}" if name else key)
    return items
