"""What the trials of an assessment add up to, what is said first, and the files that show it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from kits.assessed import SCENARIOS, kept, made_up

from case_study.trials import report_profile
from coag.errors import ConfigurationError
from coag.evals import Assessment, AssessmentError, Job, Plan, Trial, data_frame, write_report
from coag.evals.charts import Spot, frontier_of
from coag.evals.learning import LearningSummary
from coag.evals.report import FORMAT, RUN_PAGES, ReportFiles
from coag.evals.summary import Panel, caveats, failures_first, panels_of

FOLDER = Path("nowhere")
PROFILE = report_profile("vacuum")
HOSTILE = 'm<script>alert(1)</script>"|`[x](javascript:1)\x1b[31m\u202e\x07'


def with_outcomes(made: Assessment, of: Mapping[str, bool | None]) -> Assessment:
    """The same assessment with outcomes by contender: True, False, or None for broken."""
    names = {True: "success", False: "failure", None: "broken"}
    trials = tuple(
        trial.model_copy(update={"outcome": names[of[trial.job.contender]]})
        if trial.job.contender in of
        else trial
        for trial in made.trials
    )
    return Assessment(folder=made.folder, plan=made.plan, trials=trials)


def panel_of(made: Assessment) -> Panel:
    (panel,) = panels_of(made, PROFILE)
    return panel


# ---- numbers ----


@pytest.fixture(scope="module")
def panel() -> Panel:
    names = ("rules", "plain", "plain-guarded", "coag-compact", "coag-full")
    return panel_of(made_up(FOLDER, contenders=names, seeds=12, broken=0.05))


def test_rates_have_intervals_and_broken_trials_count_neither_way(panel: Panel) -> None:
    assert sum(panel.broken.values()) > 0
    for name, rate in panel.rates.items():
        assert rate.n + panel.broken[name] == 12 * 4
        assert rate.share is not None
        assert rate.interval is not None
        assert rate.interval.low <= rate.share <= rate.interval.high
        assert sum(panel.rate(name, scenario).n for scenario in panel.scenarios) == rate.n


def test_an_adjusted_p_value_is_never_below_the_plain_one(panel: Panel) -> None:
    results = [*panel.compared.values(), *panel.compared_by_scenario.values()]
    pairs = [(one.p, one.p_holm) for one in results if one.p is not None]
    assert pairs
    assert all(adjusted is not None and adjusted >= p for p, adjusted in pairs)


def test_a_contender_without_a_model_is_in_the_panel_of_every_model() -> None:
    models = ("scripted:sound", "scripted:noisy")
    made = made_up(FOLDER, contenders=("rules", "plain"), seeds=2, models=models)
    one, other = panels_of(made, PROFILE)
    assert [one.model, other.model] == list(models)
    assert str(one.rates["rules"]) == str(other.rates["rules"])
    assert one.decided_by("rules") == {}
    assert sum(one.decided_by("plain").values()) == pytest.approx(1)
    alone = panel_of(made_up(FOLDER, contenders=("random", "rules"), seeds=2))
    assert alone.model == "none"


def test_a_price_is_the_sum_over_all_trials_by_the_successes(panel: Panel) -> None:
    tokens, price = panel.mean("plain", "tokens"), panel.price("plain", "tokens")
    assert tokens is not None
    assert price is not None
    rate = panel.rates["plain"]
    assert price * rate.successes == pytest.approx(tokens * rate.n)
    never = panel_of(with_outcomes(made_up(FOLDER, contenders=("plain",)), {"plain": False}))
    assert never.price("plain", "tokens") is None


def test_what_the_reference_won_and_ours_lost_comes_first_among_the_failures() -> None:
    names = ("plain", "coag-full")
    made = made_up(FOLDER, contenders=names, scenarios=("distraction",), seeds=30)
    failures, left_out = failures_first(panels_of(made, PROFILE))
    marks = [won and trial.job.contender == "coag-full" for trial, won in failures]
    assert any(marks)
    assert marks == sorted(marks, reverse=True)
    assert left_out == 0


def test_a_data_frame_has_a_row_a_trial_and_a_column_a_measure() -> None:
    frame: Any = data_frame(made_up(FOLDER, contenders=("plain", "coag-full"), seeds=2, broken=0))
    assert len(frame) == 2 * 2 * 4
    means = frame.groupby("contender")["tokens"].mean()
    assert means["coag-full"] > means["plain"]


def test_a_single_trial_is_enough() -> None:
    made = made_up(FOLDER, contenders=("coag-full",), scenarios=("evolution",), seeds=1)
    job = Job(scenario="evolution", contender="coag-full", model="scripted:fallible", seed=0)
    bare = Trial(job=job, outcome="success")
    found = panel_of(Assessment(folder=FOLDER, plan=made.plan, trials=(bare,)))
    assert found.rates["coag-full"].n == 1


# ---- findings ----


def findings(
    outcomes: Mapping[str, bool],
    *,
    model: str = "local#made-up",
    lost_in: str = "",
    seeds: int = 8,
) -> list[str]:
    """The sentences on outcomes by contender; in one scenario ours lose and the reference wins."""
    made = made_up(FOLDER, contenders=tuple(outcomes), seeds=seeds, models=(model,), broken=0)
    trials = tuple(
        trial.model_copy(
            update={
                "outcome": "success"
                if (
                    not trial.job.contender.startswith("coag")
                    if trial.job.scenario == lost_in
                    else outcomes[trial.job.contender]
                )
                else "failure"
            }
        )
        for trial in made.trials
    )
    return panel_of(Assessment(folder=made.folder, plan=made.plan, trials=trials)).findings


def place(sentences: list[str], part: str) -> int:
    return next(at for at, sentence in enumerate(sentences) if part in sentence)


def test_losses_are_named_before_gains() -> None:
    sentences = findings({"plain": False, "coag-full": True}, lost_in="evolution")
    worse = place(sentences, "coag-full did worse than plain in D evolution (0 % against 100 %")
    dearer = place(sentences, "A trial of coag-full took")
    assert worse < dearer < place(sentences, "coag-full succeeded in 24 of 32")


@pytest.mark.parametrize(
    ("outcomes", "first"),
    [
        (
            {"plain": True, "coag-full": False},
            "coag-full did worse than plain: \N{MINUS SIGN}100 points",
        ),
        (
            {"plain": True, "coag-full": True},
            "coag-full was not shown to do better than plain: 0 points",
        ),
    ],
)
def test_a_loss_is_named_and_where_nothing_differs_no_gain_is_claimed(
    outcomes: dict[str, bool], first: str
) -> None:
    assert findings(outcomes)[0].startswith(first)


def test_with_too_few_seeds_it_is_said_why_there_is_no_p_value() -> None:
    made = made_up(FOLDER, contenders=("plain", "coag-full"), scenarios=("evolution",), seeds=5)
    found = panel_of(made)
    assert found.compared["coag-full"].p is None
    assert any("No claim" in one and "5 pairs are too few" in one for one in found.findings)


def test_a_rival_without_deliberation_is_named_and_an_oracle_is_none() -> None:
    sentences = findings({"oracle": True, "plain": False, "plain-guarded": True, "coag-full": True})
    rival = place(sentences, "Without deliberation, plain-guarded (100 % of 32)")
    assert rival < place(sentences, "coag-full succeeded in")
    assert not any("oracle" in sentence for sentence in sentences)


def test_parts_that_add_nothing_and_those_that_add_successes_are_named() -> None:
    same = findings({"coag-full": True, "coag-without-retrieval": True})
    assert "No contribution to success was shown of: retrieval." in same
    better = findings({"coag-full": True, "coag-without-constraints": False})
    assert "Added successes: constraints." in better


def test_what_is_missing_is_said_first() -> None:
    made = made_up(FOLDER, contenders=("plain", "coag-full"), broken=0)
    plan = made.plan.model_copy(update={"conditions": {"token_budget": 8000}})
    part = Assessment(folder=FOLDER, plan=plan, trials=made.trials[:-3])
    first, budget = caveats(part)
    assert first == "The evaluation is not finished: 3 trials were not played."
    assert "8,000" in budget


# ---- sequences of episodes ----

ARMS = ("coag-full:kept", "coag-full:emptied")
Value = Callable[[Job, str, int], float]


def sequences(
    value: Value, *, seeds: int = 20, arms: tuple[str, ...] = ARMS, folder: Path = FOLDER
) -> Assessment:
    """Sequences of three episodes with these values, played by nobody."""
    plan = Plan(
        domain="episodes",
        contenders=arms,
        scenarios=("sudden-wall", "poisoned-memory"),
        models=("scripted:sound",),
        seeds=tuple(range(seeds)),
        conditions={"episodes": 3},
        command="made up: played by nobody",
        started_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    names = (*PROFILE.learning_measures, *PROFILE.recall_measures)
    trials = tuple(
        Trial(
            job=job,
            outcome="success",
            measures={f"{n}.{at}": value(job, n, at) for n in names for at in (1, 2, 3)},
        )
        for job in plan.jobs()
    )
    return Assessment(folder=folder, plan=plan, trials=trials)


def helped_and_harmed(job: Job, measure: str, episode: int) -> float:
    """A kept memory spares blocked moves in one scenario and costs successes in the other."""
    remembers = job.contender.endswith(":kept") and episode > 1
    if measure == "success":
        return float(not (remembers and job.scenario == "poisoned-memory" and job.seed % 5))
    if measure == "bumps":
        return float(not (remembers and job.scenario == "sudden-wall"))
    return 3.0


def learning_of(made: Assessment) -> LearningSummary:
    return LearningSummary(panel_of(made))


def test_each_episode_is_compared_pair_by_pair_and_the_later_ones_together() -> None:
    learning = learning_of(sequences(helped_and_harmed))
    bumps = ("coag-full", "sudden-wall", "bumps")
    singles = [learning.single[bumps, episode] for episode in (1, 2, 3)]
    assert [(one.difference, one.pairs) for one in singles] == [(0, 20), (-1, 20), (-1, 20)]
    assert singles[0].p_holm is None
    assert singles[1].p_holm is not None
    assert (learning.later[bumps].difference, learning.later[bumps].claims) == (-1, True)
    success = ("coag-full", "poisoned-memory", "success")
    assert learning.single[success, 2].kind == "rate"
    assert learning.later[success].difference == pytest.approx(-0.8)
    loss, gain = learning.findings()
    assert "cost coag-full in H poisoned-memory: success" in loss
    assert "brought coag-full in A sudden-wall: blocked moves an episode" in gain
    (first, *_) = learning.recalled()
    assert first[2]["recalled"] == [3.0, 3.0, 3.0]


def test_open_losses_unlike_arms_and_silence_are_said_of_sequences() -> None:
    def few_losses(job: Job, measure: str, episode: int) -> float:
        lost = job.seed < 6 and job.scenario == "sudden-wall" and episode > 1
        return float(not (measure == "success" and lost and job.contender.endswith(":kept")))

    first = next(iter(learning_of(sequences(few_losses)).findings()))
    assert "success was lower, but the test" in first
    assert "more in 0 pairs, less in 6; p = 0.031 before the correction" in first

    def unlike(job: Job, measure: str, episode: int) -> float:
        return float(job.contender.endswith(":kept") and measure == "tokens")

    first = next(iter(learning_of(sequences(unlike)).findings()))
    assert first.startswith("In episode 1 the arms differ in 2 of 12 comparisons")
    assert list(learning_of(sequences(lambda job, measure, episode: 1.0)).findings()) == [
        "No difference in any measure was shown of coag-full in A sudden-wall (the same in every "
        "pair) and H poisoned-memory (the same in every pair)."
    ]
    assert learning_of(sequences(helped_and_harmed, arms=ARMS[:1])).episodes == 0


def test_a_report_of_sequences_has_curves_on_the_page_and_in_a_file_of_their_own(
    tmp_path: Path,
) -> None:
    folder = kept(sequences(helped_and_harmed, seeds=6, folder=tmp_path / "made-up"))
    files = write_report(folder, tmp_path / "out.html", profile=PROFILE)
    (figure,) = files.figures
    assert figure.name == "out-learning-1.svg"
    assert len(list(ElementTree.parse(figure).getroot())) == 1 + 4
    assert "var(" not in figure.read_text()
    assert "](out-learning-1.svg)" in files.markdown.read_text()
    assert "What does a memory that lasts bring" in files.page.read_text()


def test_success_against_tokens_is_a_picture_with_intervals_and_words_of_its_own(
    tmp_path: Path,
) -> None:
    names = ("rules", "plain", "plain-guarded", "coag-compact", "coag-full")
    folder = kept(made_up(tmp_path / "made-up", contenders=names, seeds=12))
    files = write_report(folder, tmp_path / "out.html", profile=PROFILE)
    (figure,) = files.figures
    assert figure.name == "out-frontier-1.svg"
    drawn = figure.read_text()
    assert drawn.count("<circle") == 3  # plain, compact and full; not the guarded one
    assert "var(" not in drawn
    shown = re.search(r"!\[(.*)\]\(out-frontier-1\.svg\)", files.markdown.read_text())
    assert shown
    assert re.search(r"plain \d+ % \(\d+ to \d+ %\) at [\d.]+k? tokens", shown[1])
    assert "No other is better at the same or a lower cost: plain" in shown[1]
    assert "Right of the dashed line" in files.page.read_text()


def test_the_frontier_is_whom_no_other_exceeds_at_the_same_or_a_lower_cost() -> None:
    spots = [Spot(*one, "") for one in (("a", 3, 0.5), ("b", 1, 0.4), ("c", 2, 0.4), ("d", 3, 0.6))]
    assert [one.name for one in frontier_of(spots)] == ["b", "d"]


# ---- files ----


class Outline(HTMLParser):
    """What a document holds: tags with their attributes, ids, and references to ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.ids: list[str] = []
        self.wanted: set[str] = set()
        self.links: list[str] = []
        self.headings: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            self.attributes[name] += 1
            if name == "id":
                self.ids.append(value or "")
            elif name in ("aria-labelledby", "aria-describedby"):
                self.wanted |= set((value or "").split())
            elif name == "href":
                self.links.append(value or "")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> ReportFiles:
    """A report of a small assessment with a hostile model and hostile problems."""
    made = made_up(
        tmp_path_factory.mktemp("assessment") / "made-up",
        contenders=("random", "plain", "plain-guarded", "coag-full", "coag-without-retrieval"),
        models=(HOSTILE, "scripted:noisy"),
        seeds=7,
        broken=0.05,
    )
    trials = tuple(
        trial.model_copy(update={"problem": HOSTILE}) if trial.problem else trial
        for trial in made.trials
    )
    folder = kept(Assessment(folder=made.folder, plan=made.plan, trials=trials))
    return write_report(folder, title="A made-up sample", profile=PROFILE)


