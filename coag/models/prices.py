"""What model calls cost."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from coag.schema import ModelCall, Value

PER = 1_000_000
"""Tokens that a price is for."""


class Price(Value):
    """The price of a model, for a million tokens each, in any one currency."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Prompt tokens that came from the server's cache; by default as dear as the others."""


def price_call(call: ModelCall, prices: Mapping[str, Price]) -> ModelCall:
    """The call with its cost; as it is where its model has no price."""
    price = prices.get(call.model)
    if price is None:
        return call
    usage = call.usage
    cached = price.prompt if price.cached is None else price.cached
    cost = (
        (usage.prompt_tokens - usage.cached_tokens) * price.prompt
        + usage.cached_tokens * cached
        + usage.completion_tokens * price.completion
    ) / PER
    return call.model_copy(update={"usage": usage.model_copy(update={"cost": cost})})
