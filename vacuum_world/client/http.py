"""One request to a world, and what its failure means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, TypeVar, cast

import httpx
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from vacuum_world.errors import (
    OutcomeUnknownError,
    RobotStrandedError,
    WorldRefusedError,
    WorldUnreachableError,
)

Body = BaseModel | Mapping[str, object]
"""What is sent, as JSON."""
ModelT = TypeVar("ModelT", bound=BaseModel)

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class WorldHttp:
    """A connection to one world with one token."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self.url = url.rstrip("/")
        """Where the world is served."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # Environment proxies are left out: a loopback world must not be looked for elsewhere.
        # Certificates are read only where they are asked for: that takes 30 ms.
        self._client = httpx.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=timeout,
            trust_env=False,
            verify=not self.url.startswith("http:"),
        )

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def get(self, path: str, gives: type[ModelT]) -> ModelT:
        """Ask for something."""
        return self._read(await self._send("GET", path), gives)

    async def post(
        self,
        path: str,
        gives: type[ModelT],
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ModelT:
        """Have something done."""
        return self._read(await self._send("POST", path, body, headers), gives)

    async def put(self, path: str, body: Body) -> httpx.Response:
        """Have something put in place; the answer as it came."""
        return await self._send("PUT", path, body)

    async def delete(self, path: str) -> None:
        """Have something removed."""
        await self._send("DELETE", path)

    async def _send(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        call = f"{method} {path}"
        content = to_json(body) if body else None
        sent = {**(headers or {}), **({"Content-Type": "application/json"} if body else {})}
        try:
            response = await self._client.request(method, path, content=content, headers=sent)
        except _NOT_SENT as error:
            raise WorldUnreachableError(call, self.url, _reason(error)) from error
        except httpx.TransportError as error:
            raise OutcomeUnknownError(call, self.url, _reason(error)) from error
        if response.is_success:
            return response
        raise self._refusal(call, response)

    def _refusal(self, call: str, response: httpx.Response) -> Exception:
        status = response.status_code
        problem = _object(response)
        name, detail = str(problem.get("error")), str(problem.get("detail"))
        if "error" not in problem or not (400 <= status < 500 or status == 503):
            return OutcomeUnknownError(call, self.url, f"status {status} without a reason")
        kind = RobotStrandedError if name == "stranded" else WorldRefusedError
        return kind(call, status, name, detail, problem)

    def _read(self, response: httpx.Response, gives: type[ModelT]) -> ModelT:
        try:
            return gives.model_validate_json(response.content)
        except ValidationError as error:
            call = f"{response.request.method} {response.request.url.path}"
            reason = f"the answer is no {gives.__name__}"
            raise OutcomeUnknownError(call, self.url, reason) from error


def _reason(error: httpx.TransportError) -> str:
    return str(error) or type(error).__name__


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        value = response.json()
    except ValueError:
        return {}
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}
