from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
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
from coag.inspector.pages import (
    Pages,
    filters,
    static_text,
)
from coag.inspector.views import (
    CheckProgress,
    CycleView,
    Findings,
    RunCard,
    RunList,
    RunPage,
    TaskOutcome,
)
from coag.inspector.why import WhyGraph
from coag.schema import RetrievalOutcome

_SVG = '<svg viewBox="0 0 10 10" class="plot"><path d="M0 0L9 9"/></svg>'
_VOID = {"meta", "link", "input", "br", "hr", "img"}


class _Read(HTMLParser):
    """What a page consists of; it must be well formed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.shape: list[tuple[str, tuple[str, ...]]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.prompts: list[str] = []
        self.headings: list[int] = []
        self._within: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs), f"<{tag}> has an attribute twice"
        self.shape.append((tag, tuple(name for name, _ in attrs)))
        if given.get("id"):
            self.ids.append(str(given["id"]))
        self.links += [str(given[name]) for name in ("href", "action", "src") if given.get(name)]
        classes = str(given.get("class", "")).split()
        if "part-t" in classes:
            self.prompts.append("")
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in _VOID:
            self.open.append(tag)
            self._within.append("part-t" if "part-t" in classes else "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.shape.append((tag, tuple(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag
        self._within.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if "part-t" in self._within:
            self.prompts[-1] += data


def _every_page(
    say: kit.Say = kit.as_it_is, pages: Pages | None = None
) -> Iterator[tuple[str, str]]:
    """Each page of views in which every text was made another by `say`."""
    made = pages or Pages()
    card = kit.run_card(say)
    yield "runs", made.render("runs", runs=kit.run_list(say))
    yield "run", _run_page(made, kit.run_view(say), kit.findings(say))
    yield "cycle", made.render("cycle", view=kit.cycle_view(say), card=card)
    yield "turn", made.render("cycle", view=kit.cycle_view(say, plain=True), card=card)
    yield "why", _why_page(made, kit.why_graph(say), card)
    yield "beliefs", _belief_page(made, kit.belief(say), card)
    yield "awareness", _aware_page(made, aware.awareness_view(say), replace(card, aware=True))
    yield "stood", _aware_page(made, aware.awareness_view(say), card, chosen=True)
    yield "memory", _memory_page(made, kit.memory_page(say), card)
    yield "procedures", made.render("procedures", card=card, histories=kit.procedures(say))
    yield "findings", made.render("findings", card=card, findings=kit.findings(say))
    yield "compare", made.render("compare", comparison=kit.comparison(say))
    yield "choose", made.render("choose", left=card, runs=kit.run_list(say))
    yield (
        "error",
        made.render("error", status=404, title=say("No such run"), text=say("There is none.")),
    )


def _run_page(made: Pages, view: RunPage, findings: Findings, cost: str = _SVG) -> str:
    return made.render("run", card=view.card, view=view, findings=findings, cost=cost)


def _cycle_page(made: Pages, view: CycleView) -> str:
    return made.render("cycle", view=view, card=kit.run_card())


def _why_page(made: Pages, graph: WhyGraph, card: RunCard) -> str:
    return made.render("why", card=card, graph=graph, svg=_SVG, beside=(None, 5), findings=())


def _belief_page(made: Pages, belief: BeliefView, card: RunCard, findings: Any = ()) -> str:
    return made.render("beliefs", card=card, belief=belief, svgs=[_SVG], findings=findings)


def _memory_page(made: Pages, memory: MemoryPage, card: RunCard) -> str:
    return made.render("memory", card=card, memory=memory, findings=())


def _aware_page(made: Pages, view: Any, card: RunCard, *, chosen: bool = False) -> str:
    return made.render("awareness", card=card, view=view, svgs=[_SVG, _SVG], chosen=chosen)


_PLAIN = {name: _Read(text).shape for name, text in _every_page()}


@pytest.mark.parametrize("name", list(_PLAIN))
def test_every_page_is_well_formed_with_one_title_and_one_main(name: str) -> None:
    read = _Read(dict(_every_page())[name])
    tags = [tag for tag, _ in read.shape]

    assert [tags.count(tag) for tag in ("main", "h1", "title")] == [1, 1, 1]
    assert len(read.ids) == len(set(read.ids))


def test_headings_go_down_one_level_at_a_time() -> None:
    for name, text in _every_page():
        levels = _Read(text).headings
        steps = pairwise(levels)
        assert levels[0] == 1, name
        assert all(after <= before + 1 for before, after in steps), (name, levels)


def test_nothing_is_inline_and_nothing_comes_from_elsewhere() -> None:
    for name, text in _every_page():
        read = _Read(text)
        for tag, attributes in read.shape:
            assert not any(one.startswith("on") or one == "style" for one in attributes), (
                name,
                tag,
            )
            assert tag not in ("style", "iframe", "object", "embed", "base"), name
        assert all(link.startswith(("/", "#")) for link in read.links), (name, read.links)
        assert not any(link.startswith("//") for link in read.links)


_OURS = (("span", ("class", "title")), ("em", ("class",)))
"""The box around a character that cannot be seen, and how much of a long text is missing."""
_NASTY = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [SCRIPT, ESCAPES, '" onclick="x', "' autofocus onfocus='x", "\u202eabc", "\x00"]
    ),
)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_NASTY)
@example(SCRIPT)
@example(ESCAPES)
@example('"><script>x</script>')
@example("\ud800\udfff\u2066\U000e0041")
def test_hostile_text_in_every_field_makes_no_element_and_no_attribute(nasty: str) -> None:
    def say(text: str) -> str:
        return f"{nasty}{text}{nasty}" if text else ""

    for name, text in _every_page(_well_formed(say)):
        shape = [one for one in _Read(text).shape if one not in _OURS]
        assert shape == [one for one in _PLAIN[name] if one not in _OURS], name


def _well_formed(say: Callable[[str], str]) -> kit.Say:
    """Half characters cannot get into the values of a log's records: pydantic refuses them."""
    return lambda text: say(text).encode("utf-8", "replace").decode()


