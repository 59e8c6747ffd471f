"""The clauses of tau2's telecom policy that code can hold, as rules, each beside its sentence.

The policy is `main_policy_solo.md` and `tech_support_manual.md` of the package. Clauses that ask
for judgement, such as which plan suits a customer, are left to the model. Which clauses these are
was decided by reading the policy, and with the tasks at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from case_study.bench.telecom import CHANGES, TelecomState
from coag.cycle import rule
from coag.schema import Constraint

MOST_REFUELED_GB = 2.0
TODAY = "2025-02-25"
"""'The current time is 2025-02-25 12:08:00 EST.'"""
_UNKNOWN = "is not known yet: call {} first"

ClauseRule = tuple[str, Constraint]
_CLAUSES: dict[str, ClauseRule] = {}


def rule_beside(sentence: str, *actions: str) -> Callable[[Callable[..., str | None]], Any]:
    """A rule for these actions, kept with the sentence of the policy that it holds."""

    def add(function: Callable[..., str | None]) -> Any:
        made = rule(*actions)(function)
        _CLAUSES[made.name] = (sentence, made)
        return made

    return add


def _needs(value: object, tool: str) -> str | None:
    return None if value is not None else f"it {_UNKNOWN.format(tool)}"


# ---- The account ----


@rule_beside(
    "You must first identify the customer.",
    *sorted({*CHANGES, "get_bills_for_customer", "get_data_usage", "transfer_to_human_agents"}),
)
def customer_identified(state: TelecomState) -> str | None:
    """Nothing of an account or a phone is changed before the customer is known."""
    return _needs(state.customer, "get_customer_by_phone with the ticket's number")


@rule_beside(
    "Apply the refueled data to the line associated with the phone number the user provided.",
    *("refuel_data", "enable_roaming", "disable_roaming", "resume_line", "suspend_line"),
)
def own_line(state: TelecomState, line_id: str) -> str | None:
    """Lines of others, and the customer's other lines, are left alone."""
    line = state.lines.get(line_id)
    if line is None:
        return f"what line {line_id} is {_UNKNOWN.format(f'get_details_by_id({line_id!r})')}"
    if line.phone != state.ticket.phone:
        return f"line {line_id} has the number {line.phone}, the ticket {state.ticket.phone}"
    return None


@rule_beside(
    "The send payement request tool will not check if the bill is overdue. You should always check "
    "that the bill is overdue before sending a payment request.",
    "send_payment_request",
)
def bill_is_overdue(state: TelecomState, bill_id: str) -> str | None:
    """Only a bill that was read as overdue is to be paid."""
    status = state.bills.get(bill_id)
    if status is None:
        return f"the status of bill {bill_id} {_UNKNOWN.format('get_bills_for_customer')}"
    return None if status == "Overdue" else f"bill {bill_id} is {status}, not Overdue"


@rule_beside(
    "A user can only have one bill in the AWAITING PAYMENT status at a time.",
    "send_payment_request",
)
def one_bill_awaits(state: TelecomState) -> str | None:
    """No second request while one is open."""
    awaiting = [one for one, status in state.bills.items() if status == "Awaiting Payment"]
    return f"bill {awaiting[0]} awaits payment already" if awaiting else None


@rule_beside(
    "You can only do so if the ticket specifies that the user has given you the permission to make "
    "payments!",
    *("send_payment_request", "make_payment"),
)
def may_pay(state: TelecomState) -> str | None:
    """No payment without the permission."""
    return None if state.ticket.may_pay else "the ticket gives no permission to make payments"


@rule_beside(
    "Check their payment requests using the check_payment_request tool.",
    "make_payment",
)
def request_checked(state: TelecomState) -> str | None:
    """A request is read before it is accepted."""
    return _needs(state.request, "check_payment_request")


@rule_beside(
    "You are allowed to lift the suspension after the user has paid all their overdue bills.",
    "resume_line",
)
def bills_are_paid(state: TelecomState) -> str | None:
    """No line is resumed while a bill is open, or before the bills were read again."""
    if not state.bills:
        return f"whether bills are paid {_UNKNOWN.format('get_bills_for_customer')}"
    due = [one for one, status in state.bills.items() if status in ("Overdue", "Awaiting Payment")]
    return f"bill {due[0]} is {state.bills[due[0]]}: it has to be paid first" if due else None


@rule_beside(
    "You are not allowed to lift the suspension if the line's contract end date is in the past, "
    "even if the user has paid all their overdue bills.",
    "resume_line",
)
def contract_runs(state: TelecomState, line_id: str) -> str | None:
    """A line whose contract has ended stays suspended."""
    line = state.lines.get(line_id)
    if line is not None and "" < line.contract_end < TODAY:
        return f"the contract of {line_id} ended on {line.contract_end}: transfer to a human agent"
    return None


