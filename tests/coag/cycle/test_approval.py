from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kits.minds import NOW, HandClock

from coag.context import Utterance, WorkingMemory
from coag.cycle import (
    ApprovalAnswer,
    ApprovalOccasion,
    ApprovalPolicy,
    ApprovalRequest,
    Approvals,
    ApproveFunction,
    memory_version,
)
from coag.cycle.approval import ApprovalEvent, still_holds
from coag.schema import Candidate, Clock, RetrievalOutcome, SteppingClock, Trust, Verdict

PAY = Candidate(id="c1", action="pay", reason="it is due", expected_effect="no more debt")
ASK_ALWAYS = ApprovalPolicy(actions=["pay", "delete_*"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
ARGUMENTS = st.dictionaries(st.text(), JSON, max_size=4)


def a_request(**changes: Any) -> ApprovalRequest:
    fields: dict[str, Any] = {
        "id": "approval-000001",
        "agent": "clerk",
        "cycle": 3,
        "goal": "Pay what is due.",
        "action": "pay",
        "arguments": {"amount": 5},
        "risk": "high",
        "reason": "its risk is high",
        "memory_version": "m1",
        "policy": "approval@1",
        "policy_digest": "p1",
        "asked_at": NOW,
        "expires_at": NOW + timedelta(seconds=60),
        "approval_seconds": 60,
    }
    return ApprovalRequest(**fields | changes)


async def all_verdicts(approvals: Approvals, *given: Any) -> tuple[Verdict, ...]:
    return tuple(one.verdict for one in await approvals.decisions(*given))


class Desk:
    """One agent's side of approval: its action, its memory and the events it got."""

    def __init__(
        self,
        approver: ApproveFunction,
        policy: ApprovalPolicy = ASK_ALWAYS,
        clock: Clock | None = None,
    ) -> None:
        self.memory = "m1"
        self.events: list[ApprovalEvent] = []
        self.approvals = Approvals(approver, policy, clock=clock or SteppingClock())

    async def verdict(
        self, arguments: Mapping[str, Any] | None = None, agent: str = "clerk"
    ) -> Verdict:
        given = {"amount": 5} if arguments is None else arguments
        return await self.approvals.verdict(PAY, given, self.occasion(agent), self.events.append)

    def occasion(self, agent: str = "clerk") -> ApprovalOccasion:
        return ApprovalOccasion(
            agent=agent, goal="Pay.", cycle=3, memory_version=lambda: self.memory
        )

    def steps(self) -> list[str]:
        return [event.what for event in self.events]


class Asked:
    """An approver that keeps what it was asked and answers in turn; the last answer repeats."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[ApprovalRequest] = []

    async def __call__(self, request: ApprovalRequest) -> Any:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(request) if callable(answer) else answer


# --- the digest


CHANGES = st.one_of(
    st.fixed_dictionaries({"agent": st.text()}),
    st.fixed_dictionaries({"action": st.text()}),
    st.fixed_dictionaries({"arguments": ARGUMENTS}),
    st.fixed_dictionaries({"memory_version": st.text()}),
    st.fixed_dictionaries({"policy": st.text()}),
    st.fixed_dictionaries({"policy_digest": st.text()}),
)


def is_same(left: Any, right: Any) -> bool:
    """Equal as JSON: in Python, true is 1, and 1 is 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        mine, others = cast("dict[str, Any]", left), cast("dict[str, Any]", right)
        return mine.keys() == others.keys() and all(is_same(mine[k], others[k]) for k in mine)
    if isinstance(left, list):
        pairs = zip(cast("list[Any]", left), cast("list[Any]", right), strict=False)
        return len(left) == len(right) and all(is_same(one, other) for one, other in pairs)  # pyright: ignore[reportUnknownArgumentType] - JSON
    return repr(left) == repr(right)


@given(CHANGES)
@example({"arguments": {"amount": 5.0}})
@example({"arguments": {"amount": True}})
def test_no_change_of_a_bound_part_leaves_the_digest_equal_or_an_approval_valid(
    changes: dict[str, Any],
) -> None:
    before, after = a_request(), a_request(**changes)
    name, value = next(iter(changes.items()))
    same = is_same(getattr(before, name), value)
    assert (after.digest == before.digest) is same
    assert (before.difference(after) == ()) is same
    approval = before.stamp(before.grant("ann"), NOW)
    assert still_holds(approval, after, NOW) is same


@given(ARGUMENTS, ARGUMENTS)
@example({"a": True}, {"a": 1})
def test_different_arguments_have_different_digests(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    same = a_request(arguments=one).digest == a_request(arguments=other).digest
    assert same is is_same(one, other)
    turned = dict(reversed(one.items()))
    assert a_request(arguments=turned).digest == a_request(arguments=one).digest


@given(st.floats(min_value=0, max_value=1e6), st.floats(min_value=1e-3, max_value=1e6))
def test_neither_an_expired_approval_nor_a_denial_holds(late: float, lifetime: float) -> None:
    request = a_request(approval_seconds=lifetime)
    approval = request.stamp(request.grant("ann"), NOW)
    assert still_holds(approval, request, NOW)
    assert not still_holds(approval, request, approval.expires_at + timedelta(seconds=late))
    assert not still_holds(request.stamp(request.deny("ann"), NOW), request, NOW)


def test_values_survive_json() -> None:
    request = a_request()
    answer = request.grant("ann", "fine")
    for value in (request, answer, request.stamp(answer, NOW)):
        assert type(value).model_validate_json(value.model_dump_json()) == value


# --- the version of working memory


def test_the_version_of_memory_changes_with_what_an_action_is_decided_upon() -> None:
    base = WorkingMemory(activity="a", goal="clean", perceptual_state={"dirt": 3})
    said = Utterance(source="user", own=False, trust=Trust.USER, content="Stop!", at=NOW)
    retrieval = RetrievalOutcome(cycle=1, at=NOW, query="", constraints=("no_deletion",))
    others = [
        base.model_copy(update={"activity": "b"}),
        base.model_copy(update={"goal": "cook"}),
        base.model_copy(update={"goal_trust": Trust.UNTRUSTED}),
        base.model_copy(update={"perceptual_state": {"dirt": 2}}),
        base.model_copy(update={"dialogue": (said,)}),
        base.commit(retrieval),
    ]
    assert len({memory_version(memory) for memory in [base, *others]}) == 1 + len(others)


def test_the_version_of_memory_does_not_change_with_time_or_cycles() -> None:
    early = Utterance(source="user", own=False, trust=Trust.USER, content="Go.", at=NOW)
    late = early.model_copy(update={"at": NOW + timedelta(hours=1)})
    versions = {
        memory_version(WorkingMemory(activity="a", cycle=cycle, dialogue=(utterance,)))
        for cycle in (1, 2)
        for utterance in (early, late)
    }
    assert len(versions) == 1


# --- the policy


def over_100(action: str, arguments: Mapping[str, Any]) -> bool | str:
    return "it is over 100" if arguments.get("amount", 0) > 100 else False


class Named:
    name = "send_mail"


def delete_file() -> None: ...


@pytest.mark.parametrize(
    ("policy", "action", "arguments", "reason"),
    [
        (ApprovalPolicy(actions=["delete_*"]), "delete_all", {}, "it matches 'delete_*'"),
        (ApprovalPolicy(actions=["delete_*"]), "Delete_all", {}, None),
        (ApprovalPolicy(tools=[delete_file, Named(), "p*"]), "delete_file", {}, "the tool is"),
        (ApprovalPolicy(tools=[delete_file, Named(), "p*"]), "send_mail", {}, "the tool is"),
        (ApprovalPolicy(tools=[delete_file, Named(), "p*"]), "pay", {}, None),
        (ApprovalPolicy(when=[over_100]), "pay", {"amount": 101}, "it is over 100"),
        (ApprovalPolicy(when=[over_100]), "pay", {"amount": 100}, None),
        (ApprovalPolicy(when=[over_100]), "pay", {"amount": "x"}, "over_100 raised TypeError"),
        (ApprovalPolicy(when=[lambda a, b: True]), "pay", {}, f"a lambda in {__name__}, says so"),
        (ApprovalPolicy(risk={"drop_test": "low", "d*": "high"}), "drop", {}, "its risk is high"),
        (ApprovalPolicy(risk={"drop_test": "low", "d*": "high"}), "drop_test", {}, None),
        (ApprovalPolicy(require={"unclassified"}), "pay", {}, "its risk is unclassified"),
        (ApprovalPolicy.everything(), "pay", {}, "it matches '*'"),
        (ApprovalPolicy.everything(), "respond", {}, None),
    ],
)
def test_the_policy_says_what_needs_approval_and_why(
    policy: ApprovalPolicy, action: str, arguments: dict[str, Any], reason: str | None
) -> None:
    need = policy.need(action, arguments)
    assert (need is None) is (reason is None)
    assert need is None or (reason or "") in need.reason


def test_a_rule_cannot_change_the_arguments() -> None:
    def meddler(action: str, arguments: Mapping[str, Any]) -> bool:
        arguments["amounts"].clear()
        return True

    arguments = {"amounts": [1]}
    assert ApprovalPolicy(when=[meddler]).need("pay", arguments) is not None
    assert arguments == {"amounts": [1]}


def test_a_rule_that_does_not_come_back_says_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_and_on(action: str, arguments: Mapping[str, Any]) -> bool:
        while True:
            pass

    monkeypatch.setattr("coag.cycle.approval.RULE_SECONDS", 0.05)
    need = ApprovalPolicy(when=[on_and_on]).need("pay", {})
    assert need is not None
    assert "the rule on_and_on was too slow" in need.reason


@pytest.mark.parametrize("terms", [{}, {"require": {"high"}}, {"risk": {"a": "low"}}])
def test_a_policy_by_which_nothing_needs_approval_is_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="nothing needs approval"):
        ApprovalPolicy(**terms)


def test_a_tool_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="not 7"):
        ApprovalPolicy(tools=[7])


def test_every_term_of_a_policy_is_in_its_digest() -> None:
    base = ApprovalPolicy(actions=["a"])
    changes: list[dict[str, Any]] = [
        {"name": "n"},
        {"version": "2"},
        {"actions": ("b",)},
        {"tools": ("b",)},
        {"when": (over_100,)},
        {"risk": {"a": "low"}},
        {"require": frozenset({"low"})},
        {"exempt": ()},
        {"approval_seconds": 1},
        {"wait_seconds": 1},
        {"reuse": True},
        {"asks": 1},
    ]
    assert {next(iter(change)) for change in changes} == set(ApprovalPolicy.model_fields)
    digests = {base.model_copy(update=change).digest() for change in changes}
    assert len(digests | {base.digest()}) == len(changes) + 1


# --- asking


async def test_what_needs_no_approval_is_not_asked_about() -> None:
    approver = Asked(False)
    verdict = await Desk(approver, ApprovalPolicy(actions=["delete_*"])).verdict()
    assert (verdict.allowed, approver.requests) == (True, [])


async def test_the_approver_sees_everything_that_it_decides_on() -> None:
    approver = Asked(True)
    await Desk(approver, ApprovalPolicy(risk={"pay": "high"})).verdict({"amount": 7})
    request = approver.requests[0]
    assert (request.agent, request.action, request.arguments) == ("clerk", "pay", {"amount": 7})
    assert (request.risk, request.reason) == ("high", "its risk is high")
    assert (request.wish, request.expected_effect) == ("it is due", "no more debt")
    assert (request.goal, request.cycle, request.policy) == ("Pay.", 3, "approval@1")
    assert request.expires_at - request.asked_at == timedelta(seconds=300)


def grants(request: ApprovalRequest) -> ApprovalAnswer:
    return request.grant("ann", "It is due.")


def denies(request: ApprovalRequest) -> ApprovalAnswer:
    return request.deny("ann", "too dear")


async def test_the_answer_is_a_verdict_with_the_persons_reason_and_is_traced() -> None:
    desk, other = Desk(Asked(grants)), Desk(Asked(denies))
    verdict = await desk.verdict()
    assert (verdict.allowed, verdict.constraint) == (True, "approval")
    assert verdict.reason == "ann approved it. It is due."
    assert desk.steps() == ["asked", "granted"]
    assert desk.events[-1].details()["by"] == "ann"
    denied = Verdict.forbid("ann denied it: too dear", "approval")
    assert await other.verdict() == denied
    assert other.steps() == ["asked", "denied"]


async def raises(request: ApprovalRequest) -> bool:
    raise OSError("no line")


def raises_in_a_thread(request: ApprovalRequest) -> bool:
    raise StopIteration


async def cancels_itself(request: ApprovalRequest) -> bool:
    raise asyncio.CancelledError


def a_yes_to(**changes: Any) -> Callable[[ApprovalRequest], ApprovalAnswer]:
    return lambda request: request.model_copy(update=changes).grant("ann")


def meddling_yes(request: ApprovalRequest) -> ApprovalAnswer:
    request.arguments["amount"] = 1
    return request.grant("ann")


@pytest.mark.parametrize(
    ("approver", "reason"),
    [
        (raises, "raised OSError: no line"),
        (raises_in_a_thread, "raised RuntimeError"),
        (cancels_itself, "was cancelled by itself"),
        (Asked("yes"), "returned 'yes' instead"),
        (Asked(1), "returned 1 instead"),
        (Asked(None), "returned None instead"),
        (Asked({"granted": True}), "returned a dict instead"),
        (Asked(a_yes_to(action="other")), "answered another request"),
        (Asked(a_yes_to(arguments={"amount": 6})), "answered another request"),
        (meddling_yes, "answered another request"),
    ],
)
async def test_whatever_is_not_a_plain_yes_is_a_denial(
    approver: ApproveFunction, reason: str
) -> None:
    verdict = await Desk(approver).verdict()
    assert not verdict.allowed
    assert re.search(reason, verdict.reason)


@pytest.mark.parametrize("blocks", [False, True])
async def test_an_approver_that_hangs_or_blocks_is_a_denial(blocks: bool) -> None:
    ended = threading.Event()

    async def hangs(request: ApprovalRequest) -> bool:
        await asyncio.Event().wait()
        return True

    policy = ASK_ALWAYS.model_copy(update={"wait_seconds": 0.01})
    verdict = await Desk((lambda _: ended.wait()) if blocks else hangs, policy).verdict()
    ended.set()
    assert (verdict.allowed, verdict.reason) == (False, "nobody answered within 0.01 s")


async def test_cancellation_while_waiting_passes_through() -> None:
    waiting = asyncio.Event()

    async def hangs(request: ApprovalRequest) -> bool:
        waiting.set()
        await asyncio.Event().wait()
        return True

    desk = Desk(hangs)
    task = asyncio.create_task(desk.verdict())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.steps() == ["asked", "withdrawn"]


@pytest.mark.parametrize("value", [{"a": {1: 2}}, {"a": float("nan")}, {"a": object()}])
async def test_what_cannot_be_shown_as_json_is_denied_unasked(value: dict[str, Any]) -> None:
    approver = Asked(True)
    verdict = await Desk(approver).verdict(value)
    assert not verdict.allowed
    assert verdict.reason.startswith("nobody can be asked about its arguments")
    assert approver.requests == []


# --- what changes in between


async def test_a_change_of_memory_while_waiting_asks_again() -> None:
    async def slow(request: ApprovalRequest) -> bool:
        desk.memory = "m2"
        return True

    desk = Desk(slow)
    assert (await desk.verdict()).allowed
    assert desk.steps() == ["asked", "changed", "asked", "granted"]
    assert desk.events[1].text.endswith("this changed before it could run: memory_version")
    assert [event.request.memory_version for event in desk.events] == ["m1", "m1", "m2", "m2"]
    assert (desk.events[2].request.attempt, "memory_version" in desk.events[2].request.changed) == (
        2,
        True,
    )


async def test_a_change_of_the_arguments_while_waiting_asks_again() -> None:
    arguments = {"amount": 5}

    async def slow(request: ApprovalRequest) -> bool:
        arguments["amount"] = 6
        return True

    desk = Desk(slow)
    assert (await desk.verdict(arguments)).allowed
    reply = [event.request.arguments for event in desk.events if event.what == "asked"]
    assert reply == [{"amount": 5}, {"amount": 6}]


def one_rule() -> Callable[[str, Mapping[str, Any]], bool]:
    return lambda action, arguments: True


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (ASK_ALWAYS, ASK_ALWAYS.model_copy(update={"version": "2"})),
        (ASK_ALWAYS, ApprovalPolicy(when=[one_rule()])),
        (ApprovalPolicy(when=[one_rule()]), ApprovalPolicy(when=[one_rule()])),  # of one digest
    ],
)
async def test_a_change_of_the_policy_while_waiting_asks_again(
    first: ApprovalPolicy, other: ApprovalPolicy
) -> None:
    async def slow(request: ApprovalRequest) -> bool:
        desk.approvals.policy = other
        return True

    desk = Desk(slow, first)
    assert (await desk.verdict()).allowed
    assert desk.steps() == ["asked", "changed", "asked", "granted"]


