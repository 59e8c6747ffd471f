"""What tau2's telecom tools tell, as a state that rules can judge by.

The state holds what was read and nothing else: a reading that an action may have changed is not
known again until it is taken once more. tau2 itself is not imported here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast

from pydantic import Field

from coag.context import CoagContext
from coag.schema import Percept, Value

Wish = Literal["service", "excellent", "mms"]
"""When the ticket's customer considers the issue resolved: there is signal, a speed test says
excellent, a picture message can be sent."""


class Ticket(Value):
    """What a ticket says."""

    phone: str = ""
    abroad: bool | None = None
    """None where it says nothing of where the customer is."""
    may_pay: bool = False
    """Whether they gave permission to pay their overdue bills."""
    refuel_gb: float | None = None
    """How much data they want to be refueled with; None where it is not said."""
    wish: Wish = "service"


_PHONE = re.compile(r"phone number: ([\d-]+)")
_REFUEL = re.compile(r"they will refuel (\d+(?:\.\d+)?) GB")


def read_ticket(text: str) -> Ticket:
    """The facts of a ticket's text."""
    phone, refuel = _PHONE.search(text), _REFUEL.search(text)
    wish: Wish = "service"
    if "speed test returns excellent" in text:
        wish = "excellent"
    elif "MMS message can be successfully sent" in text:
        wish = "mms"
    return Ticket(
        phone=phone.group(1) if phone else "",
        abroad=True if "abroad" in text else False if "at home" in text else None,
        may_pay="permission to pay" in text,
        refuel_gb=float(refuel.group(1)) if refuel else None,
        wish=wish,
    )


class Line(Value):
    """A customer's line, as it was read last."""

    phone: str
    status: str
    plan: str
    roaming: bool
    contract_end: str
    """ISO date; empty where there is none."""
    refueled_gb: float


class Phone(Value):
    """What was read of the phone; None is not known now."""

    airplane: bool | None = None
    sim: Literal["active", "missing", "locked"] | None = None
    data: bool | None = None
    roaming: bool | None = None
    saver: bool | None = None
    mode: str | None = None
    vpn: Literal["off", "on", "poor"] | None = None
    wifi_calling: bool | None = None
    apn_broken: bool | None = None
    mmsc_missing: bool | None = None
    permissions: tuple[str, ...] | None = None
    """Those of the messaging app."""
    signal: bool | None = None
    speed: str | None = None
    """Of the last speed test: `excellent` and so on, or `none`."""
    mms: bool | None = None
    """Whether a picture message can be sent."""
    reboot_due: bool = False
    """Something takes effect only when the phone has been restarted."""


class TelecomState(Value):
    """What is known in one ticket."""

    ticket: Ticket = Ticket()
    customer: str | None = None
    """Id of the customer whose phone number the ticket has, once looked up."""
    lines: dict[str, Line] = Field(default_factory=dict[str, Line])
    prices: dict[str, float] = Field(default_factory=dict[str, float])
    """Price of a refueled GB, by plan."""
    exceeded: dict[str, bool] = Field(default_factory=dict[str, bool])
    """Whether a line's data is used up, by line."""
    bills: dict[str, str] = Field(default_factory=dict[str, str])
    """Status of bills, by id; empty where they were not read since they may have changed."""
    request: str | None = None
    """Bill of the payment request that was read."""
    transferred: bool = False
    phone: Phone = Phone()

    @property
    def own_line(self) -> str | None:
        """Id of the line that has the ticket's phone number; None before it was read."""
        owned = (one for one, line in self.lines.items() if line.phone == self.ticket.phone)
        return next(owned, None)


# ---- Reading what tools return ----


_BAR = "Status Bar:"
_SWITCHES: Mapping[str, tuple[str, str]] = {
    "toggle_airplane_mode": ("airplane", "Airplane Mode is now ON"),
    "toggle_data": ("data", "Mobile Data is now ON"),
    "toggle_roaming": ("roaming", "Data Roaming is now ON"),
    "toggle_data_saver_mode": ("saver", "Data Saver Mode is now ON"),
    "toggle_wifi_calling": ("wifi_calling", "Wi-Fi Calling is now ON"),
    "check_data_restriction_status": ("saver", "Data Saver mode is ON"),
    "check_wifi_calling_status": ("wifi_calling", "turned ON"),
    "can_send_mms": ("mms", "can send MMS"),
}
"""By tool: what it tells, and the words by which it is so."""
CHANGES = frozenset(
    {
        *("toggle_airplane_mode", "toggle_data", "toggle_roaming", "toggle_data_saver_mode"),
        *("toggle_wifi_calling", "toggle_wifi", "reseat_sim_card", "set_network_mode_preference"),
        *("set_apn_settings", "reset_apn_settings", "connect_vpn", "disconnect_vpn"),
        *("grant_app_permission", "reboot_device", "enable_roaming", "disable_roaming"),
        *("refuel_data", "resume_line", "suspend_line", "send_payment_request", "make_payment"),
    }
)
"""Tools that change something."""
_SPEED = re.compile(r"Mbps \(([^)]+)\)")


