"""Judgment: what is learned is there again, for another process and after a context was cut.

The first tests are the seventeen behaviours that Million (2026), section 5.5, names, T15 first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from coag.errors import CoagError, JudgmentError, UnknownNameError
from coag.judgment import (
    START,
    ConfigurationTrial,
    DateReached,
    DeadEnd,
    Externalisation,
    Insight,
    Judgment,
    Method,
    Origin,
    PerceptSeen,
    SelfProfile,
    TaskReflection,
    VersionChanged,
    World,
    choose,
    snips,
)
from coag.judgment.protocol import TrustLevel, entry_from

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
MANIFEST: Mapping[str, Any] = {
    "capabilities": [
        {"name": "search", "summary": "find pages on the web", "keywords": ["research"]},
        {"name": "read", "summary": "read a page or a file"},
        {"name": "write", "summary": "write and build a file", "keywords": ["build"]},
        {"name": "metrics", "summary": "watch numbers", "keywords": ["monitor"]},
    ]
}


def said(source: str = "ann", trust: TrustLevel = "user", at: datetime = NOW) -> Origin:
    return Origin(source=source, trust=trust, at=at)


def begun(path: Path | None = None) -> Judgment:
    judgment = Judgment(path, now=lambda: NOW)
    judgment.init(MANIFEST)
    return judgment


def paid(judgment: Judgment, times: int, reward: float, **given: Any) -> None:
    for _ in range(times):
        judgment.report("read", reward, current="search", **given)


def scores(judgment: Judgment, task: str = "", current: str = "search") -> dict[str, float]:
    return {one.capability: one.score for one in judgment.consult(task, current=current).advice}


# ---- The seventeen behaviours ----


def test_t15_routes_patterns_methods_and_dead_ends_survive_a_cut_context(tmp_path: Path) -> None:
    first = begun(tmp_path / "judgment.json")
    paid(first, 10, 1.0)
    (pattern,) = [one.pattern.name for one in first.annotations() if "wormhole" in one.pattern.name]
    first.reflect(
        Method(origin=said(), statement="Read what was found", why="a title says too little",
               fails_when="the page needs a login", explains=pattern, capabilities=("read",)),
        DeadEnd(origin=said(), topic="scrape the portal", why_closed="it blocks robots",
                capabilities=("search",)),
    )  # fmt: skip
    first.flush(
        Externalisation(origin=said(), task="find the leak", hypotheses=("the cache",),
                        reasoning=("memory grows with users, not with time",),
                        questions=("who empties it?",), confidence={"the cache": 0.7})
    )  # fmt: skip
    learned = scores(first)
    second = Judgment(tmp_path / "judgment.json")
    text = second.resume("find the leak")
    for part in ("the cache", "memory grows with users", "it blocks robots", "a title says too"):
        assert part in text
    assert "fails when the page needs a login" in text
    assert "search > read" in text
    assert scores(second) == learned
    assert [one.topic for one in second.dead_ends()] == ["scrape the portal"]


def test_t01_a_judgment_begins_with_the_capabilities_of_a_manifest(tmp_path: Path) -> None:
    status = begun(tmp_path / "new" / "judgment.json").status()
    assert (status["capabilities"], status["edges_used"], status["problem"]) == (4, 0, "")


def test_t02_what_was_learned_is_in_the_file(tmp_path: Path) -> None:
    paid(begun(tmp_path / "j.json"), 1, 1.0)
    assert Judgment(tmp_path / "j.json").status()["edges_used"] == 1


def test_t03_and_t04_reward_strengthens_an_edge_and_its_lack_weakens_it() -> None:
    judgment = begun()
    assert judgment.report("read", 1.0, current="search").changed > 0
    assert judgment.report("write", 0.0, current="search").changed < 0


def test_t05_advice_changes_with_what_was_learned() -> None:
    judgment = begun()
    before = scores(judgment)
    paid(judgment, 5, 1.0)
    after = scores(judgment)
    assert after["read"] > before["read"]
    assert judgment.consult("", current="search").advice[0].capability == "read"


def test_t06_a_flush_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    name = judgment.flush(Externalisation(origin=said(), task="deploy", questions=("when?",)))
    assert name in (tmp_path / "j.json").read_text()


def test_t07_resume_puts_what_concerns_the_task_first() -> None:
    judgment = begun()
    judgment.reflect(Method(origin=said(), statement="Warm the oven before baking bread"))
    judgment.reflect(Method(origin=said(), statement="Back up before a migration"))
    text = judgment.resume("bake bread in the oven")
    assert text.index("oven") < text.index("migration")


def test_t08_a_consultation_shows_methods_on_its_task() -> None:
    judgment = begun()
    judgment.reflect(Method(origin=said(), statement="Weigh flour for bread, do not guess"))
    judgment.reflect(Method(origin=said(), statement="Back up before a migration"))
    (found,) = judgment.consult("bread from rye flour").entries
    assert "flour" in found.text


def test_t09_a_consultation_shows_dead_ends_on_its_task() -> None:
    judgment = begun()
    judgment.reflect(DeadEnd(origin=said(), topic="bread without yeast", why_closed="it is flat"))
    (found,) = judgment.consult("bread with no yeast").dead_ends
    assert found.why_closed == "it is flat"


def test_t10_patterns_appear_once_something_pays_again_and_again() -> None:
    judgment = begun()
    paid(judgment, 4, 1.0)
    assert judgment.report("read", 1.0, current="search").patterns
    assert any("wormhole: search > read" in one for one in judgment.synthesize())


@pytest.mark.parametrize(
    ("rewards", "why"),
    [([1.0] * 3 + [0.0], "surprise"), ([0.6, 0.5, 0.4] * 4, "without"), ([1.0] * 5, "pattern")],
)
def test_t11_a_reflection_is_asked_for_when_it_is_due(rewards: list[float], why: str) -> None:
    judgment = begun()
    asked = [judgment.report("read", one, current="search").reflect for one in rewards]
    assert any(why in one for one in asked)
    judgment.reflect(TaskReflection(origin=said(), signal="it went well"))
    assert judgment.status()["advice"]["since_reflection"] == 0


def test_t12_what_was_done_is_learned_from_and_not_what_was_advised() -> None:
    judgment = begun()
    advised = judgment.consult("research on the web")
    assert advised.advice[0].capability == "search"
    reported = judgment.report("write", 1.0, consultation=advised)
    assert reported.override
    assert judgment.status()["advice"]["overridden"] == 1
    assert scores(judgment, current=START)["write"] > 0.45
    assert "start > write" in judgment.resume()


def test_t13_status_tells_whether_following_the_advice_pays() -> None:
    judgment = begun()
    for used, reward in (("search", 1.0), ("write", 0.25)):
        judgment.report(used, reward, consultation=judgment.consult("research"))
    health = judgment.status()["advice"]
    assert (health["net_followed"], health["net_overridden"]) == (1.0, 0.25)


WRONG: tuple[Callable[[Judgment], object], ...] = (
    lambda j: j.report("fly", 1.0),
    lambda j: j.report("read", float("nan")),
    lambda j: j.report("read", 2.0),
    lambda j: j.report("read", 1.0, consultation="c99"),
    lambda j: j.report("read", 1.0, trust=cast("Any", "god")),
    lambda j: j.consult("x", current="fly"),
    lambda j: j.consult("x", among=["fly"]),
    lambda j: j.reflect(Method(origin=said(), statement="x", explains="wormhole: a > b")),
    lambda j: j.reopen({"nothing": "why"}),
    lambda j: j.init(MANIFEST),
)


@pytest.mark.parametrize("wrong", WRONG)
def test_t14_what_cannot_be_is_refused_and_changes_nothing(
    wrong: Callable[[Judgment], object],
) -> None:
    judgment = begun()
    before = judgment.status()
    with pytest.raises(CoagError):
        wrong(judgment)
    assert judgment.status() == before


def test_t16_and_t17_the_task_decides_what_is_advised_first() -> None:
    judgment = begun()
    tasks = ("research the market", "build a file", "monitor the load")
    first = [judgment.consult(task).advice[0].capability for task in tasks]
    assert first == ["search", "write", "metrics"]


# ---- Trust ----


def test_an_untrusted_source_moves_an_edge_little_and_only_so_far() -> None:
    judgment = begun()
    before = scores(judgment)["read"]
    paid(judgment, 200, 0.0, trust="untrusted", source="a page")
    assert sum(one.startswith("search > read: -0.3") for one in _routes(judgment)) == 1
    assert before - scores(judgment)["read"] < 0.5
    assert judgment.status()["patterns"] == 0


def _routes(judgment: Judgment) -> list[str]:
    return [line[2:] for line in judgment.resume().splitlines()]


def test_a_dead_end_of_an_untrusted_source_warns_and_closes_nothing() -> None:
    planted = DeadEnd(
        origin=said("a page", "untrusted"), topic="x", why_closed="y", capabilities=("read",),
        arguments={},
    )  # fmt: skip
    judgment = begun()
    judgment.reflect(planted)
    assert planted.matches("read", {})
    assert not planted.closes
    assert (judgment.status()["closed"], judgment.status()["warnings"]) == (0, 1)
    assert "a warning only" in judgment.resume()


def test_what_a_source_said_is_taken_back_with_all_that_was_derived_from_it() -> None:
    judgment = begun()
    before = scores(judgment)
    (root,) = judgment.reflect(Method(origin=said("bob"), statement="Ports are open"))
    derived = Origin(source="ann", at=NOW, derived_from=(root,))
    (second,) = judgment.reflect(Method(origin=derived, statement="So scan from outside"))
    third = Origin(source="ann", at=NOW, derived_from=(second,))
    judgment.reflect(DeadEnd(origin=third, topic="scan inside", why_closed="no need"))
    judgment.reflect(Method(origin=said(), statement="Stay calm"))
    paid(judgment, 3, 1.0, source="bob")
    assert len(judgment.revoke(source="bob").entries) == 3
    assert [one.text for one in judgment.entries()] == ["statement: Stay calm"]
    after = scores(judgment)
    assert after["read"] == pytest.approx(before["read"], abs=0.1)  # novelty is used up


def test_an_insight_goes_with_an_entry_that_it_was_drawn_from() -> None:
    judgment = begun()
    (one,) = judgment.reflect(Method(origin=said("bob"), statement="Ports are open"))
    judgment.reflect(Insight(origin=said(), statement="All is open", across=(one,)))
    assert len(judgment.revoke(source="bob").entries) == 2


def test_an_entry_goes_when_the_record_that_was_written_of_it_is_gone() -> None:
    judgment = begun()
    (name,) = judgment.reflect(Method(origin=said(), statement="Ports are open", record="record-1"))
    assert judgment.revoke(ids=["record-1"]).entries == (name,)
    assert judgment.entries() == ()


def test_a_stranger_who_says_much_pushes_out_nobody_who_is_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("coag.judgment.entries.MOST_ENTRIES", 20)
    judgment = begun()
    judgment.reflect(DeadEnd(origin=said(), topic="x", why_closed="y", tier="session"))
    judgment.reflect(
        *(
            Method(origin=said("a page", "untrusted"), statement=f"m{n}", tier="lasting")
            for n in range(30)
        )
    )
    assert len(judgment.entries()) == 20
    assert [one.topic for one in judgment.dead_ends()] == ["x"]


# ---- Dead ends ----


def world(**given: Any) -> World:
    return World(**cast("Any", {"now": NOW, **given}))


@pytest.mark.parametrize(
    ("condition", "changed"),
    [
        (VersionChanged(name="curl", was="8.0"), world(version_of={"curl": "8.1"}.get)),
        (DateReached(at=NOW + timedelta(days=1)), world(now=NOW + timedelta(days=2))),
        (PerceptSeen(source="ops", contains="Open"),
         world(percepts=[{"source": "ops", "kind": "message", "content": "The port is open"}])),
    ],
)  # fmt: skip
def test_a_dead_end_reopens_when_the_world_has_changed(condition: Any, changed: World) -> None:
    judgment = begun()
    dead = DeadEnd(origin=said(), topic="call home", why_closed="refused", reopen=(condition,))
    judgment.reflect(dead)
    assert judgment.look(world(version_of={"curl": "8.0"}.get)) == ()
    ((opened, why),) = judgment.look(changed)
    assert opened.topic == "call home"
    assert why
    assert judgment.dead_ends() == ()
    assert "open again, since" in judgment.resume()
    judgment.reflect(dead)
    assert len(judgment.dead_ends()) == 1


def test_a_stranger_reopens_a_dead_end_only_where_its_condition_names_the_source() -> None:
    judgment = begun()
    heard = {"source": "web", "kind": "tool_return", "content": "It works!", "trust": "untrusted"}
    for source in ("", "web"):
        condition = PerceptSeen(source=source, contains="works")
        judgment.reflect(
            DeadEnd(origin=said(), topic=f"read {source}", why_closed="x", reopen=(condition,))
        )
    ((opened, _),) = judgment.look(world(percepts=[heard]))
    assert opened.topic == "read web"
    assert len(judgment.look(world(percepts=[{**heard, "trust": "user"}]))) == 1


def test_a_time_without_a_zone_is_refused() -> None:
    judgment = begun()
    condition = DateReached(at=NOW)
    judgment.reflect(DeadEnd(origin=said(), topic="x", why_closed="y", reopen=(condition,)))
    with pytest.raises(JudgmentError, match="must have a zone"):
        judgment.look(world(now=datetime(2026, 1, 1)))
    assert len(judgment.dead_ends()) == 1


def test_a_dead_end_closes_by_arguments_by_topic_or_whole() -> None:
    common: dict[str, Any] = {"origin": said(), "why_closed": "y", "capabilities": ("read",)}
    by_arguments = DeadEnd(topic="x", arguments={"path": "a"}, **common)
    assert by_arguments.matches("read", {"path": "a", "mode": "r"})
    assert not by_arguments.matches("read", {"path": "b"})
    assert not by_arguments.matches("write", {"path": "a"})
    by_topic = DeadEnd(topic="Portal login", **common)
    assert by_topic.matches("read", {"url": "https://portal/login"})
    assert not by_topic.matches("read", {"url": "https://portal"})
    assert DeadEnd(topic="x", arguments={}, **common).matches("read", {"path": "b"})


# ---- Entries, consultations, choices ----


def test_the_same_said_twice_is_one_entry_and_every_sort_comes_back(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    entries = (
        TaskReflection(origin=said(), signal="slow", near_misses=("the cache",)),
        ConfigurationTrial(origin=said(), change="workers 4", hypothesis="faster",
                           measurement="2 s less", verdict="confirmed"),
        Insight(origin=said(), statement="Measure first", across=("e1",)),
        SelfProfile(origin=said(), settings={"model": "small"}, tier="lasting"),
    )  # fmt: skip
    assert judgment.reflect(*entries) == judgment.reflect(*entries)
    assert Judgment(tmp_path / "j.json").entries() == entries


def test_several_entries_on_one_capability_wait_for_an_insight() -> None:
    judgment = begun()
    ids = judgment.reflect(
        *(Method(origin=said(), statement=f"m{n}", capabilities=("read",)) for n in range(3))
    )
    assert any(one.startswith("read: what do its 3") for one in judgment.synthesize())
    assert judgment.synthesize(Insight(origin=said(), statement="All", across=ids)) == ()


def test_a_stored_consultation_is_found_by_its_id(tmp_path: Path) -> None:
    made = begun(tmp_path / "j.json").consult("research", store=True)
    reported = Judgment(tmp_path / "j.json").report("read", 1.0, consultation=made.id)
    assert made.id == "c1"
    assert reported.override


def test_drawn_choices_judge_another_policy() -> None:
    import random

    judgment, draw = begun(), random.Random(3)
    for _ in range(60):
        advised = judgment.consult("")
        one = choose(advised.advice, draw).capability
        judgment.report(one, float(one == "read"), consultation=advised, drawn=True)
    judgment.report("read", 1.0)
    choices = judgment.choices()
    assert len(choices) == 60
    assert snips(choices, lambda choice: {"read": 1.0}).value == pytest.approx(1.0)


def test_only_candidates_are_advised_and_share_the_probability() -> None:
    advice = begun().consult("research", among=["read", "write"]).advice
    assert {one.capability for one in advice} == {"read", "write"}
    assert sum(one.probability for one in advice) == pytest.approx(1.0)


def test_capabilities_are_discovered_once_also_beside_a_manifest_with_edges() -> None:
    judgment = Judgment()
    edges = [{"source": "search", "target": "read"}]
    judgment.init({**MANIFEST, "edges": edges})
    assert judgment.discover({"mail": "send a letter", "read": ""}) == ("mail",)
    assert judgment.discover({"mail": ""}) == ()
    assert judgment.consult("send a letter", current="search").advice[0].capability == "mail"


def test_failures_of_a_call_are_counted_until_it_works() -> None:
    judgment = begun()
    counts = [judgment.note_failure("read a", failed) for failed in (True, True, False, True)]
    assert counts == [1, 2, 0, 1]
    assert judgment.note_failure("never failed", False) == 0


def test_a_judgment_is_given_up_only_where_that_is_said(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    paid(judgment, 1, 1.0)
    with pytest.raises(JudgmentError, match="anew=True"):
        judgment.init()
    judgment.init(anew=True)
    assert judgment.status()["capabilities"] == 0
    with pytest.raises(UnknownNameError):
        judgment.report("read", 1.0)


def test_a_wrong_entry_in_the_file_is_named(tmp_path: Path) -> None:
    begun(tmp_path / "j.json").reflect(Method(origin=said(), statement="x"))
    stored = json.loads((tmp_path / "j.json").read_text())
    stored["entries"][0]["tier"] = "forever"
    (tmp_path / "j.json").write_text(json.dumps(stored))
    with pytest.raises(JudgmentError, match=r"method\.tier must be one of session"):
        Judgment(tmp_path / "j.json").entries()


def test_the_dead_ends_of_an_earlier_time_are_closed_again_and_later_ones_go() -> None:
    judgment = begun()
    for topic in ("first", "second"):
        judgment.reflect(DeadEnd(origin=said(), topic=topic, why_closed="it failed"))
    first, second = judgment.dead_ends()
    judgment.reopen({first.id: "the world changed"})
    assert [one.id for one in judgment.dead_ends()] == [second.id]

    judgment.rewind([first.id])

    assert [one.topic for one in judgment.dead_ends()] == ["first"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"is": "synthesis", "mood": "good"}, "has no field 'mood'"),
        ({"is": "synthesis", "statement": 5}, "must be a text"),
        ({"is": "synthesis", "statement": "x" * 100_000}, "characters; at most"),
        ({"is": "dead_end", "reopen": "never"}, "must be a list of conditions"),
        ({"is": "dead_end", "reopen": [{"is": "mood"}]}, "must be one of"),
        ({"is": "dead_end", "reopen": [5]}, "must be a JSON object"),
        ({"is": "dead_end", "capabilities": "read"}, "must be a list of texts"),
        ({"is": "dead_end", "arguments": {"n": float("nan")}}, "cannot be written as JSON"),
        ({"is": "externalisation", "confidence": {"a": 2}}, "must be a number of 0 to 1"),
        ({"is": "dead_end", "origin": {"at": "2026-11-25T09:00:00"}}, "must say its zone"),
        ({"is": "dead_end", "origin": {"at": "soon"}}, "must be a time"),
        ({"is": "dead_end", "origin": {"trust": "blind"}}, "must be one of"),
    ],
)
def test_an_entry_with_a_wrong_field_says_which_and_how(
    entry: dict[str, Any], problem: str
) -> None:
    texts = {"topic": "t", "why_closed": "w", "statement": "s", "task": "t"}
    origin = {"source": "ann", "trust": "user", "at": "2026-11-25T09:00:00+00:00"}
    wanted = {"synthesis": ("statement",), "dead_end": ("topic", "why_closed")}
    needed = wanted.get(entry["is"], ("task",))
    given = {name: texts[name] for name in needed} | entry
    given["origin"] = origin | entry.get("origin", {})
    with pytest.raises(JudgmentError, match=problem):
        entry_from(given)
