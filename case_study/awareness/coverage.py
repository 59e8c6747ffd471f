"""How much each kind of memory covers of what there is to know, and the page that shows it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from statistics import fmean

from case_study.pages import markdown_table
from coag.awareness import (
    ConversationAdapter,
    ModelPerception,
    Perception,
    PerceptionSettings,
    RulePerception,
)
from coag.evals import compare
from coag.models import ModelSpec, StructuredModel
from coag.schema import estimate_tokens

from .dialogues import CachedPerception, run_analyses, run_perception
from .exams import FULL, PAPER, PARTIAL, QUESTIONS, Exam, Question, Score, exams, score
from .rule_reader import RuleReader
from .statements import parseable

BUDGET = 300
"""Tokens of an injection (section 6.3)."""
SEED = 2026
"""What the resamples of the bootstrap are drawn by."""
_CALL_SECONDS = 600.0
"""After which a call of a model is given up."""
OnAnswer = Callable[[str, int, int], None]
"""Called with what comes next, the number of dialogues so far, and their total."""


class Kind(StrEnum):
    """A kind of memory: a text in place of a talk."""

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


async def memories_of(exam: Exam, budget: int, model: Perception | None = None) -> dict[Kind, str]:
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
    return {
        Kind.NOTHING: "",
        Kind.BUFFER: "\n".join(lines),
        Kind.CUT: "\n".join(newest),
        Kind.SUMMARY: exam.key.summary,
        **{kind: inject(run.state, budget) for kind, run in runs.items()},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What the answers from one memory of one dialogue were worth."""

    tokens: int
    """How long the memory was, estimated as everywhere in `coag`."""
    scores: Mapping[Question, Score]

    @property
    def total(self) -> float:
        """The sum of the scores: the coverage of table 6."""
        return sum(one.value for one in self.scores.values())

    def figures(self) -> dict[str, float]:
        """Table 6 of this memory, by the names of its rows."""
        values = [one.value for one in self.scores.values()]
        full = sum(value >= FULL for value in values)
        partial = sum(value >= PARTIAL for value in values) - full
        return {
            "tokens": self.tokens,
            "coverage": self.total,
            "coverage, %": 100 * self.total / len(values),
            "coverage, recall only": sum(one.recall for one in self.scores.values()),
            "coverage per 100 tokens": 100 * self.total / self.tokens if self.tokens else 0.0,
            "full": full,
            "partial": partial,
            "none": len(values) - full - partial,
        }


def covered(text: str, exam: Exam) -> Covered:
    """Asks the reader every question about a memory of a dialogue, from the text alone."""
    tokens, reader = estimate_tokens(text), RuleReader()
    scores: dict[Question, Score] = {}
    for question in QUESTIONS:
        if question.id == "token_budget":
            scores[question] = Score.of(float(tokens <= BUDGET))
        elif question.id == "machine_parseable":
            scores[question] = Score.of(parseable(text))
        else:
            claims = reader.read(text, question)
            scores[question] = score(claims, exam.right(question), sampled=question.sampled)
    return Covered(tokens=tokens, scores=scores)


Coverage = dict[str, dict[Kind, Covered]]
"""What was measured, by dialogue and kind of memory."""


