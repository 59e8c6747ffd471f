"""Our copy of OpenTelemetry's names is theirs."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE

from coag.telemetry import names as _names

# No part of the package's stable names: it may be gone from a later version.
_INCUBATING = "opentelemetry.semconv._incubating"
gen_ai_attributes: Any = pytest.importorskip(f"{_INCUBATING}.attributes.gen_ai_attributes")
gen_ai_metrics: Any = pytest.importorskip(f"{_INCUBATING}.metrics.gen_ai_metrics")


def _texts(module: object) -> set[str]:
    return {value for value in vars(module).values() if isinstance(value, str)}


def test_names_that_are_not_ours_are_those_of_the_conventions() -> None:
    known = _texts(gen_ai_attributes) | _texts(gen_ai_metrics)
    used = _texts(_names)
    assert {name for name in used if name.startswith("gen_ai.")} <= known
    assert ERROR_TYPE in used


def test_operations_are_those_of_the_conventions() -> None:
    known = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {_names.CHAT, _names.INVOKE_AGENT, _names.EXECUTE_TOOL} <= known
