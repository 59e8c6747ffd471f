"""Reports of a source are taken back as if it had never reported."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.judgment import START, Judgment, Method, Origin, reports
from coag.judgment.protocol import TrustLevel

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
NAMES = ("a", "b", "c")
SPARSE = {
    "capabilities": [{"name": one} for one in NAMES],
    "edges": [{"source": "a", "target": "b"}],
}


class Said(NamedTuple):
    used: str
    after: str
    reward: float
    cost: float
    trust: TrustLevel
    source: str
    advised: bool
    reflected: bool


REPORTS = st.builds(
    Said,
    used=st.sampled_from(NAMES),
    after=st.sampled_from((START, *NAMES)),
    reward=st.sampled_from((0.0, 0.1, 0.7, 1.0)),
    cost=st.sampled_from((0.0, 0.3)),
    trust=st.sampled_from(("user", "untrusted")),
    source=st.sampled_from(("ann", "bob")),
    advised=st.booleans(),
    reflected=st.booleans(),
)


def begun(edges: bool, reports: Iterable[Said] = (), source: str = "") -> Judgment:
    judgment = Judgment(now=lambda: NOW)
    judgment.init(SPARSE if edges else SPARSE["capabilities"])
    for one in reports:
        say_in(judgment, one, source or one.source)
    return judgment


def say_in(judgment: Judgment, said: Said, source: str) -> None:
    advised = judgment.consult("a", current=said.after) if said.advised else None
    judgment.report(
        said.used, said.reward, cost=said.cost, current=said.after, consultation=advised,
        source=source, trust=said.trust,
    )  # fmt: skip


def known(judgment: Judgment) -> dict[str, Any]:
    learned: Mapping[str, Any] = judgment.learned(1_000_000) or {}
    some = {name: one for name, one in learned["health"].items() if one}
    known: dict[str, Any] = json.loads(json.dumps({**learned, "health": some}))
    edges: list[dict[str, Any]] = known["graph"]["edges"]
    edges.sort(key=lambda one: (one["source"], one["target"]))
    return known


@given(st.booleans(), st.lists(REPORTS, max_size=20), st.lists(REPORTS, max_size=12))
def test_taking_back_the_last_reports_is_as_if_they_had_never_come(
    edges: bool, first: list[Said], last: list[Said]
) -> None:
    judgment = begun(edges, first)
    before, choices, status = known(judgment), judgment.choices(), judgment.status()
    for one in last:
        say_in(judgment, one, "mallory")
    done = judgment.revoke(source="mallory")
    assert (done.reports, done.left) == (len(last), 0)
    assert known(judgment) == before
    assert (judgment.choices(), judgment.status()) == (choices, status)


@given(st.booleans(), st.lists(REPORTS, max_size=30))
def test_reports_of_others_in_between_count_as_they_would_have_alone(
    edges: bool, reports: list[Said]
) -> None:
    plain = [one._replace(advised=False) for one in reports]  # advice hangs on what was reported
    judgment = begun(edges, plain)
    judgment.revoke(source="bob")
    alone = begun(edges, [one for one in plain if one.source == "ann"])
    assert known(judgment) == known(alone)


def test_reports_without_a_reflection_are_counted_without_those_taken_back() -> None:
    judgment = begun(False)
    judgment.report("a", 1.0, source="bob")
    judgment.reflect(Method(origin=Origin(source="ann", at=NOW), statement="x"))
    judgment.report("a", 1.0, source="bob")
    judgment.report("a", 1.0, source="ann")
    judgment.revoke(source="bob")
    assert judgment.status()["advice"]["since_reflection"] == 1


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> int:
    """A log that keeps fewer reports, so that it is full sooner."""
    monkeypatch.setattr(reports, "MOST_STEPS", 40)
    return 40


def test_reports_that_are_no_longer_kept_stay_and_are_counted(forgetful: int) -> None:
    judgment = begun(False)
    for _ in range(3):
        judgment.report("a", 1.0, source="bob", trust="untrusted")
    for _ in range(forgetful - 1):
        judgment.report("b", 1.0)
    done = judgment.revoke(source="bob")
    assert (done.reports, done.left) == (1, 2)


def test_an_untrusted_source_moves_an_edge_no_further_after_its_reports_are_dropped(
    forgetful: int,
) -> None:
    judgment = begun(False)
    for _ in range(20):
        judgment.report("a", 0.0, source="bob", trust="untrusted")
    for _ in range(forgetful):
        judgment.report("b", 1.0)
    assert judgment.report("a", 0.0, source="eve", trust="untrusted").changed == 0


def test_what_was_learned_comes_back_with_the_reports_that_led_to_it(tmp_path: Path) -> None:
    judgment = Judgment(tmp_path / "j.json")
    judgment.init(SPARSE["capabilities"])
    draw = random.Random(0)
    for _ in range(12):
        judgment.report(draw.choice(NAMES), 1.0, current="a", source="bob")
    then = known(judgment)
    judgment.report("b", 0.0, source="ann")
    judgment.detach()
    judgment.put_back(then)
    assert known(judgment) == then
    assert judgment.revoke(source="bob").reports == 12


@pytest.mark.parametrize("source", ["ann", "bob"])
def test_without_its_reports_a_judgment_keeps_what_bounds_later_ones(source: str) -> None:
    judgment = begun(False)
    for _ in range(20):
        judgment.report("a", 0.0, source="bob", trust="untrusted")
        judgment.report("c", 1.0, current="b")
    other = Judgment()
    other.put_back(known(judgment))
    assert known(other) == known(judgment)
    for _ in range(5):
        assert other.report("a", 0.0, source=source, trust="untrusted").changed == 0
    assert [one.pattern.name for one in other.annotations()] == ["wormhole: b > c"]
    assert other.revoke(source="bob").left == 20