async def test_what_changes_each_time_is_asked_about_so_many_times_only() -> None:
    async def slow(request: ApprovalRequest) -> bool:
        desk.memory += "+"
        return True

    desk = Desk(slow, ASK_ALWAYS.model_copy(update={"asks": 2}))
    verdict = await desk.verdict()
    assert not verdict.allowed
    assert verdict.reason.startswith("it was asked about 2 times")
    assert desk.steps() == ["asked", "changed"] * 2


async def test_an_approval_that_expires_before_the_action_can_run_asks_again() -> None:
    clock = SteppingClock(step=timedelta(seconds=1))
    policy = ASK_ALWAYS.model_copy(update={"approval_seconds": 1.0, "asks": 2})
    desk = Desk(Asked(True), policy, clock)
    verdict = await desk.verdict()
    assert (verdict.allowed, desk.steps()) == (False, ["asked", "expired"] * 2)


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize(("reuse", "asked"), [(True, 1), (False, 3)])
async def test_an_answer_is_for_one_run_or_for_the_identical_request(
    answer: bool, reuse: bool, asked: int
) -> None:
    approver = Asked(answer)
    desk = Desk(approver, ASK_ALWAYS.model_copy(update={"reuse": reuse}))
    assert [(await desk.verdict()).allowed for _ in range(3)] == [answer] * 3
    assert len(approver.requests) == asked
    assert desk.steps().count("reused") == 3 - asked


