"""Approvers: a script, a person at a real (pseudo) terminal, a person at a real web page."""

from __future__ import annotations

import asyncio
import io
import os
import re
import select
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TextIO

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.compat import ConsoleApprover, ScriptedApprover
from coag.compat.approval_web import WebApprover, request_page
from coag.cycle import (
    ApprovalAnswer,
    ApprovalOccasion,
    ApprovalPolicy,
    ApprovalRequest,
    Approvals,
    Approver,
)
from coag.errors import ConfigurationError
from coag.schema import Candidate, Verdict

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DELETE = ApprovalRequest(
    id="approval-000001",
    agent="clerk",
    cycle=3,
    goal="Tidy up.",
    action="delete",
    arguments={"path": "old/report"},
    wish="nobody reads it",
    risk="high",
    reason="its risk is high",
    memory_version="m1",
    policy="approval@1",
    policy_digest="p1",
    asked_at=NOON,
    expires_at=NOON + timedelta(seconds=60),
    approval_seconds=30,
)


async def verdict_of(approver: Approver, wait_seconds: float = 20.0) -> Verdict:
    """What approval by this approver says of a deletion."""
    policy = ApprovalPolicy(actions=["delete"], wait_seconds=wait_seconds)
    occasion = ApprovalOccasion(agent="clerk", memory_version=lambda: "m1")
    candidate = Candidate(id="c1", action="delete")
    return await Approvals(approver, policy).verdict(candidate, {"path": "old"}, occasion)


# --- the script


async def test_a_script_answers_in_order_and_keeps_what_it_was_asked() -> None:
    approver = ScriptedApprover([True, False, "too dear", lambda request: request.grant("ann")])
    answers = [await approver(DELETE) for _ in range(4)]
    assert answers == [
        DELETE.grant("script"),
        DELETE.deny("script"),
        DELETE.deny("script", "too dear"),
        DELETE.grant("ann"),
    ]
    assert approver.requests == [DELETE] * 4


@pytest.mark.parametrize(
    ("script", "reason"),
    [([], "No answer is left for request 1"), ([OSError("no line")], "raised OSError: no line")],
)
async def test_a_script_that_ends_or_raises_denies(script: list[Any], reason: str) -> None:
    verdict = await verdict_of(ScriptedApprover(script))
    assert not verdict.allowed
    assert reason in verdict.reason


# --- the console


class Screen(io.StringIO):
    """What a person sees; waits until a question is complete."""

    def __init__(self) -> None:
        super().__init__()
        self.questions = threading.Semaphore(0)

    def write(self, text: str) -> int:
        written = super().write(text)
        if text.endswith("> "):
            self.questions.release()
        return written

    async def question(self) -> str:
        """Waits for the next question; all that the screen shows by then."""
        assert await asyncio.to_thread(self.questions.acquire, timeout=10)
        return self.getvalue()


class Seat:
    """A person's seat at a pseudo-terminal."""

    def __init__(self) -> None:
        self.keyboard, end = os.openpty()
        self.source: TextIO = os.fdopen(end, "r")
        self.screen = Screen()
        self.approver = ConsoleApprover("ann", source=self.source, sink=self.screen)

    def types(self, text: str) -> None:
        os.write(self.keyboard, text.encode())

    async def answers(self, text: str, request: ApprovalRequest = DELETE) -> ApprovalAnswer:
        """The answer to a request, after which the person types this."""
        asking = asyncio.create_task(self.approver(request))
        await self.screen.question()
        self.types(text)
        return await asking


@contextmanager
def a_seat() -> Generator[Seat]:
    if not hasattr(os, "openpty"):
        pytest.skip("this system has no pseudo-terminals")
    seat = Seat()
    try:
        yield seat
    finally:
        seat.source.close()
        os.close(seat.keyboard)


@pytest.fixture
def seat() -> Iterator[Seat]:
    with a_seat() as seat:
        yield seat


