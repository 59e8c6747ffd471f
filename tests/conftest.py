"""What holds for every test: no network beyond this machine, no keys, no telemetry."""

import gc
import logging
import os
import socket
from collections.abc import Generator, Iterator
from ipaddress import ip_address
from typing import Any

import certifi
import pytest
from hypothesis import settings

# Whatever agents do in a test is verified at its end, in RAM and on disk.
pytest_plugins = ["coag.proof.pytest_plugin", "kits.verified", "kits.postgres_server", "pytester"]

# Machines that run the tests differ in speed; a slow example is not a wrong one.
# The same examples each time; `make test-long` looks for others.
settings.register_profile("coag", deadline=None, max_examples=15, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "coag"))

# AutoGen's gRPC host leaves the tasks that read its streams. What became of them is logged when
# garbage is collected, be it in a test that looks at what is logged.
logging.getLogger("asyncio").addFilter(
    lambda record: "_worker_runtime_host_servicer.py" not in record.getMessage()
)

_LOOPBACK_NAMES = frozenset({"localhost", "ip6-localhost", ""})
_UNWANTED_ENDINGS = ("_API_KEY", "_API_BASE", "_BASE_URL", "_proxy", "_PROXY")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected lasts: no garbage is looked for among it, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


class NetworkRefusedError(RuntimeError):
    """A test tried to reach another machine; not an `OSError`, so that no retry swallows it."""

    def __init__(self, host: object) -> None:
        super().__init__(f"Tests reach this machine only; refused: {host!r}.")


def _is_here(host: object) -> bool:
    """Whether a host, as the socket module takes it, is this machine."""
    if host is None:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in _LOOPBACK_NAMES:
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _guard_address(family: int, address: Any) -> None:
    if family in (socket.AF_INET, socket.AF_INET6) and not _is_here(address[0]):
        raise NetworkRefusedError(address[0])


@pytest.fixture(scope="session", autouse=True)
def only_this_machine() -> Iterator[None]:
    """Refuses look-ups of and connections to other machines, for the whole session."""
    look_up, connect, connect_ex = (
        socket.getaddrinfo,
        socket.socket.connect,
        socket.socket.connect_ex,
    )

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_here(host):
            raise NetworkRefusedError(host)
        return look_up(host, *args, **kwargs)

    def guarded_connect(self: socket.socket, address: Any) -> None:
        _guard_address(self.family, address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        _guard_address(self.family, address)
        return connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", guarded_look_up)
        patch.setattr(socket.socket, "connect", guarded_connect)
        patch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
        yield


@pytest.fixture(scope="session", autouse=True)
def plain_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Takes keys and proxies out of the environment, so that no result hangs on whose it is.

    `COAG_TEST_*` stays: it names the model of `make test-model`. One authority is enough for
    clients of this machine: to read all of them takes each client 30 ms.
    """
    authority = tmp_path_factory.mktemp("authority") / "first.pem"
    end = "-----END CERTIFICATE-----\n"
    authority.write_text(certifi.contents().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(authority))
        for name in list(os.environ):
            if name.endswith(_UNWANTED_ENDINGS) and not name.startswith("COAG_TEST_"):
                patch.delenv(name)
        patch.setenv("ANONYMIZED_TELEMETRY", "False")
        patch.setenv("OTEL_SDK_DISABLED", "true")
        # Runs of the tests' own agents are rebuilt without naming their modules each time.
        patch.setenv("COAG_TRUST", "kits,examples,tests")
        yield