async def test_a_reused_answer_is_for_nothing_else() -> None:
    approver = Asked(True)
    desk = Desk(approver, ASK_ALWAYS.model_copy(update={"reuse": True}))
    await desk.verdict()
    await desk.verdict({"amount": 6})
    await desk.verdict(agent="other")
    desk.memory = "m2"
    await desk.verdict()
    desk.approvals.policy = ASK_ALWAYS.model_copy(update={"reuse": True})
    await desk.verdict()
    assert len(approver.requests) == 5


async def test_a_reused_answer_expires() -> None:
    clock = HandClock()
    policy = ASK_ALWAYS.model_copy(update={"reuse": True, "approval_seconds": 60.0})
    desk = Desk(Asked(True), policy, clock)
    assert (await desk.verdict()).allowed
    clock.wait(59)
    assert (await desk.verdict()).allowed
    clock.wait(1)
    assert (await desk.verdict()).allowed
    assert desk.steps() == ["asked", "granted", "reused", "granted", "expired", "asked", "granted"]


async def test_that_nobody_answered_is_not_remembered() -> None:
    approver = Asked("nonsense", True)
    desk = Desk(approver, ASK_ALWAYS.model_copy(update={"reuse": True}))
    assert [(await desk.verdict()).allowed for _ in range(2)] == [False, True]


