"""Hearing what clients publish about their calls, without getting in anybody's way."""

from __future__ import annotations

import contextvars
import logging

import pytest
from autogen_core import EVENT_LOGGER_NAME
from autogen_core.logging import LLMCallEvent
from autogen_core.models import RequestUsage

from coag.models import capture_usage
from coag.schema import TokenUsage

LOGGER = logging.getLogger(EVENT_LOGGER_NAME)


def publish(usage: object, prompt_tokens: int = 9) -> None:
    response = {"usage": usage}
    event = LLMCallEvent(
        messages=[], response=response, prompt_tokens=prompt_tokens, completion_tokens=2
    )
    LOGGER.info(event)


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 5}}, 5),
        ({"prompt_cache_hit_tokens": 6}, 6),
        ({"prompt_tokens_details": None}, 0),
        ({"prompt_tokens_details": {"cached_tokens": "5"}}, 0),
        (None, 0),
    ],
)
def test_cached_tokens_are_counted_in_each_servers_form(usage: object, cached: int) -> None:
    with capture_usage() as captured:
        publish(usage)
    assert captured.usage(RequestUsage(prompt_tokens=8, completion_tokens=1)) == TokenUsage(
        prompt_tokens=8, completion_tokens=1, cached_tokens=cached, calls=1
    )


def test_captured_usage_counts_where_the_client_reported_none() -> None:
    with capture_usage() as captured:
        publish({})
    assert captured.usage() == TokenUsage(prompt_tokens=9, completion_tokens=2, calls=1)


def test_calls_of_others_at_the_same_time_are_not_counted() -> None:
    with capture_usage() as captured:
        contextvars.Context().run(publish, {})
    assert captured.usage() == TokenUsage(calls=1)


def test_logger_is_left_as_it_was_even_when_listeners_overlap(
    caplog: pytest.LogCaptureFixture,
) -> None:
    level, filters = LOGGER.level, list(LOGGER.filters)
    with capture_usage():
        with capture_usage():
            publish({})
        publish({})
    publish({})
    assert caplog.records == []
    assert (LOGGER.level, LOGGER.filters) == (level, filters)


def test_warnings_on_the_same_logger_still_come_through(caplog: pytest.LogCaptureFixture) -> None:
    with capture_usage():
        LOGGER.warning("mind the gap")
    assert caplog.messages == ["mind the gap"]