def test_characters_that_steer_or_hide_are_shown_by_name() -> None:
    text = Pages().render(
        "error", status=500, title="x", text="a\x1b[2J\u202eb\u200b\U000e0041\x9b\ud800"
    )

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u200b\U000e0041\ud800]", text)
    for shown in ("ESC", "RLO", "ZWSP", "tag A", "U+009B", "U+D800"):
        assert f">{shown}</span>" in text


def test_the_pieces_of_a_prompt_are_shown_whole_and_in_order() -> None:
    view = kit.cycle_view(plain=True)
    read = _Read(_cycle_page(Pages(), view))
    sent = [part.text for message in view.calls[0].messages for part in message.parts]

    assert read.prompts == sent


def test_a_long_piece_is_cut_with_how_much_is_left_out_and_a_link_to_all_of_it() -> None:
    view = kit.cycle_view(lambda text: text + "x" * 30_000 if text.startswith("You are") else text)
    text = _cycle_page(Pages(), view)

    assert "more characters" in text
    assert f"/runs/{kit.KEY}/records/77" in text


def test_links_of_a_page_lead_to_places_the_web_has() -> None:
    known = re.compile(
        r"/(\?.*|static/[\w.]+|compare(\?.*)?"
        r"|runs/[^/?#]+(/(cycles/\d+(/why|/awareness)?|beliefs|awareness|memory|procedures|findings|records/\d+"
        r"|events))?(\?[^#]*)?(#[\w.:-]+)?)?"
    )
    for name, text in _every_page():
        read = _Read(text)
        for link in read.links:
            if link.startswith("#") and not link.startswith("#i-"):
                assert link[1:] in read.ids, (name, link)
            elif not link.startswith("#"):
                assert known.fullmatch(link), (name, link)
                if link.startswith("/static/"):
                    assert static_text(link.removeprefix("/static/"))


