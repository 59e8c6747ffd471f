"""How much each kind of memory covers of what there is to know, and the page that shows it."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from pathlib import Path
from statistics import fmean

from pydantic import Field

from case_study.pages import markdown_table
from coag.awareness import (
    ConversationAdapter,
    ModelPerception,
    Perception,
    PerceptionSettings,
    RulePerception,
)
from coag.errors import ConfigurationError
from coag.evals import compare
from coag.models import ModelSpec, StructuredModel
from coag.schema import Value, estimate_tokens

from .dialogues import CachedPerception, run_analyses, run_perception
from .exams import (
    PAPER,
    QUESTIONS,
    Exam,
    Form,
    Mark,
    Question,
    Reader,
    Score,
    exams_in,
    exams_named,
    questions_named,
    score,
)
from .rule_reader import RuleReader
from .statements import parseable

DATA = Path(__file__).parent
"""The folder of the further dialogues and of the right answers."""
BUDGET = 300
"""Tokens of an injection (section 6.3)."""
SEED = 2026
"""What the resamples of the bootstrap are drawn by."""
OnAnswer = Callable[[str, int, int], None]
"""Called with what comes next, the number of answers so far, and their total."""


# ---- memories ----


class Kind(StrEnum):
    """A kind of memory."""

    NOTHING = "nothing"
    """No text at all: right only where the right answer is none."""
    BUFFER = "raw buffer"
    """All messages and replies, in order."""
    CUT = "buffer cut"
    """The newest of them that fit the budget."""
    SUMMARY = "summary"
    """The rolling summary, written by hand."""
    BY_HAND = "awareness by hand"
    """The injection from analyses written by hand."""
    BY_RULES = "awareness by rules"
    """The injection from what rules see in the messages."""
    BY_MODEL = "awareness by model"
    """The injection from what a model sees in the messages."""


BASELINES = (Kind.BUFFER, Kind.CUT, Kind.SUMMARY, Kind.NOTHING)
_AWARENESS = (Kind.BY_HAND, Kind.BY_RULES, Kind.BY_MODEL)


@dataclass(frozen=True, slots=True)
class Memory:
    """A text in place of a talk."""

    kind: Kind
    text: str
    faults: tuple[str, ...] = ()
    """Turns of which a perception made nothing."""

    @property
    def tokens(self) -> int:
        """How long it is, estimated as everywhere in `coag`."""
        return estimate_tokens(self.text)


async def memories_of(
    exam: Exam, budget: int, model: Perception | None = None
) -> tuple[Memory, ...]:
    """A dialogue as each kind of memory holds it after the last turn, with this budget of tokens.

    `Kind.BY_MODEL` is left out where no model reads the messages.

    Raises:
        ModelCallError: The model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    lines = [
        f"{speaker}: {' '.join(said.split())}"
        for message, reply in zip(exam.messages, exam.key.replies, strict=True)
        for speaker, said in (("User", message), ("Assistant", reply))
        if said.strip()
    ]
    newest = lines
    while newest and estimate_tokens("\n".join(newest)) > budget:
        newest = newest[1:]
    runs = {Kind.BY_HAND: run_analyses("by hand", exam.turns)}
    runs[Kind.BY_RULES] = await run_perception("rules", RulePerception(), exam.messages)
    if model is not None:
        runs[Kind.BY_MODEL] = await run_perception("model", model, exam.messages)
    inject = ConversationAdapter().format_for_injection
    return (
        Memory(Kind.NOTHING, ""),
        Memory(Kind.BUFFER, "\n".join(lines)),
        Memory(Kind.CUT, "\n".join(newest)),
        Memory(Kind.SUMMARY, exam.key.summary),
        *(Memory(kind, inject(run.state, budget), run.errors) for kind, run in runs.items()),
    )


