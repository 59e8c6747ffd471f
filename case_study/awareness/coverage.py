"""How much each kind of memory covers of what there is to know, and the page that shows it."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import Protocol

from pydantic import Field

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

from .dialogues import CachedPerception, DialogueRun, run_analyses, run_perception
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


class Kind(StrEnum):
    """A kind of memory."""

    NOTHING = "nothing"
    """No text at all: what is left to be right about where nothing is to be told."""
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
AWARENESS = (Kind.BY_HAND, Kind.BY_RULES, Kind.BY_MODEL)


class Memory(Value):
    """A text that stands for a talk."""

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
    """A dialogue as each kind of memory holds it after the last turn.

    Args:
        exam: The dialogue.
        budget: Tokens of an injection, and of the buffer that is cut.
        model: Reads the messages for `Kind.BY_MODEL`, which is left out without it.

    Raises:
        ModelCallError: The model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    lines = _transcript(exam)
    seen: Mapping[Kind, Perception] = {Kind.BY_RULES: RulePerception()}
    if model is not None:
        seen = {**seen, Kind.BY_MODEL: model}
    return (
        Memory(kind=Kind.NOTHING, text=""),
        Memory(kind=Kind.BUFFER, text="\n".join(lines)),
        Memory(kind=Kind.CUT, text="\n".join(_newest(lines, budget))),
        Memory(kind=Kind.SUMMARY, text=exam.key.summary),
        _injection(Kind.BY_HAND, run_analyses("by hand", exam.turns), budget),
        *[
            _injection(kind, await run_perception(kind, perception, exam.messages), budget)
            for kind, perception in seen.items()
        ],
    )


def _transcript(exam: Exam) -> tuple[str, ...]:
    """A line for each message and each reply."""
    return tuple(
        f"{speaker}: {' '.join(said.split())}"
        for message, reply in zip(exam.messages, exam.key.replies, strict=True)
        for speaker, said in (("User", message), ("Assistant", reply))
        if said.strip()
    )


def _newest(lines: Sequence[str], budget: int) -> list[str]:
    """The last lines that fit, none of them cut."""
    kept: list[str] = []
    for line in reversed(lines):
        if estimate_tokens("\n".join([line, *kept])) > budget:
            break
        kept.insert(0, line)
    return kept


def _injection(kind: Kind, run: DialogueRun, budget: int) -> Memory:
    text = ConversationAdapter().format_for_injection(run.state, budget)
    return Memory(kind=kind, text=text, faults=run.errors)


BUDGET = 300
"""Tokens of an injection (section 6.3)."""


class Scored(Value):
    """What one answer from one memory of one dialogue was worth."""

    dialogue: str
    kind: Kind
    question: str
    value: float
    """From 0 to 1."""
    recall: float
    """The same where claiming too much costs nothing."""
    right: int
    """How many right items there were."""
    claimed: int | None
    """How many claims the reader found; None for an answer that failed or was computed."""
    failed: bool = False
    """Whether no answer came."""

    @property
    def mark(self) -> Mark:
        """As table 7 writes it."""
        return Mark.of(self.value)


class Size(Value):
    """How long a memory of a dialogue was."""

    dialogue: str
    kind: Kind
    tokens: int
    faults: tuple[str, ...] = ()
    """Turns of which its perception made nothing."""


class Coverage(Value):
    """All answers of one reader."""

    reader: str
    budget: int
    dialogues: tuple[str, ...]
    questions: tuple[str, ...]
    kinds: tuple[Kind, ...]
    sizes: tuple[Size, ...]
    scored: tuple[Scored, ...]

    @property
    def further(self) -> tuple[str, ...]:
        """The dialogues that are not the paper's."""
        return tuple(name for name in self.dialogues if name != PAPER)

    def of(self, dialogue: str, kind: Kind) -> tuple[Scored, ...]:
        """The answers from one memory of one dialogue."""
        return tuple(one for one in self.scored if one.dialogue == dialogue and one.kind is kind)

    def tokens(self, dialogue: str, kind: Kind) -> int:
        """How long that memory was."""
        return next(
            one.tokens for one in self.sizes if one.dialogue == dialogue and one.kind is kind
        )

    def total(self, dialogue: str, kind: Kind) -> float:
        """The sum of the scores: the coverage of table 6."""
        return sum(one.value for one in self.of(dialogue, kind))


class OnAnswer(Protocol):
    """Is told how far it is."""

    def __call__(self, what: str, done: int, total: int) -> None:
        """So many of all answers are there; `what` comes next."""
        ...


def _unheard(what: str, done: int, total: int) -> None:
    """Nobody listens."""


