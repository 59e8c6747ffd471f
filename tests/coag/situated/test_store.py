"""Where activities rest: deliveries that come once, files that are refused, other processes."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.held_steps import a_percept, a_signal, a_wait, an_activity
from kits.minds import NOW
from kits.processes import python

from coag.schema import PerceptKind
from coag.situated import (
    ActivityEnd,
    ActivityState,
    ActivityStore,
    ActivityStoreError,
    Delivery,
)


def numbers(store: ActivityStore, activity: str = "a") -> list[str]:
    return [entry.percept.id for entry in store.inbox(activity)]


def reading(rev: int, epoch: str = "e1") -> Delivery:
    one = a_percept(PerceptKind.PROPERTY_CHANGE, f"pump/{epoch}/rev-{rev}", data={"rev": rev})
    return Delivery("a", one, replaces=True)


def test_an_activity_is_stored_as_it_is(tmp_path: Path) -> None:
    activity = an_activity(
        state=ActivityState.BLOCKED, wait=a_wait(seconds=1.5), priority=-3, goal="Grüße \x00 '"
    )
    store = ActivityStore(tmp_path / "activities.db")
    store.add(activity)
    store.add(an_activity("b"))
    store.close()
    store = ActivityStore(tmp_path / "activities.db")
    assert store.get("a") == activity
    assert store.find() == [activity, an_activity("b")]
    assert store.find(ActivityState.READY) == [an_activity("b")]
    assert (store.next_deadline(), store.due(NOW)) == (NOW.timestamp() + 1.5, [])
    assert store.due(NOW + timedelta(seconds=2)) == [("a", activity.wait)]
    assert store.wake("ab", NOW) == [("a", -3)]
    assert store.next_deadline() is None
    store.close()


def test_who_reads_beside_leaves_what_a_killed_owner_left_as_it_is(tmp_path: Path) -> None:
    owner = ActivityStore(tmp_path / "activities.db")
    owner.add(an_activity())
    left = tmp_path / "left"
    left.mkdir()
    files = [left / name for name in ("activities.db", "activities.db-wal")]
    for file in files:  # as they are while it runs: all is in the log that is written ahead
        file.write_bytes((tmp_path / file.name).read_bytes())
    owner.close()
    before = [file.read_bytes() for file in files]
    reader = ActivityStore(files[0], owner=False)
    assert reader.find() == [an_activity()]
    reader.close()
    assert [file.read_bytes() for file in files] == before
    reader = ActivityStore(files[0], owner=False)
    reader.request("a", "wake")
    assert [one.what for one in reader.requests()] == ["wake"]
    reader.close()


def test_two_activities_never_have_one_id() -> None:
    store = ActivityStore()
    store.add(an_activity("activity-000001"))
    assert store.new_id() == "activity-000002"
    with pytest.raises(ValueError, match="'activity-000001' already"):
        store.add(an_activity("activity-000001"))
    with pytest.raises(ValueError, match="no activity 'b'"):
        store.save(an_activity("b"))


def test_a_percept_is_delivered_once_also_after_it_was_perceived() -> None:
    store = ActivityStore()
    store.add(an_activity())
    message = Delivery("a", a_percept(PerceptKind.MESSAGE, "message-7", "user"))
    for _ in range(2):
        store.deliver("pump", "e1:2", [Delivery("a", a_signal(1)), Delivery("a", a_signal(2))])
        store.deliver(None, None, [message])
    assert numbers(store) == ["pump/e1/1", "pump/e1/2", "message-7"]
    store.forget("a", ["pump/e1/1", "pump/e1/2", "message-7"])
    store.deliver("pump", None, [Delivery("a", a_signal(2)), message, Delivery("a", a_signal(3))])
    assert numbers(store) == ["pump/e1/3"]
    assert store.cursor("pump") == "e1:2"


def test_numbers_of_an_inbox_grow_also_after_it_was_emptied(tmp_path: Path) -> None:
    store = ActivityStore(tmp_path / "activities.db")
    store.add(an_activity())
    store.deliver(None, None, [Delivery("a", a_signal(1))])
    (first,) = store.inbox("a")
    store.forget("a", [first.percept.id])
    store.close()
    store = ActivityStore(tmp_path / "activities.db")
    store.deliver(None, None, [Delivery("a", a_signal(2))])
    (second,) = store.inbox("a", after=first.number)
    assert second.number > first.number
    store.close()


def test_what_is_known_of_deliveries_is_bounded() -> None:
    store = ActivityStore()
    store.add(an_activity())
    messages = [a_percept(PerceptKind.MESSAGE, f"message-{n}", "user") for n in range(3_000)]
    with store.together() as db:
        store.deliver(None, None, [Delivery("a", a_signal(1))])
        store.deliver(None, None, [Delivery("a", one) for one in messages])
        store.forget("a", numbers(store))
        for epoch in range(1_500):
            store.deliver(None, None, [reading(1, f"e{epoch}")])
        (known,) = db.execute("SELECT count(*) FROM delivered").fetchone()
    assert 2_000 <= known < 2_300
    arrived = len(numbers(store))
    newest = [Delivery("a", one) for one in messages[-1_000:]]
    store.deliver(None, None, [*newest, reading(1, "e1400")])
    assert len(numbers(store)) == arrived


@given(st.lists(st.tuples(st.integers(1, 8), st.booleans())))
def test_signals_arrive_in_order_and_once_whatever_is_repeated(
    sent: list[tuple[int, bool]],
) -> None:
    store = ActivityStore()
    store.add(an_activity())
    perceived: list[str] = []
    for number, perceives in sent:
        store.deliver(
            "pump", f"e1:{number}", [Delivery("a", a_signal(n + 1)) for n in range(number)]
        )
        if perceives:
            perceived += numbers(store)
            store.forget("a", numbers(store))
    perceived += numbers(store)
    assert perceived == [f"pump/e1/{n + 1}" for n in range(max((n for n, _ in sent), default=0))]


def test_a_newer_reading_takes_the_place_of_one_that_was_not_perceived() -> None:
    store = ActivityStore()
    store.add(an_activity())
    store.deliver("pump", "e1:1", [reading(1), Delivery("a", a_signal(1)), reading(2), reading(1)])
    assert numbers(store) == ["pump/e1/1", "pump/e1/rev-2"]


def test_an_activity_that_is_over_gets_nothing_and_perceives_nothing() -> None:
    store = ActivityStore()
    store.add(an_activity())
    store.focus("a", "pump", frozenset({"pump.ready"}))
    store.focus("b", "pump")
    store.deliver(None, None, [Delivery("a", a_signal(1))])
    assert store.focuses() == {"pump": {"a": frozenset({"pump.ready"}), "b": None}}
    store.save(an_activity(state=ActivityState.TERMINATED, end=ActivityEnd.DONE))
    store.deliver(None, None, [Delivery("a", a_signal(2)), Delivery("b", a_signal(2))])
    assert numbers(store) == []
    assert numbers(store, "b") == ["pump/e1/2"], "an inbox may belong to no activity"
    assert store.focuses() == {"pump": {"b": None}}
    store.unfocus("b", "pump")
    assert store.focuses() == {}


def test_several_calls_are_stored_together_or_not_at_all() -> None:
    store = ActivityStore()

    def fails() -> None:
        with store.together():
            store.add(an_activity())
            store.deliver("pump", "e1:1", [Delivery("a", a_signal(1))])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (store.get("a"), store.cursor("pump"), numbers(store)) == (None, None, [])


def test_what_ran_when_the_process_ended_is_ready(tmp_path: Path) -> None:
    store = ActivityStore(tmp_path / "activities.db")
    store.add(an_activity(state=ActivityState.RUNNING))
    store.name_run("a", "20260101-run")
    store.close()
    store = ActivityStore(tmp_path / "activities.db")
    assert store.get("a") == an_activity(run="20260101-run")
    store.close()


_OTHER = """
import sys
from pathlib import Path
from coag.situated import ActivityStore, ActivityStoreError
path = Path(sys.argv[1])
beside = ActivityStore(path, owner=False)
beside.request(beside.find()[0].id, "wake", "by hand")
for attempt in (lambda: beside.forget("a", []), lambda: ActivityStore(path)):
    try:
        attempt()
    except ActivityStoreError as error:
        print(error)
