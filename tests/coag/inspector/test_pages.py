"""Pages of views: well-formed, harmless, and saying what there is to see."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kits import aware_views as aware
from kits.corridors import recipe_walker
from kits.hostile import ESCAPES, SCRIPT, hostile_run, respelled
from kits.runs import run_of

from coag.inspector.beliefs import BeliefPoint, BeliefTrack, BeliefView, ListChange, ListTrack
from coag.inspector.compare import compare
from coag.inspector.library import Library
from coag.inspector.memory import KeptTrack, MemoryPage, read_memory, read_procedures
from coag.inspector.open_run import OpenRun
from coag.inspector.pages import Pages, filters, static_text
from coag.inspector.views import (
    CheckProgress,
    CycleView,
    Finding,
    Findings,
    FindingSort,
    RunList,
    TaskOutcome,
    Trouble,
)
from coag.inspector.why import Edge, Node, NodeSort, WhyGraph
from coag.schema import FeltRecord, Phase, RecalledState, Trust
from coag.tracing import RunFolder

pytestmark = pytest.mark.broken_trace("their records are made up")

_VOID = {"meta", "link", "input", "br", "hr", "img"}
_OURS = (("span", ("class", "title")), ("em", ("class",)))
"""The box around a character that cannot be seen, and how much of a long text is missing."""


class _Read(HTMLParser):
    """What a page consists of; it must be well formed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.shape: list[tuple[str, tuple[str, ...]]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.prompts: list[str] = []
        self._within: list[bool] = []
        """Of each open element: whether it is a piece of a prompt."""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert len(values) == len(attrs), f"<{tag}> has an attribute twice"
        if "svg" not in self.open:  # drawings have tests of their own
            self.shape.append((tag, tuple(name for name, _ in attrs)))
        self.ids += [str(values["id"])] if values.get("id") else []
        self.links += [str(values[name]) for name in ("href", "action", "src") if values.get(name)]
        piece = "part-t" in str(values.get("class", "")).split()
        self.prompts += [""] if piece else []
        if tag not in _VOID:
            self.open.append(tag)
            self._within.append(piece)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self._within.pop()

    def handle_data(self, data: str) -> None:
        if any(self._within):
            self.prompts[-1] += data


WORD = "zword"
"""Each text of the run whose pages are shown."""
CAUSE = Finding(
    sort=FindingSort.CAUSE,
    title=f"stale {WORD}",
    text=WORD,
    cycle=1,
    phase=Phase.EVALUATION,
    seq=5,
    evidence=((2, WORD), (None, WORD)),
)
BROKEN = Finding(sort=FindingSort.VIOLATION, title=WORD, text=WORD, cycle=2, seq=9)
FOUND = Findings(progress=CheckProgress.DONE, checked=412, remarks=(WORD,), found=(CAUSE, BROKEN))
GRAPH = WhyGraph(
    cycle=1,
    nodes=(
        Node(id="n1", sort=NodeSort.PERCEPT, label=WORD, link="#arrived"),
        Node(id="n2", sort=NodeSort.CANDIDATE, label=WORD, detail=WORD, link="#proposal"),
    ),
    edges=(Edge(source="n1", target="n2", label=WORD),),
    left_out=2,
    sentences=(WORD,),
)
BELIEF = BeliefView(
    has_truth=True,
    tracks=(
        BeliefTrack(
            path=WORD,
            true_path=WORD,
            points=tuple(BeliefPoint(cycle=n, believed=9 - n, true=9 - n // 2) for n in (1, 2, 3)),
            numeric=True,
            wrong=2,
        ),
        BeliefTrack(
            path=WORD,
            true_path="",
            points=(BeliefPoint(cycle=1, believed=WORD),),
            numeric=False,
        ),
    ),
    lists=(ListTrack(path=WORD, changes=(ListChange(cycle=1, added=(WORD,), removed=(WORD,)),)),),
)
STATE = RecalledState(
    gist=WORD, strength=0.2, confidence=0.4, doubtful=True, age=70.0, flashbulb=True, unasked=True
)


def _kept(memory: MemoryPage) -> MemoryPage:
    """The same of a memory with dynamics."""
    row = memory.recalls[0]
    hit = row.records[0].model_copy(update={"state": STATE})
    felt = FeltRecord(id=hit.record.id, cue=WORD, score=0.5, trust=Trust.UNTRUSTED)
    track = KeptTrack(record=hit.record, state=STATE, points=((1, 0.5), (3, 0.2)))
    changed = {"records": (hit, *row.records[1:]), "felt": (felt,)}
    rows = (row.model_copy(update=changed), *memory.recalls[1:])
    return replace(memory, recalls=rows, kept=(track,))


NAMES = (
    *("runs", "run", "cycle", "turn", "why", "beliefs", "awareness", "stood", "memory"),
    *("procedures", "findings", "compare", "choose", "error"),
)
Views = dict[str, tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Views:
    """Of each page its template, and views in which every text of the log is the word."""
    logs = tmp_path_factory.mktemp("logs")
    for name, cycles in (("one", 3), ("two", 2)):
        hostile_run(logs, name=name, cycles=cycles, text=WORD)
    (logs / "unreadable").mkdir()
    (logs / "unreadable" / "run.json").write_text("{")
    library = Library(logs)
    while library.advance(60):
        pass
    card, other = library.card("one"), library.card("two")
    run, shorter = library.open("one"), library.open("two")
    for each in (run, shorter):
        each.advance(60)
    page, cycle = library.page("one"), FOUND.placed_in_cycle(run.cycle(1))
    page = replace(page, parent=other, forks=(other,), troubles=(Trouble(text=WORD),))
    page = replace(page, rows=tuple(map(FOUND.placed_in, page.rows)))
    bare = replace(cycle.summary, outcomes={}, candidates=())
    turn = replace(cycle, phases=(), calls=cycle.phases[1].calls, summary=bare)
    memory = _kept(read_memory(run.index))
    return {
        "runs": ("runs", {"runs": library.listing()}),
        "run": ("run", {"card": card, "view": page, "findings": FOUND}),
        "cycle": ("cycle", {"card": card, "view": cycle}),
        "turn": ("cycle", {"card": card, "view": turn}),
        "why": ("why", {"card": card, "graph": GRAPH, "beside": (None, 2), "findings": (CAUSE,)}),
        "beliefs": ("beliefs", {"card": card, "belief": BELIEF, "findings": FOUND.found}),
        "memory": ("memory", {"card": card, "memory": memory, "findings": ()}),
        "procedures": ("procedures", {"card": card, "histories": read_procedures(run.index)}),
        "findings": ("findings", {"card": card, "findings": FOUND}),
        "compare": ("compare", {"comparison": compare((card, run), (other, shorter))}),
        "choose": ("choose", {"left": card, "runs": library.listing()}),
        "error": ("error", {"status": 404, "title": WORD, "text": WORD}),
        "awareness": ("awareness", {"card": replace(card, aware=True), "chosen": False}),
        "stood": ("awareness", {"card": card, "chosen": True}),
    }


def _pages(views: Views, nasty: str = "") -> dict[str, str]:
    """The pages, with something evil around every text of the log."""

    def say(text: str) -> str:  # pydantic refuses half characters in the values of records
        return f"{nasty}{text}{nasty}".encode("utf-8", "replace").decode() if text else ""

    made, stood = Pages(), {"view": aware.awareness_view(say)}
    return {
        name: made.render(
            template,
            **(stood if template == "awareness" else {}),
            **respelled(values, WORD, say(WORD)),
        )
        for name, (template, values) in views.items()
    }


@pytest.fixture(scope="module")
def plain(views: Views) -> dict[str, str]:
    return _pages(views)


@pytest.fixture
def cycle(foraged_once: RunFolder, open_alone: Callable[[RunFolder], OpenRun]) -> CycleView:
    return open_alone(foraged_once).cycle(2)


Render = Callable[..., str]


@pytest.fixture
def render(views: Views) -> Render:

    def made(name: str, **values: Any) -> str:
        return Pages().render(name, **views["cycle"][1] | values)

    return made


# ---- all pages ----


@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_well_formed_and_loads_and_runs_nothing_of_others(
    plain: dict[str, str], name: str
) -> None:
    read = _Read(plain[name])
    tags = [tag for tag, _ in read.shape]
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    names = {one for _, attributes in read.shape for one in attributes}
    assert [tags.count(tag) for tag in ("main", "h1", "title")] == [1, 1, 1]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(read.ids) == len(set(read.ids))
    assert not any(one.startswith("on") or one == "style" for one in names)
    assert not {"style", "iframe", "object", "embed", "base"} & set(tags)
    assert all(re.match("#|/(?!/)", link) for link in read.links), read.links


def test_links_of_a_page_lead_to_places_the_web_has(plain: dict[str, str]) -> None:
    run = "(/(cycles/\\d+(/why|/awareness)?|beliefs|awareness|memory|procedures|findings|events"
    run = f"/runs/[^/?#]+{run}|records/\\d+))?(\\?[^#]*)?(#[\\w.:-]+)?"
    known = re.compile(rf"/(\?.*)?|/static/[\w.]+|/compare(\?.*)?|{run}")
    for name, text in plain.items():
        read = _Read(text)
        for link in read.links:
            if link.startswith("#") and not link.startswith("#i-"):
                assert link[1:] in read.ids, (name, link)
            elif not link.startswith("#"):
                assert known.fullmatch(link), (name, link)
                assert not link.startswith("/static/") or static_text(link.removeprefix("/static/"))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.one_of(st.text(max_size=40), st.just("' autofocus onfocus='x"), st.just("\u202e\x00")))
@example(SCRIPT)
@example(ESCAPES)
@example('"><script>x</script>')
@example("\ud800\udfff\u2066\U000e0041")
def test_hostile_text_in_every_field_makes_no_element_and_no_attribute(
    views: Views, plain: dict[str, str], nasty: str
) -> None:
    for name, text in _pages(views, nasty).items():
        shape, expected = (
            [one for one in _Read(page).shape if one not in _OURS] for page in (text, plain[name])
        )
        assert shape == expected, name


def test_characters_that_steer_or_hide_are_shown_by_name(render: Render) -> None:
    page = render("error", status=500, title="x", text="a\x1b[2J\u202e\u200b\U000e0041\x9b\ud800")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u200b\U000e0041\ud800]", page)
    for name in ("ESC", "RLO", "ZWSP", "tag A", "U+009B", "U+D800"):
        assert f">{name}</span>" in page
    many = filters.visible("a\x1b<b>\u202e" * 1000)
    assert many.count("ESC") == many.count("RLO") == many.count("&lt;b&gt;") == 1000


def test_what_is_empty_says_so(views: Views, render: Render) -> None:
    empty = RunList(logs="x", cards=(), total=0, matching=0)
    undecided = WhyGraph(cycle=1, nodes=(), edges=())
    page, comparison = views["run"][1]["view"], views["compare"][1]["comparison"]
    same = replace(comparison, divergence=None, rows=(), of=0)
    unwritten = replace(page, rows=(), strip=(), of=0)
    for name, values, text in (
        ("runs", {"runs": empty}, "No runs yet"),
        ("runs", {"runs": replace(empty, total=48)}, "No run is like that"),
        ("choose", {"left": page.card, "runs": empty}, "no other run"),
        ("beliefs", {"belief": BeliefView(), "findings": ()}, "No field of the state"),
        ("memory", {"memory": MemoryPage(), "findings": ()}, "No record was written"),
        ("procedures", {"histories": ()}, "has no procedures"),
        ("why", {"graph": undecided, "beside": (None, None), "findings": ()}, "no decision"),
        ("compare", {"comparison": same}, "never differ"),
        ("run", {"view": unwritten, "findings": FOUND}, "Nothing has happened"),
    ):
        assert text in render(name, **values)


# ---- a run ----


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (CheckProgress.WAITING, "will begin shortly"),
        (CheckProgress.RUNNING, "are running"),
        (CheckProgress.DONE, "No invariant is broken"),
        (CheckProgress.FAILED, "could not be made"),
    ],
)
def test_a_run_says_how_far_its_checks_are(
    views: Views, render: Render, progress: CheckProgress, expected: str
) -> None:
    findings = Findings(progress=progress, trouble="no memory left")
    text = render("run", view=views["run"][1]["view"], findings=findings)
    assert expected in text
    assert ("data-events" in text) == (progress in (CheckProgress.WAITING, CheckProgress.RUNNING))