async def cover(
    asked: Sequence[Exam],
    perception: Perception | None = None,
    on_answer: OnAnswer = lambda what, done, total: None,
) -> Coverage:
    """Measures every kind of memory of dialogues.

    A `perception` reads the messages for one more injection.

    Raises:
        ModelCallError: A model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    found: Coverage = {}
    for exam in asked:
        on_answer(exam.name, len(found), len(asked))
        memories = await memories_of(exam, BUDGET, perception)
        found[exam.name] = {kind: covered(text, exam) for kind, text in memories.items()}
    return found


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


def coverage_page(coverage: Coverage, command: str) -> str:
    """The page; `command`, given at its end, is how it was measured."""
    return "\n\n".join(_parts(coverage, command)) + "\n"


def _parts(coverage: Coverage, command: str) -> Iterator[str]:
    further = {name: kinds for name, kinds in coverage.items() if name != PAPER}
    paper, kinds = coverage[PAPER], list(coverage[PAPER])
    yield "# What each kind of memory tells, read by rules"
    yield (
        f"{len(coverage)} dialogues, {len(QUESTIONS)} questions each, asked of each kind of "
        f"memory after the last turn; budget of injections and of the buffer that is cut: "
        f"{BUDGET} tokens. A score is F1 over the right items, 1 for rightly claiming "
        "nothing; full from 0.7, partial from 0.3. *Recall only* lets a text claim as much as it "
        "likes, except where nothing is to be told. What is measured, and what it cannot show: "
        "docs/awareness-evidence.md."
    )
    printed = [f"paper: {kind}" for kind in _PRINTED_KINDS]
    yield "## Table 6: the paper's scenario"
    yield _table_6({PAPER: paper}, printed)
    yield f"## Table 6: {len(further)} dialogues, means"
    yield _table_6(further)
    yield from ("## Differences, paired by dialogue", _differences(further, kinds))
    yield "## Coverage of each dialogue"
    rows = [
        [name, *(f"{one.total:.1f} ({one.tokens})" for one in every.values())]
        for name, every in coverage.items()
    ]
    yield markdown_table(["coverage (tokens)", *kinds], rows)
    yield "## Table 7: by question"
    yield markdown_table(
        ["the paper's scenario", *kinds, *printed],
        [
            [one.label, *(_marked(paper[kind].scores[one].value) for kind in kinds), *one.printed]
            for one in QUESTIONS
        ],
    )
    rows = [[one.label, *(f"{_mean(further, k, one):.2f}" for k in kinds)] for one in QUESTIONS]
    yield markdown_table(["further dialogues, mean score", *kinds], rows)
    yield from ("## Nothing to tell", _nothing_to_tell(coverage, kinds))
    yield from ("## How it was measured", f"```text\n{command}\n```")


def _marked(value: float) -> str:
    """A score as table 7 writes it."""
    return f"{'Y' if value >= FULL else '~' if value >= PARTIAL else '-'} {value:.2f}"


def _mean(coverage: Coverage, kind: Kind, question: Question) -> float:
    return fmean(kinds[kind].scores[question].value for kinds in coverage.values())


def _table_6(coverage: Coverage, printed: Sequence[str] = ()) -> str:
    """The paper's numbers stand beside what is about the same dialogue."""
    kinds = list(next(iter(coverage.values())))
    columns = [[every[kind].figures() for every in coverage.values()] for kind in kinds]
    rows: list[list[str]] = []
    for name, digits, *paper in _TABLE_6:
        shown = 0 if printed and name in ("full", "partial", "none") else digits
        cells = [f"{fmean(each[name] for each in column):.{shown}f}" for column in columns]
        rows.append([name, *cells, *(paper if printed else ())])
    return markdown_table(["", *kinds, *printed], rows)


def _differences(coverage: Coverage, kinds: Sequence[Kind]) -> str:
    """Mean differences with their intervals, of coverage and of density."""
    rows: list[list[str]] = []
    for mine in (kind for kind in kinds if kind not in BASELINES):
        for other in BASELINES:
            cells = [f"{mine} - {other}"]
            for name in _COMPARED:
                before, after = (
                    {
                        dialogue: float(each[kind].figures()[name])
                        for dialogue, each in coverage.items()
                    }
                    for kind in (other, mine)
                )
                found = compare(before, after, seed=SEED)
                span = found.interval
                within = f" ({span.low:+.2f} to {span.high:+.2f})" if span else ""
                cells += [f"{found.difference:+.2f}{within}", f"{found.higher} / {found.lower}"]
            rows.append(cells)
    head = ["", *(part for name in _COMPARED.values() for part in (name, "better / worse"))]
    return markdown_table(head, rows) + (
        "\n\nMean and 95 % interval (bootstrap over the further dialogues, seeded; none below "
        "six), and in how many of them it is better or worse."
    )


def _nothing_to_tell(coverage: Coverage, kinds: Sequence[Kind]) -> str:
    """How often a text rightly claims nothing."""
    empty = [
        (name, question)
        for name, exam in exams().items()
        for question in QUESTIONS
        if name in coverage and not question.computed and not exam.right(question)
    ]
    cells = [
        f"{sum(coverage[name][kind].scores[one].value == 1 for name, one in empty)} of {len(empty)}"
        for kind in kinds
    ]
    return markdown_table(["right answer: none", *kinds], [["claims nothing", *cells]])


# ---- the command ----


async def measured(model: str | None, readings: Path, on_answer: OnAnswer) -> str:
    """The page, of all dialogues; the readings of a model, if one reads, are kept in a file.

    Raises:
        ConfigurationError: The file of readings cannot be used.
        UnknownNameError: There is no such form of spec.
        ModelCallError: A model could not be asked, several times in a row.
    """
    command = "case-study awareness coverage"
    if model is not None:
        command += f" --model {ModelSpec.parse(model).public}"
    async with _perception(model, readings) as perception:
        return coverage_page(await cover(list(exams().values()), perception, on_answer), command)


@asynccontextmanager
async def _perception(model: str | None, readings: Path) -> AsyncGenerator[Perception | None]:
    if model is None:
        yield None
        return
    spec, settings = ModelSpec.parse(model), PerceptionSettings(timeout=_CALL_SECONDS)
    client = spec.open()
    try:
        yield CachedPerception(
            ModelPerception(StructuredModel(client, limit_name=spec.limit_name), settings=settings),
            readings,
            f"{model} {settings.model_dump_json()}",
        )
    finally:
        await client.close()
