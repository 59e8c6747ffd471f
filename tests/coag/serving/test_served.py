import threading

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from coag._util.sockets import reserved_port
from coag.serving import SafeHeaders, Served, allowed_hosts, listen, url_of
from coag.serving.server import PAGE_POLICY


async def _hello(request: Request) -> Response:
    return PlainTextResponse("hello")


async def _own_policy(request: Request) -> Response:
    return PlainTextResponse("own", headers={"Content-Security-Policy": "default-src 'self'"})


def _app() -> Starlette:
    return Starlette(
        routes=[Route("/", _hello), Route("/own", _own_policy)],
        middleware=[Middleware(SafeHeaders)],
    )


def test_an_application_answers_until_it_is_stopped() -> None:
    closed = threading.Event()
    with reserved_port() as port:  # where nobody else answers afterwards
        served = Served(_app(), "127.0.0.1", port, closing=closed.set)
        assert httpx.get(served.address).text == "hello"

        served.stop()

        assert closed.is_set()
        with pytest.raises(httpx.ConnectError):
            httpx.get(served.address)


def test_every_answer_carries_the_policy_unless_it_has_its_own() -> None:
    served = Served(_app(), "127.0.0.1", 0)
    try:
        page, own, missing = (httpx.get(served.address + path) for path in ("/", "/own", "/no"))
    finally:
        served.stop()

    assert page.headers["content-security-policy"] == PAGE_POLICY
    assert missing.headers["content-security-policy"] == PAGE_POLICY
    assert own.headers["content-security-policy"] == "default-src 'self'"
    for answer in (page, own, missing):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_on_a_loopback_address_only_requests_that_name_it_are_heeded(host: str) -> None:
    assert "*" not in allowed_hosts(host)


def test_an_address_that_is_taken_is_reported() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = int(url_of(taken).rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            Served(_app(), "127.0.0.1", port)
