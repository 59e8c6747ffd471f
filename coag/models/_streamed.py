"""Reading a streamed answer: bounded, and never without a pause for everybody else."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from autogen_core.models import CreateResult

from coag.schema import let_others_run

from ._dialogue import storable
from ._release import Release

ANSWER_CHARACTERS = 200_000
"""Characters of an answer in text that are kept, and shown."""
EMPTY_PIECES = 100_000
"""Pieces without a letter that a stream may have; servers send some to show that they live."""
_AFTER = 32
"""Pieces after the result that are waited for."""


async def streamed(
    stream: AsyncGenerator[str | CreateResult], release: Release
) -> CreateResult | None:
    """The whole answer; None if the stream ended without one.

    A text that grows beyond `ANSWER_CHARACTERS` is cut there, and the stream is left: the
    result says so (`length`) and has no usage, since the client could not tell it any more.
    So is a stream of more than `EMPTY_PIECES` that say nothing.
    """
    heard: list[str] = []
    room = ANSWER_CHARACTERS
    number, after, empty = 0, 0, 0
    result: CreateResult | None = None
    async with aclosing(stream):
        async for part in stream:
            number += 1
            await let_others_run(number)
            if result is not None:  # let the client come to its end: it may count or cache there
                after += 1
                if after > _AFTER:
                    break
                continue
            if not isinstance(part, str):
                result = part
                continue
            if piece := storable(part)[:room]:
                heard.append(piece)
                room -= len(piece)
                release.take(piece)
            empty += not part
            if len(part) > len(piece) or empty > EMPTY_PIECES:
                return _cut("".join(heard), release)
    return None if result is None else _whole(result, heard, release)


def _whole(result: CreateResult, heard: list[str], release: Release) -> CreateResult:
    """The result; where a client loses the only piece of its stream, the piece.

    What came as the result may be anything at all; it is looked at later.
    """
    content: object = getattr(result, "content", None)
    if isinstance(result, CreateResult) and not content and heard:  # pyright: ignore[reportUnnecessaryIsInstance] - from outside
        content = "".join(heard)
        result = result.model_copy(update={"content": content})
    if isinstance(content, str):
        release.end(content)
    return result


def _cut(text: str, release: Release) -> CreateResult:
    release.end(text)
    # Not validated, because its usage is missing: an estimate takes its place.
    return CreateResult.model_construct(
        finish_reason="length", content=text, usage=None, cached=False, thought=None, logprobs=None
    )
