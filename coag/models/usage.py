"""What calls use and cost: cached tokens that clients publish, and prices.

AutoGen's `RequestUsage` has no place for cached tokens, but its clients publish the raw response
as an `LLMCallEvent` on the logger `autogen_core.EVENT_LOGGER_NAME`; both are public. While a call
is under way, `capture_usage` listens to that logger. Each call has a capture of its own in a
context variable, so that calls at the same time do not mix.

The event is at INFO, which is off by default. While at least one call is under way, the logger
makes records from INFO on, and a filter drops those that its level would have dropped: nobody's
log changes. Where the events are off for good (`logging.disable`), or a client publishes none (a
cache in front of it, a client outside AutoGen), no cached tokens are known and 0 is recorded.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from autogen_core import EVENT_LOGGER_NAME
from autogen_core.logging import LLMCallEvent
from autogen_core.models import RequestUsage
from pydantic import Field

from coag.schema import ModelCall, TokenUsage, Value

_PRICED_TOKENS = 1_000_000
"""Tokens that a price is for."""


def usage_of(calls: Iterable[ModelCall]) -> TokenUsage:
    """What these calls used together."""
    return sum((call.usage for call in calls), TokenUsage())


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
    ) / _PRICED_TOKENS
    return call.model_copy(update={"usage": usage.model_copy(update={"cost": cost})})


class UsageCapture:
    """What a client published during one call."""

    def __init__(self) -> None:
        self._usage = TokenUsage()

    def take(self, event: LLMCallEvent) -> None:
        """Takes over what the event says."""
        self._usage = TokenUsage(
            prompt_tokens=_count(event.prompt_tokens),
            completion_tokens=_count(event.completion_tokens),
            cached_tokens=_cached_tokens(event.kwargs.get("response")),
        )

    def usage(self, reported: RequestUsage | None = None) -> TokenUsage:
        """The usage of this one call.

        Args:
            reported: The usage that the result reports; without it (the client raised), what was
                published counts. A value that is no number of tokens counts as 0.
        """
        if reported is None:
            return self._usage.model_copy(update={"calls": 1})
        return TokenUsage(
            prompt_tokens=_count(reported.prompt_tokens),
            completion_tokens=_count(reported.completion_tokens),
            cached_tokens=self._usage.cached_tokens,
            calls=1,
        )


_capture: ContextVar[UsageCapture | None] = ContextVar("coag_models_usage", default=None)


class _EventFilter(logging.Filter):
    """Takes events on their way through the logger, and hides those nobody else asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._calls = 0

    def filter(self, record: logging.LogRecord) -> bool:
        capture = _capture.get()
        if capture is not None and isinstance(record.msg, LLMCallEvent):
            capture.take(record.msg)
        return logging.Logger.isEnabledFor(logging.getLogger(record.name), record.levelno)

    def attach(self, logger: logging.Logger) -> None:
        with self._lock:
            self._calls += 1
            if self._calls == 1:
                logger.addFilter(self)
                # The level itself stays: setting it has every logger of the process look its own
                # up.
                vars(logger)["isEnabledFor"] = partial(_is_enabled, logger)

    def detach(self, logger: logging.Logger) -> None:
        with self._lock:
            self._calls -= 1
            if not self._calls:
                logger.removeFilter(self)
                del vars(logger)["isEnabledFor"]


def _is_enabled(logger: logging.Logger, level: int) -> bool:
    """Whether a record is made: at INFO, whatever the logger's level, unless logging is off."""
    wanted = level >= logging.INFO and logger.manager.disable < level
    return wanted or logging.Logger.isEnabledFor(logger, level)


_FILTER = _EventFilter()


@contextmanager
def capture_usage() -> Generator[UsageCapture]:
    """Captures what the client publishes about the one call that is made within."""
    logger = logging.getLogger(EVENT_LOGGER_NAME)
    capture = UsageCapture()
    token = _capture.set(capture)
    _FILTER.attach(logger)
    try:
        yield capture
    finally:
        _FILTER.detach(logger)
        _capture.reset(token)


def publish_usage(usage: TokenUsage, *, failed: bool = False) -> None:
    """Publishes of a recorded call, as clients do, what its result has no place for.

    Args:
        usage: What was recorded.
        failed: Whether the client raised: then there is no result, and all of it is published.
    """
    if not usage.cached_tokens and not (failed and usage.tokens):
        return
    response = {"usage": {"prompt_tokens_details": {"cached_tokens": usage.cached_tokens}}}
    event = LLMCallEvent(
        messages=[],
        response=response,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )
    logging.getLogger(EVENT_LOGGER_NAME).info(event)


def _count(number: object) -> int:
    """A number of tokens, as far as it is one: a client may say anything."""
    return max(0, number) if isinstance(number, int) else 0


def _cached_tokens(response: object) -> int:
    """How many prompt tokens the server took from its cache: OpenAI's way, or DeepSeek's."""
    usage = _field(response, "usage")
    details = _field(usage, "prompt_tokens_details")
    for value in (_field(details, "cached_tokens"), _field(usage, "prompt_cache_hit_tokens")):
        if isinstance(value, int) and value > 0:
            return value
    return 0


def _field(value: object, name: str) -> Any:
    return cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
