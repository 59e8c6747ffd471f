"""Approval on a small local web page, and by the JSON interface behind it.

Imported on demand, since it brings a web server:
`from coag.compat.approval_web import WebApprover`.
"""

from __future__ import annotations

import secrets
import string
from types import TracebackType
from typing import Self

from coag.cycle import ApprovalAnswer, ApprovalRequest, outcome_of
from coag.errors import ConfigurationError
from coag.serving import Served, ServingError

from ._approval_app import approval_app, base_path
from ._waiting import Waiting

__all__ = ["WebApprover", "ServingError"]

_TOKEN_LENGTH = 16
_IN_A_PATH = frozenset(f"{string.ascii_letters}{string.digits}-_")


class WebApprover:
    """Shows what waits for approval on a web page of this machine, where a person decides.

    The page needs no script and looks again by itself. Whoever knows its address decides: the
    address holds a secret, which is what keeps other pages and programs out, so give it to
    nobody else. A decision counts only for the request as it was shown.

    `GET api/requests` below the address lists what waits as JSON; `POST api/requests/KEY` with
    `{"digest": ..., "granted": true, "by": ..., "reason": ...}` decides.

    Example:
        `with WebApprover() as approver: print(approver.url)`

    Args:
        by: The name under which the person answers who gives none.
        host: The address to serve. Anything but this machine's own is without encryption.
        port: The port; 0 takes a free one.
        token: The secret in the address; None makes one that nobody can guess.

    Raises:
        ConfigurationError: The token is short, or does not fit into an address.
    """

    def __init__(
        self,
        by: str = "operator",
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
    ) -> None:
        self.name = by
        self._token = secrets.token_urlsafe(24) if token is None else token
        if len(self._token) < _TOKEN_LENGTH or not _IN_A_PATH.issuperset(self._token):
            raise ConfigurationError(
                f"token takes {_TOKEN_LENGTH} or more of A-Z a-z 0-9 - _; the one given has "
                f"{len(self._token)} characters, or other ones."
            )
        self._address = (host, port)
        self._waiting = Waiting()
        self._served: Served | None = None

    @property
    def url(self) -> str:
        """Where the page is; whoever knows it decides. Empty while it is not served."""
        return self._served.address + base_path(self._token) if self._served else ""

    def start(self) -> Self:
        """Serves the page; returns when it can be opened.

        Raises:
            OSError: The address is not to be had.
            ServingError: The server did not start.
        """
        if self._served is None:
            host, port = self._address
            app = approval_app(self._waiting, self._token, by=self.name, host=host)
            self._served = Served(app, host, port)
        return self

    def stop(self) -> None:
        """Closes the page; what waits is denied.

        Raises:
            ServingError: The server did not stop in time.
        """
        served, self._served = self._served, None
        for key, request in self._waiting.listed().items():
            self._waiting.answer(key, request.deny("", "the approval page was closed"))
        if served is not None:
            served.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The person's decision; a request leaves the page when nobody waits for it any more.

        Raises:
            ConfigurationError: The page is not served.
        """
        if self._served is None:
            raise ConfigurationError("The page is not served; use `with WebApprover() as ...`.")
        key, answer = self._waiting.add(request)
        try:
            return await outcome_of(answer)
        finally:
            self._waiting.drop(key)
