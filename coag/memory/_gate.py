"""The gate of procedural memory: which rewrites are refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from coag.schema import Value, estimate_tokens

from ._procedure import Procedure, missing_placeholders
from ._rules import rules_of
from ._words import near_equal, shared_run


class GateSettings(Value):
    """How strict the gate is."""

    budget: int = Field(default=1_000, gt=0)
    """At most this many tokens (estimated) for one procedure, standing rules included."""
    requires_approval: bool = False
    """Whether a rewrite that passes waits until somebody approves of it."""
    untrusted_requires_approval: bool = True
    """Whether one waits that was made after untrusted text was shown, unless it says what the user
    said himself; or by an agent that keeps people's memories apart, since it would hold for all.
    Without it, only quotations are refused, and a paraphrase passes."""

    def lets_wait(self, *, tainted: bool) -> bool:
        """Whether a rewrite that passes waits."""
        return self.requires_approval or (tainted and self.untrusted_requires_approval)


def objections(
    procedure: Procedure,
    current: str,
    proposed: str,
    *,
    untrusted: Sequence[str],
    settings: GateSettings,
) -> tuple[str, ...]:
    """Why a rewrite is refused, one sentence per rule that it breaks; none if it passes.

    Args:
        procedure: Whose text is to change; says which placeholders must stay.
        current: Its text now.
        proposed: Its text after the rewrite.
        untrusted: Texts from outside that the agent has seen.
        settings: How strict to be.
    """
    if proposed.strip() == current.strip():
        return ("It says what the procedure says already.",)
    found = [
        f"The placeholder {{{name}}} is missing; keep it."
        for name in missing_placeholders(procedure, proposed)
    ]
    size = estimate_tokens(proposed)
    if size > settings.budget:
        found.append(
            f"The procedure would be {size} tokens long, and {settings.budget} are allowed; "
            "shorten it, or remove a rule."
        )
    found += _repetitions(current, proposed)
    quotation = shared_run(proposed, untrusted, known=current)
    if quotation is not None:
        found.append(
            f"It quotes {quotation!r} from a text that came from outside; "
            "say in other words what you learned yourself."
        )
    return tuple(found)


def _repetitions(current: str, proposed: str) -> list[str]:
    """Says of every rule that is new which other rule it repeats."""
    rules = rules_of(proposed)
    new = _new_ones(rules_of(current), rules)
    return [
        f"Rule {number} repeats rule {earlier}: {rules[earlier - 1]!r}."
        for number, rule in enumerate(rules, start=1)
        for earlier, other in enumerate(rules[: number - 1], start=1)
        if (number in new or earlier in new) and near_equal(rule, other)
    ]


def _new_ones(before: Sequence[str], rules: Sequence[str]) -> set[int]:
    """Numbers of the rules that were not there before, or not so often."""
    left = Counter(before)
    new: set[int] = set()
    for number, rule in enumerate(rules, start=1):
        if left[rule] == 0:
            new.add(number)
        else:
            left[rule] -= 1
    return new