@rule_beside(
    "The maximum amount of data that can be refueled is 2GB.",
    "refuel_data",
)
def at_most_two_gb(state: TelecomState, gb_amount: float, line_id: str) -> str | None:
    """What was refueled before counts too."""
    line = state.lines.get(line_id)
    before = 0.0 if line is None else line.refueled_gb
    if before + gb_amount > MOST_REFUELED_GB:
        return f"{before:g} GB and {gb_amount:g} GB are more than {MOST_REFUELED_GB:g} GB"
    return None


@rule_beside(
    "To refuel data you should: Know how much data they want to refuel",
    "refuel_data",
)
def amount_is_wanted(state: TelecomState, gb_amount: float) -> str | None:
    """The amount is the one that the ticket names."""
    wanted = state.ticket.refuel_gb
    if wanted is None:
        return "the ticket does not say that the customer wants data to be refueled, nor how much"
    return None if gb_amount == wanted else f"the customer wants {wanted:g} GB, not {gb_amount:g}"


@rule_beside(
    "To refuel data you should: ... Confirm the price",
    "refuel_data",
)
def price_is_known(state: TelecomState, line_id: str) -> str | None:
    """The price of the line's plan was read."""
    line = state.lines.get(line_id)
    if line is None or line.plan in state.prices:
        return None
    return f"the price {_UNKNOWN.format(f'get_details_by_id({line.plan!r})')}"


@rule_beside(
    "If the user's data usage for a line exceeds the plan's data limit, data connectivity will be "
    "lost. You can add more data to the line by 'refueling' data",
    "refuel_data",
)
def data_is_used_up(state: TelecomState, line_id: str) -> str | None:
    """No data is sold to who has some left."""
    over = state.exceeded.get(line_id)
    if over is None:
        return f"whether data is used up {_UNKNOWN.format('get_data_usage')}"
    return None if over else f"line {line_id} has data left"


@rule_beside(
    "If a user is traveling outside their home network, you should check if the line is roaming "
    "enabled. If it is not, you should enable it at no cost for the user.",
    "enable_roaming",
)
def line_needs_roaming(state: TelecomState, line_id: str) -> str | None:
    """Only for travellers, and only where it is not enabled."""
    line = state.lines.get(line_id)
    if state.ticket.abroad is not True:
        return "the ticket does not say that the customer is traveling"
    return f"line {line_id} is roaming enabled already" if line and line.roaming else None


# ---- The phone ----


def _switch(sentence: str, tool: str, reading: str, wanted: object, check: str, what: str) -> None:
    """A rule: this tool only where the reading says so; it must not be a guess."""

    def judge(state: TelecomState) -> str | None:
        value = getattr(state.phone, reading)
        if value is None:
            return f"{what} {_UNKNOWN.format(check)}"
        return None if value == wanted else f"{what} is not so, as {check} has shown"

    judge.__name__ = f"{tool}_where_it_helps"
    rule_beside(sentence, tool)(judge)


_switch(
    "Airplane Mode: If it is ON, guide the user to use toggle_airplane_mode() to turn it OFF.",
    *("toggle_airplane_mode", "airplane", True, "check_network_status"),
    "that airplane mode is on",
)
_switch(
    'If it shows "Missing", guide the user to use reseat_sim_card() to ensure the SIM card is '
    "correctly inserted.",
    *("reseat_sim_card", "sim", "missing", "check_sim_status"),
    "that the SIM card is missing",
)
_switch(
    "If check_network_status() shows mobile data is disabled, guide the user to use toggle_data() "
    "to turn mobile data ON.",
    *("toggle_data", "data", False, "check_network_status"),
    "that mobile data is off",
)
_switch(
    "If the user is outside their carrier's primary coverage area (roaming) and mobile data isn't "
    "working, guide them to use toggle_roaming() to ensure Data Roaming is ON.",
    *("toggle_roaming", "roaming", False, "check_network_status"),
    "that data roaming is off",
)
_switch(
    'If check_data_restriction_status() shows "Data Saver mode is ON", guide the user to use '
    "toggle_data_saver_mode() to turn it OFF.",
    *("toggle_data_saver_mode", "saver", True, "check_data_restriction_status"),
    "that data saver is on",
)
_switch(
    'If check_vpn_status() shows "VPN is ON and connected" and performance level is "Poor", guide '
    "the user to use disconnect_vpn() to disconnect the VPN.",
    *("disconnect_vpn", "vpn", "poor", "check_vpn_status"),
    "that a poor VPN is connected",
)
_switch(
    'If check_wifi_calling_status() shows "Wi-Fi Calling is ON", guide the user to use '
    "toggle_wifi_calling() to turn it OFF.",
    *("toggle_wifi_calling", "wifi_calling", True, "check_wifi_calling_status"),
    "that Wi-Fi calling is on",
)


