"""What is told of sequences of episodes whose memory is kept or emptied."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from kits.assessed import kept, made_up

from case_study.assess import Assessment, Job, Plan, Trial
from case_study.assess.episodes import EPISODE_MEASURES, in_episode
from case_study.report import Learning, Panel, Summary, summary_of, write_report

ARMS = ("coag-full:kept", "coag-full:emptied")
EPISODES = 3
FOLDER = Path("nowhere")
Value = Callable[[Job, str, int], float]


def _sequences(
    value: Value, *, seeds: int = 20, arms: tuple[str, ...] = ARMS, folder: Path = FOLDER
) -> Assessment:
    """Sequences that were played by nobody, with these values in each of their episodes."""
    plan = Plan(
        domain="episodes",
        contenders=arms,
        scenarios=("sudden-wall", "poisoned-memory"),
        models=("scripted:sound",),
        seeds=tuple(range(seeds)),
        episodes=EPISODES,
        command="made up: played by nobody",
        started_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    trials = tuple(
        Trial(
            job=job,
            outcome="success",
            measures={
                in_episode(name, number): value(job, name, number)
                for name in EPISODE_MEASURES
                for number in range(1, EPISODES + 1)
            },
        )
        for job in plan.jobs()
    )
    return Assessment(folder=folder, plan=plan, trials=trials)


def _helped_and_harmed(job: Job, measure: str, episode: int) -> float:
    """A kept memory spares blocked moves in the one scenario and costs successes in the other."""
    remembers = job.contender.endswith(":kept") and episode > 1
    if measure == "success":
        return float(not (remembers and job.scenario == "poisoned-memory" and job.seed % 5))
    if measure == "bumps":
        return float(not (remembers and job.scenario == "sudden-wall"))
    return 3.0


def _panel(assessment: Assessment) -> Panel:
    (panel,) = summary_of(assessment).panels
    return panel


@pytest.fixture(scope="module")
def panel() -> Panel:
    return _panel(_sequences(_helped_and_harmed))


def _row(panel: Panel, scenario: str, measure: str) -> Learning:
    found = [(one.scenario, one.measure) == (scenario, measure) for one in panel.learning]
    return panel.learning[found.index(True)]


def test_each_episode_is_compared_pair_by_pair_and_the_later_ones_together(panel: Panel) -> None:
    bumps = _row(panel, "sudden-wall", "bumps")
    assert [point.result.difference for point in bumps.points] == [0, -1, -1]
    assert [point.result.pairs for point in bumps.points] == [20, 20, 20]
    assert (bumps.later.difference, bumps.later.claims) == (-1, True)
    success = _row(panel, "poisoned-memory", "success")
    assert success.points[1].result.kind == "rate"
    assert success.points[1].result.lower == 16
    assert success.later.difference == pytest.approx(-0.8)


def test_the_first_episode_is_a_check_and_no_test_of_the_table(panel: Panel) -> None:
    for row in panel.learning:
        first, *later = row.points
        assert first.result.p_holm is None
        assert all(point.result.p_holm is not None for point in later)


def test_losses_are_told_before_gains_and_nothing_where_nothing_was_shown(panel: Panel) -> None:
    loss, gain = panel.findings
    assert "cost coag-full in H poisoned-memory: success" in loss
    assert "brought coag-full in A sudden-wall: blocked moves an episode" in gain
    silent = _panel(_sequences(lambda job, measure, episode: 1.0))
    assert silent.findings == (
        "No difference in any measure was shown of coag-full in A sudden-wall (the same in every "
        "pair) and H poisoned-memory (the same in every pair).",
    )


def test_a_loss_that_the_adjusted_test_leaves_open_is_told_all_the_same() -> None:
    def few_losses(job: Job, measure: str, episode: int) -> float:
        lost = job.seed < 6 and job.scenario == "sudden-wall" and episode > 1
        return float(not (measure == "success" and lost and job.contender.endswith(":kept")))

    told = _panel(_sequences(few_losses)).findings[0]
    assert "success was lower, but the test" in told
    assert "more in 0 pairs, less in 6; p = 0.031 before the correction" in told


def test_arms_that_differ_before_anything_can_be_remembered_are_told_of() -> None:
    def unlike(job: Job, measure: str, episode: int) -> float:
        return float(job.contender.endswith(":kept") and measure == "tokens")

    told = _panel(_sequences(unlike)).findings[0]
    assert told.startswith("In episode 1 the arms differ in 2 of 12 comparisons")


def test_a_contender_of_which_one_arm_was_played_is_not_compared() -> None:
    panel = _panel(_sequences(_helped_and_harmed, arms=ARMS[:1]))
    assert panel.learning == ()
    assert panel.recalled == ()


def test_measures_of_episodes_are_told_by_episode_only(panel: Panel) -> None:
    assert all(row.means == {} for row in panel.measures)
    assert panel.recalled[0].means["recalled"] == (3.0, 3.0, 3.0)


def test_a_report_of_sequences_has_curves_on_the_page_and_in_a_file_that_stands_alone(
    tmp_path: Path,
) -> None:
    folder = kept(_sequences(_helped_and_harmed, seeds=6, folder=tmp_path / "made-up"))
    written = write_report(folder, tmp_path / "out.html")
    (figure,) = written.figures
    assert figure.name == "out-learning-1.svg"
    root = ElementTree.parse(figure).getroot()
    assert len(list(root)) == 1 + 4
    assert "var(" not in figure.read_text()
    assert "](out-learning-1.svg)" in written.markdown.read_text()
    assert "What does a memory that lasts bring" in written.page.read_text()
    assert Summary.model_validate_json(written.json.read_bytes()) == written.summary


def test_a_report_without_sequences_says_nothing_of_them(tmp_path: Path) -> None:
    folder = kept(made_up(tmp_path / "made-up", contenders=("plain",), seeds=1))
    written = write_report(folder, tmp_path / "out.html")
    assert written.figures == ()
    assert "memory that lasts" not in written.markdown.read_text()
