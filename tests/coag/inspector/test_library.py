"""The runs of a folder of logs, as they come and go."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from coag.errors import ConfigurationError, TraceError, UnknownNameError
from coag.inspector.library import Library, TraceCounter, card_of
from coag.inspector.views import Filters, RunCard, TaskOutcome
from coag.schema import Percept, PerceptKind, Phase, SteppingClock, TraceRecord, Trust
from coag.tracing import Parent, Recipe, RunFolder

RunWriter = Callable[..., RunFolder]
Turns = Callable[[int], list[TraceRecord]]
BROKEN = "traces are broken on purpose"


class HandClock(SteppingClock):
    """A clock that is moved by hand."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def library_of(logs: Path, clock: HandClock | None = None) -> Library:
    return Library(logs, clock=clock or HandClock())


def asked(text: str) -> Percept:
    return Percept(
        id=text,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        kind=PerceptKind.MESSAGE,
        source="user",
        trust=Trust.USER,
        content=text,
        state_patch={},
    )


def ids(library: Library, **wanted: str | int) -> list[str]:
    return [card.key for card in library.listing(None, **wanted).cards]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    path = tmp_path / "logs"
    path.mkdir()
    return path


def test_a_folder_without_runs_has_none(logs: Path) -> None:
    found = library_of(logs).listing()
    assert (found.cards, found.total, found.pages, found.filters) == ((), 0, 1, Filters())


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no folder of logs"):
        Library(tmp_path / "nowhere")