async def cover(
    exams: Sequence[Exam],
    reader: Reader,
    questions: Sequence[Question],
    *,
    budget: int = BUDGET,
    perception: Perception | None = None,
    on_answer: OnAnswer = _unheard,
) -> Coverage:
    """Asks a reader every question about every memory of every dialogue.

    Args:
        exams: The dialogues.
        reader: Answers from the text alone.
        questions: What is asked.
        budget: Tokens of an injection and of the buffer that is cut.
        perception: Reads the messages for one more injection.
        on_answer: Is told of each step.

    Raises:
        ModelCallError: A model could not be asked.
        AwarenessError: An analysis by hand names what does not exist.
    """
    sizes, scored, kinds = list[Size](), list[Scored](), dict[Kind, None]()
    for number, exam in enumerate(exams):
        per_exam = len(questions) * (len(Kind) if perception else len(Kind) - 1)
        total = len(exams) * per_exam
        on_answer(f"{exam.name}: messages are read", number * per_exam, total)
        memories = await memories_of(exam, budget, perception)
        for place, memory in enumerate(memories):
            kinds[memory.kind] = None
            sizes.append(
                Size(
                    dialogue=exam.name,
                    kind=memory.kind,
                    tokens=memory.tokens,
                    faults=memory.faults,
                )
            )
            done = number * per_exam + place * len(questions)
            for asked, question in enumerate(questions):
                on_answer(f"{exam.name}: {memory.kind}, {question.id}", done + asked, total)
                scored.append(await _scored(exam, memory, question, reader, budget))
    return Coverage(
        reader=reader.name,
        budget=budget,
        dialogues=tuple(exam.name for exam in exams),
        questions=tuple(question.id for question in questions),
        kinds=tuple(kinds),
        sizes=tuple(sizes),
        scored=tuple(scored),
    )


async def _scored(
    exam: Exam, memory: Memory, question: Question, reader: Reader, budget: int
) -> Scored:
    right = exam.right(question)
    claims = None
    if question.form is Form.COMPUTED:
        computed = _COMPUTED[question.id](memory.text, budget)
        found = Score(value=computed, recall=computed)
    else:
        claims = await reader.read(memory.text, question)
        found = score(claims, right, sampled=question.sampled)
    return Scored(
        dialogue=exam.name,
        kind=memory.kind,
        question=question.id,
        value=found.value,
        recall=found.recall,
        right=len(right),
        claimed=None if claims is None else len(claims),
        failed=claims is None and question.form is not Form.COMPUTED,
    )


def _fits(text: str, budget: int) -> float:
    return float(estimate_tokens(text) <= budget)


def _parses(text: str, budget: int) -> float:
    del budget
    return parseable(text)


_COMPUTED: dict[str, Callable[[str, int], float]] = {
    "token_budget": _fits,
    "machine_parseable": _parses,
}


SEED = 2026
"""What the resamples of the bootstrap are drawn by."""
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
"""Scores that differ by less are told as the same."""


def figures(coverage: Coverage, dialogue: str, kind: Kind) -> dict[str, float]:
    """Table 6 of one memory of one dialogue, by the names of its rows."""
    scored = coverage.of(dialogue, kind)
    tokens, covered = coverage.tokens(dialogue, kind), coverage.total(dialogue, kind)
    marks = [one.mark for one in scored]
    return {
        "tokens": tokens,
        "coverage": covered,
        "coverage, %": 100 * covered / len(coverage.questions),
        "coverage, recall only": sum(one.recall for one in scored),
        "coverage per 100 tokens": 100 * covered / tokens if tokens else 0.0,
        "full": marks.count(Mark.FULL),
        "partial": marks.count(Mark.PARTIAL),
        "none": marks.count(Mark.NONE),
    }


def _question_mean(
    coverage: Coverage, kind: Kind, question: Question, dialogues: Sequence[str] | None = None
) -> float:
    """The mean score of one question over dialogues; over all but the paper's if not given."""
    among = coverage.further if dialogues is None else dialogues
    return fmean(
        one.value
        for one in coverage.scored
        if one.kind is kind and one.question == question.id and one.dialogue in among
    )


def coverage_page(coverage: Coverage, command: str) -> str:
    """The page.

    Args:
        coverage: What was found.
        command: How it was measured; told at the end.
    """
    parts = [f"# What each kind of memory tells, read by {coverage.reader}", _opening(coverage)]
    if PAPER in coverage.dialogues:
        parts += ["## Table 6: the paper's scenario", _table_6(coverage, (PAPER,))]
    if coverage.further:
        count = _dialogues(len(coverage.further))
        parts += [
            f"## Table 6: {count}, means",
            _table_6(coverage, coverage.further),
            "## Differences, paired by dialogue",
            _differences(coverage),
            "## Coverage of each dialogue",
            _per_dialogue(coverage),
        ]
    parts += ["## Table 7: by question", _table_7(coverage)]
    if coverage.further:
        parts += ["## Where awareness does not win", _losses(coverage)]
    parts += ["## Nothing to tell", _nothing_to_tell(coverage)]
    parts += ["## Answers that failed", _failures(coverage), "## How it was measured"]
    parts.append(f"```text\n{command}\n```")
    return "\n\n".join(parts) + "\n"