# ---- what they cover ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """What one answer from one memory of one dialogue was worth."""

    dialogue: str
    kind: Kind
    question: str
    score: Score
    right: int
    claimed: int | None
    """How many claims the reader found; None for an answer that failed or was computed."""
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """All answers of one reader."""

    reader: str
    budget: int
    questions: tuple[Question, ...]
    memories: Mapping[str, tuple[Memory, ...]]
    """By dialogue."""
    scored: tuple[Scored, ...]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of memory that were asked."""
        return tuple(dict.fromkeys(m.kind for every in self.memories.values() for m in every))

    @property
    def further(self) -> tuple[str, ...]:
        """The dialogues that are not the paper's."""
        return tuple(name for name in self.memories if name != PAPER)

    def of(self, dialogue: str, kind: Kind) -> tuple[Scored, ...]:
        """The answers from one memory of one dialogue."""
        return tuple(one for one in self.scored if one.dialogue == dialogue and one.kind is kind)

    def tokens(self, dialogue: str, kind: Kind) -> int:
        """How long that memory was."""
        return next(one.tokens for one in self.memories[dialogue] if one.kind is kind)

    def total(self, dialogue: str, kind: Kind) -> float:
        """The sum of the scores: the coverage of table 6."""
        return sum(one.score.value for one in self.of(dialogue, kind))

    def mean(self, kind: Kind, question: Question, dialogues: Sequence[str]) -> float:
        """The mean score of one question over dialogues."""
        return fmean(
            one.score.value
            for one in self.scored
            if one.kind is kind and one.question == question.id and one.dialogue in dialogues
        )


