"""The runs of a folder of logs, as they come and go."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from kits.tracked import heard

from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.inspector.library import Library, card_of
from coag.inspector.open_run import OpenRun
from coag.inspector.views import Filters, RunCard, TaskOutcome
from coag.schema import Phase, SteppingClock, TraceRecord
from coag.tracing import Parent, Recipe, RunFolder

RunWriter = Callable[..., RunFolder]
Turns = Callable[[int], list[TraceRecord]]
broken = pytest.mark.broken_trace("traces are broken on purpose")


class HandClock(SteppingClock):
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def library_of(logs: Path) -> Library:
    return Library(logs, clock=HandClock())


def counted(library: Library) -> Library:
    while library.advance(10_000.0):
        pass
    return library


def ids(library: Library, **wanted: str | int) -> list[str]:
    return [card.key for card in library.listing(None, **wanted).cards]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    path.mkdir()
    return path


def test_a_folder_without_runs_has_none_and_a_missing_one_is_an_error(logs: Path) -> None:
    found = library_of(logs).listing()
    assert (found.cards, found.total, found.pages, found.filters) == ((), 0, 1, Filters())
    with pytest.raises(ConfigurationError, match="no folder of logs"):
        Library(logs / "nowhere")


# ---- what a card shows ----


def test_a_card_shows_first_what_is_known_without_the_trace_and_then_all(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    messages = [heard("Sell\none."), heard("Sell two.", number=2)]
    write_run([*messages, *plain_turns(3)], at="demo/case-1")
    write_run(plain_turns(1), at="two", id="other", ended=False)
    library = library_of(logs)
    card = library.card("a-run")
    assert card.folder == "demo/case-1/a-run"
    assert (card.is_open, card.outcome, card.seconds) == (False, TaskOutcome.UNKNOWN, 60.0)
    assert (card.ending, card.cycles, card.calls, card.usage) == ("", None, None, None)
    assert library.advance(0.0)
    card = counted(library).card("a-run")
    assert (card.goal, card.cycles, card.calls, card.ending) == ("Sell one.", 3, 3, "stop")
    assert card.usage is not None
    assert (card.usage.tokens, card.usage.cost) == (36, 1.5)
    other = library.card("other")
    assert (other.cycles, other.is_open, other.seconds) == (1, True, None)
    assert (ids(library, query="sell one"), ids(library, query="buy")) == (["a-run"], [])


@broken
def test_counts_follow_a_trace_that_grows_is_cut_or_is_replaced(
    logs: Path, write_run: RunWriter, plain_turns: Turns, tmp_path: Path
) -> None:
    run = write_run(plain_turns(3), ended=False)
    data = run.trace_path.read_bytes()
    lines = data.splitlines(keepends=True)
    library = library_of(logs)
    seen: list[int | None] = []
    for count in (5, 10, 12, 15, 5, 15):
        run.trace_path.write_bytes(b"".join(lines[:count]))
        seen.append(counted(library).card("a-run").calls)
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"\n" * len(data))
    other.replace(run.trace_path)
    seen.append(counted(library).card("a-run").calls)
    assert seen == [1, 2, 3, 3, 1, 3, 0]


@pytest.mark.parametrize(
    ("result", "outcome", "ending"),
    [
        ({"success": True, "summary": "all clean"}, TaskOutcome.SUCCESS, "all clean"),
        ({"success": False}, TaskOutcome.FAILURE, "stop"),
        ({"success": "yes", "summary": 5, "scenario": ["x"]}, TaskOutcome.UNKNOWN, "stop"),
        ({"summary": "a\nb " * 1_000}, TaskOutcome.UNKNOWN, "a b a b"),
    ],
)
def test_the_outcome_is_what_was_measured(
    logs: Path,
    write_run: RunWriter,
    plain_turns: Turns,
    result: dict[str, object],
    outcome: TaskOutcome,
    ending: str,
) -> None:
    write_run(plain_turns(1), result=result)
    (card,) = counted(library_of(logs)).cards()
    assert (card.outcome, card.scenario) == (outcome, "")
    assert card.ending.startswith(ending)
    assert len(card.ending) < 400


def test_the_scenario_comes_from_the_result_or_else_by_the_recipe(
    logs: Path, write_run: RunWriter
) -> None:
    nested = Recipe(factory="a:b", arguments={"n": 1, "request": {"scenario": "wall"}})
    flat = Recipe(factory="a:b", arguments={"scenario": "door"})
    write_run(id="nested", recipe=nested)
    write_run(id="flat", recipe=flat)
    write_run(id="both", recipe=flat, result={"scenario": "gate"})
    scenarios = {card.key: card.scenario for card in library_of(logs).cards()}
    assert scenarios == {"nested": "wall", "flat": "door", "both": "gate"}


# ---- keys, and what is there ----


def test_runs_of_one_id_have_keys_of_their_own(logs: Path, write_run: RunWriter) -> None:
    for place in ("a", "b"):
        write_run(at=place)
    clock = HandClock()
    library = Library(logs, clock=clock)
    cards = library.cards()
    keys = [card.key for card in cards]
    assert len(set(keys)) == 2
    assert all(key.startswith("a-run-") for key in keys)
    assert [library.card(key) for key in keys] == list(cards)
    assert library.card("a-run") == cards[0]
    shutil.rmtree(logs / "b")
    clock.seconds += 2
    assert [card.key for card in library.cards()] == ["a-run"]
    assert library.card(keys[0]).key == "a-run"


def test_new_runs_appear_and_removed_ones_vanish(logs: Path, write_run: RunWriter) -> None:
    clock = HandClock()
    first = write_run(id="first")
    library = Library(logs, clock=clock)
    write_run(id="second")
    assert [card.key for card in library.cards()] == ["first"]
    clock.seconds += 2
    assert [card.key for card in library.cards()] == ["first", "second"]
    shutil.rmtree(first.path)
    clock.seconds += 2
    assert [card.key for card in library.cards()] == ["second"]
    with pytest.raises(UnknownNameError, match="no run named 'first'"):
        library.open("first")


@broken
def test_another_description_is_seen_before_all_folders_are_looked_at_again(
    logs: Path, write_run: RunWriter
) -> None:
    run = write_run(ended=False)
    library = library_of(logs)
    before = library.card("a-run")
    assert before.is_open
    assert library.card("a-run") is before
    run.finish(at=SteppingClock().now(), result={"success": True})
    after = library.card("a-run")
    assert (after.is_open, after.outcome) == (False, TaskOutcome.SUCCESS)
    text = run.info_path.read_text()
    run.info_path.write_text(text[: len(text) // 2])
    assert library.card("a-run").trouble is not None
    with pytest.raises(TraceError, match=r"run\.json"):
        library.open("a-run")
    run.info_path.write_text(json.dumps(json.loads(text) | {"agent": "somebody"}))
    assert library.open("a-run").info.agent == "somebody"


@broken
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "describes no run"),
        ("[" * 5_000, "describes no run"),
        ('{"v": 9}', "reads up to 2"),
        ('{"v": 2, "id": "../../x"}', "describes no run"),
        ("x" * ((1 << 24) + 1), "16,777,216 bytes"),
    ],
)
def test_what_cannot_be_read_is_a_card_with_a_trouble(
    logs: Path, write_run: RunWriter, text: str, problem: str
) -> None:
    write_run(id="good")
    write_run(id="bad-run").info_path.write_text(text)
    library = counted(library_of(logs))
    card = library.card("bad-run")
    assert card.info is None
    assert card.trouble is not None
    assert card.trouble.grave
    assert problem in card.trouble.text
    assert str(logs) not in card.trouble.text
    assert library.listing().total == 2
    with pytest.raises(TraceError, match=r"run\.json"):
        library.open("bad-run")


@broken
def test_a_trace_that_nobody_described_is_a_card_with_a_trouble(logs: Path) -> None:
    (logs / "a b").mkdir()
    (logs / "a b" / "trace.jsonl").write_text("{}\n")
    (card,) = library_of(logs).cards()
    assert (card.key, card.folder) == ("a_b", "a b")
    assert card.trouble is not None
    assert "no run.json" in card.trouble.text


@pytest.mark.broken_trace("its run.json is a link")
def test_links_are_not_followed(logs: Path, write_run: RunWriter, tmp_path: Path) -> None:
    run = write_run(id="inside")
    outside = tmp_path / "outside"
    shutil.move(write_run(id="moved").path, outside)
    (logs / "link").symlink_to(outside, target_is_directory=True)
    (logs / "fake").mkdir()
    (logs / "fake" / "run.json").symlink_to(outside / "run.json")
    assert [card.folder for card in library_of(logs).cards()] == [run.path.name]


def test_keys_are_looked_up_and_never_paths(logs: Path, write_run: RunWriter) -> None:
    run = write_run()
    library = library_of(logs)
    for key in ("../logs/a-run", str(run.path), ".", "", "a-run/", "x" * 100_000):
        with pytest.raises(UnknownNameError) as raised:
            library.card(key)
        assert len(str(raised.value)) < 500


def test_a_single_runs_folder_is_a_library_of_one(logs: Path, write_run: RunWriter) -> None:
    run = write_run()
    write_run(id="other")
    library = Library(run.path)
    assert [(card.key, card.folder) for card in library.cards()] == [("a-run", ".")]
    assert library.open("a-run").folder.path == run.path


def test_what_pages_showed_is_kept_of_the_last_few_runs(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    for number in range(10):
        write_run(plain_turns(2), id=f"run-{number}")
    library = library_of(logs)
    (row,) = library.open("run-0").rows(0, 1)
    assert library.open("run-0").rows(0, 1)[0] is row
    for number in range(1, 10):
        library.open(f"run-{number}")
    (again,) = library.open("run-0").rows(0, 1)
    assert again == row
    assert again is not row


def test_forks_and_their_parent_find_each_other(logs: Path, write_run: RunWriter) -> None:
    for place in ("a", "b"):
        write_run(at=place, id="parent")
    parent = Parent(run="parent", path="../b/parent", cycle=1, phase=Phase.SELECTION, seq=3)
    write_run(at="c", id="fork", parent=parent)
    write_run(at="d", id="orphan", parent=parent.model_copy(update={"run": "gone"}))
    library = library_of(logs)
    keys = {card.folder: card.key for card in library.cards()}
    view = library.page("fork")
    assert view.parent == library.card(keys["b/parent"])
    assert library.page(keys["b/parent"]).forks == (library.card("fork"),)
    assert library.page(keys["a/parent"]).forks == ()
    assert library.page("orphan").parent is library.page(keys["b/parent"]).parent is None


# ---- lists ----


@pytest.fixture
def many(logs: Path, write_run: RunWriter, plain_turns: Turns) -> Library:
    """Four runs that differ in everything."""
    scenario = {"success": True, "scenario": "Evolution"}
    runs: list[tuple[int, dict[str, Any]]] = [
        (1, {"id": "one", "agent": "Anna", "model": "small"}),
        (3, {"id": "two", "agent": "Bert", "model": "large", "result": scenario}),
        (0, {"id": "three", "kind": "coag", "agent": "Anna", "model": "large"}),
        (2, {"id": "four", "agent": "Bert", "ended": False}),
    ]
    for second, (turns, fields) in zip((1, 2, 3, 0), runs, strict=True):
        write_run(plain_turns(turns), started_at=f"2026-11-21T12:00:0{second}Z", **fields)
    return counted(library_of(logs))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["three", "two", "one", "four"]),
        ({"sort": "oldest"}, ["four", "one", "two", "three"]),
        ({"sort": "nonsense"}, ["three", "two", "one", "four"]),
        ({"sort": "cycles"}, ["two", "four", "one", "three"]),
        ({"sort": "tokens"}, ["two", "four", "one", "three"]),
        ({"sort": "cost"}, ["two", "four", "one", "three"]),
        ({"sort": "duration"}, ["one", "two", "three", "four"]),
        ({"query": "EVOL bert"}, ["two"]),
        ({"query": "anna e"}, ["three", "one"]),
        ({"kind": "coag"}, ["three"]),
        ({"agent": "Anna", "model": "large"}, ["three"]),
        ({"outcome": "success"}, ["two"]),
        ({"outcome": "open"}, ["four"]),
        ({"outcome": "unknown"}, ["three", "one", "four"]),
        ({"agent": "nobody"}, []),
        ({"page_size": 3, "page": 99}, ["four"]),
        ({"page_size": 0, "page": -1}, ["three"]),
    ],
)
def test_runs_are_filtered_sorted_and_paged(
    many: Library, wanted: dict[str, str | int], expected: list[str]
) -> None:
    assert ids(many, **wanted) == expected


def test_a_listing_says_what_there_is_to_choose_from(many: Library) -> None:
    found = many.listing(Filters(agent="Anna"), query="one", page_size=1)
    assert (found.total, found.matching, found.pages) == (4, 1, 1)
    assert found.filters == Filters(query="one", agent="Anna", page_size=1)
    assert (found.kinds, found.models) == (("coag", "plain"), ("large", "m", "small"))
    assert found.agents == ("Anna", "Bert")


# ---- faults of one run ----


@broken
def test_a_trace_that_cannot_be_counted_on_is_done_with(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    run = write_run(plain_turns(2))
    with run.trace_path.open("ab") as file:
        file.truncate(run.trace_path.stat().st_size + (1 << 26) + 10)
    library = counted(library_of(logs))
    assert library.card("a-run").calls == 2
    (trouble,) = library.open("a-run").view().troubles
    assert not trouble.grave
    assert "is over 67,108,864 bytes" in trouble.text


def test_a_run_whose_card_cannot_be_made_hides_no_other(
    logs: Path, write_run: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(id="odd", at="odd")
    write_run(id="good", at="good")
    library = library_of(logs)

    def card(key: str, folder: str, info: Any, *rest: Any) -> RunCard:
        if key == "odd" and info is not None:
            raise OverflowError("date value out of range")
        return card_of(key, folder, info, *rest)

    monkeypatch.setattr("coag.inspector.library.card_of", card)
    good, odd = library.cards()
    assert good.trouble is None
    assert odd.trouble is not None
    assert "date value out of range" in odd.trouble.text
    with pytest.raises(TraceError, match="cannot be shown"):
        _ = library.open("odd").info


def test_a_run_that_cannot_be_counted_keeps_no_other_from_it(
    logs: Path,
    write_run: RunWriter,
    plain_turns: Turns,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = write_run(plain_turns(2), id="odd", at="odd", started_at=datetime.max)
    write_run(plain_turns(2), id="good", at="good", started_at=datetime.min)
    count_on = OpenRun.count_on

    def fails(run: OpenRun) -> None:
        if run.folder.path == folder.path:
            raise RecursionError("too deep")
        count_on(run)

    monkeypatch.setattr(OpenRun, "count_on", fails)
    library = counted(counted(library_of(logs)))
    assert {card.key: card.cycles for card in library.cards()} == {"good": 2, "odd": None}
    assert len([each for each in caplog.records if "odd/odd" in each.getMessage()]) == 1