def test_a_run_that_is_open_is_followed_from_the_rows_it_has(views: Views, render: Render) -> None:
    page = views["run"][1]["view"]
    card = replace(page.card, is_open=True, outcome=TaskOutcome.UNKNOWN)
    view = replace(page, card=card, scanned=0.4)
    text = render("run", card=card, view=view, findings=FOUND)
    assert 'data-events="/runs/one/events?rows=3"' in text
    assert "running, or interrupted" in text
    assert "40 % so far" in text


def test_live_pieces_take_the_place_of_what_is_on_the_page(
    views: Views, plain: dict[str, str]
) -> None:
    made, (card, view, _) = Pages(), views["run"][1].values()
    pieces = made.fragment("row", card=card, row=view.rows[2]) + made.fragment("facts", card=card)
    pieces += made.fragment("findings", card=card, findings=FOUND)
    pieces += made.fragment("cost", card=card, rows=view.rows)
    ids = set(_Read(pieces).ids)
    assert {"row-3", "strip-3", "facts", "summary", "cost"} <= ids <= set(_Read(plain["run"]).ids)


def test_the_title_of_a_page_is_short_whatever_the_agent_is_called(
    views: Views, render: Render
) -> None:
    view = views["run"][1]["view"]
    info = view.info.model_copy(update={"agent": "<&>" * 100_000})
    card = replace(view.card, info=info, scenario="s" * 100_000)
    page = render("run", card=card, view=replace(view, card=card, info=info), findings=FOUND)
    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert len(title[1]) < 1_000
    assert len(page) < 400_000


