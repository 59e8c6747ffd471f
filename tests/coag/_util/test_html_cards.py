from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, HARM

from coag._util.html_cards import HtmlTable, html_card, html_text
from coag._util.text import visible

_TAGS = {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class Seen(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.open.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def card_of(text: str) -> str:
    table = HtmlTable(columns=("a", text), rows=[(text, None)] * 3)
    return html_card(text, facts=[(text, text)], lines=[text], table=table)


@given(st.text())
def test_no_text_makes_an_element_or_an_attribute(text: str) -> None:
    seen = Seen(card_of(text))
    assert seen.tags <= _TAGS
    assert seen.attributes == {"style"}
    assert seen.open == []


@given(st.text(st.characters(blacklist_categories=("C", "Z")), max_size=150))
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    if visible(text) == text:
        assert text in Seen(html_card(text)).text


@pytest.mark.parametrize("text", [HARM, "a" * 10_000_000, "\u202e" * 100_000, "\ud800"])
def test_hostile_text_is_bounded_and_its_controls_are_written_out(text: str) -> None:
    page = card_of(text)
    assert len(page) < 20_000
    assert not FORBIDDEN & set(page)
    page.encode("utf-8")


def test_values_are_shown_by_their_kind() -> None:
    assert html_text(None) == ""
    assert html_text(0.123456) == "0.1235"
    assert html_text(True) == "True"
    assert html_text("<b>") == "&lt;b&gt;"


def test_long_tables_are_cut_and_counted() -> None:
    page = html_card("t", table=HtmlTable(columns=("n",), rows=[(n,) for n in range(1_000)]))
    assert page.count("<tr>") == 21
    assert "and 980 more" in page
    page = html_card("t", lines=map(str, range(30)))
    assert "and 10 more" in page
    assert "<table" not in html_card("t", table=HtmlTable(columns=("n",), rows=[]))
