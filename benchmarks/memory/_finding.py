"""Which turns of long conversations are found by the questions on them."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from ._contender import Contender
from ._dialogues import ADVERSARIAL, CATEGORIES, Dialogue
from ._metrics import (
    LOOKED_AT,
    Answer,
    all_at,
    interval,
    of_all,
    percentile,
    recall_at,
    reciprocal_rank,
)
from ._printing import machine, percent, print_absent, print_table, progress

_WARM_UP = 3
"""Questions asked before the clock runs, in each conversation."""
_PLACES = (1, 5, 10, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one memory found."""

    name: str
    answers: tuple[Answer, ...]
    a_second: float
    """Turns taken in a second."""

    @property
    def headline(self) -> list[Answer]:
        """The questions that have an answer: categories 1 to 4."""
        return [one for one in self.answers if one.category != ADVERSARIAL]

    def of(self, category: int) -> list[Answer]:
        """The questions of a category."""
        return [one for one in self.answers if one.category == category]


def find(contender: Contender, dialogues: Sequence[Dialogue]) -> Found:
    """Fills a memory with each conversation and asks its questions."""
    if contender.make is None:
        raise ValueError(f"{contender.name!r} is not installed.")
    answers: list[Answer] = []
    taken = 0.0
    for dialogue in dialogues:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            memory = contender.make(Path(folder))
            began = time.perf_counter()
            memory.add(dialogue.turns)
            taken += time.perf_counter() - began
            for question in dialogue.questions[:_WARM_UP]:
                memory.query(f"And {question.text}", LOOKED_AT)  # so that no answer is at hand
            for question in dialogue.questions:
                began = time.perf_counter()
                got = memory.query(question.text, LOOKED_AT)
                answers.append(
                    Answer(
                        conversation=dialogue.name,
                        split=dialogue.split,
                        category=question.category,
                        wanted=question.wanted,
                        got=tuple(got),
                        seconds=time.perf_counter() - began,
                    )
                )
            memory.close()
    turns = sum(len(dialogue.turns) for dialogue in dialogues)
    return Found(name=contender.name, answers=tuple(answers), a_second=turns / taken)


def measure_finding(
    contenders: Sequence[Contender], dialogues: Sequence[Dialogue], as_json: bool
) -> None:
    """Measures and prints."""
    results: list[Found] = []
    for contender in contenders:
        if contender.make is not None:
            progress(f"{contender.name} ...")
            results.append(find(contender, dialogues))
    absent = [one.name for one in contenders if one.make is None]
    if as_json:
        context = {"machine": machine(), "absent": absent}
        answers = [asdict(one) for one in results]
        print(json.dumps(context | {"results": answers}, indent=1, default=sorted))
        return
    turns = sum(len(one.turns) for one in dialogues)
    asked = sum(len(one.questions) for one in dialogues)
    skipped = sum(one.skipped for one in dialogues)
    print(
        f"{len(dialogues)} conversation(s), {turns:,} turns, {asked:,} questions "
        f"({skipped} without usable evidence left out); {machine()}\n"
    )
    if results:
        _print_all(results)
        _print_categories(results)
        _print_splits(results)
    print_absent(absent)


def _print_all(results: Sequence[Found]) -> None:
    print("Questions of categories 1 to 4, and the adversarial ones (5) apart:\n")
    heads = ("memory", *(f"R@{k}" for k in _PLACES), "95 % of R@10", "all@10", "MRR")
    heads += ("5: R@10", "p50 ms", "p95 ms", "turns/s")
    rows: list[tuple[str, ...]] = []
    for one in results:
        known = one.headline
        low, high = interval([recall_at(answer, 10) for answer in known])
        seconds = [answer.seconds for answer in one.answers]
        rows.append(
            (
                one.name,
                *(percent(of_all(known, partial(recall_at, k=k))) for k in _PLACES),
                f"{percent(low)} to {percent(high)}",
                percent(of_all(known, partial(all_at, k=10))),
                percent(of_all(known, reciprocal_rank)),
                percent(of_all(one.of(ADVERSARIAL), partial(recall_at, k=10))),
                f"{percentile(seconds, 0.5) * 1e3:.2f}",
                f"{percentile(seconds, 0.95) * 1e3:.2f}",
                f"{one.a_second:,.0f}",
            )
        )
    print_table(heads, rows)


def _print_categories(results: Sequence[Found]) -> None:
    print("\nBy category, R@10 and all@10:\n")
    counts = {number: len(results[0].of(number)) for number in CATEGORIES}
    heads = ("memory", *(f"{word} ({counts[number]})" for number, word in CATEGORIES.items()))
    rows = [
        (
            one.name,
            *(
                f"{percent(of_all(one.of(number), partial(recall_at, k=10)))} / "
                f"{percent(of_all(one.of(number), partial(all_at, k=10)))}"
                for number in CATEGORIES
            ),
        )
        for one in results
    ]
    print_table(heads, rows)


def _print_splits(results: Sequence[Found]) -> None:
    """By split; and how far the others are from the first, question by question."""
    print(f"\nR@10 by split, and what it is more than that of {results[0].name}, paired:\n")
    base = [recall_at(answer, 10) for answer in results[0].headline]
    splits = ("dev", "held-out")
    rows: list[tuple[str, ...]] = []
    for one in results:
        own = [recall_at(answer, 10) for answer in one.headline]
        more = [mine - its for mine, its in zip(own, base, strict=True)]
        low, high = interval(more)
        parts = [
            of_all([a for a in one.headline if a.split == split], partial(recall_at, k=10))
            for split in splits
        ]
        difference = f"{100 * sum(more) / len(more):+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
        rows.append((one.name, *map(percent, parts), difference))
    print_table(("memory", *splits, "difference (95 %)"), rows)
