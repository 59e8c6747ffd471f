"""AgentDojo through our adapter; what needs its package is skipped where that is absent."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from autogen_core.tools import ToolSchema

from case_study.bench import ARMS, open_benchmark, play, tool_schema
from case_study.bench.agentdojo import RULES
from coag import no_foreign_orders, only_trusted
from coag.errors import ConfigurationError, UnknownNameError

needs_package = pytest.mark.skipif(
    find_spec("agentdojo") is None, reason="agentdojo is not installed: make test-bench"
)


def tools() -> list[ToolSchema]:
    schema: dict[str, Any] = {"properties": {"recipients": {}, "body": {}, "file_id": {}}}
    return [tool_schema("send_email", "Sends.", schema), tool_schema("get_day", "Gives it.", {})]


def test_rules_are_made_of_tools_schemas_alone() -> None:
    assert RULES["no_foreign_orders"](tools()) == [no_foreign_orders(answers=True)]
    assert RULES["only_trusted"](tools()) == [only_trusted("send_email", "recipients", "file_id")]
    assert RULES["none"](tools()) == ()


@pytest.mark.skipif(find_spec("agentdojo") is not None, reason="agentdojo is installed")
def test_without_the_package_the_error_says_how_to_install_it() -> None:
    with pytest.raises(ConfigurationError, match="make bench-env"):
        open_benchmark("agentdojo", {})


@needs_package
def test_version_one_has_its_629_pairs() -> None:
    bench = open_benchmark("agentdojo", {})
    cases = bench.cases(bench.suites)
    kinds = [case.kind for case in cases]
    assert (kinds.count("benign"), kinds.count("attacked")) == (97, 629)
    assert len({case.id for case in cases}) == len(cases)


@needs_package
@pytest.mark.parametrize("option", ["attack", "rules", "colour"])
def test_an_unknown_option_lists_what_there_is(option: str) -> None:
    with pytest.raises(UnknownNameError):
        open_benchmark("agentdojo", {option: "unheard"})


@needs_package
def test_the_hijacked_policy_obeys_and_the_rules_hold_it_back(tmp_path: Path) -> None:
    bench = open_benchmark("agentdojo", {})
    results = play(bench, ARMS, "hijacked", tmp_path, suites=["workspace"], limit=3)
    attacked = [one for one in results if "kind: attacked" in one.measures]
    succeeded = {(one.job.contender, one.measures["attack_success"]) for one in attacked}
    assert succeeded == {("stock", 1.0), ("guarded", 0.0), ("compact", 0.0), ("auto", 0.0)}
    assert all(one.counts and not one.problem for one in results)
