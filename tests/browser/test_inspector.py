"""The inspector's pages in a real browser, and the file that `coag report` writes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from kits.browsing import SIZES, Axe, PageAt, Scheme, Shot, fits, harmed, opened
from kits.gallery import Gallery, gallery
from kits.tracked import AT, heard, snapshot, thought
from playwright.sync_api import Page, expect

from coag._util.sockets import reserved_port
from coag.inspector import Inspector, write_report
from coag.schema import Redactor, TraceRecord, TurnEnd, TurnStart
from coag.tracing import RunFolder, RunInfo, list_runs, open_trace

pytestmark = [
    pytest.mark.browser,
    pytest.mark.broken_trace("some of its runs are made up, one is forged"),
]

PATIENCE = httpx.Timeout(60)
VIEWS = {
    "runs": "/",
    "no-run-like-that": "/?query=nobody",
    "run": "/runs/{0.stranded}",
    "run-fork": "/runs/{0.fork}",
    "run-plain": "/runs/{0.plain}",
    "run-butler": "/runs/{0.butler}",
    "run-long": "/runs/{0.long}?from=50",
    "run-hostile": "/runs/{0.hostile}",
    "cycle": "/runs/{0.stranded}/cycles/3",
    "cycle-impasse": "/runs/{0.butler}/cycles/5",
    "cycle-recalled": "/runs/{0.walled}/cycles/2",
    "cycle-forged": "/runs/{0.forged}/cycles/1",
    "cycle-hostile": "/runs/{0.hostile}/cycles/1",
    "turn-plain": "/runs/{0.plain}/cycles/1",
    "why": "/runs/{0.stranded}/cycles/1/why",
    "why-hostile": "/runs/{0.hostile}/cycles/1/why",
    "beliefs": "/runs/{0.stranded}/beliefs",
    "beliefs-none": "/runs/{0.plain}/beliefs",
    "beliefs-hostile": "/runs/{0.hostile}/beliefs",
    "memory": "/runs/{0.walled}/memory",
    "memory-none": "/runs/{0.plain}/memory",
    "memory-hostile": "/runs/{0.hostile}/memory",
    "procedures": "/runs/{0.scholar}/procedures",
    "procedures-hostile": "/runs/{0.hostile}/procedures",
    "findings-cause": "/runs/{0.stranded}/findings",
    "findings-violations": "/runs/{0.forged}/findings",
    "findings-none": "/runs/{0.scholar}/findings",
    "record": "/runs/{0.stranded}/records/45",
    "record-hostile": "/runs/{0.hostile}/records/5",
    "choose": "/compare?a={0.stranded}",
    "compare": "/compare?a={0.stranded}&b={0.fork}",
    "compare-hostile": "/compare?a={0.hostile}&b={0.long}",
}
"""The addresses of views, of a gallery."""
EACH_KIND = (
    *("runs", "run", "run-butler", "run-hostile", "cycle", "cycle-impasse", "turn-plain", "why"),
    *("beliefs", "memory", "procedures", "findings-cause", "findings-violations", "choose"),
    *("compare", "record"),
)
"""One of each kind of view at least; the others are looked at in one size and scheme only."""


@dataclass(frozen=True, slots=True)
class Site:
    """A served inspector over runs of every sort."""

    url: str
    shown: Gallery

    def at(self, view: str) -> str:
        """The address of one of `VIEWS`."""
        return self.url + VIEWS[view].format(self.shown)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Gallery:
    return gallery(tmp_path_factory.mktemp("inspected") / "logs")


@pytest.fixture(scope="module")
def site(shown: Gallery) -> Iterator[Site]:
    """Every run of it has been checked, so that its pages change no more."""
    with Inspector(shown.logs) as inspector:
        for key in shown.keys:
            httpx.get(f"{inspector.url}/runs/{key}/events", timeout=PATIENCE).raise_for_status()
        yield Site(inspector.url, shown)


def pressed(page: Page, key: str, heading: str) -> None:
    """Presses a key that leads to another page, until that one listens to keys itself."""
    page.keyboard.press(key)
    expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
    expect(page.get_by_role("button", name="Keys")).to_be_visible()


# ---- how it looks ----


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_view_opens_and_fits_and_has_no_serious_finding_of_axe(
    page_at: PageAt, site: Site, axe: Axe, screenshot: Shot, size: str, scheme: Scheme
) -> None:
    page = page_at(*SIZES[size], scheme)
    for view in VIEWS if (size, scheme) == ("wide", "light") else EACH_KIND:
        opened(page, site.at(view))
        screenshot(page, f"inspector-{view}-{size}-{scheme}")
        assert fits(page), view
        assert not harmed(page), view
        assert size != "wide" or view not in EACH_KIND or axe(page) == [], view


def test_what_is_folded_has_no_serious_finding_either(
    page_at: PageAt, site: Site, axe: Axe
) -> None:
    for scheme in ("light", "dark"):
        page = page_at(390, 844, scheme)
        for view in ("cycle", "cycle-impasse", "procedures", "beliefs"):
            opened(page, site.at(view))
            page.keyboard.press("o")
            assert page.locator("main details:not([open])").count() == 0
            assert fits(page), view
            assert axe(page) == [], view


def test_at_four_hundred_per_cent_no_page_scrolls_sideways(
    page_at: PageAt, site: Site, screenshot: Shot
) -> None:
    page = page_at(320, 256)
    for view in (*EACH_KIND, "cycle-hostile", "compare-hostile"):
        opened(page, site.at(view))
        page.keyboard.press("o")
        assert fits(page), view
    screenshot(opened(page, site.at("cycle")), "inspector-400-per-cent")


def test_a_folder_without_runs_says_how_to_make_one(
    page_at: PageAt, tmp_path: Path, screenshot: Shot, axe: Axe
) -> None:
    with Inspector(tmp_path) as inspector:
        page = opened(page_at(), f"{inspector.url}/")
        expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
        screenshot(page, "inspector-empty")
        assert axe(page) == []


def test_what_is_not_there_is_said_in_place(
    page_at: PageAt, site: Site, screenshot: Shot, axe: Axe
) -> None:
    page = page_at(expected=("status of 404", "status of 400"))
    for path in ("/runs/nobody", "/nowhere", "/runs/long/cycles/900", "/runs/long?from=x"):
        page.goto(site.url + path)
        expect(page.get_by_role("link", name="All runs")).to_be_visible()
        assert axe(page) == [], path
    screenshot(page, "inspector-not-there")


def test_a_log_that_is_damaged_is_shown_as_far_as_it_goes(
    page_at: PageAt, tmp_path: Path, shown: Gallery, screenshot: Shot, axe: Axe
) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    (source,) = [run for run in list_runs(shown.logs) if run.path.name == shown.butler]
    (folder / "run.json").write_bytes(source.info_path.read_bytes())
    whole = source.trace_path.read_bytes()
    lines = whole.splitlines(keepends=True)
    (folder / "trace.jsonl").write_bytes(
        b"".join([*lines[:30], b"none of ours\n", *lines[31:60], lines[60][:40]])
    )
    with Inspector(tmp_path) as inspector:
        page = opened(page_at(), f"{inspector.url}/runs/{shown.butler}")
        expect(page.locator("main .note-bad, main .note-warn").first).to_be_visible()
        expect(page.locator(".timeline > .cycle").first).to_be_visible()
        screenshot(page, "inspector-damaged")
        assert axe(page) == []


# ---- by keyboard ----


def test_the_first_key_leads_past_the_head_of_the_page(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("run"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


@pytest.mark.parametrize("view", ["runs", "run", "cycle", "compare"])
def test_tab_reaches_everything_and_shows_where_it_is(
    page_at: PageAt, site: Site, view: str
) -> None:
    page = opened(page_at(), site.at(view))
    wanted: int = page.evaluate(
        """() => {
          const all = "a[href], button, summary, input:not([type=hidden]), select, [tabindex='0']";
          const seen = [...document.querySelectorAll(all)].filter((one) => one.checkVisibility());
          seen.forEach((one, at) => { one.dataset.wanted = at; });
          return seen.length;
        }"""
    )
    reached: set[str] = set()
    for _ in range(wanted + 2):
        page.keyboard.press("Tab")
        at, ring = page.evaluate(
            """() => {
              const here = document.activeElement;
              return [here.dataset.wanted ?? "", getComputedStyle(here).outlineStyle];
            }"""
        )
        if at:
            assert ring != "none", at
            reached.add(at)
    assert len(reached) == wanted


def test_rows_are_walked_with_j_and_k_and_opened_with_enter(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("runs"))
    for key, row in (("j", 0), ("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0), ("k", 0)):
        page.keyboard.press(key)
        expect(page.locator(".run-row.here")).to_have_count(1)
        expect(page.locator(".run-row").nth(row).locator("a.row-link")).to_be_focused()
    page.keyboard.press("j")
    pressed(page, "Enter", "butler")
    page.keyboard.press("j")
    pressed(page, "Enter", "Cycle 1")
    pressed(page, "u", "butler")
    pressed(page, "u", "Runs")
    expect(page).to_have_url(f"{site.url}/")


def test_phases_are_walked_and_the_rail_says_which(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("cycle"))
    for _ in range(4):
        page.keyboard.press("j")
    expect(page.locator(".rail a[aria-current]")).to_contain_text("Proposal")
    expect(page.get_by_role("heading", name="Proposal")).to_be_in_viewport()


def test_arrows_lead_from_cycle_to_cycle(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("cycle"))
    pressed(page, "ArrowRight", "Cycle 4")
    pressed(page, "ArrowLeft", "Cycle 3")
    pressed(page, "ArrowLeft", "Cycle 2")
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page).to_have_url(f"{site.url}/")


def test_the_keys_are_told_and_leave_typing_alone(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("runs"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator(".here")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Keys").press("Enter")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("j?u")
    expect(page.get_by_role("searchbox")).to_have_value("j?u")


# ---- addresses ----


def test_filters_are_in_the_address(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("runs"))
    every = page.locator(".run-row").count()
    page.get_by_label("Outcome").select_option("failure")
    page.get_by_label("Kind").select_option("coag")
    page.get_by_label("Search").fill("dilemma")
    page.keyboard.press("Enter")
    expect(page.locator(".run-row")).to_have_count(1)
    other = opened(page_at(), page.url)
    expect(other.locator(".run-row")).to_have_count(1)
    expect(other.get_by_label("Outcome")).to_have_value("failure")
    expect(other.locator(".row-link")).to_have_attribute("href", f"/runs/{site.shown.stranded}")
    other.get_by_role("link", name="Clear").click()
    expect(other.locator(".run-row")).to_have_count(every)


def test_a_phase_has_an_address_that_opens_at_it(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("cycle") + "#evaluation")
    expect(page.get_by_role("heading", name="Evaluation")).to_be_in_viewport()
    page = opened(page_at(), site.at("cycle") + "#call-proposal-1")
    expect(page.locator("#call-proposal-1 .prompt")).to_be_in_viewport()


def test_what_was_opened_is_open_when_one_comes_back(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(), site.at("cycle"))
    page.locator("#call-proposal-1 > summary").press("Enter")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Cycle 4")
    page.go_back()
    expect(page.locator("#call-proposal-1 .prompt")).to_be_visible()
    page.reload()
    expect(page.locator("#call-proposal-1 .prompt")).to_be_visible()
    expect(page.locator("#call-reasoning-1 .prompt")).to_be_hidden()


def test_everything_works_without_scripts(page_at: PageAt, site: Site) -> None:
    page = opened(page_at(scripts=False), site.at("runs"))
    page.get_by_label("Outcome").select_option("failure")
    page.get_by_label("Kind").select_option("coag")
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".run-row")).to_have_count(1)
    page.locator(".row-link").first.click()
    expect(page.get_by_text("faulty evaluation").first).to_be_visible()
    page.get_by_role("link", name="cycle 3", exact=True).last.click()
    page.locator("#call-reasoning-1 > summary").click()
    expect(page.locator("#call-reasoning-1 .prompt")).to_be_visible()
    page.locator("a[rel=next]").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Cycle 4")
    page.get_by_role("link", name="Why this?").click()
    expect(page.locator(".figure svg")).to_be_visible()
    expect(page.get_by_role("button", name="Keys")).to_be_hidden()


# ---- live ----


@contextmanager
def recorded(logs: Path, name: str) -> Generator[Callable[..., None]]:
    """A run that is being recorded: what is yielded writes records, which are there at once."""
    info = RunInfo(id=name, kind="coag", agent="robot", model="none", started_at=AT)
    folder = RunFolder.create(logs, info, redactor=Redactor())
    with open_trace(folder, redactor=Redactor()) as trace:

        def write(*records: TraceRecord) -> None:
            for record in records:
                trace.write(record)
            trace.flush()

        yield write
    folder.finish(at=AT, redactor=Redactor())


def _cycle(number: int) -> list[TraceRecord]:
    return [snapshot(number, {"battery": 100 - number}), *thought(number)]


def test_a_run_is_followed_row_by_row_until_it_ends(
    page_at: PageAt, tmp_path: Path, screenshot: Shot
) -> None:
    with Inspector(tmp_path) as inspector:
        with recorded(tmp_path, "going-on") as write:
            write(TurnStart(at=AT, turn=1, cycle=0), heard("Clean up!"), *_cycle(1))
            page = opened(page_at(), f"{inspector.url}/runs/going-on")
            page.evaluate("window.sameDocument = true")
            expect(page.get_by_role("status")).to_have_text("live")
            page.get_by_text("How it was made").click()
            page.keyboard.press("j")
            expect(page.locator("#timeline a.row-link").first).to_be_focused()
            for number in range(2, 5):
                write(*_cycle(number))
                expect(page.locator(".timeline > .cycle")).to_have_count(number)
                expect(page.locator(".strip > li")).to_have_count(number)
            write(*_cycle(5)[:3])
            expect(page.locator(".timeline > .cycle").last).to_contain_text("not finished")
            screenshot(page, "inspector-live")
            write(*_cycle(5)[3:])
            expect(page.locator(".timeline > .cycle").last).to_contain_text("done")
            write(TurnEnd(at=AT, turn=1, cycle=5, reason="respond", response="Done."))
        expect(page.get_by_role("status")).not_to_have_text("live")
        expect(page.get_by_role("status")).to_have_text("the run has ended")
        expect(page.locator("#summary")).to_contain_text("records")
        assert page.evaluate("window.sameDocument")
        assert page.get_by_text("Recipe").or_(page.get_by_text("Built by hand")).first.is_visible()
        expect(page.locator("#timeline a.row-link").first).to_be_focused()


def test_a_connection_that_is_lost_is_told_and_found_again(page_at: PageAt, tmp_path: Path) -> None:
    with reserved_port() as port, recorded(tmp_path, "going-on") as write:
        write(TurnStart(at=AT, turn=1, cycle=0), heard("Clean up!"), *_cycle(1))
        with Inspector(tmp_path, port=port) as inspector:
            page = page_at(expected=("ERR_", "net::", "event-stream"))
            opened(page, f"{inspector.url}/runs/going-on")
            expect(page.get_by_role("status")).to_have_text("live")
        expect(page.get_by_role("status")).to_contain_text("connection lost")
        write(*_cycle(2))
        with Inspector(tmp_path, port=port):
            expect(page.get_by_role("status")).to_have_text("live")
            expect(page.locator(".timeline > .cycle")).to_have_count(2)


# ---- the report ----


@pytest.fixture(scope="module")
def report(shown: Gallery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file about the stranded run, its fork and the hostile run."""
    path = tmp_path_factory.mktemp("report") / "run.html"
    runs = {run.path.name: run for run in list_runs(shown.logs)}
    write_report([runs[shown.stranded], runs[shown.fork], runs[shown.hostile]], path)
    return path


