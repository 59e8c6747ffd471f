"""A streamed answer is read to its end, and never for ever."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from itertools import count

from autogen_core.models import CreateResult, RequestUsage

from coag.models.native import TextRelease, streamed

Stream = AsyncGenerator[str | CreateResult]


def result(content: str) -> CreateResult:
    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    return CreateResult(finish_reason="stop", content=content, usage=usage, cached=False)


class Reader:
    """Reads streams, and keeps what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def read(self, stream: Stream) -> CreateResult | None:
        return await streamed(stream, TextRelease(self.shown.append, set()))


async def test_after_its_result_a_stream_may_come_to_its_own_end() -> None:
    ended: list[bool] = []

    async def stream() -> Stream:
        yield "Aye."
        yield result("Aye.")
        yield "what nobody hears"
        ended.append(True)

    reader = Reader()
    answer = await reader.read(stream())
    assert answer is not None
    assert (answer.content, reader.shown, ended) == ("Aye.", ["Aye."], [True])


async def test_a_stream_that_never_ends_after_its_result_is_left() -> None:
    left: list[int] = []

    async def stream() -> Stream:
        yield result("Aye.")
        try:
            for number in count():
                left[:] = [number]
                yield "on and on"
        finally:
            left.append(-1)

    answer = await Reader().read(stream())
    assert answer is not None
    assert answer.content == "Aye."
    assert left[0] < 100
    assert left[1] == -1


async def test_where_a_result_holds_nothing_what_was_shown_is_the_answer() -> None:
    async def stream() -> Stream:
        yield "Aye, "
        yield "sir."
        yield result("")

    answer = await Reader().read(stream())
    assert answer is not None
    assert answer.content == "Aye, sir."


async def test_a_stream_without_a_result_has_none() -> None:
    async def stream() -> Stream:
        yield "Aye"

    assert await Reader().read(stream()) is None


async def test_a_stream_of_nothing_is_left() -> None:
    async def stream() -> Stream:
        for _ in count():
            yield ""

    answer = await Reader().read(stream())
    assert answer is not None
    assert (answer.finish_reason, answer.content) == ("length", "")