# ---- a cycle ----


def _phase(page: str, name: str) -> str:
    begin = page.index(f'id="{name}"')
    return page[begin : page.index("</section>", begin)]


def test_a_cycle_shows_prompts_candidates_and_returns_whole_and_once(
    cycle: CycleView, render: Render
) -> None:
    page = render("cycle", view=cycle)
    calls = [call for phase in cycle.phases for call in phase.calls]
    sent = [part.text for call in calls for message in call.messages for part in message.parts]
    assert _Read(page).prompts == sent
    assert all("colour=blue" in _phase(page, spot) for spot in ("evaluation", "selection"))
    assert page.count("as returned by Execution above") == 1


def test_a_long_piece_is_cut_with_how_much_is_left_out_and_a_link_to_all_of_it(
    cycle: CycleView, render: Render
) -> None:
    (call,) = cycle.phases[1].calls
    text = render("cycle", view=respelled(cycle, "## Goal", "x" * 30_000))
    assert "more characters" in text
    assert f"/records/{call.seq}" in text


def test_a_recalled_record_shows_its_short_id_and_whether_a_finding_names_it(
    cycle: CycleView, render: Render
) -> None:
    retrieval = cycle.summary.retrieval
    assert retrieval is not None
    wrong = retrieval.records[0].record.id
    cause = replace(CAUSE, text=f"Recall brought record {wrong[:8]}.")
    named = replace(cycle, row=replace(cycle.row, findings=(cause,)))
    texts = [render("cycle", view=one) for one in (cycle, named)]
    assert all(f'title="{wrong}">{wrong[:8]}</code>' in text for text in texts)
    assert [text.count("named by a finding") for text in texts] == [0, 1]


