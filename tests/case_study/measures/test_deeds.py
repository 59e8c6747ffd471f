from __future__ import annotations

from kits.measured import Deed, deeds, elsewhere, instance, played

from case_study.measures import Deeds, tally_of

WORKS: Deed = ("step", "on", "done", "")
FAILS: Deed = ("step", "on", "failed", "")


def _deeds(*done: Deed, **more: object) -> Deeds:
    return tally_of(elsewhere(deeds(*done), **more)).deeds


def test_what_would_fail_again_is_unsound_and_what_passes_is_not() -> None:
    found = _deeds(WORKS, FAILS, ("step", "up", "passing", ""), ("step", "up", "unknown", ""))
    assert (found.acted, found.failed) == (4, 1)


def test_looking_is_no_deed() -> None:
    found = _deeds(FAILS, ("look", "", "done", ""), WORKS)
    assert (found.acted, found.adaptation_actions) == (2, 1)


def test_the_same_call_again_before_anything_worked_is_a_repeated_mistake() -> None:
    assert _deeds(FAILS, FAILS, FAILS).repeated_mistakes == 2
    assert _deeds(FAILS, ("step", "up", "failed", ""), FAILS).repeated_mistakes == 1
    assert _deeds(FAILS, ("step", "up", "done", ""), FAILS).repeated_mistakes == 0
    assert _deeds(("step", "on", "passing", ""), FAILS).repeated_mistakes == 0


def test_a_mistake_is_repeated_in_the_same_place_only() -> None:
    setup = instance((0, 0), [])
    again = tally_of(played(setup, "north", "north", "east", "west", "north")).deeds
    assert again.repeated_mistakes == 2
    assert tally_of(played(setup, "north", "east", "north")).deeds.repeated_mistakes == 0


def test_adaptation_counts_actions_and_seconds_to_the_next_that_works() -> None:
    found = _deeds(WORKS, FAILS, FAILS, FAILS, WORKS, FAILS, WORKS)
    assert (found.setbacks, found.unadapted) == (2, 0)
    assert (found.adaptation_actions, found.adaptation_seconds) == (3 + 1, 6 + 2)


def test_who_never_gets_over_it_is_counted_up_to_the_end() -> None:
    found = _deeds(FAILS, FAILS, FAILS)
    assert (found.setbacks, found.unadapted, found.adaptation_actions) == (1, 1, 2)


def test_a_failure_with_nothing_after_it_tells_nothing_of_adaptation() -> None:
    assert _deeds(WORKS, FAILS).setbacks == 0
    assert _deeds() == Deeds()


def test_what_does_not_exist_is_a_false_affordance_each_time() -> None:
    assert _deeds(("fly", "", "failed", ""), ("fly", "", "failed", "")).false_affordances == 2


def test_a_false_promise_may_be_tried_once() -> None:
    gadget: Deed = ("charge", "", "done", "")
    known = {"gadgets": frozenset({"charge"})}
    assert _deeds(gadget, WORKS, **known).false_affordances == 0
    assert _deeds(gadget, gadget, gadget, **known).false_affordances == 2