def test_the_same_of_several_cycles_is_told_once_with_where_it_began() -> None:
    cause = kit.findings().found[0]
    found = tuple(replace(cause, cycle=cycle) for cycle in (4, 5, 6))
    late = replace(cause, title="changed_environment", cycle=7, follows=6)
    findings = kit.findings(found=(*found, late))
    pages = Pages()

    for text in (
        pages.render("findings", card=kit.run_card(), findings=findings),
        _run_page(pages, kit.run_view(), findings),
    ):
        assert "cycles 4\u20136, evaluation, first in 4" in text
        assert "may follow from cycle 6" in text
        assert text.index("First went wrong:") < text.index("first in 4")


def test_a_cycle_of_one_run_alone_is_not_called_the_same() -> None:
    rows = kit.comparison().rows
    alone = (replace(rows[0], left=None, differs=()), replace(rows[1], right=None, differs=()))
    text = Pages().render("compare", comparison=kit.comparison(rows=alone, divergence=None))

    assert text.count("only on the right") == text.count("only on the left") == 1
    assert "the same" not in text[text.index('class="cmps"') :]


def test_what_was_added_to_a_list_and_taken_out_is_told_by_cycle() -> None:
    change = ListChange(cycle=4, added=("[1, 0]",), removed=("[2, 2]",), length=3)
    belief = replace(kit.belief(), lists=(ListTrack(path="dirty", changes=(change,)),))
    found = kit.findings().found
    text = _belief_page(Pages(), belief, kit.run_card(), found)
    table = text[text.index("Changes of the list") :]

    assert "[1, 0]" in table[: table.index('class="was"')]
    assert "[2, 2]" in table[table.index('class="was"') :]
    assert "a finding is of this cycle" in table


def test_what_an_action_returned_stands_once_on_the_page_of_its_cycle() -> None:
    view = kit.cycle_view()
    receipt = next(one for _, one in view.summary.effects if one is not None)
    brought = view.summary.returned[0].model_copy(update={"content": receipt.content})
    text = _cycle_page(Pages(), replace(view, summary=replace(view.summary, returned=(brought,))))

    assert text.count("as returned by Execution above") == 1


def test_a_recalled_record_shows_its_short_id_and_whether_a_finding_names_it() -> None:
    view = kit.cycle_view()
    retrieval = view.phases[0].outcome
    assert isinstance(retrieval, RetrievalOutcome)
    wrong = retrieval.records[0].record.id
    cause = replace(kit.findings().found[0], text=f"Recall brought record {wrong[:8]}.")
    named = replace(view, row=replace(view.row, findings=(cause,)))
    pages = Pages()
    texts = [_cycle_page(pages, one) for one in (view, named)]

    assert all(f'title="{wrong}">{wrong[:8]}</code>' in text for text in texts)
    assert [text.count("named by a finding") for text in texts] == [0, 1]


def test_retrieval_shows_why_each_record_came_and_what_had_no_room() -> None:
    pages = Pages()
    cycle = _cycle_page(pages, kit.cycle_view())
    phase = cycle[cycle.index('id="retrieval"') :]
    phase = phase[: phase.index("</section>")]
    memory = _memory_page(pages, kit.memory_page(), kit.run_card())

    for text, left_out in ((phase, 2), (memory, 1)):
        assert text.count("why: ") == 1
        assert "lexical +0.45, dense +0.38" in text
        assert f"no room in the prompt for {left_out} more" in text
        assert 'title="0123456789abcdef">01234567</code>' in text


