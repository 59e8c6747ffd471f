"""The self-model: abilities, resources and experience."""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum

from pydantic import Field, model_validator

from coag.errors import AwarenessError
from coag.schema import Value

from .texts import Amount, Names, Said, Step, Text, folded


class Reading(Value):
    """How much of a resource there was at a step."""

    resource: Said
    step: Step
    remaining: Amount


class TallyOf(StrEnum):
    """By what goals are counted together."""

    SOURCE = "source"
    """Where they come from."""
    TYPE = "type"
    """What they are about, in the words of whoever counts."""


class Tally(Value):
    """How goals that have something in common went."""

    of: TallyOf
    name: Said
    """The source or the type that they share."""
    successes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)


# ---- The self model: what the agent can, may and has (SAGEN §3.4) ----


class Resource(Value):
    """Something bounded that acting takes: tokens, calls, seconds, charge."""

    name: Said
    capacity: Amount
    """How much there is at most."""
    remaining: Amount
    """How much is left."""
    depletable: bool = True
    """Whether spending lessens it; a room or a licence is there again afterwards."""

    @model_validator(mode="after")
    def _no_more_than_fits(self) -> Resource:
        if self.remaining > self.capacity:
            raise ValueError(
                f"resource {self.name!r} has {self.remaining:g} remaining of {self.capacity:g}: "
                "give a capacity that holds it"
            )
        return self


class Need(Value):
    """What an action takes of a resource."""

    action: Said
    """The action's name; `*` stands for any characters."""
    resource: Said
    amount: Amount


class FailureNote(Value):
    """A mistake that was made, and what to learn from it."""

    step: Step
    action: Said
    reason: Text = ""
    lesson: Text = ""


class CanI(Value):
    """The verdict of the check before an action."""

    action: Said
    capable: bool
    """Whether the agent is able to."""
    authorised: bool
    """Whether it is allowed to."""
    resourced: bool
    """Whether it has what that takes."""
    reasons: tuple[str, ...] = ()
    """A sentence for each `no`."""

    @property
    def yes(self) -> bool:
        """Whether all three hold."""
        return self.capable and self.authorised and self.resourced


class SelfModel(Value):
    """What the agent knows of itself. What is not declared is not restricted."""

    capabilities: Names = ()
    """Actions that it is able to do, `*` for any characters; none declared: all."""
    limitations: Names = ()
    """What it is not able to do; holds for every action that has these words in a row."""
    resources: tuple[Resource, ...] = ()
    needs: tuple[Need, ...] = ()
    """What actions take; one without an entry takes some of everything that can run out."""
    allowed: Names = ()
    """Actions that it may do, `*` for any characters; none declared: all."""
    forbidden: Names = ()
    """What it must not do, whatever is allowed; holds for every action that has these words."""
    failures: tuple[FailureNote, ...] = ()
    """Oldest first."""
    readings: tuple[Reading, ...] = ()
    """How resources stood at the latest steps, oldest first; empty where nobody keeps them."""
    tallies: tuple[Tally, ...] = ()
    """How goals went so far; empty where nobody counts."""

    def can_i(self, action: str) -> CanI:
        """Checks an action before it is done: ability, permission, resources.

        What grants must fit the action's whole name; what refuses need only be said in it. Case,
        punctuation and spacing do not count.
        """
        incapable = self._incapable(action)
        unauthorised = self._unauthorised(action)
        lacking = self._lacking(action)
        return CanI(
            action=action,
            capable=not incapable,
            authorised=not unauthorised,
            resourced=not lacking,
            reasons=(*incapable, *unauthorised, *lacking),
        )

    def read(self, resource: Resource) -> SelfModel:
        """With a resource as it stands now; it takes the place of the one of its name."""
        known = {folded(one.name): one for one in self.resources}
        known[folded(resource.name)] = resource
        return self.model_copy(update={"resources": tuple(known.values())})

    def spend(self, resource: str, amount: float) -> SelfModel:
        """With this much less of a resource; more than is left leaves none.

        What is not depletable is checked and stays.

        Raises:
            AwarenessError: There is no such resource, or the amount is negative or no number.
        """
        if not 0.0 <= amount < float("inf"):
            raise AwarenessError(f"An amount to spend is a number of at least 0, not {amount!r}.")
        spent = self._resource(resource)
        if spent is None:
            known = ", ".join(one.name for one in self.resources) or "none"
            raise AwarenessError(
                f"There is no resource {resource!r}. Known: {known}. Declare it with its capacity."
            )
        if not spent.depletable:
            return self
        left = max(0.0, spent.remaining - amount)
        return self.read(spent.model_copy(update={"remaining": left}))

    def note(self, failure: FailureNote, keep: int = 100) -> SelfModel:
        """With one more mistake, and the latest `keep` of them."""
        failures = (*self.failures, failure)
        return self.model_copy(update={"failures": failures[max(0, len(failures) - keep) :]})

    def _resource(self, name: str) -> Resource | None:
        return next((one for one in self.resources if folded(one.name) == folded(name)), None)

    def _incapable(self, action: str) -> list[str]:
        limits = [one for one in self.limitations if _said_in(one, action)]
        reasons = [f"The limitation {one!r} holds for {action!r}." for one in limits]
        if self.capabilities and not any(_fits(one, action) for one in self.capabilities):
            reasons.append(
                f"{action!r} is none of the capabilities: {', '.join(self.capabilities)}."
            )
        return reasons

    def _unauthorised(self, action: str) -> list[str]:
        rules = [one for one in self.forbidden if _said_in(one, action)]
        reasons = [f"{one!r} is forbidden." for one in rules]
        if self.allowed and not any(_fits(one, action) for one in self.allowed):
            reasons.append(f"{action!r} is none of what is allowed: {', '.join(self.allowed)}.")
        return reasons

    def _lacking(self, action: str) -> list[str]:
        """A sentence for each resource of which there is not enough.

        What takes of a resource may be declared. Of one of which nothing is, everything takes.
        """
        needs = [need for need in self.needs if _fits(need.action, action)]
        if not needs:
            declared = {folded(need.resource) for need in self.needs}
            return [
                f"{one.name} has run out."
                for one in self.resources
                if one.depletable and one.remaining <= 0 and folded(one.name) not in declared
            ]
        reasons: list[str] = []
        for need in needs:
            resource = self._resource(need.resource)
            left = resource.remaining if resource else 0.0
            if resource is None or left < need.amount:
                reasons.append(f"{action!r} takes {need.amount:g} {need.resource}, {left:g} left.")
        return reasons


_CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSEEN = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")


def _fits(pattern: str, action: str) -> bool:
    """Whether a pattern is the action's whole name; `*` stands for any characters."""
    parts = (re.escape(part) for part in folded(pattern).split("*"))
    return re.fullmatch(".*".join(parts), folded(action), re.DOTALL) is not None


def _said_in(entry: str, action: str) -> bool:
    """Whether the action is the entry, or has the entry's words in a row."""
    wanted, words = _words(entry), _words(action)
    if _fits(entry, action) or not wanted:
        return _fits(entry, action)
    starts = range(len(words) - len(wanted) + 1)
    return any(words[start : start + len(wanted)] == wanted for start in starts)


def _words(text: str) -> list[str]:
    """The words of a name of an action, `delete_file` and `deleteFile` like `delete file`."""
    plain = "".join(one for one in unicodedata.normalize("NFKC", text) if one not in _UNSEEN)
    return re.findall(r"[^\W_]+", _CAMEL.sub(" ", plain).casefold())