def _bar(text: str) -> dict[str, Any]:
    if _BAR not in text:
        return {}
    shown = text.rpartition(_BAR)[2]
    airplane = "Airplane Mode" in shown
    found: dict[str, Any] = {"airplane": airplane, "vpn": None if "VPN" in shown else "off"}
    found["signal"] = not airplane and "No Signal" not in shown
    if "Data Enabled" in shown:
        found |= {"data": True, "saver": "Data Saver" in shown}
    return {name: value for name, value in found.items() if value is not None}


def _network(text: str) -> dict[str, Any]:
    lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    return {
        "airplane": lines.get("Airplane Mode") == "ON",
        "sim": _sim_of(lines.get("SIM Card Status", "")),
        "data": lines.get("Mobile Data Enabled") == "Yes",
        "roaming": lines.get("Data Roaming Enabled") == "Yes",
        "signal": lines.get("Cellular Connection") == "connected",
    }


def _sim_of(text: str) -> str | None:
    lower = text.lower()
    if "locked" in lower:
        return "locked"
    if "missing" in lower or "no sim" in lower:
        return "missing"
    return "active" if "active" in lower else None


def _vpn(text: str) -> dict[str, Any]:
    if "ON and connected" not in text:
        return {"vpn": "off"}
    return {"vpn": "poor" if "poor" in text.lower() else "on"}


def _speed(text: str) -> dict[str, Any]:
    found = _SPEED.search(text)
    return {"speed": found.group(1).lower() if found else "none"}


def _permissions(text: str) -> dict[str, Any]:
    if "'messaging'" not in text:
        return {}
    listed = text.partition("permission for:")[2].strip(" .")
    return {"permissions": tuple(one.strip() for one in listed.split(",") if one.strip())}


_READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "check_network_status": _network,
    "check_sim_status": lambda text: {"sim": _sim_of(text)},
    "check_network_mode_preference": lambda text: {"mode": text.rpartition(": ")[2].strip()},
    "check_vpn_status": _vpn,
    "check_apn_settings": lambda text: {
        "apn_broken": "APN Name: broken" in text,
        "mmsc_missing": "(for picture messages): Not Set" in text,
    },
    "check_app_permissions": _permissions,
    "run_speed_test": _speed,
    "reseat_sim_card": lambda text: {"sim": None},
    "set_network_mode_preference": lambda text: {"mode": None},
    "set_apn_settings": lambda text: {"apn_broken": None, "mmsc_missing": None},
    "reset_apn_settings": lambda text: {"reboot_due": True},
    "reboot_device": lambda text: {"reboot_due": False, "apn_broken": None, "mmsc_missing": None},
    "connect_vpn": lambda text: {"vpn": None},
    "grant_app_permission": lambda text: {"permissions": None},
    "resume_line": lambda text: {"reboot_due": True},
}


def phone_after(phone: Phone, tool: str, text: str) -> Phone:
    """The phone after one of its own tools has returned a text."""
    news: dict[str, Any] = {}
    if tool in CHANGES:
        news = {"speed": None, "mms": None, "signal": None}
    news |= _bar(text)
    if tool in _SWITCHES:
        name, words = _SWITCHES[tool]
        news[name] = words in text
    if tool in _READERS:
        news |= _READERS[tool](text)
    return phone.model_copy(update=news)


def _line(data: Mapping[str, Any]) -> Line:
    return Line(
        phone=str(data.get("phone_number", "")),
        status=str(data.get("status", "")),
        plan=str(data.get("plan_id", "")),
        roaming=bool(data.get("roaming_enabled")),
        contract_end=str(data.get("contract_end_date") or "")[:10],
        refueled_gb=float(data.get("data_refueling_gb") or 0),
    )