@rule_beside(
    'If check_apn_settings() shows "Incorrect" / MMSC URL is not set, guide the user to use '
    "reset_apn_settings() to reset the APN settings.",
    "reset_apn_settings",
)
def apn_is_wrong(state: TelecomState) -> str | None:
    """Settings that are right are not reset."""
    phone = state.phone
    if phone.apn_broken is None or phone.mmsc_missing is None:
        return f"what the APN settings are {_UNKNOWN.format('check_apn_settings')}"
    return None if phone.apn_broken or phone.mmsc_missing else "the APN settings are right"


@rule_beside(
    'If check_network_mode_preference() shows "2G" or "3G", guide the user to use '
    'set_network_mode_preference(mode: str) with the mode "4g_5g_preferred".',
    "set_network_mode_preference",
)
def mode_is_old(state: TelecomState, mode: str) -> str | None:
    """From an old technology to a new one, never the other way."""
    if mode != "4g_5g_preferred":
        return "the mode to set is '4g_5g_preferred'"
    now = state.phone.mode
    if now is None:
        return f"what the mode is {_UNKNOWN.format('check_network_mode_preference')}"
    return None if now.startswith(("2g", "3g")) else f"the mode is {now} already"


@rule_beside(
    'If check_app_permissions(app_name="messaging") shows "storage" and "sms" permissions are not '
    "listed as granted, guide the user to use grant_app_permission",
    "grant_app_permission",
)
def permission_is_needed(state: TelecomState, app_name: str, permission: str) -> str | None:
    """Only the messaging app, only the two permissions, only where they are missing."""
    if app_name != "messaging" or permission.lower() not in ("storage", "sms"):
        return "only the app 'messaging' needs permissions here: 'storage' and 'sms'"
    granted = state.phone.permissions
    if granted is None:
        return f"what it has {_UNKNOWN.format('check_app_permissions')}"
    return f"it has {permission} already" if permission.lower() in granted else None


# ---- How a ticket ends ----


def _beyond_help(state: TelecomState) -> bool:
    """Whether something was read that only a human agent may resolve."""
    line = state.lines.get(state.own_line or "")
    ended = line is not None and line.status == "Suspended" and "" < line.contract_end < TODAY
    used_up = state.exceeded.get(state.own_line or "") and state.ticket.refuel_gb is None
    return state.phone.sim == "locked" or ended or bool(used_up)


@rule_beside(
    "You should escalate to a human agent if and only if the request cannot be handled within the "
    "scope of your actions. ... You should try your best to resolve the issue before escalating",
    "transfer_to_human_agents",
)
def transfer_is_needed(state: TelecomState) -> str | None:
    """Only where a locked SIM card, an ended contract or unwanted costs stand in the way."""
    if _beyond_help(state):
        return None
    return "nothing that was read is beyond your actions: go on, or check what is not known yet"


@rule_beside(
    "After resetting the APN settings, the user must be instructed to use reboot_device() for the "
    "changes to apply. / After you resume the line, the user will have to reboot their device",
    "respond",
)
def rebooted(state: TelecomState) -> str | None:
    """No answer while a restart is due. Holds for agents whose answers are actions."""
    return "the phone has to be restarted: call reboot_device" if state.phone.reboot_due else None


@rule_beside(
    "(The ticket:) They will consider the issue resolved when ...",
    "respond",
)
def resolved(state: TelecomState) -> str | None:
    """No answer before the test says so. Holds for agents whose answers are actions."""
    phone = state.phone
    met, check = {
        "service": (phone.signal, "check_status_bar"),
        "excellent": (
            None if phone.speed is None else phone.speed == "excellent",
            "run_speed_test",
        ),
        "mms": (phone.mms, "can_send_mms"),
    }[state.ticket.wish]
    if met or state.transferred:
        return None
    if met is None:
        return f"whether the issue is resolved {_UNKNOWN.format(check)}"
    return f"{check} says that the issue is not resolved: go on, or transfer to a human agent"


@rule("refuel_data")
def amount_is_not_another(state: TelecomState, gb_amount: float) -> str | None:
    """As `amount_is_wanted`, but a ticket that is silent leaves it to the agent."""
    wanted = state.ticket.refuel_gb
    if wanted in (None, gb_amount):
        return None
    return f"the customer wants {wanted:g} GB, not {gb_amount:g}"


def telecom_rules(*, silent: bool = False) -> Sequence[Constraint]:
    """The rules of the policy, in its order.

    Args:
        silent: Whether an agent may refuel data where the ticket says nothing of it. The policy
            asks to know how much the customer wants; tau2's golden actions refuel all the same.
    """
    rules = {name: made for name, (_, made) in _CLAUSES.items()}
    if silent:
        rules["amount_is_wanted"] = amount_is_not_another
    return list(rules.values())


def sentences() -> Mapping[str, str]:
    """By rule, the sentence of the policy that it holds."""
    return {name: sentence for name, (sentence, _) in _CLAUSES.items()}