def _opening(coverage: Coverage) -> str:
    asked = len(coverage.questions)
    return (
        f"{_dialogues(len(coverage.dialogues))}, {asked} questions each, asked of each kind of "
        f"memory after the last turn; budget of injections and of the buffer that is cut: "
        f"{coverage.budget} tokens. A score is F1 over the right items, 1 for rightly claiming "
        "nothing; full from 0.7, partial from 0.3. *Recall only* lets a text claim as much as it "
        "likes, except where nothing is to be told. What is measured, and what it cannot show: "
        "docs/awareness-evidence.md."
    )


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
    return _grid(head, rows)


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
    return _grid(head, rows) + (
        "\n\nMean and 95 % interval (bootstrap over the further dialogues, seeded; none below "
        "six), and in how many of them it is better or worse."
    )


def _per_dialogue(coverage: Coverage) -> str:
    rows = [
        [
            dialogue,
            *(
                f"{coverage.total(dialogue, kind):.1f} ({coverage.tokens(dialogue, kind)})"
                for kind in coverage.kinds
            ),
        ]
        for dialogue in coverage.dialogues
    ]
    return _grid(["coverage (tokens)", *coverage.kinds], rows)


def _table_7(coverage: Coverage) -> str:
    """Marks of the paper's scenario beside the printed ones, and mean scores of the others."""
    parts: list[str] = []
    asked = questions_named(coverage.questions)
    if PAPER in coverage.dialogues:
        head = ["the paper's scenario", *coverage.kinds]
        head += [f"paper: {kind}" for kind in _PRINTED_KINDS]
        parts.append(_grid(head, [_marked(coverage, one) for one in asked]))
    if coverage.further:
        rows = [
            [one.label, *(f"{_question_mean(coverage, kind, one):.2f}" for kind in coverage.kinds)]
            for one in asked
        ]
        parts.append(_grid(["further dialogues, mean score", *coverage.kinds], rows))
    return "\n\n".join(parts)


def _marked(coverage: Coverage, question: Question) -> list[str]:
    scores = [_question_mean(coverage, kind, question, (PAPER,)) for kind in coverage.kinds]
    printed = question.printed
    return [
        question.label,
        *(f"{Mark.of(score).value} {score:.2f}" for score in scores),
        printed.buffer,
        printed.summary,
        printed.awareness,
    ]


def _losses(coverage: Coverage) -> str:
    """The questions in which a baseline tells as much as awareness or more, in the mean."""
    rows: list[list[str]] = []
    for question in questions_named(coverage.questions):
        best = max(BASELINES, key=lambda kind: _question_mean(coverage, kind, question))
        theirs = _question_mean(coverage, best, question)
        cells = [question.label, f"{best} {theirs:.2f}"]
        mine = [(kind, _question_mean(coverage, kind, question)) for kind in _aware(coverage)]
        cells += [f"{score:.2f} ({_against(score, theirs)})" for _, score in mine]
        if any(score < theirs + _SAME for _, score in mine):
            rows.append(cells)
    if not rows:
        return "It wins every question, in the mean over the further dialogues."
    return _grid(["question", "best baseline", *_aware(coverage)], rows)


def _against(score: float, theirs: float) -> str:
    if abs(score - theirs) < _SAME:
        return "same"
    return "more" if score > theirs else "less"


def _nothing_to_tell(coverage: Coverage) -> str:
    """How often a text rightly claims nothing."""
    empty = [one for one in coverage.scored if not one.right and one.claimed is not None]
    if not empty:
        return "Every question had something to be told."
    cells = [
        f"{sum(one.value == 1 for one in mine)} of {len(mine)}"
        for kind in coverage.kinds
        for mine in [[one for one in empty if one.kind is kind]]
    ]
    return _grid(["right answer: none", *coverage.kinds], [["claims nothing", *cells]])


def _failures(coverage: Coverage) -> str:
    failed = [sum(one.failed for one in coverage.scored if one.kind is k) for k in coverage.kinds]
    faults = [
        sum(len(one.faults) for one in coverage.sizes if one.kind is k) for k in coverage.kinds
    ]
    if not any(failed) and not any(faults):
        return "None."
    rows = [["no usable answer, scored 0", *map(str, failed)]]
    rows.append(["turns of which perception made nothing", *map(str, faults)])
    return _grid(["", *coverage.kinds], rows)


def _aware(coverage: Coverage) -> tuple[Kind, ...]:
    return tuple(kind for kind in AWARENESS if kind in coverage.kinds)


def _dialogues(count: int) -> str:
    return "1 dialogue" if count == 1 else f"{count} dialogues"


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


DATA = Path(__file__).parent
"""The folder of the further dialogues and of the right answers."""


class CoverageRequest(Value):
    """Which dialogues and questions, and who perceives."""

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
    readings: Path
    """Where the perception's readings are kept."""
    data: Path | None = None
    """A folder of other dialogues and answers."""

    def command(self) -> str:
        """The command that asks for it; it names no folder and holds no secret."""
        words = ["case-study", "awareness", "coverage"]
        given = {
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
    async with _perception(request) as perception:
        found = await cover(
            exams,
            RuleReader(),
            questions,
            budget=request.budget,
            perception=perception,
            on_answer=on_answer,
        )
    return coverage_page(found, request.command())


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


def _public(spec: str | None) -> str | None:
    return None if spec is None else ModelSpec.parse(spec).public