@pytest.fixture(scope="module")
def html(written: ReportFiles) -> str:
    return written.page.read_text(encoding="utf-8")


def test_the_page_holds_nothing_that_runs_or_is_fetched_and_its_policy_says_so(html: str) -> None:
    outline = Outline(html)
    active = ("script", "iframe", "object", "embed", "form", "img", "link", "base", "animate")
    assert [tag for tag in active if outline.tags[tag]] == []
    assert [name for name in outline.attributes if name.startswith("on") or name == "style"] == []
    assert all(link.startswith(("#", "./")) for link in outline.links)
    assert "javascript:1" in html
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert style is not None
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    allowed = policy[1].replace("&#39;", "'")
    assert allowed.startswith(f"default-src 'none'; style-src 'sha256-{digest}'")


def test_the_page_is_well_formed_and_every_table_and_chart_is_named(html: str) -> None:
    outline = Outline(html)
    assert [name for name, count in Counter(outline.ids).items() if count > 1] == []
    assert outline.wanted - set(outline.ids) == set()
    assert {link[1:] for link in outline.links if link[0] == "#"} <= set(outline.ids)
    assert outline.headings[0] == 1
    assert all(below <= above + 1 for above, below in pairwise(outline.headings))
    assert outline.tags["caption"] == outline.tags["table"] > 0
    assert outline.tags["desc"] == outline.tags["svg"] > 0
    assert (outline.tags["main"], outline.tags["nav"], outline.tags["header"]) == (1, 1, 1)
    headings = re.findall(r"<h[23][^>]*>([^<]*noisy[^<]*)</h", html)
    assert headings
    assert all("scripted" in heading.replace("scripted:", "") for heading in headings)


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_no_control_character_of_an_untrusted_text_gets_into_a_file(
    written: ReportFiles, suffix: str
) -> None:
    text = written.page.with_suffix(suffix).read_text(encoding="utf-8")
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f]", text) == []
    assert "\u202e" not in text


