"""The result of an experiment as Markdown: the confusion matrix and the losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from coag.proof import Cause

from ._measure import NONE, UNTOLD, Attribution, Measured

_ORDER = (*Cause, UNTOLD, NONE)
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
"""What the tables stand between in a page that the command writes."""


def tables(measured: Sequence[Measured]) -> str:
    """Everything that was measured, as Markdown."""
    return "\n".join(chain.from_iterable(_tables(one) for one in measured))


def replaced(page: str, text: str) -> str:
    """The page with a text between its two marks.

    Raises:
        ValueError: It has no such marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN!r} and {END!r} to write between")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def _tables(measured: Measured) -> Iterator[str]:
    total, right = len(measured.attributions), measured.right
    named = "The CoAG agent" if measured.agent == "coag" else "The plain baseline"
    yield f"### {named}"
    yield ""
    yield (
        f"Seed {measured.seed}: {total} faults did harm, the right cause was found for {right} "
        f"({_share(right, total)}), any cause for {measured.attributed} "
        f"({_share(measured.attributed, total)}). {sum(measured.harmless.values())} further "
        f"faults had no consequence. Of {measured.twins} runs without a fault, a failure was "
        f"found in {measured.false_alarms}."
    )
    yield ""
    yield from _matrix(measured)
    yield ""
    yield from _variants(measured)
    lost = [one for one in measured.attributions if not one.right]
    if lost:
        yield ""
        yield from _losses(lost)
    yield ""


def _matrix(measured: Measured) -> Iterator[str]:
    """Rows are what was injected, columns what was found; columns that are empty are left out."""
    matrix = measured.matrix()
    columns = [name for name in _ORDER if any(row[name] for row in matrix.values())]
    yield f"| injected | {' | '.join(columns)} | right |"
    yield f"|---|{'---:|' * (len(columns) + 1)}"
    for cause in Cause:
        row = matrix.get(cause)
        if row is not None:
            cells = [str(row[name] or "") for name in columns]
            yield f"| {cause} | {' | '.join(cells)} | {_share(row[cause], row.total())} |"


def _variants(measured: Measured) -> Iterator[str]:
    """How many of each variant were found."""
    total: Counter[tuple[Cause, str]] = Counter()
    right: Counter[tuple[Cause, str]] = Counter()
    for one in measured.attributions:
        key = (one.fault.cause, one.fault.variant)
        total[key] += 1
        right[key] += one.right
    yield "| component | in which way it broke: found of injected |"
    yield "|---|---|"
    for cause in Cause:
        kinds = [key for key in total if key[0] is cause]
        if kinds:
            told = ", ".join(f"{key[1]} {right[key]}/{total[key]}" for key in kinds)
            yield f"| {cause} | {told} |"


def _losses(lost: Sequence[Attribution]) -> Iterator[str]:
    yield "| lost: injected | variant | stage and seed | cycle | found |"
    yield "|---|---|---|---:|---|"
    for one in lost:
        yield (
            f"| {one.fault.cause} | {one.fault.variant} | {one.stage} {one.seed} | {one.struck} "
            f"| {one.found} |"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
