"""The page and the Markdown of a report, as they are written."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from kits.assessed import SCENARIOS, kept, made_up

from case_study.assess import Assessment
from case_study.report import Written, write_report

HOSTILE = 'm<script>alert(1)</script>"|`[x](javascript:1)\x1b[31m\u202e\x07'
WITH = ("random", "plain", "plain-guarded", "coag-full", "coag-without-retrieval")


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
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A report of a small assessment with a hostile model and hostile problems."""
    made = made_up(
        tmp_path_factory.mktemp("assessment") / "made-up",
        contenders=WITH,
        models=(HOSTILE, "scripted:noisy"),
        seeds=7,
        broken=0.05,
    )
    trials = tuple(
        trial.model_copy(update={"problem": HOSTILE}) if trial.problem else trial
        for trial in made.trials
    )
    folder = kept(Assessment(folder=made.folder, plan=made.plan, trials=trials))
    return write_report(folder, folder / "report.html")


@pytest.fixture(scope="module")
def html(written: Written) -> str:
    return written.page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(html: str) -> Outline:
    return Outline(html)


def test_the_page_holds_nothing_that_runs_or_that_is_fetched(html: str, outline: Outline) -> None:
    active = ("script", "iframe", "object", "embed", "form", "img", "link", "base", "animate")
    assert [tag for tag in active if outline.tags[tag]] == []
    assert [name for name in outline.attributes if name.startswith("on") or name == "style"] == []
    assert all(link.startswith(("#", "./")) for link in outline.links)
    assert "javascript:1" in html


def test_the_policy_allows_the_one_style_and_nothing_else(html: str) -> None:
    found = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert found is not None
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert (
        policy[1]
        .replace("&#39;", "'")
        .startswith(f"default-src 'none'; style-src 'sha256-{digest}'")
    )


@pytest.mark.parametrize("ending", [".html", ".md", ".json"])
def test_no_control_character_of_a_foreign_text_gets_into_a_file(
    written: Written, ending: str
) -> None:
    text = written.page.with_suffix(ending).read_text(encoding="utf-8")
    assert re.findall("[\x00-\x08\x0b-\x1f\x7f]", text) == []
    assert "\u202e" not in text
    if ending != ".json":
        assert "[U+202E RIGHT-TO-LEFT OVERRIDE]" in text.replace("\\", "")


def test_foreign_markup_is_text_in_markdown(written: Written) -> None:
    text = written.markdown.read_text(encoding="utf-8")
    assert "<script" not in text
    assert re.findall(r"(?<!\\)\]\(javascript", text) == []
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    assert widths
    for line, width, before in zip(tables[1:], widths[1:], widths, strict=False):
        assert width == before or re.match(r"\| (contender|part|scenario|measure|what)", line)


def test_ids_are_unique_and_whatever_names_another_element_finds_it(outline: Outline) -> None:
    twice = [name for name, count in Counter(outline.ids).items() if count > 1]
    assert twice == []
    assert outline.wanted - set(outline.ids) == set()
    inside = {link[1:] for link in outline.links if link.startswith("#")}
    assert inside - set(outline.ids) == set()


def test_headings_leave_out_no_level_and_every_table_and_plot_is_named(outline: Outline) -> None:
    levels = outline.headings
    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert outline.tags["caption"] == outline.tags["table"] > 0
    assert outline.tags["desc"] == outline.tags["svg"] > 0
    assert (outline.tags["main"], outline.tags["nav"], outline.tags["header"]) == (1, 1, 1)


def test_every_table_of_contenders_says_who_decided(written: Written) -> None:
    text = written.markdown.read_text(encoding="utf-8")
    heads = [line for line in text.splitlines() if line.startswith(("| contender", "| part"))]
    with_trials = [head for head in heads if "what it is" not in head]
    assert len(with_trials) > 6
    assert all("decided by: model / rank / only survivor" in head for head in with_trials)


def test_scripted_stands_wherever_a_scripted_model_is_a_heading(html: str) -> None:
    headings = re.findall(r"<h[23][^>]*>([^<]*noisy[^<]*)</h", html)
    assert headings
    assert all("scripted" in heading.replace("scripted:", "") for heading in headings)


def test_the_same_trials_give_the_same_bytes(tmp_path: Path) -> None:
    folder = kept(made_up(tmp_path / "made-up", contenders=("plain", "coag-full"), seeds=3))
    first = write_report(folder, tmp_path / "one.html")
    second = write_report(folder, tmp_path / "two.html")
    assert first.page.read_bytes() == second.page.read_bytes()
    assert first.json.read_bytes() == second.json.read_bytes()
    assert first.markdown.read_bytes() == second.markdown.read_bytes()


@pytest.mark.long
def test_a_report_of_nine_thousand_trials_stays_below_3_mb(tmp_path: Path) -> None:
    folder = kept(made_up(tmp_path / "made-up", scenarios=SCENARIOS, seeds=44))
    assert write_report(folder, tmp_path / "report.html").bytes < 3_000_000