def test_where_an_agent_stood_is_shown_with_how_much_is_left_out() -> None:
    card = replace(kit.run_card(), aware=True)
    text = _aware_page(Pages(), aware.awareness_view(), card)

    for shown in (
        "as cycle 4 began",
        "what cycle 4 itself brought is not in it",
        "every 2th cycle",
        "1 more awareness module has no room",
        "This state cannot be shown: ",
        "pursued now",
        "6 closed goals on which nothing open depends",
        "1 more are left out",
        "4 more changes are left out",
        "11 more are left out",
        "3 more are not drawn",
        "+ added",
        "\u2212 gone",
        "a failure, a reversal or a threat",
    ):
        assert shown in text, shown
    assert 'aria-current=page><span class="cell-n num">4' in text
    assert 'name="cycle"' in text


def test_only_a_run_with_awareness_leads_to_it() -> None:
    pages, card = Pages(), kit.run_card()
    for of, count in ((card, 0), (replace(card, aware=True), 1)):
        assert _memory_page(pages, MemoryPage(), of).count(">Awareness</a>") == count
        assert (
            pages.render("cycle", view=kit.cycle_view(), card=of).count("Where it stood") == count
        )


def test_candidates_are_judged_and_chosen_with_their_arguments() -> None:
    text = _cycle_page(Pages(), kit.cycle_view())
    for spot in ("evaluation", "selection"):
        phase = text[text.index(f'id="{spot}"') :]
        assert "room=4" in phase[: phase.index("</section>")], spot


def test_a_long_goal_is_folded_after_its_first_lines_as_they_are() -> None:
    goal = "One.\nTwo.\nThree.\n" + "And so on. " * 30
    view = kit.cycle_view(goal=goal)
    text = _cycle_page(Pages(), view)

    assert "One.\nTwo.\nThree.\n</div>" in text
    assert "the rest of the goal" in text


def test_evidence_is_counted_and_open() -> None:
    text = Pages().render("findings", card=kit.run_card(), findings=kit.findings())

    assert '<details class="evidence" open>' in text
    assert "2 pieces of evidence" in text


def test_a_cycle_that_was_done_with_a_cause_is_not_shown_as_good() -> None:
    row, view = kit.cycle_row(4), kit.cycle_view()
    assert row.findings
    right, wrong = replace(view, row=replace(row, findings=())), replace(view, row=row)
    pages = Pages()

    told = [_head(_cycle_page(pages, one)) for one in (right, wrong)]
    assert ["mark-good" in text for text in told] == [True, False]
    assert ["mark-warn" in text for text in told] == [False, True]


def _head(page: str) -> str:
    """The first heading of a page, with its badge."""
    return page[page.index("<h1") : page.index("</h1>")]


def test_live_pieces_take_the_place_of_what_is_on_the_page() -> None:
    card, view = kit.run_card(), kit.run_view()
    page = _Read(_run_page(Pages(), view, kit.findings()))
    made = Pages()
    pieces = (
        made.fragment("row", card=card, row=view.rows[2])
        + made.fragment("facts", card=card)
        + made.fragment("findings", card=card, findings=kit.findings())
        + made.fragment("cost", card=card, cost=_SVG)
    )
    read = _Read(pieces)

    assert {"row-3", "strip-3", "facts", "summary", "cost"} <= set(read.ids)
    assert set(read.ids) <= set(page.ids)


@pytest.mark.parametrize("progress", list(CheckProgress))
def test_a_run_says_how_far_its_checks_are(progress: CheckProgress) -> None:
    told = {
        CheckProgress.WAITING: "will begin shortly",
        CheckProgress.RUNNING: "are running",
        CheckProgress.DONE: "No invariant is broken",
        CheckProgress.FAILED: "could not be made",
    }
    found = Findings(progress=progress, trouble="no memory left")
    text = _run_page(Pages(), kit.run_view(), found)

    assert told[progress] in text
    assert ("data-events" in text) == (progress in (CheckProgress.WAITING, CheckProgress.RUNNING))