async def test_requests_that_wait_at_once_are_kept_apart() -> None:
    waiting: dict[int, asyncio.Future[bool]] = {}
    all_there = asyncio.Event()

    async def person(request: ApprovalRequest) -> bool:
        answer = waiting[request.arguments["amount"]] = asyncio.Future()
        if len(waiting) == 3:
            all_there.set()
        return await answer

    desks = [Desk(person), Desk(person)]
    calls = [
        asyncio.create_task(desks[0].verdict({"amount": 1}, "ann")),
        asyncio.create_task(desks[0].verdict({"amount": 2}, "ann")),
        asyncio.create_task(desks[1].verdict({"amount": 3}, "bob")),
    ]
    await all_there.wait()
    waiting[2].set_result(False)
    waiting[3].set_result(True)
    calls[0].cancel()
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert [r.allowed for r in results[1:] if isinstance(r, Verdict)] == [False, True]
    assert sorted(desks[0].steps()) == ["asked", "asked", "denied", "withdrawn"]


# --- a batch


def batch(*amounts: int) -> list[tuple[Candidate, dict[str, Any]]]:
    return [(PAY, {"amount": amount}) for amount in amounts]


async def test_an_approval_that_expires_while_the_others_wait_is_asked_for_again() -> None:
    class Watched(HandClock):
        looks = 0

        def now(self) -> datetime:
            self.looks += 1
            if self.looks == 3:  # two requests were made, and one answer was stamped
                first_was_stamped.set()
            return super().now()

    clock, first_was_stamped = Watched(), asyncio.Event()
    reply: list[int] = []

    async def person(request: ApprovalRequest) -> bool:
        amount = request.arguments["amount"]
        reply.append(amount)
        if amount == 2:
            await first_was_stamped.wait()
            clock.wait(301)
        return True

    desk = Desk(person, clock=clock)
    verdicts = await all_verdicts(desk.approvals, batch(1, 2), desk.occasion(), desk.events.append)
    assert [verdict.allowed for verdict in verdicts] == [True, True]
    assert reply == [1, 2, 1]
    assert desk.steps() == ["asked", "asked", "expired", "asked", "granted", "granted"]