@pytest.mark.parametrize("line", ["yes\n", "y\n", "  YES \n"])
async def test_yes_at_the_console_approves(seat: Seat, line: str) -> None:
    assert await seat.answers(line) == DELETE.grant("ann")


@pytest.mark.parametrize(
    ("line", "reason"),
    [("no\n", "no"), ("\n", ""), ("yes, but not now\n", "yes, but not now"), ("ja\n", "ja")],
)
async def test_anything_else_at_the_console_denies_with_what_was_typed(
    seat: Seat, line: str, reason: str
) -> None:
    assert await seat.answers(line) == DELETE.deny("ann", reason)


async def test_what_was_typed_before_the_question_does_not_answer_it(seat: Seat) -> None:
    seat.types("yes\n")
    assert select.select([seat.source], [], [], 10)[0], "the system has not passed it on"
    assert await seat.answers("no\n") == DELETE.deny("ann", "no")


async def test_a_withdrawn_question_leaves_its_answer_to_nobody(seat: Seat) -> None:
    asking = asyncio.create_task(seat.approver(DELETE))
    await seat.screen.question()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await seat.answers("no\n") == DELETE.deny("ann", "no")
    screen = seat.screen.getvalue()
    assert screen.index("withdrawn") < screen.rindex("Approval needed")


async def test_two_questions_are_asked_one_after_the_other(seat: Seat) -> None:
    other = DELETE.model_copy(update={"agent": "second"})
    asking = [asyncio.create_task(seat.approver(request)) for request in (DELETE, other)]
    screen = await seat.screen.question()
    assert screen.count("Approval needed") == 1
    first = 0 if "clerk" in screen else 1
    seat.types("yes\n")
    await asking[first]
    await seat.screen.question()
    seat.types("no\n")
    answers = [await task for task in asking]
    assert [answers[first].granted, answers[1 - first].granted] == [True, False]


async def test_a_terminal_that_ends_denies(seat: Seat) -> None:
    assert await seat.answers("\x04") == DELETE.deny("", "the terminal was closed")


@pytest.mark.parametrize("source", [io.StringIO("yes\n"), io.TextIOWrapper(io.BytesIO(b"yes\n"))])
async def test_where_there_is_no_terminal_the_action_is_denied(source: TextIO) -> None:
    verdict = await verdict_of(ConsoleApprover(source=source, sink=io.StringIO()))
    assert (verdict.allowed, verdict.reason) == (False, "there is no terminal to ask at")


async def shown_at_the_console(request: ApprovalRequest) -> str:
    with a_seat() as seat:
        await seat.answers("no\n", request)
        return seat.screen.getvalue()


async def test_a_person_sees_the_state_that_the_rules_read_and_what_is_predicted() -> None:
    request = DELETE.model_copy(
        update={"state": {"till": 200, "owner": "ada"}, "projection": {"till": 120, "owner": "ada"}}
    )
    screen = await shown_at_the_console(request)
    assert '  state: {"till": 200, "owner": "ada"}\n' in screen
    assert '  predicted change: {"till": 120}\n' in screen
    page = request_page("k", request, "/secret/", "me")
    assert "<dt>State</dt><dd>{&quot;till&quot;: 200" in page
    assert "<dt>Predicted change</dt><dd>{&quot;till&quot;: 120}</dd>" in page
    plain = await shown_at_the_console(DELETE)
    for part in ("clerk", "delete", '"old/report"', "its risk is high", "nobody reads it", "30 s"):
        assert part in plain
    assert "12:01:00 UTC" in plain
    assert "predicted change" not in plain


@given(st.text())
def test_no_argument_moves_the_cursor_or_hides_a_part(text: str) -> None:
    request = DELETE.model_copy(update={"arguments": {"a": text}, "action": text, "wish": text})
    screen = asyncio.run(shown_at_the_console(request))
    assert not set(screen) & {"\x1b", "\r", "\x08", "\u202e", "\u2028", "\x00", "\u200b"}
    assert screen.startswith("Approval needed: clerk wants to run ")
    assert screen.count("\n> ") == 1


# --- the web page


