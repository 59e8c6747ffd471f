"""Plans: their jobs, how they grow, and what a command line asks for."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.ponds import Noted, pond_plan, run_ponds
from pydantic import ValidationError

from coag.errors import ConfigurationError, UnknownNameError
from coag.evals import (
    NO_MODEL,
    Assessment,
    AssessmentError,
    Plan,
    Trial,
    begin,
    contenders_named,
    fewer_seeds_named,
    machine_class,
    read_plan,
    scenarios_named,
    seeds_named,
    versions,
)
from coag.schema import SteppingClock


def plan(**fields: object) -> Plan:
    return Plan.model_validate(
        {
            "contenders": ["random", "plain", "coag-full"],
            "scenarios": ["sudden-wall", "evolution"],
            "models": ["scripted:sound", "scripted:stubborn"],
            "seeds": [0, 1],
            "without_model": ["random"],
            "started_at": datetime(2027, 1, 1, tzinfo=UTC),
            **fields,
        }
    )


def test_jobs_come_pair_by_pair_and_without_a_model_once_for_all_models() -> None:
    jobs = list(plan().jobs())
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    assert [job.contender for job in jobs][:3] == ["random", "plain", "coag-full"]
    here = [job for job in jobs if (job.scenario, job.seed) == ("evolution", 1)]
    assert [job.model for job in here if job.contender == "random"] == [NO_MODEL]
    assert [job.model for job in here if job.contender == "plain"] == [
        "scripted:sound",
        "scripted:stubborn",
    ]
    keys = [job.key for job in jobs]
    assert len(set(keys)) == len(keys)
    assert "evolution, coag-full, scripted:stubborn, seed 1" in keys
    folders = [job.folder for job in jobs]
    assert len(set(folders)) == len(folders)
    fewer = plan(fewer_seeds={"coag-full": 1}).jobs()
    assert {job.seed for job in fewer if job.contender == "coag-full"} == {0}


@pytest.mark.parametrize(
    ("seeds", "problem"), [([1, 1], "is twice in"), ([-1], "greater than or equal to 0")]
)
def test_seeds_that_repeat_or_are_negative_are_refused(seeds: list[int], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        plan(seeds=seeds)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e308"])
def test_a_measure_that_cannot_be_summed_is_refused(value: str) -> None:
    job = next(plan().jobs())
    text = Trial(job=job, outcome="success", measures={"tokens": 0.5}).model_dump_json()
    assert Trial.model_validate_json(text).measures == {"tokens": 0.5}
    with pytest.raises(ValidationError, match="tokens"):
        Trial.model_validate_json(text.replace("0.5", value))


# ---- beginning, continuing, extending ----


def test_the_same_plan_is_continued_and_another_one_refused_with_the_differences(
    tmp_path: Path,
) -> None:
    first = begin(tmp_path / "a", pond_plan("fisher", fewer_seeds={"fisher": 2}))
    same = pond_plan("fisher", fewer_seeds={"fisher": 2}, command="typed again")
    assert begin(tmp_path / "a", same) == first == read_plan(tmp_path / "a")
    plan = pond_plan("fisher", "sleeper", seeds=(0, 1, 2), conditions={"place": "served"})
    with pytest.raises(AssessmentError) as refused:
        begin(tmp_path / "a", plan)
    for part in (
        "place there none, asked for served",
        "contenders there fisher, asked for fisher, sleeper",
        "seeds there 0-1, asked for 0-2",
        "fewer seeds there fisher=2, asked for none",
        "--extend",
    ):
        assert part in str(refused.value)
    assert read_plan(tmp_path / "a") == first


def test_an_assessment_is_added_to_and_keeps_its_trials(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    run_ponds(folder, pond_plan("fisher"))
    plan = pond_plan("sleeper", "fisher", seeds=(1, 2), fewer_seeds={"sleeper": 1})
    larger = begin(folder, plan, extend=True)
    assert (larger.contenders, larger.seeds) == (("fisher", "sleeper"), (0, 1, 2))
    assert larger.without_model == ("fisher",)
    assert larger.fewer_seeds == {"sleeper": 1}
    assert len(Assessment.read(folder).missing) == 2
    assert run_ponds(folder, larger).complete


def test_the_command_of_a_larger_assessment_names_all_of_it(tmp_path: Path) -> None:
    begin(tmp_path, pond_plan("fisher", models=("none",), command="assess --seeds 2"))
    plan = pond_plan(
        "fisher", seeds=(0, 1, 2), models=("scripted:ice",), command="assess --seeds 3"
    )
    for _ in range(2):
        larger = begin(tmp_path, plan, extend=True)
        assert larger.command == "assess --seeds 2, then assess --seeds 3 --extend"
        assert larger.models == ("scripted:ice",)
    with pytest.raises(AssessmentError, match=r"token budget there none, asked for 50"):
        begin(tmp_path, pond_plan("fisher", conditions={"token_budget": 50}), extend=True)


def test_nothing_is_added_while_another_process_is_writing(tmp_path: Path) -> None:
    noted, folder = Noted(), tmp_path / "a"

    def add(trial: Trial) -> None:
        with pytest.raises(AssessmentError, match="Another process is writing"):
            begin(folder, pond_plan("sleeper"), extend=True)

    noted.after_each = add
    before = pond_plan("fisher")
    run_ponds(folder, before, noted)
    assert read_plan(folder) == before


def test_other_code_that_continues_is_noted_with_the_number_of_trials_before(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "a"
    begin(folder, pond_plan("fisher", versions={"sources": "old"}))
    new = pond_plan("fisher", versions={"sources": "new"})
    begin(folder, new)
    assert read_plan(folder).resumptions == ()
    run_ponds(folder, pond_plan("fisher", versions={"sources": "old"}))
    clock = SteppingClock()
    (resumption,) = begin(folder, new, clock=clock).resumptions
    assert (resumption.versions, resumption.trials) == ({"sources": "new"}, 2)
    assert begin(folder, new, clock=clock).resumptions == (resumption,)


def test_a_folder_with_other_things_in_it_is_not_written_to(tmp_path: Path) -> None:
    half = tmp_path / "half"
    half.mkdir()
    (half / "assessment.json.tmp").write_text('{"domain"')
    assert begin(half, pond_plan("fisher")) == read_plan(half)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").touch()
    with pytest.raises(AssessmentError, match="holds no assessment"):
        begin(folder, pond_plan("fisher"))
    with pytest.raises(AssessmentError, match="is a file"):
        begin(folder / "thesis.tex", pond_plan("fisher"))
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


def test_versions_name_the_code_and_not_the_machine() -> None:
    found = versions()
    assert found["coag"]
    assert len(found["sources"]) == 12
    assert "core" in machine_class()


# ---- names on a command line ----

CONTENDERS = ("random", "plain", "coag-full", "coag-full-grounded", "coag-without-reasoning")
ARMS = ("coag-full:kept", "coag-full:emptied", "plain:kept")
GROUPS = {"headline": ("random", "plain", "coag-full")}
SCENARIOS = ("sudden-wall", "energy-dilemma", "open-world-easy", "open-world-hard")


def test_contenders_are_asked_for_by_name_group_or_arm_and_come_in_their_own_order() -> None:
    assert contenders_named("coag-full, random", CONTENDERS, GROUPS) == ("random", "coag-full")
    assert contenders_named("headline", CONTENDERS, GROUPS) == ("random", "plain", "coag-full")
    assert contenders_named("all", CONTENDERS, GROUPS) == CONTENDERS
    assert contenders_named("coag-full", ARMS, GROUPS) == ARMS[:2]
    assert contenders_named("coag-full:kept", ARMS, GROUPS) == ARMS[:1]
    assert contenders_named("headline", ARMS, GROUPS) == ARMS
    with pytest.raises(UnknownNameError, match=r"'coag'.*all, coag-full"):
        contenders_named("coag", CONTENDERS, GROUPS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A-B", ("sudden-wall", "energy-dilemma")),
        ("B", ("energy-dilemma",)),
        ("A,open-world-hard", ("sudden-wall", "open-world-hard")),
        ("open-world", ("open-world-easy", "open-world-hard")),
        ("all", SCENARIOS),
    ],
)
def test_scenarios_are_asked_for_by_name_letter_or_beginning(
    text: str, found: tuple[str, ...]
) -> None:
    assert scenarios_named(text, SCENARIOS) == found


@pytest.mark.parametrize("text", ["0", "9-3", "-1", "a", "", "1.5", "1000000", "0-999999999"])
def test_seeds_are_a_count_from_zero_or_a_range(text: str) -> None:
    assert seeds_named("3") == (0, 1, 2)
    assert seeds_named("6-8") == (6, 7, 8)
    with pytest.raises(ConfigurationError, match="--seeds"):
        seeds_named(text)


@given(st.text(max_size=12))
def test_any_text_gives_seeds_in_order_or_is_refused(text: str) -> None:
    with suppress(ConfigurationError):
        seeds = seeds_named(text)
        assert seeds == tuple(range(seeds[0], seeds[-1] + 1))


def test_fewer_seeds_name_a_contender_of_the_assessment() -> None:
    assert fewer_seeds_named(["coag-full=3"], CONTENDERS) == {"coag-full": 3}
    with pytest.raises(UnknownNameError):
        fewer_seeds_named(["nobody=3"], CONTENDERS)
    for text in ("coag-full", "coag-full=0", "coag-full=x", "coag-full=-1"):
        with pytest.raises(ConfigurationError, match="coag-full=3"):
            fewer_seeds_named([text], CONTENDERS)
