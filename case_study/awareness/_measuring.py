"""A measurement as it is asked for on a command line."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import Field

from coag.awareness.perception import ModelPerception, Perception, PerceptionSettings
from coag.errors import ConfigurationError
from coag.models import Asker, AskSettings, ModelSpec
from coag.schema import Value

from ._coverage import BUDGET, OnAnswer, cover
from ._exams import exams_in, exams_named
from ._kept import AnswerFile, CachedPerception
from ._model_reader import ModelReader
from ._page import coverage_page
from ._questions import questions_named
from ._reader import Reader
from ._rule_reader import RuleReader

DATA = Path(__file__).parent
"""The folder of the further dialogues and of the right answers."""
ANSWER_TOKENS = 300


class CoverageRequest(Value):
    """Which dialogues and questions, who reads and who perceives."""

    reader: str | None = None
    """The spec of a model that reads; rules if not given."""
    model: str | None = None
    """The spec of a model that perceives, for one more injection."""
    trusted: bool = False
    """Whether that one is believed what messages do not show."""
    limit: int | None = Field(default=None, gt=0)
    """So many dialogues, the paper's first."""
    dialogues: tuple[str, ...] = ()
    """Only these; all if none is named."""
    questions: tuple[str, ...] = ()
    """Only these; all if none is named."""
    budget: int = Field(default=BUDGET, gt=0)
    """Tokens of injections and of the buffer that is cut."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds until a call is given up."""
    answers: Path
    """Where the reader's answers are kept."""
    readings: Path
    """Where the perception's readings are kept."""
    data: Path | None = None
    """A folder of other dialogues and answers."""

    def command(self) -> str:
        """The command that asks for it; it names no folder and holds no secret."""
        words = ["case-study", "awareness", "coverage"]
        given = {
            "--reader": _public(self.reader),
            "--model": _public(self.model),
            "--limit": self.limit,
            "--questions": ",".join(self.questions) or None,
            "--budget": self.budget if self.budget != BUDGET else None,
            "--data": "DIR" if self.data else None,
        }
        for name, value in given.items():
            words += [name, str(value)] if value is not None else []
        words += ["--trusted"] if self.trusted else []
        for name in self.dialogues:
            words += ["--dialogue", name]
        return shlex.join(words)


async def measured(request: CoverageRequest, on_answer: OnAnswer) -> str:
    """The page of what is asked for.

    Raises:
        ConfigurationError: The data do not fit, a file cannot be used, or options contradict.
        UnknownNameError: There is no such dialogue, question or form of spec.
        ModelCallError: A model could not be asked, several times in a row.
    """
    if request.trusted and request.model is None:
        raise ConfigurationError("--trusted: only with --model, which it is about. Leave it out.")
    questions = questions_named(request.questions)
    exams = exams_named(exams_in(request.data or DATA), request.dialogues)[: request.limit]
    async with _reader(request) as reader, _perception(request) as perception:
        found = await cover(
            exams,
            reader,
            questions,
            budget=request.budget,
            perception=perception,
            on_answer=on_answer,
        )
    return coverage_page(found, request.command())


@asynccontextmanager
async def _reader(request: CoverageRequest) -> AsyncGenerator[Reader]:
    if request.reader is None:
        yield RuleReader()
        return
    spec = ModelSpec.parse(request.reader)
    answers = AnswerFile(request.answers)
    client = spec.open()
    try:
        yield ModelReader(
            Asker(client, limit_name=spec.limit_name),
            name=spec.public,
            answers=answers,
            settings=AskSettings(max_tokens=ANSWER_TOKENS, timeout=request.timeout),
        )
    finally:
        await client.close()


@asynccontextmanager
async def _perception(request: CoverageRequest) -> AsyncGenerator[Perception | None]:
    if request.model is None:
        yield None
        return
    spec = ModelSpec.parse(request.model)
    settings = PerceptionSettings(timeout=request.timeout, trusted=request.trusted)
    request.readings.parent.mkdir(parents=True, exist_ok=True)
    client = spec.open()
    try:
        yield CachedPerception(
            ModelPerception(Asker(client, limit_name=spec.limit_name), settings=settings),
            request.readings,
            f"{request.model} {settings.model_dump_json()}",
        )
    finally:
        await client.close()


def _public(spec: str | None) -> str | None:
    return None if spec is None else ModelSpec.parse(spec).public