@pytest.fixture
def web() -> Iterator[WebApprover]:
    with WebApprover("ann") as approver:
        yield approver


@pytest.fixture
def browser(web: WebApprover) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=web.url, trust_env=False) as client:
        yield client


class Page:
    """A person at the page of a request that waits."""

    def __init__(self, web: WebApprover, browser: httpx.Client) -> None:
        self.web = web
        self.browser = browser

    def address(self, link: str) -> httpx.URL:
        """Where a link of the page leads."""
        return httpx.URL(self.web.url).join(link)

    async def get(self, path: str) -> httpx.Response:
        return await asyncio.to_thread(self.browser.get, self.address(path))

    async def post(self, path: str, **kwargs: Any) -> httpx.Response:
        return await asyncio.to_thread(lambda: self.browser.post(self.address(path), **kwargs))

    async def ask(self, request: ApprovalRequest = DELETE) -> asyncio.Task[ApprovalAnswer]:
        """Has the request wait; returns once the page lists it."""
        before = len((await self.get("api/requests")).json()["requests"])
        asking = asyncio.create_task(self.web(request))
        while len((await self.get("api/requests")).json()["requests"]) == before:
            assert not asking.done()
        return asking

    async def key(self) -> str:
        return (await self.get("api/requests")).json()["requests"][-1]["key"]


@pytest.fixture
def page(web: WebApprover, browser: httpx.Client) -> Page:
    return Page(web, browser)


def fields_of(html: str) -> dict[str, str]:
    """The hidden field of the form, as a browser sends it."""
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', html))


@pytest.mark.parametrize("granted", [True, False])
async def test_a_person_decides_by_the_form_alone(page: Page, granted: bool) -> None:
    asking = await page.ask()
    listed = await page.get("")
    link = re.search(r'<a href="([^"]+)">delete</a>', listed.text)
    assert link is not None
    assert 'http-equiv="refresh"' in listed.text
    assert "<form" not in listed.text
    response = await page.get(link[1])
    assert 'http-equiv="refresh"' not in response.text
    for part in ("clerk", "old/report", "its risk is high", "nobody reads it", "30 s"):
        assert part in response.text
    assert "2026-01-01 12:01:00 UTC" in response.text
    form = fields_of(response.text) | {
        "by": "bob",
        "reason": "as agreed",
        "granted": str(granted).lower(),
    }
    answer = await page.post(link[1], data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, httpx.URL(page.web.url).path)
    say = DELETE.grant if granted else DELETE.deny
    assert await asking == say("bob", "as agreed")
    assert "Nothing waits" in (await page.get("")).text


async def test_a_program_decides_by_json(page: Page) -> None:
    asking = await page.ask()
    waiting = (await page.get("api/requests")).json()["requests"][0]
    assert (waiting["action"], waiting["arguments"]) == ("delete", {"path": "old/report"})
    decision = {"digest": waiting["digest"], "granted": True, "reason": "fine"}
    answer = await page.post(f"api/requests/{waiting['key']}", json=decision)
    assert answer.json() == {"granted": True}
    assert await asking == DELETE.grant("ann", "fine")


async def test_requests_of_several_agents_are_kept_apart(page: Page) -> None:
    first = await page.ask()
    second = await page.ask(DELETE.model_copy(update={"agent": "other"}))
    decision = {
        "digest": DELETE.model_copy(update={"agent": "other"}).digest,
        "granted": True,
        "by": "bob",
    }
    await page.post(f"api/requests/{await page.key()}", json=decision)
    assert (await second).granted
    assert not first.done()
    first.cancel()


EVIL = "\"><script>alert(1)</script>'&\x1b[31m\u202e"


