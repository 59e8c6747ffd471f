"""What a report says first, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kits.assessed import made_up

from case_study.assess import Assessment
from case_study.report import Summary, summary_of

NAMES = ("plain", "plain-guarded", "coag-full")
PAPER = ("sudden-wall", "energy-dilemma", "phantom-object", "evolution")


def said(
    outcomes: Mapping[str, bool],
    *,
    model: str = "local#made-up",
    lost_by_ours_in: str = "",
    seeds: int = 8,
) -> list[str]:
    """The sentences of the one model of an assessment with outcomes by contender.

    In one scenario ours may lose, and the reference win.
    """
    made = made_up(
        Path("nowhere"), contenders=tuple(outcomes), seeds=seeds, models=(model,), broken=0
    )

    def won(contender: str, scenario: str) -> bool:
        if scenario == lost_by_ours_in:
            return not contender.startswith("coag")
        return outcomes[contender]

    trials = tuple(
        trial.model_copy(
            update={
                "outcome": "success" if won(trial.job.contender, trial.job.scenario) else "failure"
            }
        )
        for trial in made.trials
    )
    summary: Summary = summary_of(Assessment(folder=made.folder, plan=made.plan, trials=trials))
    return list(summary.panels[0].findings)


def place(sentences: list[str], part: str) -> int:
    """Which of the sentences holds a part of one."""
    return next(at for at, sentence in enumerate(sentences) if part in sentence)


def test_losses_are_said_before_gains() -> None:
    told = said({"plain": False, "coag-full": True}, lost_by_ours_in="evolution")
    worse = place(told, "coag-full did worse than plain in D evolution (0 % against 100 %")
    dearer = place(told, "A trial of coag-full took")
    assert worse < dearer < place(told, "coag-full succeeded in 24 of 32")


def test_a_loss_beyond_chance_over_all_scenarios_is_named_as_one() -> None:
    told = said({"plain": True, "coag-full": False})
    assert told[0].startswith("coag-full did worse than plain: \N{MINUS SIGN}100 points")


def test_where_nothing_differs_no_gain_is_claimed() -> None:
    told = said({"plain": True, "coag-full": True})
    assert told[0].startswith("coag-full was not shown to do better than plain: 0 points")


def test_an_agent_without_deliberation_that_does_as_well_is_named() -> None:
    told = said({"plain": False, "plain-guarded": True, "coag-full": True})
    rival = place(told, "Without deliberation, plain-guarded (100 % of 32)")
    assert rival < place(told, "coag-full succeeded in")


def test_an_oracle_is_no_rival() -> None:
    told = said({"oracle": True, "plain": False, "coag-full": True})
    assert not any("oracle" in sentence for sentence in told)


def test_the_target_is_told_met_or_missed_only_where_all_four_scenarios_were_played() -> None:
    target = "On scenarios A to D, with a target of 90 %: coag-full "
    assert f"{target}32 of 32 (100 %, 95 % interval 89 to 100 %, met)." in said(
        {"plain": False, "coag-full": True}
    )
    assert f"{target}24 of 32 (75 %, 95 % interval 58 to 87 %, missed)." in said(
        {"plain": False, "coag-full": True}, lost_by_ours_in="evolution"
    )


def test_of_the_cache_only_real_models_are_judged() -> None:
    for model, judged in (("local#made-up", True), ("scripted:sound", False)):
        made = made_up(Path("nowhere"), contenders=("coag-full",), models=(model,))
        trials = tuple(
            trial.model_copy(update={"measures": {**trial.measures, "later_cached_share": 0.6}})
            for trial in made.trials
        )
        (panel,) = summary_of(Assessment(folder=made.folder, plan=made.plan, trials=trials)).panels
        told = any(
            "60 % came from the server's cache (target 70 %: missed)" in sentence
            for sentence in panel.findings
        )
        assert told is judged


def test_a_scripted_model_is_called_scripted_and_what_it_proves_is_said() -> None:
    summary = summary_of(made_up(Path("nowhere"), contenders=NAMES))
    assert [part.title for part in summary.abstract][-2:] == [
        "scripted:fallible, scripted",
        "What scripted models prove",
    ]
    assert "no language model" in summary.abstract[-1].sentences[0]


def test_real_models_come_before_scripted_ones_which_are_told_in_short() -> None:
    models = ("scripted:sound", "scripted:noisy", "local#made-up")
    summary = summary_of(made_up(Path("nowhere"), contenders=NAMES, models=models, broken=0))
    titles = [part.title for part in summary.abstract]
    assert titles[:3] == ["local#made-up", "scripted:sound, scripted", "scripted:noisy, scripted"]
    full, brief = summary.abstract[0], summary.abstract[1]
    assert full.sentences == summary.panels[2].findings
    assert len(brief.sentences) <= 2


def test_parts_that_add_nothing_are_named() -> None:
    told = said({"coag-full": True, "coag-without-retrieval": True})
    assert "No contribution to success was shown of: retrieval." in told