def test_a_report_opens_from_disk_and_asks_for_nothing(
    page_at: PageAt, report: Path, shown: Gallery, screenshot: Shot, axe: Axe
) -> None:
    asked: list[str] = []
    page = page_at(1440, 900, "dark")
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    screenshot(page, "inspector-report")
    assert asked == [report.as_uri()]
    assert not harmed(page)
    assert fits(page)
    for run in (1, 2):
        for number in range(1, 6):
            expect(page.locator(f"#run-{run}-cycle-{number}")).to_have_count(1)
    expect(page.locator("#main")).to_contain_text(shown.stranded)
    expect(page.locator("#main")).to_contain_text(shown.fork)
    assert axe(page) == []


def test_a_report_is_walked_like_the_pages_and_works_without_scripts(
    page_at: PageAt, report: Path
) -> None:
    page = page_at(scripts=False)
    page.goto(report.as_uri())
    page.locator("a[href='#run-1-cycle-3']").first.click()
    expect(page.locator("#run-1-cycle-3")).to_be_in_viewport()
    page = page_at(390, 844)
    page.goto(report.as_uri())
    assert fits(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(".here")).to_have_count(1)
    page.locator("a[href='#run-1-cycle-3']").first.click()
    expect(page.locator("#run-1-cycle-3")).to_be_in_viewport()
    call = page.locator("#run-1-cycle-3-call-reasoning-1")
    call.locator("> summary").click()
    expect(call.locator(".prompt")).to_be_visible()


def test_a_hostile_log_harms_nothing_however_much_of_it_is_opened(
    page_at: PageAt, site: Site, report: Path, screenshot: Shot
) -> None:
    page = page_at(1440, 900)
    hostile = [view for view in VIEWS if view.endswith("-hostile")]
    for url in [*(site.at(view) for view in hostile), report.as_uri()]:
        page.goto(url)
        page.keyboard.press("o")
        page.keyboard.press("j")
        assert not harmed(page), url
        assert page.evaluate("document.title").isprintable(), url
        text: str = page.evaluate("document.documentElement.textContent")
        assert not set(text) & set("\x00\x07\x08\x1b\x7f\x9b\u202e\u2066\u061c"), url
    screenshot(page, "inspector-hostile")
