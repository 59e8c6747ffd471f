"""Tables 6 and 7 as a page of Markdown, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from case_study.statistics import Interval

from ._coverage import Coverage
from ._exams import PAPER
from ._memories import AWARENESS, BASELINES, Kind
from ._questions import QUESTIONS, Question, questions_named
from ._scoring import Mark
from ._summing import Figures, difference, figures, mean_figures, question_mean

_PRINTED_KINDS = ("buffer", "summary", "SAGEN")
_TABLE_6 = (
    ("tokens", "92", "43", "176"),
    ("coverage", "2.1", "4.1", "19.7"),
    ("coverage, %", "10.5", "20.5", "98.5"),
    ("coverage, recall only", "", "", ""),
    ("coverage per 100 tokens", "2.28", "9.59", "11.23"),
    ("full", "1", "4", "20"),
    ("partial", "3", "3", "0"),
    ("none", "16", "13", "0"),
)
"""What the paper prints."""
_SAME = 0.005
"""Scores that differ by less are told as the same."""


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
    columns = [mean_figures(coverage, dialogues, kind) for kind in coverage.kinds]
    values = [_cells(column, len(coverage.questions), one=one) for column in columns]
    head = ["", *coverage.kinds, *(f"paper: {kind}" for kind in _PRINTED_KINDS if printed)]
    rows = [
        [name, *(column[place] for column in values), *(paper if printed else ())]
        for place, (name, *paper) in enumerate(_TABLE_6)
    ]
    return _grid(head, rows)


def _cells(found: Figures, asked: int, *, one: bool) -> list[str]:
    digits = 0 if one else 1
    return [
        f"{found.tokens:.0f}",
        f"{found.covered:.1f}",
        f"{100 * found.covered / asked:.1f}",
        f"{found.recalled:.1f}",
        f"{found.density:.2f}",
        f"{found.full:.{digits}f}",
        f"{found.partial:.{digits}f}",
        f"{found.none:.{digits}f}",
    ]


def _differences(coverage: Coverage) -> str:
    """Mean differences with their intervals, of coverage and of density."""
    rows: list[list[str]] = []
    for mine in (kind for kind in AWARENESS if kind in coverage.kinds):
        for other in BASELINES:
            cells = [f"{mine} - {other}"]
            for measure in (attrgetter("covered"), attrgetter("recalled"), attrgetter("density")):
                found = difference(coverage, coverage.further, measure, mine, other)
                cells.append(f"{found.mean:+.2f}{_interval(found.interval)}")
                cells.append(f"{found.better} / {found.worse}")
            rows.append(cells)
    head = ["", "coverage", "better / worse", "recall only", "better / worse"]
    head += ["per 100 tokens", "better / worse"]
    return _grid(head, rows) + (
        "\n\nMean and 95 % interval (bootstrap over the further dialogues, seeded; none below "
        "six), and in how many of them it is better or worse."
    )


def _interval(interval: Interval | None) -> str:
    return f" ({interval.low:+.2f} to {interval.high:+.2f})" if interval else ""


def _per_dialogue(coverage: Coverage) -> str:
    rows = [
        [
            dialogue,
            *(
                f"{found.covered:.1f} ({found.tokens:.0f})"
                for kind in coverage.kinds
                for found in [figures(coverage, dialogue, kind)]
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
            [one.label, *(f"{_mean(coverage, kind, one):.2f}" for kind in coverage.kinds)]
            for one in asked
        ]
        parts.append(_grid(["further dialogues, mean score", *coverage.kinds], rows))
    return "\n\n".join(parts)


def _marked(coverage: Coverage, question: Question) -> list[str]:
    scores = [question_mean(coverage, (PAPER,), kind, question.id) for kind in coverage.kinds]
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
        best = max(BASELINES, key=lambda kind: _mean(coverage, kind, question))
        theirs = _mean(coverage, best, question)
        cells = [question.label, f"{best} {theirs:.2f}"]
        mine = [(kind, _mean(coverage, kind, question)) for kind in _aware(coverage)]
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


def _mean(coverage: Coverage, kind: Kind, question: Question) -> float:
    return question_mean(coverage, coverage.further, kind, question.id)


def _dialogues(count: int) -> str:
    return "1 dialogue" if count == 1 else f"{count} dialogues"


def _grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)