async def cover(
    exams: Sequence[Exam],
    reader: Reader,
    questions: Sequence[Question],
    *,
    budget: int = BUDGET,
    perception: Perception | None = None,
    on_answer: OnAnswer = lambda what, done, total: None,
) -> Coverage:
    """Asks a reader every question about every memory of every dialogue, from the text alone.

    `budget` is in tokens, of injections and of the buffer that is cut; a `perception` reads the
    messages for one more injection.

    Raises:
        ModelCallError: A model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    memories: dict[str, tuple[Memory, ...]] = {}
    scored: list[Scored] = []
    total = len(exams) * len(questions) * (len(Kind) if perception else len(Kind) - 1)
    for exam in exams:
        on_answer(f"{exam.name}: messages are read", len(scored), total)
        memories[exam.name] = await memories_of(exam, budget, perception)
        for memory, question in product(memories[exam.name], questions):
            on_answer(f"{exam.name}: {memory.kind}, {question.id}", len(scored), total)
            scored.append(await _scored(exam, memory, question, reader, budget))
    return Coverage(
        reader=reader.name,
        budget=budget,
        questions=tuple(questions),
        memories=memories,
        scored=tuple(scored),
    )


async def _scored(
    exam: Exam, memory: Memory, question: Question, reader: Reader, budget: int
) -> Scored:
    right, claims = exam.right(question), None
    if question.id == "token_budget":
        found = Score.of(float(memory.tokens <= budget))
    elif question.id == "machine_parseable":
        found = Score.of(parseable(memory.text))
    else:
        claims = await reader.read(memory.text, question)
        found = score(claims, right, sampled=question.sampled)
    return Scored(
        dialogue=exam.name,
        kind=memory.kind,
        question=question.id,
        score=found,
        right=len(right),
        claimed=None if claims is None else len(claims),
        failed=claims is None and question.form is not Form.COMPUTED,
    )


# ---- the page ----

_PRINTED_KINDS = ("buffer", "summary", "SAGEN")
_TABLE_6 = (
    ("tokens", 0, "92", "43", "176"),
    ("coverage", 1, "2.1", "4.1", "19.7"),
    ("coverage, %", 1, "10.5", "20.5", "98.5"),
    ("coverage, recall only", 1, "", "", ""),
    ("coverage per 100 tokens", 2, "2.28", "9.59", "11.23"),
    ("full", 1, "1", "4", "20"),
    ("partial", 1, "3", "3", "0"),
    ("none", 1, "16", "13", "0"),
)
"""Rows of table 6, the digits of a mean, and what the paper prints."""
_COMPARED = {
    "coverage": "coverage",
    "coverage, recall only": "recall only",
    "coverage per 100 tokens": "per 100 tokens",
}
_SAME = 0.005
"""Scores that differ by less count as the same."""


def coverage_page(coverage: Coverage, command: str) -> str:
    """The page; `command`, given at its end, is how it was measured."""
    return "\n\n".join(_parts(coverage, command)) + "\n"


def _parts(coverage: Coverage, command: str) -> Iterator[str]:
    further, kinds = coverage.further, coverage.kinds
    yield f"# What each kind of memory tells, read by {coverage.reader}"
    yield (
        f"{_dialogues(len(coverage.memories))}, {len(coverage.questions)} questions each, asked "
        "of each kind of "
        f"memory after the last turn; budget of injections and of the buffer that is cut: "
        f"{coverage.budget} tokens. A score is F1 over the right items, 1 for rightly claiming "
        "nothing; full from 0.7, partial from 0.3. *Recall only* lets a text claim as much as it "
        "likes, except where nothing is to be told. What is measured, and what it cannot show: "
        "docs/awareness-evidence.md."
    )
    if PAPER in coverage.memories:
        yield from ("## Table 6: the paper's scenario", _table_6(coverage, (PAPER,)))
    if further:
        yield f"## Table 6: {_dialogues(len(further))}, means"
        yield _table_6(coverage, further)
        yield from ("## Differences, paired by dialogue", _differences(coverage))
        yield "## Coverage of each dialogue"
        rows = [
            [name, *(f"{coverage.total(name, k):.1f} ({coverage.tokens(name, k)})" for k in kinds)]
            for name in coverage.memories
        ]
        yield markdown_table(["coverage (tokens)", *kinds], rows)
    yield "## Table 7: by question"
    if PAPER in coverage.memories:
        head = ["the paper's scenario", *kinds, *(f"paper: {kind}" for kind in _PRINTED_KINDS)]
        rows = list[list[str]]()
        for one in coverage.questions:
            scores = [coverage.mean(kind, one, (PAPER,)) for kind in kinds]
            marks = [f"{Mark.of(score).value} {score:.2f}" for score in scores]
            rows.append([one.label, *marks, *one.printed])
        yield markdown_table(head, rows)
    if further:
        rows = [
            [one.label, *(f"{coverage.mean(kind, one, further):.2f}" for kind in kinds)]
            for one in coverage.questions
        ]
        yield markdown_table(["further dialogues, mean score", *kinds], rows)
        yield from ("## Where awareness does not win", _losses(coverage))
    yield from ("## Nothing to tell", _nothing_to_tell(coverage))
    yield from ("## Answers that failed", _failures(coverage))
    yield from ("## How it was measured", f"```text\n{command}\n```")


def figures(coverage: Coverage, dialogue: str, kind: Kind) -> dict[str, float]:
    """Table 6 of one memory of one dialogue, by the names of its rows."""
    scored = coverage.of(dialogue, kind)
    tokens, covered = coverage.tokens(dialogue, kind), coverage.total(dialogue, kind)
    marks = [Mark.of(one.score.value) for one in scored]
    return {
        "tokens": tokens,
        "coverage": covered,
        "coverage, %": 100 * covered / len(coverage.questions),
        "coverage, recall only": sum(one.score.recall for one in scored),
        "coverage per 100 tokens": 100 * covered / tokens if tokens else 0.0,
        "full": marks.count(Mark.FULL),
        "partial": marks.count(Mark.PARTIAL),
        "none": marks.count(Mark.NONE),
    }


def _table_6(coverage: Coverage, dialogues: Sequence[str]) -> str:
    """The paper's numbers stand beside what is about the same dialogue and all questions."""
    one = dialogues == (PAPER,)
    printed = one and len(coverage.questions) == len(QUESTIONS)
    columns = [
        [figures(coverage, dialogue, kind) for dialogue in dialogues] for kind in coverage.kinds
    ]
    head = ["", *coverage.kinds, *(f"paper: {kind}" for kind in _PRINTED_KINDS if printed)]
    rows: list[list[str]] = []
    for name, digits, *paper in _TABLE_6:
        whole = one and name in ("full", "partial", "none")
        means = [fmean(each[name] for each in column) for column in columns]
        cells = [f"{mean:.{0 if whole else digits}f}" for mean in means]
        rows.append([name, *cells, *(paper if printed else ())])
    return markdown_table(head, rows)


def _differences(coverage: Coverage) -> str:
    """Mean differences with their intervals, of coverage and of density."""
    by_kind = {
        kind: {dialogue: figures(coverage, dialogue, kind) for dialogue in coverage.further}
        for kind in coverage.kinds
    }
    rows: list[list[str]] = []
    for mine in _aware(coverage):
        for other in BASELINES:
            cells = [f"{mine} - {other}"]
            for name in _COMPARED:
                sides = [
                    {dialogue: float(found[name]) for dialogue, found in by_kind[kind].items()}
                    for kind in (other, mine)
                ]
                found = compare(*sides, seed=SEED)
                span = found.interval
                within = f" ({span.low:+.2f} to {span.high:+.2f})" if span else ""
                cells += [f"{found.difference:+.2f}{within}", f"{found.higher} / {found.lower}"]
            rows.append(cells)
    head = ["", *(part for name in _COMPARED.values() for part in (name, "better / worse"))]
    return markdown_table(head, rows) + (
        "\n\nMean and 95 % interval (bootstrap over the further dialogues, seeded; none below "
        "six), and in how many of them it is better or worse."
    )