def test_untrusted_markup_is_text_in_markdown_and_tables_have_equal_rows(
    written: ReportFiles,
) -> None:
    text = written.markdown.read_text(encoding="utf-8")
    assert text.startswith("# A made-up sample\n")
    assert "<script" not in text
    assert re.findall(r"(?<!\\)\]\(javascript", text) == []
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    assert widths
    for line, width, before in zip(tables[1:], widths[1:], widths, strict=False):
        assert width == before or re.match(r"\| (contender|part|scenario|measure|what)", line)
    heads = [line for line in tables if line.startswith(("| contender", "| part"))]
    with_trials = [head for head in heads if "what it is" not in head]
    assert len(with_trials) > 6
    assert all("decided by: model / rank / only survivor" in head for head in with_trials)


def test_the_json_holds_the_tables_with_their_numbers(written: ReportFiles) -> None:
    content = json.loads(written.json.read_bytes())
    assert content["format"] == FORMAT
    blocks = {block["id"]: block for section in content["sections"] for block in section["blocks"]}
    (table,) = blocks["m1-success"]["tables"]
    assert table["columns"][:2] == ["contender", "all scenarios"]
    assert 0 <= table["rows"][0][1]["value"] <= 1


def test_the_same_trials_give_the_same_bytes(tmp_path: Path) -> None:
    folder = kept(made_up(tmp_path / "made-up", contenders=("plain", "coag-full"), seeds=3))
    first = write_report(folder, tmp_path / "one.html", profile=PROFILE)
    (tmp_path / "again").mkdir()
    second = write_report(folder, tmp_path / "again" / "one.html", profile=PROFILE)
    for one, other in zip(
        (first.page, first.json, first.markdown, *first.figures),
        (second.page, second.json, second.markdown, *second.figures),
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes()
    assert "memory that lasts" not in first.markdown.read_text()


def test_what_cannot_be_reported_on_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(AssessmentError, match="no assessment"):
        write_report(tmp_path)
    made = made_up(tmp_path / "empty", contenders=("plain",), seeds=1)
    empty = kept(Assessment(folder=made.folder, plan=made.plan, trials=()))
    with pytest.raises(ConfigurationError, match="no trial yet"):
        write_report(empty)
    folder = kept(made_up(tmp_path / "made-up", contenders=("plain",), seeds=1))
    for name in ("report", "report.md", "report.json"):
        with pytest.raises(ConfigurationError, match=r"ends in \.html"):
            write_report(folder, folder / name)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_report(folder, folder / "nowhere" / "report.html")


def test_a_failed_trial_leads_to_the_page_of_its_runs_or_to_the_command(tmp_path: Path) -> None:
    folder = kept(made_up(tmp_path / "made-up", contenders=("plain", "coag-full"), seeds=3))
    cases = [trial.case for trial in Assessment.read(folder).trials if trial.case]
    for case in cases:
        (folder / case).mkdir(parents=True)
    page = folder / RUN_PAGES / f"{cases[0].replace('/', '-')}.html"
    page.parent.mkdir()
    page.write_text("a page")
    messages: list[str] = []
    files = write_report(
        folder, tmp_path / "r.html", profile=PROFILE, run_pages=3, on_progress=messages.append
    )
    text = files.page.read_text()
    assert messages == []
    assert f'href="./made-up/{RUN_PAGES}/{page.name}"' in text
    assert text.count("page of the run") == 1
    assert f"coag report {cases[1]} -o run.html" in text


def test_a_case_outside_of_the_assessment_is_never_linked(tmp_path: Path) -> None:
    made = made_up(tmp_path / "made-up", contenders=("plain", "coag-full"), seeds=3)
    trials = tuple(
        trial.model_copy(update={"case": "../outside"}) if trial.case else trial
        for trial in made.trials
    )
    folder = kept(Assessment(folder=made.folder, plan=made.plan, trials=trials))
    (tmp_path / "outside").mkdir()
    (folder / RUN_PAGES).mkdir()
    (folder / RUN_PAGES / "..-outside.html").write_text("a page")
    assert "page of the run" not in write_report(folder).page.read_text()


@pytest.mark.long
def test_a_report_of_nine_thousand_trials_stays_below_3_mb(tmp_path: Path) -> None:
    folder = kept(made_up(tmp_path / "made-up", scenarios=SCENARIOS, seeds=44))
    assert write_report(folder, profile=PROFILE).bytes < 3_000_000
