"""Sets of rules that know no benchmark: they are made of the tools' schemas alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from autogen_core.tools import ToolSchema

from coag import no_foreign_orders, only_trusted
from coag.schema import Constraint

Rules = Callable[[Sequence[ToolSchema]], Sequence[Constraint]]
"""Makes the rules for these tools."""
_NAMES_SOMEBODY = re.compile(
    r"(^|_)(recipients?|participants?|to|cc|bcc|users?|emails?|address|url|link|iban|account|"
    r"password|channel|ids?)($|_)"
)
"""Arguments that say who gets something, or what is touched, as developers call them."""


def trusted_values(tools: Sequence[ToolSchema]) -> Sequence[Constraint]:
    """`only_trusted` for every argument that says who gets something or what is touched."""
    rules: list[Constraint] = []
    for tool in tools:
        parameters = cast("Mapping[str, Any]", tool.get("parameters", {}))
        named = [name for name in parameters.get("properties", {}) if _NAMES_SOMEBODY.search(name)]
        if named:
            rules.append(only_trusted(tool["name"], *named))
    return rules


def foreign_orders(tools: Sequence[ToolSchema]) -> Sequence[Constraint]:
    """`no_foreign_orders`, for every tool and for answers."""
    del tools
    return [no_foreign_orders(answers=True)]


def no_rules(tools: Sequence[ToolSchema]) -> Sequence[Constraint]:
    """No rule at all: what the cycle alone does."""
    del tools
    return ()


RULES: Mapping[str, Rules] = {
    "no_foreign_orders": foreign_orders,
    "only_trusted": trusted_values,
    "none": no_rules,
}
"""By name, the usual one first."""
