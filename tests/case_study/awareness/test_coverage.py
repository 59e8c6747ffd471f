from __future__ import annotations

from pathlib import Path

import pytest

from case_study.awareness import (
    BASELINES,
    DATA,
    PAPER,
    QUESTIONS,
    Claim,
    Coverage,
    Kind,
    Question,
    RuleReader,
    cover,
    coverage_page,
    exams_in,
    exams_named,
    memories_of,
    questions_named,
)
from coag.awareness import RulePerception
from coag.schema import estimate_tokens

RULES = RuleReader()


async def papers() -> Coverage:
    return await cover(exams_named(exams_in(DATA), [PAPER]), RULES, QUESTIONS)


async def test_on_the_papers_scenario_awareness_covers_more_than_both_baselines_as_in_table_6() -> (
    None
):
    found = await papers()
    by_hand = found.total(PAPER, Kind.BY_HAND)
    assert by_hand > found.total(PAPER, Kind.BUFFER)
    assert by_hand > found.total(PAPER, Kind.SUMMARY)


async def test_the_page_has_our_numbers_beside_the_papers(data: Path) -> None:
    page = coverage_page(await papers(), "case-study awareness coverage")
    assert "| tokens | 0 | 150 |" in page
    assert "| 92 | 43 | 176 |" in page
    assert "| Goal lifecycle tracking |" in page
    both = coverage_page(await cover(exams_in(data), RULES, QUESTIONS), "it")
    assert "## Table 6: 1 dialogue, means" in both
    assert "awareness by hand - summary" in both
    some = coverage_page(
        await cover(exams_in(data), RULES, questions_named(["urgency"])), "command"
    )
    assert "| 92 | 43 | 176 |" not in some


async def test_every_kind_of_memory_is_made_of_the_same_messages(data: Path) -> None:
    _, fence = exams_in(data)
    memories = {memory.kind: memory for memory in await memories_of(fence, 300)}
    assert set(memories) == set(Kind) - {Kind.BY_MODEL}
    assert memories[Kind.NOTHING].text == ""
    assert memories[Kind.BUFFER].text == (
        "User: I want to paint the fence.\nAssistant: Good.\nUser: What colour?\nAssistant: Green."
    )
    assert memories[Kind.CUT].text == memories[Kind.BUFFER].text
    assert memories[Kind.SUMMARY].text == fence.key.summary
    assert "[explicit] Paint the fence" in memories[Kind.BY_HAND].text
    assert "aint the fence" in memories[Kind.BY_RULES].text


@pytest.mark.parametrize("budget", [1, 12, 20, 300])
async def test_the_buffer_that_is_cut_keeps_whole_newest_lines_within_the_budget(
    data: Path, budget: int
) -> None:
    _, fence = exams_in(data)
    memories = {memory.kind: memory for memory in await memories_of(fence, budget)}
    cut = memories[Kind.CUT]
    assert estimate_tokens(cut.text) <= budget
    assert memories[Kind.BUFFER].text.endswith(cut.text)
    assert memories[Kind.BY_HAND].tokens <= budget


async def test_what_is_computed_of_the_text_needs_no_reader(data: Path) -> None:
    found = await cover(
        exams_in(data)[1:],
        _Silent(),
        questions_named(["token_budget", "machine_parseable"]),
        budget=15,
    )
    values = {(one.kind, one.question): one.value for one in found.scored}
    assert values[Kind.BUFFER, "token_budget"] == 0
    assert values[Kind.SUMMARY, "token_budget"] == 1
    assert values[Kind.BUFFER, "machine_parseable"] == 0.5
    assert values[Kind.SUMMARY, "machine_parseable"] == 0
    assert not any(one.failed for one in found.scored)


async def test_answers_that_fail_are_worth_nothing_and_counted_in_the_page(data: Path) -> None:
    found = await cover(exams_in(data)[1:], _Silent(), questions_named(["watch_list"]))
    assert all(one.failed and one.value == 0 for one in found.scored)
    assert "| no usable answer, scored 0 | 1 | 1 |" in coverage_page(found, "it")


async def test_a_perception_of_its_own_adds_an_injection_and_progress_is_told(data: Path) -> None:
    told: list[tuple[int, int]] = []
    found = await cover(
        exams_in(data),
        RULES,
        questions_named(["watch_list", "urgency"]),
        perception=RulePerception(),
        on_answer=lambda what, done, total: told.append((done, total)),
    )
    assert Kind.BY_MODEL in found.kinds
    assert told == sorted(told)
    assert {total for _, total in told} == {len(found.scored)}


async def test_no_text_is_right_where_nothing_is_to_be_told_and_nowhere_else(data: Path) -> None:
    found = await cover(exams_in(data)[1:], RULES, QUESTIONS[:-2])
    nothing = found.of("a fence", Kind.NOTHING)
    assert [one.value for one in nothing] == [float(not one.right) for one in nothing]
    assert Kind.NOTHING in BASELINES


class _Silent:
    """A reader that never answers."""

    @property
    def name(self) -> str:
        return "silent"

    async def read(self, text: str, question: Question) -> tuple[Claim, ...] | None:
        return None