def test_a_card_tells_what_is_known_without_reading_the_trace(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    write_run(plain_turns(3), at="demo/case-1")
    library = library_of(logs)
    (card,) = library.cards()
    assert (card.key, card.folder) == ("a-run", "demo/case-1/a-run")
    assert (card.is_open, card.outcome, card.seconds) == (False, TaskOutcome.UNKNOWN, 60.0)
    assert (card.ending, card.cycles, card.calls, card.usage) == ("", None, None, None)
    assert card.trouble is None


def test_a_card_tells_what_was_asked_once_it_was_counted(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    write_run([asked("Sell\none."), asked("Sell two."), *plain_turns(2)], at="one")
    library = library_of(logs)
    while library.advance(10_000.0):
        pass
    (card,) = library.cards()
    assert card.goal == "Sell one."
    assert ids(library, query="sell one") == ["a-run"]
    assert ids(library, query="buy") == []


def test_what_must_be_counted_is_counted_piece_by_piece(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    write_run(plain_turns(3), at="one")
    write_run(plain_turns(1), at="two", id="other", ended=False)
    library = library_of(logs)
    assert library.advance(0.0)
    while library.advance(10_000.0):
        pass
    card = library.card("a-run")
    assert (card.cycles, card.calls, card.ending) == (3, 3, "stop")
    assert card.usage is not None
    assert (card.usage.tokens, card.usage.cost) == (36, 1.5)
    other = library.card("other")
    assert (other.cycles, other.is_open, other.seconds) == (1, True, None)


@pytest.mark.broken_trace(BROKEN)
def test_counts_follow_a_trace_that_grows_and_one_that_is_cut(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    run = write_run(plain_turns(3), ended=False)
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    library = library_of(logs)
    seen: list[int | None] = []
    for count in (5, 10, 12, 15, 5):
        run.trace_path.write_bytes(b"".join(lines[:count]))
        while library.advance(10_000.0):
            pass
        seen.append(library.card("a-run").calls)
    assert seen == [1, 2, 3, 3, 1]


@pytest.mark.broken_trace(BROKEN)
def test_a_trace_of_the_same_size_that_took_its_place_is_counted_anew(
    logs: Path, write_run: RunWriter, plain_turns: Turns, tmp_path: Path
) -> None:
    run = write_run(plain_turns(3), ended=False)
    library = library_of(logs)
    while library.advance(10_000.0):
        pass
    assert library.card("a-run").calls == 3
    other = tmp_path / "other.jsonl"
    whole = run.trace_path.read_bytes()
    other.write_bytes(b"\n" * len(whole))
    other.replace(run.trace_path)
    while library.advance(10_000.0):
        pass
    assert library.card("a-run").calls == 0


@pytest.mark.parametrize(
    ("result", "outcome", "ending"),
    [
        ({"success": True, "summary": "all clean"}, TaskOutcome.SUCCESS, "all clean"),
        ({"success": False}, TaskOutcome.FAILURE, "stop"),
        ({"success": "yes", "summary": 5, "scenario": ["x"]}, TaskOutcome.UNKNOWN, "stop"),
        ({"summary": "a\nb " * 1_000}, TaskOutcome.UNKNOWN, "a b a b"),
        (None, TaskOutcome.UNKNOWN, "stop"),
    ],
)
def test_the_outcome_is_what_was_measured(
    logs: Path,
    write_run: RunWriter,
    plain_turns: Turns,
    result: dict[str, object] | None,
    outcome: TaskOutcome,
    ending: str,
) -> None:
    write_run(plain_turns(1), result=result)
    library = library_of(logs)
    library.advance(10_000.0)
    (card,) = library.cards()
    assert card.outcome is outcome
    assert card.ending.startswith(ending)
    assert len(card.ending) < 400
    assert card.scenario == ""


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


def test_runs_of_one_id_have_keys_of_their_own(logs: Path, write_run: RunWriter) -> None:
    for place in ("a", "b"):
        write_run(at=place)
    clock = HandClock()
    library = library_of(logs, clock)
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
    library = library_of(logs, clock)
    write_run(id="second")
    assert [card.key for card in library.cards()] == ["first"]
    clock.seconds += 2
    assert [card.key for card in library.cards()] == ["first", "second"]
    shutil.rmtree(first.path)
    clock.seconds += 2
    assert [card.key for card in library.cards()] == ["second"]
    with pytest.raises(UnknownNameError, match="no run named 'first'"):
        library.open("first")


def test_the_end_of_a_run_is_seen_before_all_folders_are_looked_at_again(
    logs: Path, write_run: RunWriter
) -> None:
    run = write_run(ended=False)
    library = Library(logs, clock=HandClock())
    assert library.card("a-run").is_open
    run.finish(at=SteppingClock().now(), result={"success": True})
    assert not library.card("a-run").is_open
    assert library.card("a-run").outcome is TaskOutcome.SUCCESS


@pytest.mark.broken_trace(BROKEN)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "describes no run"),
        ("[" * 5_000, "describes no run"),
        ('{"v": 9}', "reads up to 2"),
        ('{"v": 2, "id": "../../x"}', "describes no run"),
        ("\x00", "describes no run"),
    ],
)
def test_what_cannot_be_read_is_a_card_with_a_trouble(
    logs: Path, write_run: RunWriter, text: str, problem: str
) -> None:
    write_run(id="good")
    bad = write_run(id="bad run".replace(" ", "-"))
    bad.info_path.write_text(text)
    library = library_of(logs)
    library.advance(10_000.0)
    card = library.card("bad-run")
    assert card.info is None
    assert card.trouble is not None
    assert card.trouble.grave
    assert problem in card.trouble.text
    assert str(logs) not in card.trouble.text
    assert library.listing().total == 2
    with pytest.raises(TraceError, match=r"run\.json"):
        library.open("bad-run")


@pytest.mark.broken_trace(BROKEN)
def test_a_trace_that_nobody_described_is_a_card_with_a_trouble(logs: Path) -> None:
    (logs / "a b").mkdir()
    (logs / "a b" / "trace.jsonl").write_text("{}\n")
    (card,) = library_of(logs).cards()
    assert (card.key, card.folder) == ("a_b", "a b")
    assert card.trouble is not None
    assert "no run.json" in card.trouble.text


@pytest.mark.broken_trace(BROKEN)
def test_a_description_too_large_to_be_one_is_not_read(logs: Path, write_run: RunWriter) -> None:
    run = write_run()
    with run.info_path.open("ab") as file:
        file.truncate((1 << 24) + 1)
    (card,) = library_of(logs).cards()
    assert card.trouble is not None
    assert "16,777,216 bytes" in card.trouble.text


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
    (card,) = library.cards()
    assert (card.key, card.folder) == ("a-run", ".")
    assert library.open("a-run").folder.path == run.path


def test_a_run_stays_open_among_the_last_few(logs: Path, write_run: RunWriter) -> None:
    for number in range(10):
        write_run(id=f"run-{number}")
    library = library_of(logs)
    first = library.open("run-0")
    assert library.open("run-0") is first
    for number in range(1, 10):
        library.open(f"run-{number}")
    assert library.open("run-0") is not first


def test_forks_and_their_parent_find_each_other(logs: Path, write_run: RunWriter) -> None:
    for place in ("a", "b"):
        write_run(at=place, id="parent")
    parent = Parent(run="parent", path="../b/parent", cycle=1, phase=Phase.SELECTION, seq=3)
    write_run(at="c", id="fork", parent=parent)
    lost = parent.model_copy(update={"run": "gone"})
    write_run(at="d", id="orphan", parent=lost)
    library = library_of(logs)
    found = library.parent_of("fork")
    assert found is not None
    assert found.folder == "b/parent"
    assert [card.key for card in library.forks_of(found.key)] == ["fork"]
    others = [card.key for card in library.cards() if card.folder == "a/parent"]
    assert library.forks_of(others[0]) == ()
    assert library.parent_of("orphan") is library.parent_of(found.key) is None
    view = library.page("fork")
    assert view.parent == found
    assert library.page(found.key).forks == (library.card("fork"),)


@pytest.fixture
def many(logs: Path, write_run: RunWriter, plain_turns: Turns) -> Library:
    """Four runs that differ in everything."""
    started = "2026-11-21T12:00:0{}Z"
    write_run(plain_turns(1), id="one", agent="Anna", model="small", started_at=started.format(1))
    write_run(
        plain_turns(3),
        id="two",
        agent="Bert",
        model="large",
        started_at=started.format(2),
        result={"success": True, "scenario": "Evolution"},
    )
    write_run(id="three", kind="coag", agent="Anna", model="large", started_at=started.format(3))
    write_run(
        plain_turns(2), id="four", agent="Bert", started_at=started.format(0), ended=False
    ).path.touch()
    library = library_of(logs)
    while library.advance(10_000.0):
        pass
    return library


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
        ({"model": "large"}, ["three", "two"]),
        ({"agent": "Anna", "model": "large"}, ["three"]),
        ({"outcome": "success"}, ["two"]),
        ({"outcome": "open"}, ["four"]),
        ({"outcome": "unknown"}, ["three", "one", "four"]),
        ({"agent": "nobody"}, []),
        ({"page_size": 3, "page": 2}, ["four"]),
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


def test_a_description_is_read_again_only_when_it_is_another(
    logs: Path, write_run: RunWriter
) -> None:
    run = write_run(ended=False)
    library = library_of(logs)
    before = library.card("a-run")
    assert library.card("a-run") is before
    fields = json.loads(run.info_path.read_text())
    run.info_path.write_text(json.dumps(fields | {"agent": "somebody"}))
    after = library.card("a-run").info
    assert after is not None
    assert after.agent == "somebody"


@pytest.mark.broken_trace(BROKEN)
def test_a_trace_that_cannot_be_counted_on_is_done_with(
    logs: Path, write_run: RunWriter, plain_turns: Turns
) -> None:
    run = write_run(plain_turns(2))
    with run.trace_path.open("ab") as file:
        file.truncate(run.trace_path.stat().st_size + (1 << 26) + 10)
    library = library_of(logs)
    while library.advance(10_000.0):
        pass
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

    def card(key: str, folder: str, info: object, *rest: Any) -> RunCard:
        if key == "odd" and info is not None:
            raise OverflowError("date value out of range")
        return card_of(key, folder, cast("Any", info), *rest)

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
    advance = TraceCounter.advance

    def fails(counter: TraceCounter) -> None:
        if counter.path == folder.trace_path:
            raise RecursionError("too deep")
        advance(counter)

    monkeypatch.setattr(TraceCounter, "advance", fails)
    library = library_of(logs)
    while library.advance(1):
        pass
    while library.advance(1):
        pass

    assert {card.key: card.cycles for card in library.cards()} == {"good": 2, "odd": None}
    assert len([each for each in caplog.records if "odd/odd" in each.getMessage()]) == 1


def test_a_run_keeps_its_key_while_its_description_is_half_written(
    logs: Path, write_run: RunWriter
) -> None:
    folder = write_run(id="an-id", at="a-folder")
    library = library_of(logs)
    whole = folder.info_path.read_text()
    folder.info_path.write_text(whole[: len(whole) // 2])

    assert library.card("an-id").trouble is not None
    with pytest.raises(TraceError, match=r"run\.json"):
        library.open("an-id")

    folder.info_path.write_text(whole)
    assert library.card("an-id").trouble is None
    assert library.open("an-id").key == "an-id"