async def test_everything_on_the_pages_is_escaped(page: Page) -> None:
    names = ("agent", "goal", "action", "wish", "expected_effect", "risk", "reason", "changed")
    changes: dict[str, Any] = {name: EVIL for name in names} | {"arguments": {EVIL: EVIL}}
    asking = await page.ask(DELETE.model_copy(update=changes))
    pages = [await page.get(""), await page.get(f"requests/{await page.key()}")]
    for response in pages:
        assert "<script" not in response.text
        assert not {"\x1b", "\u202e"} & set(response.text)
    asking.cancel()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        *(
            (body, "application/json")
            for body in (
                b"null",
                b"\xff",
                b'{"granted": true}',
                b'{"digest": "d", "granted": 1}',
                b'{"digest": "d", "granted": true, "also": 1}',
                b'{"digest": "d", "granted": true, "reason": "' + b"x" * 501 + b'"}',
            )
        ),
        (b"digest=d&granted=perhaps", "application/x-www-form-urlencoded"),
        (b"a=&b=&c=&d=&e=&f=&g=&h=&i=", "application/x-www-form-urlencoded"),
    ],
)
async def test_what_is_no_decision_is_refused_and_decides_nothing(
    page: Page, body: bytes, kind: str
) -> None:
    asking = await page.ask()
    api = "api/" if kind.endswith("json") else ""
    path = f"{api}requests/{await page.key()}"
    answer = await page.post(path, content=body, headers={"Content-Type": kind})
    assert (answer.status_code, asking.done()) == (422, False)
    assert "This is no decision" in answer.text
    asking.cancel()


async def test_only_the_request_as_it_was_shown_and_still_waits_can_be_decided(page: Page) -> None:
    asking = await page.ask()
    key = await page.key()
    other = {"digest": "0" * 64, "granted": True}
    assert (await page.post(f"api/requests/{key}", json=other)).status_code == 409
    plain = {"Content-Type": "text/plain"}  # what another site's form could send
    body = b'{"digest": "d", "granted": true}'
    assert (await page.post(f"api/requests/{key}", content=body, headers=plain)).status_code == 415
    assert (await page.post(f"requests/{key}", json={})).status_code == 415
    large = {"digest": "d" * 20_000, "granted": True}
    assert (await page.post(f"api/requests/{key}", json=large)).status_code == 413
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    decision = {"digest": DELETE.digest, "granted": True}
    answer = await page.post(f"api/requests/{key}", json=decision)
    assert (answer.status_code, "does not wait any more" in answer.json()["error"]) == (404, True)
    assert (await page.get(f"requests/{key}")).status_code == 404


def test_the_page_is_served_to_this_machine_only_under_a_secret_of_its_own(
    web: WebApprover, browser: httpx.Client
) -> None:
    url = httpx.URL(web.url)
    assert url.host == "127.0.0.1"
    with WebApprover() as other:
        assert other.url.split("/")[3] != web.url.split("/")[3]
    for path in ("/", "/wrong-token-wrong-token/", "/api/requests", "/page.css"):
        for method in ("GET", "POST"):
            answer = browser.request(method, url.copy_with(path=path))
            assert answer.status_code == 404
            assert web.url.split("/")[3] not in answer.text
    assert browser.get("", headers={"Host": "attacker.example"}).status_code == 400
    for path in ("", "page.css", "api/requests", "requests/77", "nothing"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "script" not in policy
        assert "frame-ancestors 'none'" in policy
        assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")


async def test_closing_the_page_denies_what_waits_and_a_closed_page_denies() -> None:
    approver = WebApprover().start()
    with httpx.Client(base_url=approver.url, trust_env=False) as client:
        asking = await Page(approver, client).ask()
    await asyncio.to_thread(approver.stop)
    assert await asking == DELETE.deny("", "the approval page was closed")
    assert approver.url == ""
    verdict = await verdict_of(approver)
    assert not verdict.allowed
    assert "The page is not served" in verdict.reason


@pytest.mark.parametrize("token", ["", "short", "has a blank in it, too", "slash/slash/slash/s"])
def test_a_secret_that_could_be_guessed_and_a_port_that_is_taken_are_refused(token: str) -> None:
    with pytest.raises(ConfigurationError, match="16 or more"):
        WebApprover(token=token)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match=r"."):
        WebApprover(port=taken.getsockname()[1]).start()
