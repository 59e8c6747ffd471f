"""What AutoGen's clients say about a response beside the result: cached tokens, above all.

AutoGen's `RequestUsage` has no place for cached tokens, but its clients publish the raw response
as an `LLMCallEvent` on the logger `autogen_core.EVENT_LOGGER_NAME`, both of them public. Here we
listen to that logger while a call is under way. Each call has a notebook of its own in a context
variable, so that calls at the same time do not mix.

The event is at INFO, which is off by default. While at least one call is under way, the logger
makes records from INFO on, and a filter drops those that its level would have dropped: nobody's
log changes. Where the events are off for good (`logging.disable`), or a client publishes
none (a cache in front of it, a client outside AutoGen), no cached tokens are known and 0 is told.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, cast

from autogen_core import EVENT_LOGGER_NAME
from autogen_core.logging import LLMCallEvent
from autogen_core.models import RequestUsage

from coag.schema import TokenUsage

_NOTHING = TokenUsage()


class Heard:
    """What was heard during one call."""

    def __init__(self) -> None:
        self._usage = _NOTHING

    def note(self, event: LLMCallEvent) -> None:
        """Takes down what the event tells."""
        response = event.kwargs.get("response")
        self._usage = TokenUsage(
            prompt_tokens=_count(event.prompt_tokens),
            completion_tokens=_count(event.completion_tokens),
            cached_tokens=_cached_tokens(response),
        )

    def usage(self, told: RequestUsage | None = None) -> TokenUsage:
        """The usage of this one call.

        Args:
            told: What the client says; without it (the client raised), what was heard counts.
                What is no number of tokens counts as 0.
        """
        if told is None:
            return self._usage.model_copy(update={"calls": 1})
        return TokenUsage(
            prompt_tokens=_count(told.prompt_tokens),
            completion_tokens=_count(told.completion_tokens),
            cached_tokens=self._usage.cached_tokens,
            calls=1,
        )


_heard: ContextVar[Heard | None] = ContextVar("coag_models_heard", default=None)


class _Ear(logging.Filter):
    """Hears events on the way through the logger, and hides those nobody else asked for."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._listeners = 0

    def filter(self, record: logging.LogRecord) -> bool:
        heard = _heard.get()
        if heard is not None and isinstance(record.msg, LLMCallEvent):
            heard.note(record.msg)
        return logging.Logger.isEnabledFor(logging.getLogger(record.name), record.levelno)

    def attach(self, logger: logging.Logger) -> None:
        with self._lock:
            self._listeners += 1
            if self._listeners > 1:
                return
            logger.addFilter(self)
            # The level itself stays: setting it has every logger of the process look its own up.
            vars(logger)["isEnabledFor"] = partial(_is_heard, logger)

    def detach(self, logger: logging.Logger) -> None:
        with self._lock:
            self._listeners -= 1
            if self._listeners:
                return
            logger.removeFilter(self)
            del vars(logger)["isEnabledFor"]


def _is_heard(logger: logging.Logger, level: int) -> bool:
    """Whether a record is made: at INFO, whatever the logger's level, unless logging is off."""
    heard = level >= logging.INFO and logger.manager.disable < level
    return heard or logging.Logger.isEnabledFor(logger, level)


_EAR = _Ear()


@contextmanager
def listening() -> Generator[Heard]:
    """Hears what the client says about the one call made within."""
    logger = logging.getLogger(EVENT_LOGGER_NAME)
    heard = Heard()
    token = _heard.set(heard)
    _EAR.attach(logger)
    try:
        yield heard
    finally:
        _EAR.detach(logger)
        _heard.reset(token)


def tell_usage(usage: TokenUsage, *, failed: bool = False) -> None:
    """Tells of a recorded call, as clients do, what its result has no place for.

    Args:
        usage: What was recorded.
        failed: Whether the client raised: then there is no result, and all of it is told.
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
    """A number of tokens, as far as it is one: a client may tell anything."""
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