def test_a_run_that_is_open_is_followed_from_the_rows_it_has() -> None:
    card = kit.run_card(is_open=True, outcome=TaskOutcome.UNKNOWN)
    text = _run_page(Pages(), kit.run_view(card=card, scanned=0.4), kit.findings())

    assert f'data-events="/runs/{kit.KEY}/events?rows=12"' in text
    assert "running, or interrupted" in text
    assert "40 % so far" in text


def test_what_is_empty_says_so() -> None:
    pages, card = Pages(), kit.run_card()
    nothing = RunList(logs="logs", cards=(), total=0, matching=0)

    assert "No runs yet" in pages.render("runs", runs=nothing)
    assert "case-study demo" in pages.render("runs", runs=nothing)
    assert "No run is like that" in pages.render("runs", runs=kit.run_list(cards=(), matching=0))
    assert "no other run" in pages.render("choose", left=card, runs=nothing)
    assert "No field of the state" in _belief_page(pages, BeliefView(), card)
    assert "No record was written" in _memory_page(pages, MemoryPage(), card)
    assert "has no procedures" in pages.render("procedures", card=card, histories=())
    assert "no decision" in _why_page(pages, WhyGraph(cycle=1, nodes=(), edges=()), card)
    assert "never differ" in pages.render(
        "compare", comparison=kit.comparison(divergence=None, rows=(), of=0)
    )
    empty = kit.run_view(rows=(), strip=(), of=0)
    assert "Nothing has happened" in _run_page(pages, empty, kit.findings())


def test_a_phase_that_was_not_committed_is_told() -> None:
    view = kit.cycle_view(phases=kit.phases(broken_off=True))
    text = _cycle_page(Pages(), view)

    assert text.count("The run was interrupted before this phase") == 3


def test_a_text_that_cannot_be_seen_is_named_character_by_character() -> None:
    shown = filters.visible("a\x1b<b>\u202e" * 1000)

    assert shown.count("ESC") == shown.count("RLO") == 1000
    assert shown.count("&lt;b&gt;") == 1000


def test_the_title_of_a_page_is_short_whatever_the_agent_is_called() -> None:
    view = kit.run_view()
    info = view.info.model_copy(update={"agent": "<&>" * 100_000})
    card: RunCard = replace(view.card, info=info, scenario="s" * 100_000)

    page = _run_page(Pages(), replace(view, card=card, info=info), kit.findings(), "")

    title = re.search("<title>(.*?)</title>", page)
    assert title is not None
    assert len(title[1]) < 1_000
    assert len(page) < 400_000


NUMBERS = st.one_of(st.floats(), st.integers(), st.just(10**400), st.just(-(10**400)))
ENDS = [
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone(timedelta(hours=-12))),
    datetime(2026, 11, 21, 12, 0),
]


@given(number=NUMBERS)
def test_every_number_is_shown_in_a_few_characters(number: float) -> None:
    for shown in (filters.count, filters.amount, filters.duration, filters.decimal):
        assert 0 < len(shown(number)) < 32
    assert 0 <= float(filters.percent(number)) <= 100


def test_what_is_no_number_is_a_dash_and_what_has_no_end_says_so() -> None:
    for shown in (filters.count, filters.amount, filters.duration, filters.decimal):
        assert shown(math.nan) == filters.NOT_KNOWN
        assert shown(math.inf) == filters.ENDLESS


@pytest.mark.parametrize("at", ENDS)
def test_times_at_the_ends_of_the_calendar_are_shown(at: datetime) -> None:
    assert filters.stamp(at).startswith(f"{at.year:04d}")
    assert filters.moment(at)
    assert filters.clock(at)


def test_times_are_shown_in_utc() -> None:
    at = datetime(2026, 11, 21, 12, 0, tzinfo=timezone(timedelta(hours=2)))
    assert filters.stamp(at) == datetime(2026, 11, 21, 10, 0, tzinfo=UTC).isoformat()