async def test_a_change_while_one_waits_has_the_whole_batch_asked_about_again() -> None:
    async def person(request: ApprovalRequest) -> bool:
        if request.arguments["amount"] == 2:
            desk.memory = "m2"
        return True

    desk = Desk(person)
    verdicts = await all_verdicts(desk.approvals, batch(1, 2), desk.occasion(), desk.events.append)
    assert [verdict.allowed for verdict in verdicts] == [True, True]
    assert desk.steps().count("changed") == 2


async def test_a_policy_that_begins_to_need_approval_meanwhile_is_heeded() -> None:
    async def person(request: ApprovalRequest) -> bool:
        desk.approvals.policy = ApprovalPolicy(name="strict", actions=["*"])
        return request.arguments["amount"] > 100

    desk = Desk(person, ApprovalPolicy(when=[over_100]))
    verdicts = await all_verdicts(
        desk.approvals, batch(1, 101), desk.occasion(), desk.events.append
    )
    assert [verdict.allowed for verdict in verdicts] == [False, True]


async def test_arguments_that_are_no_json_after_the_wait_are_denied() -> None:
    arguments: dict[str, Any] = {"amount": 5}

    async def slow(request: ApprovalRequest) -> bool:
        arguments["amount"] = {1, 2}
        return True

    desk = Desk(slow)
    verdict = await desk.verdict(arguments)
    assert (verdict.allowed, desk.steps()) == (False, ["asked", "changed"])
    assert verdict.reason.startswith("nobody can be asked about its arguments")


async def test_where_the_trace_cannot_be_written_the_error_comes_through_and_nobody_waits_on() -> (
    None
):
    desk = Desk(Asked(True))

    def full(event: ApprovalEvent) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        await all_verdicts(desk.approvals, batch(1, 2), desk.occasion(), full)
    assert asyncio.all_tasks() == {asyncio.current_task()}
