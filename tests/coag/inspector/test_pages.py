"""Pages of views: well-formed, harmless, and saying what there is to see."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kits import aware_views as aware
from kits import views as kit
from kits.hostile import ESCAPES, SCRIPT

from coag.inspector.beliefs import BeliefView, ListChange, ListTrack
from coag.inspector.memory import MemoryPage
from coag.inspector.pages import Pages, filters, static_text
from coag.inspector.views import CheckProgress, CycleView, Findings, RunList, TaskOutcome
from coag.inspector.why import WhyGraph
from coag.schema import RetrievalOutcome

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


def _of_run(name: str, say: kit.Say = kit.as_it_is, **values: Any) -> str:
    return Pages().render(name, **{"card": kit.run_card(say), **values})


def _run_page(view: Any = None, findings: Any = None) -> str:
    view = view or kit.run_view()
    return _of_run("run", card=view.card, view=view, findings=findings or kit.findings())


def _cycle_page(view: CycleView | None = None) -> str:
    return _of_run("cycle", view=view or kit.cycle_view())


def _every_page(say: kit.Say = kit.as_it_is) -> Iterator[tuple[str, str]]:
    """Each page of views in which every text was made another by `say`."""
    card, view, found = kit.run_card(say), kit.run_view(say), kit.findings(say)
    stood, wrong = aware.awareness_view(say), {"title": say("No such run"), "text": say("None.")}
    pages: dict[str, tuple[str, dict[str, Any]]] = {
        "runs": ("runs", {"runs": kit.run_list(say)}),
        "run": ("run", {"card": view.card, "view": view, "findings": found}),
        "cycle": ("cycle", {"view": kit.cycle_view(say)}),
        "turn": ("cycle", {"view": kit.cycle_view(say, plain=True)}),
        "why": ("why", {"graph": kit.why_graph(say), "beside": (None, 5), "findings": ()}),
        "beliefs": ("beliefs", {"belief": kit.belief(say), "findings": ()}),
        "awareness": (
            "awareness",
            {"view": stood, "chosen": False, "card": replace(card, aware=True)},
        ),
        "stood": ("awareness", {"view": stood, "chosen": True}),
        "memory": ("memory", {"memory": kit.memory_page(say), "findings": ()}),
        "procedures": ("procedures", {"histories": kit.procedures(say)}),
        "findings": ("findings", {"findings": found}),
        "compare": ("compare", {"comparison": kit.comparison(say)}),
        "choose": ("choose", {"left": card, "runs": kit.run_list(say)}),
        "error": ("error", {"status": 404, **wrong}),
    }
    for name, (template, values) in pages.items():
        yield name, _of_run(template, say, **values)


_PLAIN = dict(_every_page())


# ---- all pages ----


@pytest.mark.parametrize("name", _PLAIN)
def test_every_page_is_well_formed_and_loads_and_runs_nothing_of_others(name: str) -> None:
    read = _Read(_PLAIN[name])
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


def test_links_of_a_page_lead_to_places_the_web_has() -> None:
    run = "(/(cycles/\\d+(/why|/awareness)?|beliefs|awareness|memory|procedures|findings|events"
    run = f"/runs/[^/?#]+{run}|records/\\d+))?(\\?[^#]*)?(#[\\w.:-]+)?"
    known = re.compile(rf"/(\?.*)?|/static/[\w.]+|/compare(\?.*)?|{run}")
    for name, text in _PLAIN.items():
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
def test_hostile_text_in_every_field_makes_no_element_and_no_attribute(nasty: str) -> None:
    def say(text: str) -> str:  # pydantic refuses half characters in the values of records
        return f"{nasty}{text}{nasty}".encode("utf-8", "replace").decode() if text else ""

    for name, text in _every_page(say):
        shape, plain = (
            [one for one in _Read(page).shape if one not in _OURS] for page in (text, _PLAIN[name])
        )
        assert shape == plain, name


def test_characters_that_steer_or_hide_are_shown_by_name() -> None:
    page = _of_run("error", status=500, title="x", text="a\x1b[2J\u202e\u200b\U000e0041\x9b\ud800")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u200b\U000e0041\ud800]", page)
    for name in ("ESC", "RLO", "ZWSP", "tag A", "U+009B", "U+D800"):
        assert f">{name}</span>" in page
    many = filters.visible("a\x1b<b>\u202e" * 1000)
    assert many.count("ESC") == many.count("RLO") == many.count("&lt;b&gt;") == 1000


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (_of_run("runs", runs=RunList(logs="x", cards=(), total=0, matching=0)), "No runs yet"),
        (_of_run("runs", runs=kit.run_list(cards=(), matching=0)), "No run is like that"),
        (
            _of_run(
                "choose",
                left=kit.run_card(),
                runs=RunList(logs="x", cards=(), total=0, matching=0),
            ),
            "no other run",
        ),
        (_of_run("beliefs", belief=BeliefView(), findings=()), "No field of the state"),
        (_of_run("memory", memory=MemoryPage(), findings=()), "No record was written"),
        (_of_run("procedures", histories=()), "has no procedures"),
        (
            _of_run(
                "why",
                graph=WhyGraph(cycle=1, nodes=(), edges=()),
                beside=(None, None),
                findings=(),
            ),
            "no decision",
        ),
        (
            _of_run("compare", comparison=kit.comparison(divergence=None, rows=(), of=0)),
            "never differ",
        ),
        (_run_page(kit.run_view(rows=(), strip=(), of=0)), "Nothing has happened"),
    ],
)
def test_what_is_empty_says_so(page: str, text: str) -> None:
    assert text in page


# ---- a run ----


@pytest.mark.parametrize("progress", list(CheckProgress))
def test_a_run_says_how_far_its_checks_are(progress: CheckProgress) -> None:
    expected = {
        CheckProgress.WAITING: "will begin shortly",
        CheckProgress.RUNNING: "are running",
        CheckProgress.DONE: "No invariant is broken",
        CheckProgress.FAILED: "could not be made",
    }
    text = _run_page(findings=Findings(progress=progress, trouble="no memory left"))
    assert expected[progress] in text
    assert ("data-events" in text) == (progress in (CheckProgress.WAITING, CheckProgress.RUNNING))


def test_a_run_that_is_open_is_followed_from_the_rows_it_has() -> None:
    card = kit.run_card(is_open=True, outcome=TaskOutcome.UNKNOWN)
    text = _run_page(kit.run_view(card=card, scanned=0.4))
    assert f'data-events="/runs/{kit.KEY}/events?rows=12"' in text
    assert "running, or interrupted" in text
    assert "40 % so far" in text


def test_live_pieces_take_the_place_of_what_is_on_the_page() -> None:
    made, card, view = Pages(), kit.run_card(), kit.run_view()
    pieces = made.fragment("row", card=card, row=view.rows[2]) + made.fragment("facts", card=card)
    pieces += made.fragment("findings", card=card, findings=kit.findings())
    pieces += made.fragment("cost", card=card, rows=view.rows)
    ids = set(_Read(pieces).ids)
    assert {"row-3", "strip-3", "facts", "summary", "cost"} <= ids <= set(_Read(_run_page()).ids)


def test_the_title_of_a_page_is_short_whatever_the_agent_is_called() -> None:
    view = kit.run_view()
    info = view.info.model_copy(update={"agent": "<&>" * 100_000})
    card = replace(view.card, info=info, scenario="s" * 100_000)
    page = _run_page(replace(view, card=card, info=info))
    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert len(title[1]) < 1_000
    assert len(page) < 400_000


# ---- a cycle ----


def test_the_pieces_of_a_prompt_are_shown_whole_and_in_order() -> None:
    view = kit.cycle_view(plain=True)
    sent = [part.text for message in view.calls[0].messages for part in message.parts]
    assert _Read(_cycle_page(view)).prompts == sent


def test_a_long_piece_is_cut_with_how_much_is_left_out_and_a_link_to_all_of_it() -> None:
    view = kit.cycle_view(lambda text: text + "x" * 30_000 if text.startswith("You are") else text)
    text = _cycle_page(view)
    assert "more characters" in text
    assert f"/runs/{kit.KEY}/records/77" in text


def test_what_an_action_returned_is_shown_once_on_the_page_of_its_cycle() -> None:
    view = kit.cycle_view()
    receipt = next(one for _, one in view.summary.effects if one is not None)
    brought = view.summary.returned[0].model_copy(update={"content": receipt.content})
    text = _cycle_page(replace(view, summary=replace(view.summary, returned=(brought,))))
    assert text.count("as returned by Execution above") == 1


def test_a_recalled_record_shows_its_short_id_and_whether_a_finding_names_it() -> None:
    view = kit.cycle_view()
    retrieval = view.phases[0].outcome
    assert isinstance(retrieval, RetrievalOutcome)
    wrong = retrieval.records[0].record.id
    cause = replace(kit.findings().found[0], text=f"Recall brought record {wrong[:8]}.")
    named = replace(view, row=replace(view.row, findings=(cause,)))
    texts = [_cycle_page(one) for one in (view, named)]
    assert all(f'title="{wrong}">{wrong[:8]}</code>' in text for text in texts)
    assert [text.count("named by a finding") for text in texts] == [0, 1]


def _phase(page: str, name: str) -> str:
    begin = page.index(f'id="{name}"')
    return page[begin : page.index("</section>", begin)]


def test_retrieval_shows_why_each_record_came_and_what_had_no_room() -> None:
    memory = _of_run("memory", memory=kit.memory_page(), findings=())
    for text, left_out in ((_phase(_cycle_page(), "retrieval"), 2), (memory, 1)):
        assert text.count("why: ") == 1
        assert "lexical +0.45, dense +0.38" in text
        assert f"no room in the prompt for {left_out} more" in text


def test_candidates_are_judged_and_chosen_with_their_arguments() -> None:
    page = _cycle_page()
    assert all("room=4" in _phase(page, spot) for spot in ("evaluation", "selection"))


def test_a_long_goal_is_folded_after_its_first_lines_as_they_are() -> None:
    text = _cycle_page(kit.cycle_view(goal="One.\nTwo.\nThree.\n" + "And so on. " * 30))
    assert "One.\nTwo.\nThree.\n</div>" in text
    assert "the rest of the goal" in text


def test_a_cycle_that_was_done_with_a_cause_is_not_shown_as_good() -> None:
    row, view = kit.cycle_row(4), kit.cycle_view()
    heads: list[str] = []
    for findings in ((), row.findings):
        page = _cycle_page(replace(view, row=replace(row, findings=findings)))
        heads.append(page[page.index("<h1") : page.index("</h1>")])
    assert ["mark-good" in text for text in heads] == [True, False]
    assert ["mark-warn" in text for text in heads] == [False, True]


def test_a_phase_that_was_not_committed_is_named() -> None:
    text = _cycle_page(kit.cycle_view(phases=kit.phases(broken_off=True)))
    assert text.count("The run was interrupted before this phase") == 3


# ---- what runs through a whole trace ----


def test_the_same_cause_of_several_cycles_is_listed_once_with_its_first_cycle() -> None:
    cause = kit.findings().found[0]
    found = tuple(replace(cause, cycle=cycle) for cycle in (4, 5, 6))
    late = replace(cause, title="changed_environment", cycle=7, follows=6)
    findings = kit.findings(found=(*found, late))
    for text in (_of_run("findings", findings=findings), _run_page(findings=findings)):
        assert "cycles 4\u20136, evaluation, first in 4" in text
        assert "may follow from cycle 6" in text
        assert text.index("First went wrong:") < text.index("first in 4")
    assert '<details class="evidence" open>' in _PLAIN["findings"]
    assert "2 pieces of evidence" in _PLAIN["findings"]


def test_a_cycle_of_one_run_alone_is_not_called_the_same() -> None:
    rows = kit.comparison().rows
    alone = (replace(rows[0], left=None, differs=()), replace(rows[1], right=None, differs=()))
    text = _of_run("compare", comparison=kit.comparison(rows=alone, divergence=None))
    assert text.count("only on the right") == text.count("only on the left") == 1
    assert "the same" not in text[text.index('class="cmps"') :]


def test_what_was_added_to_a_list_and_taken_out_is_listed_by_cycle() -> None:
    change = ListChange(cycle=4, added=("[1, 0]",), removed=("[2, 2]",), length=3)
    belief = replace(kit.belief(), lists=(ListTrack(path="dirty", changes=(change,)),))
    text = _of_run("beliefs", belief=belief, findings=kit.findings().found)
    added, removed = text[text.index("Changes of the list") :].split('class="was"')
    assert "[1, 0]" in added
    assert "[2, 2]" in removed
    assert "a finding is of this cycle" in added


def test_where_an_agent_stood_is_shown_with_how_much_is_left_out() -> None:
    text = _PLAIN["awareness"]
    for sentence in (
        *("as cycle 4 began", "what cycle 4 itself brought is not in it", "every 2th cycle"),
        *("1 more awareness module has no room", "This state cannot be shown: ", "pursued now"),
        *("6 closed goals on which nothing open depends", "1 more are left out"),
        *("4 more changes are left out", "11 more are left out", "3 more are not drawn"),
        *("+ added", "\u2212 gone", "a failure, a reversal or a threat", 'name="cycle"'),
        'aria-current=page><span class="cell-n num">4',
    ):
        assert sentence in text, sentence


def test_only_a_run_with_awareness_leads_to_it() -> None:
    for is_aware, count in ((False, 0), (True, 1)):
        card = replace(kit.run_card(), aware=is_aware)
        memory = _of_run("memory", card=card, memory=MemoryPage(), findings=())
        assert memory.count(">Awareness</a>") == count
        cycle = _of_run("cycle", card=card, view=kit.cycle_view())
        assert cycle.count("Where it stood") == count


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
