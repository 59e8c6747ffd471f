"""A model server on this machine that behaves as a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Behaviour: TypeAlias = Callable[[dict[str, Any], Request], Awaitable[Response]]


class FakeServer:
    """A server in a thread; `behave` decides each answer, `seen` keeps each request."""

    def __init__(self, behave: Behaviour) -> None:
        self.seen: list[dict[str, Any]] = []
        self.arrived = threading.Event()
        self.behave = behave
        self.models: list[str] | None = ["tiny"]
        """The models that are listed; None for a server that has no list."""
        self.list_status = 200
        self.window: int | None = None
        """The window that the list gives for each model, as vLLM does."""
        self.listed = 0
        """How often the list was asked for."""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        routes = [
            Route("/v1/chat/completions", self._answer, methods=["POST"]),
            Route("/api/chat", self._answer, methods=["POST"]),
            Route("/v1/models", self._list, methods=["GET"]),
            Route("/api/tags", self._list, methods=["GET"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes), log_level="critical", ws="none", lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))

    async def _answer(self, request: Request) -> Response:
        body = await request.json()
        self.seen.append(body)
        self.arrived.set()
        return await self.behave(body, request)

    async def _list(self, request: Request) -> Response:
        self.listed += 1
        if self.list_status != 200:
            return JSONResponse({"error": {"message": "no"}}, self.list_status)
        if self.models is None:
            return JSONResponse({"error": {"message": "not found"}}, 404)
        key, name = ("data", "id") if request.url.path == "/v1/models" else ("models", "name")
        window = {} if self.window is None else {"max_model_len": self.window}
        return JSONResponse({key: [{name: model, **window} for model in self.models]})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(timeout=10)
        self._socket.close()


def openai_body(message: dict[str, Any], finish: str = "stop", cached: int = 0) -> dict[str, Any]:
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": cached},
        },
    }


def openai_text(content: str | None, finish: str = "stop", cached: int = 0) -> Behaviour:
    async def behave(_body: dict[str, Any], _request: Request) -> Response:
        return JSONResponse(openai_body({"content": content}, finish, cached))

    return behave