def test_retrieval_shows_why_each_record_came_and_what_had_no_room(plain: dict[str, str]) -> None:
    recalls = plain["memory"].count("why: ")
    for text, times in ((_phase(plain["cycle"], "retrieval"), 1), (plain["memory"], recalls)):
        assert text.count("why: ") == text.count("no room in the prompt for 50 more") == times > 0


def test_a_long_goal_is_folded_after_its_first_lines_as_they_are(
    cycle: CycleView, render: Render
) -> None:
    goal = "One.\nTwo.\nThree.\n" + "And so on. " * 30
    text = render("cycle", view=replace(cycle, summary=replace(cycle.summary, goal=goal)))
    assert "One.\nTwo.\nThree.\n</div>" in text
    assert "the rest of the goal" in text


def test_a_cycle_that_was_done_with_a_cause_is_not_shown_as_good(
    cycle: CycleView, render: Render
) -> None:
    heads: list[str] = []
    for findings in ((), (CAUSE,)):
        page = render("cycle", view=replace(cycle, row=replace(cycle.row, findings=findings)))
        heads.append(page[page.index("<h1") : page.index("</h1>")])
    assert ["mark-good" in text for text in heads] == [True, False]
    assert ["mark-warn" in text for text in heads] == [False, True]


def test_a_phase_that_was_not_committed_is_named(cycle: CycleView, render: Render) -> None:
    cut = tuple(replace(phase, outcome=None) for phase in cycle.phases[3:])
    text = render("cycle", view=replace(cycle, phases=(*cycle.phases[:3], *cut)))
    assert text.count("The run was interrupted before this phase") == 3


# ---- what runs through a whole trace ----


def test_the_same_cause_of_several_cycles_is_listed_once_with_its_first_cycle(
    views: Views, plain: dict[str, str], render: Render
) -> None:
    late = replace(CAUSE, title="changed_environment", cycle=7, follows=6)
    found = (*(replace(CAUSE, cycle=cycle) for cycle in (4, 5, 6)), late)
    findings = Findings(progress=CheckProgress.DONE, found=found)
    for name in ("findings", "run"):
        text = render(name, view=views["run"][1]["view"], findings=findings)
        assert "cycles 4\u20136, evaluation, first in 4" in text
        assert "may follow from cycle 6" in text
        assert text.index("First went wrong:") < text.index("first in 4")
    assert '<details class="evidence" open>' in plain["findings"]
    assert "2 pieces of evidence" in plain["findings"]