def _losses(coverage: Coverage) -> str:
    """The questions in which a baseline scores as much as awareness or more, in the mean."""
    rows: list[list[str]] = []
    for question in coverage.questions:
        means = {kind: coverage.mean(kind, question, coverage.further) for kind in coverage.kinds}
        best = max(BASELINES, key=lambda kind: means[kind])
        mine = [means[kind] for kind in _aware(coverage)]
        if any(score < means[best] + _SAME for score in mine):
            gaps = [score - means[best] for score in mine]
            words = ["same" if abs(gap) < _SAME else "more" if gap > 0 else "less" for gap in gaps]
            cells = [f"{score:.2f} ({word})" for score, word in zip(mine, words, strict=True)]
            rows.append([question.label, f"{best} {means[best]:.2f}", *cells])
    if not rows:
        return "It wins every question, in the mean over the further dialogues."
    return markdown_table(["question", "best baseline", *_aware(coverage)], rows)


def _nothing_to_tell(coverage: Coverage) -> str:
    """How often a text rightly claims nothing."""
    empty = [one for one in coverage.scored if not one.right and one.claimed is not None]
    if not empty:
        return "Every question had something to be told."
    by_kind = [[one for one in empty if one.kind is kind] for kind in coverage.kinds]
    cells = [f"{sum(one.score.value == 1 for one in mine)} of {len(mine)}" for mine in by_kind]
    return markdown_table(["right answer: none", *coverage.kinds], [["claims nothing", *cells]])


def _failures(coverage: Coverage) -> str:
    failed = [sum(one.failed for one in coverage.scored if one.kind is k) for k in coverage.kinds]
    memories = [memory for every in coverage.memories.values() for memory in every]
    faults = [sum(len(one.faults) for one in memories if one.kind is k) for k in coverage.kinds]
    if not any(failed) and not any(faults):
        return "None."
    rows = [["no usable answer, scored 0", *map(str, failed)]]
    rows.append(["turns of which perception made nothing", *map(str, faults)])
    return markdown_table(["", *coverage.kinds], rows)


def _aware(coverage: Coverage) -> tuple[Kind, ...]:
    return tuple(kind for kind in _AWARENESS if kind in coverage.kinds)


def _dialogues(count: int) -> str:
    return "1 dialogue" if count == 1 else f"{count} dialogues"


# ---- the command ----


class CoverageRequest(Value):
    """Which dialogues and questions, and who perceives."""

    model: str | None = None
    """The spec of a model that perceives, for one more injection."""
    trusted: bool = False
    """Whether that one is believed what messages do not show."""
    limit: int | None = Field(default=None, gt=0)
    """So many dialogues, the paper's first."""
    dialogues: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    """Only these; all if none is named."""
    budget: int = Field(default=BUDGET, gt=0)
    """Tokens of injections and of the buffer that is cut."""
    timeout: float = Field(default=600.0, gt=0)
    """Seconds until a call is given up."""
    readings: Path
    """Where the perception's readings are kept."""
    data: Path | None = None
    """A folder of other dialogues and answers."""

    def command(self) -> str:
        """The command that asks for it; it names no folder and holds no secret."""
        words = ["case-study", "awareness", "coverage"]
        options = {
            "--model": self.model and ModelSpec.parse(self.model).public,
            "--limit": self.limit,
            "--questions": ",".join(self.questions) or None,
            "--budget": self.budget if self.budget != BUDGET else None,
            "--data": "DIR" if self.data else None,
        }
        for name, value in options.items():
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
    async with _perception(request) as perception:
        coverage = await cover(
            exams,
            RuleReader(),
            questions,
            budget=request.budget,
            perception=perception,
            on_answer=on_answer,
        )
    return coverage_page(coverage, request.command())


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
            ModelPerception(StructuredModel(client, limit_name=spec.limit_name), settings=settings),
            request.readings,
            f"{request.model} {settings.model_dump_json()}",
        )
    finally:
        await client.close()