def _account(state: TelecomState, data: Any) -> dict[str, Any]:
    """What records of the account say; a list of bills, or one object."""
    if isinstance(data, list):
        entries = cast("list[dict[str, Any]]", data)
        bills = {str(one["bill_id"]): str(one["status"]) for one in entries if "bill_id" in one}
        return {"bills": {**state.bills, **bills}} if bills else {}
    if not isinstance(data, dict):
        return {}
    entry = cast("dict[str, Any]", data)
    if "bill_id" in entry:
        return {"bills": {**state.bills, entry["bill_id"]: entry["status"]}}
    if "line_id" in entry and "plan_id" in entry:
        return {"lines": {**state.lines, entry["line_id"]: _line(entry)}}
    if "data_used_gb" in entry and "data_limit_gb" in entry:
        used, limit = float(entry["data_used_gb"]), float(entry["data_limit_gb"])
        over = used >= limit + float(entry.get("data_refueling_gb") or 0)
        return {"exceeded": {**state.exceeded, entry["line_id"]: over}}
    if "data_refueling_price_per_gb" in entry:
        price = float(entry["data_refueling_price_per_gb"])
        return {"prices": {**state.prices, entry["plan_id"]: price}}
    return {}


def _found(state: TelecomState, tool: str, arguments: Mapping[str, Any], data: Any) -> str | None:
    """The customer, once looked up by the ticket's number, or by id or name with that number."""
    if not tool.startswith("get_customer"):
        return state.customer
    entries: list[Any] = cast("list[Any]", data) if isinstance(data, list) else [data]
    for one in entries:
        if isinstance(one, dict):
            entry = cast("dict[str, Any]", one)
            if state.ticket.phone in (arguments.get("phone_number"), entry.get("phone_number")):
                return str(entry.get("customer_id"))
    return state.customer


def _refueled(data: Any) -> dict[str, Any]:
    entry = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    amount = entry.get("new_data_refueling_gb")
    return {} if amount is None else {"refueled_gb": float(amount)}


_LINE_AFTER: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "enable_roaming": lambda data: {"roaming": True},
    "disable_roaming": lambda data: {"roaming": False},
    "resume_line": lambda data: {"status": "Active"},
    "suspend_line": lambda data: {"status": "Suspended"},
    "refuel_data": _refueled,
}
"""By tool of a line: what is different when it went well."""


def state_after(
    state: TelecomState, tool: str, arguments: Mapping[str, Any], text: str, data: Any
) -> TelecomState:
    """The state after a call that went well."""
    news: dict[str, Any] = {"phone": phone_after(state.phone, tool, text)}
    news["customer"] = _found(state, tool, arguments, data)
    line = str(arguments.get("line_id", ""))
    if tool in ("send_payment_request", "make_payment"):
        news |= {"bills": {}, "request": None}
    elif tool in _LINE_AFTER and line in state.lines:
        changed = state.lines[line].model_copy(update=_LINE_AFTER[tool](data))
        news["lines"] = {**state.lines, line: changed}
        news["exceeded"] = {key: one for key, one in state.exceeded.items() if key != line}
    elif tool == "check_payment_request":
        found = re.search(r"for bill (\S+)", text)
        news["request"] = found.group(1) if found else None
    elif tool == "transfer_to_human_agents":
        news["transferred"] = True
    elif tool.startswith("get_"):
        news |= _account(state, data)
    return state.model_copy(update=news)


class TelecomContext(CoagContext[TelecomState]):
    """Working memory of an agent that works on one ticket."""

    def __init__(self, ticket: str = "", **context: Any) -> None:
        self._ticket = read_ticket(ticket)
        super().__init__(**context)

    def _initial_state(self) -> TelecomState:
        return TelecomState(ticket=self._ticket)

    def _update_state_from_function_result(
        self, state: TelecomState, percept: Percept
    ) -> TelecomState:
        if percept.is_error:
            return state
        arguments = percept.arguments or {}
        return state_after(state, percept.source, arguments, percept.content, percept.data)

    def _get_state_description(self, state: TelecomState) -> str:
        known = state.model_dump(mode="json", exclude_none=True, exclude={"ticket"})
        phone = {name: value for name, value in known.pop("phone").items() if value != []}
        known = {name: value for name, value in known.items() if value}
        return f"Known so far: {known | {'phone': phone}}"