def test_a_cycle_of_one_run_alone_is_not_called_the_same(views: Views, render: Render) -> None:
    comparison = views["compare"][1]["comparison"]
    row = next(one for one in comparison.rows if one.left and one.right)
    alone = (replace(row, left=None, differs=()), replace(row, right=None, differs=()))
    text = render("compare", comparison=replace(comparison, rows=alone, divergence=None))
    assert text.count("only on the right") == text.count("only on the left") == 1
    assert "the same" not in text[text.index('class="cmps"') :]


def test_what_was_added_to_a_list_and_taken_out_is_listed_by_cycle(render: Render) -> None:
    change = ListChange(cycle=1, added=("[1, 0]",), removed=("[2, 2]",), length=3)
    belief = replace(BELIEF, lists=(ListTrack(path="dirty", changes=(change,)),))
    text = render("beliefs", belief=belief, findings=FOUND.found)
    added, removed = text[text.index("Changes of the list") :].split('class="was"')
    assert "[1, 0]" in added
    assert "[2, 2]" in removed
    assert "a finding is of this cycle" in added


def test_an_agents_awareness_is_shown_with_how_much_is_left_out(plain: dict[str, str]) -> None:
    text = plain["awareness"]
    for sentence in (
        *("as cycle 4 began", "what cycle 4 itself brought is not in it", "every 2th cycle"),
        *("1 more awareness module has no room", "This state cannot be shown: ", "pursued now"),
        *("6 closed goals on which nothing open depends", "1 more are left out"),
        *("4 more changes are left out", "11 more are left out", "3 more are not drawn"),
        *("+ added", "\u2212 gone", "a failure, a reversal or a threat", 'name="cycle"'),
        'aria-current=page><span class="cell-n num">4',
    ):
        assert sentence in text, sentence


@pytest.mark.parametrize("is_aware", [False, True])
def test_only_a_run_with_awareness_leads_to_it(
    views: Views, render: Render, is_aware: bool
) -> None:
    card = replace(views["run"][1]["card"], aware=is_aware)
    memory = render("memory", card=card, memory=MemoryPage(), findings=())
    assert memory.count(">Awareness</a>") == is_aware
    assert render("cycle", card=card).count("Where it stood") == is_aware


# ---- numbers and times ----


@given(st.one_of(st.floats(), st.integers(), st.just(10**400), st.just(-(10**400))))
@example(math.nan)
@example(math.inf)
def test_every_number_is_shown_in_a_few_characters(number: float) -> None:
    for show in (filters.count, filters.amount, filters.duration, filters.decimal):
        assert 0 < len(show(number)) < 32
        if isinstance(number, float) and not math.isfinite(number):
            sign = filters.NOT_KNOWN if math.isnan(number) else filters.ENDLESS
            assert show(number).endswith(sign)
    assert 0 <= float(filters.percent(number)) <= 100


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "250 ms"),
        (59, "59.0 s"),
        (61, "1 min 01 s"),
        (7_320, "2 h 02 min"),
        (3e5, "3 d 11 h"),
    ],
)
def test_a_length_of_time_has_two_units_at_most(seconds: float, text: str) -> None:
    assert filters.duration(seconds).replace("\u202f", " ") == text


@pytest.mark.parametrize(
    ("at", "stamp"),
    [
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), "0001"),
        (datetime(9999, 12, 31, 23, 59, tzinfo=timezone(timedelta(hours=-12))), "9999"),
        (datetime(2026, 11, 21, 12, 0), "2026-11-21T12:00:00+00:00"),
        (datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=2))), "2026-11-21T10:00"),
    ],
)
def test_times_are_shown_in_utc_also_at_the_ends_of_the_calendar(at: datetime, stamp: str) -> None:
    assert filters.stamp(at).startswith(stamp)
    assert filters.moment(at)
    assert filters.clock(at)


def test_a_cycle_of_depth_auto_says_how_deeply_it_deliberated(
    tmp_path: Path, open_alone: Callable[[RunFolder], OpenRun], render: Render
) -> None:
    run = asyncio.run(run_of(recipe_walker(str(tmp_path / "logs")), "Walk to the end."))
    page = render("cycle", view=open_alone(run).cycle(1))
    assert '<span class="k">Depth</span>' in page
    assert "reflex: only step" in page