"""


def test_another_process_reads_and_leaves_requests_but_never_owns_the_store_too(
    tmp_path: Path,
) -> None:
    path = tmp_path / "activities.db"
    store = ActivityStore(path)
    store.add(an_activity())
    said = python("-c", _OTHER, path).splitlines()
    assert "who does not own it may only leave requests" in said[0]
    assert "Another process runs the activities" in said[1]
    (request,) = store.requests()
    assert request[1:] == ("a", "wake", "by hand")
    store.settle(request.number)
    assert store.requests() == []
    store.close()


def test_who_reads_beside_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(ActivityStoreError, match="There is no store"):
        ActivityStore(tmp_path / "none.db", owner=False)
    assert list(tmp_path.iterdir()) == []


def damaged(path: Path) -> str:
    content = bytearray(path.read_bytes())
    content[4_096:4_200] = b"\xff" * 104
    path.write_bytes(content)
    return "is damaged: .* It was left as it is"


def of_another_program(path: Path) -> str:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE things (id)")
    db.close()
    return "is no store of activities"


def of_a_newer_version(path: Path) -> str:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    return "newer coag"


def no_database(path: Path) -> str:
    path.write_bytes(b"a letter, not a database" * 100)
    return "failed: file is not a database"


@pytest.mark.parametrize("change", [damaged, of_another_program, of_a_newer_version, no_database])
def test_a_file_that_is_not_right_is_refused_and_left_as_it_is(
    tmp_path: Path, change: Callable[[Path], str]
) -> None:
    path = tmp_path / "activities.db"
    store = ActivityStore(path)
    for number in range(50):
        store.add(an_activity(f"a{number}"))
    store.close()
    said = change(path)
    before = path.read_bytes()
    for _ in range(2):  # the lock was given back
        with pytest.raises(ActivityStoreError, match=said):
            ActivityStore(path)
    assert path.read_bytes() == before


def test_what_no_version_of_ours_wrote_is_named() -> None:
    store = ActivityStore()
    store.add(an_activity())
    with store.together() as db:
        db.execute("""UPDATE activities SET body = '{"id": "a"}'""")
    with pytest.raises(ActivityStoreError, match="holds what is no Activity"):
        store.get("a")
